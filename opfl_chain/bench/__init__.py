"""Benchmarks, side by side: the straightforward way and ours."""
