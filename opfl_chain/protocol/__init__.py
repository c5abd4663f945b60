"""The rules of the protocol, as docs/SPEC.md defines them: pure functions, no I/O."""
