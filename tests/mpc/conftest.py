"""Small programs, compiled once, and three parties in processes, reused from test to test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from mpc_support import Programs, compile_programs

from opfl_chain.mpc.local_committee import LocalCommittee

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile("mpc", derandomize=True, deadline=None)
settings.load_profile("mpc")


@pytest.fixture(scope="session")
def programs() -> Programs:
    return compile_programs()


@pytest.fixture(scope="session")
def local() -> Iterator[LocalCommittee]:
    with LocalCommittee() as committee:
        yield committee
