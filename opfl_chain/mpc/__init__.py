"""Audits on secret shares: Algorithm 1, replays under SPU, and sessions among three members."""
