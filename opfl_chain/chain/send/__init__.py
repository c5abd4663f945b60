"""Transactions, each executed exactly once."""
