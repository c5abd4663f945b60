"""Boundary rules: each with its boundary, calibration, check and circuit."""
