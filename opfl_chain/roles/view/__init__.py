"""The state of a job, derived from the events of the chain."""
