import os
import warnings
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

# Warnings are errors here, and web3 imports a module of websockets that warns about itself.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy  # noqa: F401

# Separate folders: workers that start together in a fresh checkout would write the same files.
set_hypothesis_home_dir(
    Path(__file__).parents[1] / ".hypothesis" / os.environ.get("PYTEST_XDIST_WORKER", "alone")
)

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile(
    "reproducible",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("reproducible")
