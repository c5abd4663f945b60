import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

# Warnings are errors here, and web3 imports a module of websockets that warns about itself.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import websockets.legacy  # noqa: F401

HERE = Path(__file__).parent

# Workers and their processes share the cores: threads of torch would wait for each other in busy
# loops. Read when torch is loaded, here and in processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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

LONG = (
    "e2e",
    "model/test_protocol_model.py",
    "cli/test_demo.py",
    "mpc/test_party_failures.py",
    "cli/test_job.py",
    "api/test_docs.py",
    "examples/test_examples.py",
    "plugins/test_plugin_package.py",
    "trail",
    "paper/test_lab.py",
    "cli/test_chain_commands.py",
    "lab/boundary/test_evaluate_command.py",
    "lab/calibration/test_calibrate_command.py",
    "bench/test_audit_bench.py",
    "mpc/test_party_tls.py",
    "transport/test_limits.py",
    "api/test_names.py",
    "cli/test_certs.py",
    "fuzz/test_half_connections.py",
)
"""The longest tests come first, so that no worker begins it when the other has nothing left."""
SHARED = ("e2e", "trail")
"""Folders whose modules share fixtures, or the processors."""


def group_of(item: pytest.Item) -> str:
    """Tests that share fixtures run in one worker, so that each fixture is made once."""
    path = item.path.relative_to(HERE)
    return path.parts[0] if path.parts[0] in SHARED else str(path)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {group: place for place, group in enumerate(LONG)}
    items.sort(key=lambda item: places.get(group_of(item), len(LONG)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
