"""Access to an EVM chain."""
