"""Rules that accept or reject a submitted gradient: the paper's baselines, and OPFL."""
