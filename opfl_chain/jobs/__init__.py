"""Whole jobs on one machine."""
