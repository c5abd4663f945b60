"""Algorithm 1: the verdict on a round, one opened bit per audited contribution."""
