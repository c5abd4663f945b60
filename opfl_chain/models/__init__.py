"""Each model once: its parameters in canonical order, a torch module and a JAX function of them.

Nothing here imports torch or jax until one of the two forms is asked for.
"""
