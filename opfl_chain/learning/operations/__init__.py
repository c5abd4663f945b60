"""The table of operations: each with all of its forms in one file."""
