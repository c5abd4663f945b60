"""Generators of the files of tests/vectors: one concept per module."""
