"""Events, each handled exactly once, through reorganisations."""
