"""A job at contract level: transactions are real, gradients and verdicts are made up."""
