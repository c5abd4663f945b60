"""Every way to cheat, by name, for demonstrations, tests and evaluation."""
