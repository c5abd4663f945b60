"""Checks that recompute a trail."""
