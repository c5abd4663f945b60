"""A whole job takes both processors, so only one runs at a time, whatever the number of workers."""

import fcntl
from contextlib import contextmanager

import pytest

from opfl_chain.jobs.localnet.daemon import template_of_daemons
from opfl_chain.system.template import can_fork


def pytest_generate_tests(metafunc):
    """Make a test of every attack that a job plays by name."""
    if "attack_name" in metafunc.fixturenames:
        metafunc.parametrize("attack_name", metafunc.cls.attacks)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Load what daemons need once for all jobs; tests of the demo have jobs that load their own."""
    if not can_fork():
        yield None
        return
    with template_of_daemons(tmp_path_factory.mktemp("template") / "template.log") as found:
        yield found


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
