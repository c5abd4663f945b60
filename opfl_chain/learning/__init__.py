"""Models, training steps, optimizers and data sets."""
