"""The files of a job on one machine: keys, certificates and a settings file for every role."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eth_account.signers.local import LocalAccount

from opfl_chain.chain.devnet import Devnet
from opfl_chain.chain.keys import SCRYPT_CHEAP, create_bls_key, create_ethereum_key
from opfl_chain.jobs.localnet.daemon import Daemon
from opfl_chain.jobs.localnet.plan import Plan
from opfl_chain.mpc.session.ranks import MEMBERS, certificate_name
from opfl_chain.system.files import write_atomically
from opfl_chain.transport.certificates import Authority

SERVER = "server"
_REQUESTS_PER_SECOND = 2000
_JOIN_SECONDS = 1800
"""Audits are left when they are not wanted any more, not because a peer or the machine is slow."""


@dataclass(frozen=True)
class JobFolder:
    """Writes the files of a job. Settings are TOML as a user would write it."""

    path: Path
    plan: Plan
    devnet: Devnet
    job: int

    @property
    def addresses_needed(self) -> int:
        return 1 + 2 * self._roster + len(self.plan.clients)

    @property
    def _roster(self) -> int:
        return MEMBERS + len(self.plan.standbys)

    def write(
        self,
        server: LocalAccount,
        members: Sequence[LocalAccount],
        clients: Sequence[LocalAccount],
        at: Sequence[str],
    ) -> list[Daemon]:
        """Write everything; return the daemons to start: server, members, standbys, clients.

        `members` are the roster, with the standbys at its end. `at` are free addresses, as many as
        `addresses_needed`.
        """
        write_atomically(self.path / "password", secrets.token_hex(16) + "\n", mode=0o600)
        authority = Authority.create(self.path / "certs")
        for name in (SERVER, *map(certificate_name, range(self._roster))):
            authority.issue(name)
        addresses = iter(at)
        server_at = next(addresses)
        url = f"https://{server_at}"
        daemons = [self._server(server, server_at)]
        mpc = [next(addresses) for _ in range(self._roster)]
        for rank, account in enumerate(members):
            daemons.append(self._member(rank, account, next(addresses), mpc, url))
        for number, account in enumerate(clients):
            daemons.append(self._client(number, account, next(addresses), len(clients), url))
        return daemons

    def _server(self, account: LocalAccount, at: str) -> Daemon:
        plan = self.plan
        lines = [_entry("test_dataset", plan.dataset if plan.score else None)]
        lines += [_entry("cheat", plan.server)]
        return self._daemon("server", SERVER, account, at, lines, certificate=SERVER)

    def _member(
        self, rank: int, account: LocalAccount, at: str, mpc: Sequence[str], url: str
    ) -> Daemon:
        name = roster_name(rank)
        create_bls_key(self.path / f"{name}-bls.json", self._password, scrypt_n=SCRYPT_CHEAP)
        lines = [
            _entry("bls_keystore", f"{name}-bls.json"),
            f"mpc_addresses = [{', '.join(map(_quoted, mpc))}]",
            f"mpc_join_seconds = {_JOIN_SECONDS}",
            _entry("cheat", [*self.plan.members, *self.plan.standbys][rank]),
            _entry("server", url),
        ]
        certificate = certificate_name(rank)
        return self._daemon("committee", name, account, at, lines, certificate=certificate)

    def _client(self, number: int, account: LocalAccount, at: str, parts: int, url: str) -> Daemon:
        plan, name = self.plan, f"client-{number}"
        lines = [
            _entry("cheat", plan.clients[number]),
            _entry("server", url),
        ]
        data = ["", "[data]", _entry("dataset", plan.dataset)]
        data += [f"part = {number}", f"parts = {parts}"]
        return self._daemon("client", name, account, at, lines, data)

    def _daemon(
        self,
        role: str,
        name: str,
        account: LocalAccount,
        at: str,
        lines: Sequence[str | None],
        sections: Sequence[str | None] = (),
        certificate: str | None = None,
    ) -> Daemon:
        keystore = self.path / f"{name}.json"
        create_ethereum_key(keystore, self._password, account=account, scrypt_n=SCRYPT_CHEAP)
        chain = [
            "",
            "[chain]",
            _entry("rpc_url", self.devnet.rpc_url),
            _entry("ws_url", self.devnet.ws_url),
            _entry("deployment", "deployment.json"),
            f"job = {self.job}",
            f"confirmations = {self.plan.confirmations}",
            _entry("time", "virtual"),
            "",
            "[limits]",  # all daemons have one address
            f"requests_per_second = {_REQUESTS_PER_SECOND}",
            f"burst = {_REQUESTS_PER_SECOND}",
            "",
            "[account]",
            _entry("keystore", keystore.name),
            _entry("password_file", "password"),
            "",
            "[tls]",
            _entry("authority", "certs/authority.pem"),
        ]
        if certificate is not None:
            chain += [
                _entry("certificate", f"certs/{certificate}.pem"),
                _entry("private_key", f"certs/{certificate}.key"),
            ]
        first = [*lines, _entry("state", f"state/{name}"), _entry("listen", at)]
        text = "\n".join(line for line in (*first, *chain, *sections) if line is not None)
        settings = self.path / f"{name}.toml"
        write_atomically(settings, text + "\n")
        scheme = "https" if certificate else "http"
        return Daemon(role, name, settings, f"{scheme}://{at}", certificate or "")

    @property
    def _password(self) -> str:
        return (self.path / "password").read_text().strip()


def roster_name(number: int) -> str:
    """Return the name of a place on the roster: members first, then standbys."""
    return f"member-{number}" if number < MEMBERS else f"standby-{number - MEMBERS}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _entry(name: str, value: str | None) -> str | None:
    return None if value is None else f"{name} = {_quoted(value)}"
