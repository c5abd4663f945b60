"""Calibration: boundaries from honest replays inside MPC."""
