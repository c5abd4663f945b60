"""Arithmetic in the prime field F_p, p = 2^127 - 1, compiled."""
