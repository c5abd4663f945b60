import warnings

# Warnings are errors here, and web3 imports a module of websockets that warns about itself.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy  # noqa: F401
