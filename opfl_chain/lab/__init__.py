"""Calibration and evaluation of boundaries."""
