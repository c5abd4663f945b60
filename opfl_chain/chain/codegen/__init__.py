"""Typed Python classes for contracts, generated from their ABI."""
