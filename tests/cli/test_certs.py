"""`opfl certs`, and the use of its certificates by daemons."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

from command_line import opfl

from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.routes import Response, Route
from opfl_chain.transport.server import HttpServer
from opfl_chain.transport.tls import TlsFiles

USUAL = ("member-0", "member-1", "member-2", "server")


def certs(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return opfl("certs", *arguments)


def certs_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opfl_chain.cli", "certs", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def files_of(folder: Path, name: str) -> TlsFiles:
    return TlsFiles(folder / f"{name}.pem", folder / f"{name}.key", folder / "authority.pem")


def serve(files: TlsFiles, name: str) -> bytes:
    """Return the response of a server with this certificate to a client that expects this name."""
    route = Route("GET", "/", lambda _: Response.binary(b"hello"))
    with HttpServer("127.0.0.1:0", [route], files) as server, HttpClient(files.authority) as client:
        return client.get(server.url, name, "/", 100)


def test_members_and_server_get_certificates_and_are_told_what_goes_where(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    done = certs_process(folder)
    assert done.returncode == 0, done.stderr
    names = ("authority", *USUAL)
    assert set(contents(folder)) == {f"{name}.{kind}" for name in names for kind in ("pem", "key")}
    for name in names:
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
    lines = dict(re.split(" {2,}", line) for line in done.stdout.splitlines())
    assert lines[f"{folder}/authority.pem"] == "to every host, clients' too"
    assert lines[f"{folder}/member-1.pem, member-1.key"] == "to the host of member-1, and no other"
    assert lines[f"{folder}/authority.key"].startswith("to no host")
    assert len(lines) == 6
    for name in USUAL:
        assert serve(files_of(folder, name), name) == b"hello"


def test_nothing_is_overwritten_and_others_can_be_added(tmp_path: Path) -> None:
    assert certs(tmp_path, "--name", "member-1").returncode == 0
    before = contents(tmp_path)
    assert set(before) == {"authority.key", "authority.pem", "member-1.key", "member-1.pem"}

    again = certs(tmp_path)
    assert again.returncode == 1
    assert "member-1.key exists already and may be in use. Move it away first." in again.stderr
    assert contents(tmp_path) == before

    added = certs(tmp_path, "--name", "mirror.example", "--name", "mirror.example")
    assert added.returncode == 0, added.stderr
    assert contents(tmp_path).keys() - before.keys() == {"mirror.example.key", "mirror.example.pem"}
    assert contents(tmp_path).items() >= before.items()
    assert serve(files_of(tmp_path, "mirror.example"), "mirror.example") == b"hello"


def test_failed_issue_leaves_no_files(tmp_path: Path) -> None:
    assert certs(tmp_path, "--name", "member-0").returncode == 0
    before = contents(tmp_path)
    done = certs_process(tmp_path, "--name", "fine", "--name", "[red]Not Fine")
    assert done.returncode == 1
    assert "error: '[red]Not Fine' is not a valid certificate name" in done.stderr
    assert contents(tmp_path) == before


def test_half_an_authority_is_not_made_whole(tmp_path: Path) -> None:
    assert certs(tmp_path).returncode == 0
    (tmp_path / "authority.key").unlink()
    done = certs(tmp_path, "--name", "another")
    assert done.returncode == 1
    assert f"there is no authority in {tmp_path}" in done.stderr
    assert not (tmp_path / "another.pem").exists()
