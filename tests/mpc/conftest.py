"""Small programs, compiled once, and three parties in processes, reused from test to test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mpc_support import Programs, compile_programs

from opfl_chain.mpc.local import LocalCommittee


@pytest.fixture(scope="session")
def programs() -> Programs:
    return compile_programs()


@pytest.fixture(scope="session")
def local() -> Iterator[LocalCommittee]:
    with LocalCommittee() as committee:
        yield committee
