"""What the files of tests/vectors hold: one concept per module."""
