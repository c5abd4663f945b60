"""A whole job on one machine: a chain, and every role in a process of its own."""
