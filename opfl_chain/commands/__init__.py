"""The sub-commands of `opfl`, one file each."""
