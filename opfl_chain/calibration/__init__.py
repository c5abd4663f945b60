"""How far honest replays are from what honest clients commit to, measured inside MPC."""
