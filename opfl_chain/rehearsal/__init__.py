"""A job at contract level: every transaction is real, gradients and verdicts are made up.

It shows and measures what the contracts do before anything trains.
"""
