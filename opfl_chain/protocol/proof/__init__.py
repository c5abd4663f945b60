"""Proofs on secret shares: a client proves its step, members answer linear queries."""
