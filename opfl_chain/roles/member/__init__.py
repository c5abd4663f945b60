"""The committee member."""
