"""The rules of the protocol, as docs/SPEC.md defines them: pure functions, no I/O.

Nothing here imports another part of the package, a chain client or a learning framework, so an
auditor can read and run this folder alone.
"""
