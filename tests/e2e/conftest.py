"""A whole job takes both processors, so only one runs at a time, also with `-n 2`."""

import fcntl
from contextlib import contextmanager

import pytest


def pytest_generate_tests(metafunc):
    """Make a test of every attack that a job plays by name."""
    if "attack_name" in metafunc.fixturenames:
        metafunc.parametrize("attack_name", metafunc.cls.attacks)


@pytest.fixture(scope="session")
def one_at_a_time(tmp_path_factory, worker_id):
    base = tmp_path_factory.getbasetemp()
    path = (base if worker_id == "master" else base.parent) / "e2e.lock"

    @contextmanager
    def locked():
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return locked
