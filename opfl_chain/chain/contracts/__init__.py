"""Compilation of the contracts, and the base classes of their Python bindings."""
