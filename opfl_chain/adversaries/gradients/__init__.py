"""Gradients that cheating clients submit."""
