from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from transport_support import NAME

from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.tls import TlsFiles


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def tls(authority: Authority) -> TlsFiles:
    return authority.issue(NAME)


@pytest.fixture(scope="session")
def another_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority.create(tmp_path_factory.mktemp("another")).certificate


@pytest.fixture
def secure(authority: Authority) -> Iterator[HttpClient]:
    with HttpClient(authority.certificate, seconds=60, connect_seconds=60) as client:
        yield client


@pytest.fixture
def plain() -> Iterator[HttpClient]:
    with HttpClient(None, seconds=60, connect_seconds=60) as client:
        yield client
