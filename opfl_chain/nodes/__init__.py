"""Client, committee member and server: one role per process, driven by the chain's events."""
