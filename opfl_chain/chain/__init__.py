"""Everything between the protocol and an EVM chain.

- `devnet`: start or attach to a chain; `rpc`: talk to it; `errors`: all that can go wrong
- `compiler`, `codegen`, `bindings`: contracts as typed Python; `deployment`: on a chain
- `sender`: every intent executed once; `cursor`, `heads`: every event handled once
- `keys`, `bls`: what participants sign with
"""
