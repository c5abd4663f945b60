import os
import warnings
from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

# Warnings are errors here, and web3 imports a module of websockets that warns about itself.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy  # noqa: F401

# Workers that start at once in a fresh checkout would write the same files of hypothesis.
set_hypothesis_home_dir(
    Path(__file__).parents[1] / ".hypothesis" / os.environ.get("PYTEST_XDIST_WORKER", "alone")
)
