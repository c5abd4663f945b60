"""Requests from another host, for what loopback cannot test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from opfl_chain.bench.network import NamespacesUnavailable, Network
from opfl_chain.transport.certificates import Authority
from opfl_chain.transport.client import HttpClient

NAME = "member-5"
ADDRESSES = ("10.78.0.1", "10.78.0.2")
PORT = 8443
SERVE = """
import sys
from pathlib import Path
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles

address, *files = sys.argv[1:]
tls = TlsFiles(*map(Path, files))

def count(request):
    return Response.json([request.remote, len(request.body)])

with HttpServer(address, [Route("POST", "/count", count, 1 << 20)], tls) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def network() -> Iterator[Network]:
    try:
        opened = Network(ADDRESSES)
    except NamespacesUnavailable as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def test_a_server_is_asked_from_another_host(network: Network, authority: Authority) -> None:
    files = authority.issue(NAME)
    command = [sys.executable, "-c", SERVE, f"{ADDRESSES[0]}:{PORT}", *map(str, files.paths)]
    with network.start(
        0, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline().strip() == f"https://10.78.0.1:{PORT}"

        def ask() -> bytes:
            with HttpClient(authority.certificate) as client:
                url = f"https://{ADDRESSES[0]}:{PORT}"
                return client.post(url, NAME, "/count", bytes(1 << 20), 100)

        assert network.hosts[1].run(ask) == b'["10.78.0.2",1048576]'
        process.communicate()
    assert process.returncode == 0
