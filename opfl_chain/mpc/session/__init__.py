"""Sessions among three members: meeting, links, messages and runtime."""
