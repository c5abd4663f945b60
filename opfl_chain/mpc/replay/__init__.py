"""Training steps as SPU programs."""
