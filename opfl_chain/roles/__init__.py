"""Client, committee member and server: one role per process, driven by the events of the chain."""
