"""Attacks from outside: a fork of the chain, idle strangers, and a node that lies."""

from __future__ import annotations

import json
import os
import resource
import signal
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

from eth_abi.abi import encode

from opfl_chain.adversaries.strangers import STRANGERS
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.roles.view.records import RoundView
from opfl_chain.system.closing import Closing
from opfl_chain.system.files import write_atomically

CONNECTIONS: Final = 300
"""Connections to each attacked port: more than a server holds of strangers."""
ADDRESSES: Final = 200
CHOSEN: Final = b"a message that suits the node"
_REPLACED: Final = "was replaced"
"""Part of the reason that the clock gives for standing still after a fork."""
_MESSAGE: Final = "0x" + keccak256(b"message(uint96)")[:4].hex()


class Disturbance(Closing):
    """An event beside the daemons. A localnet calls it at every block, and in between."""

    def __init__(self, net: Localnet) -> None:
        self._net = net

    def __call__(self) -> None:
        """Do nothing, by default."""

    def close(self) -> None:
        """Release resources; by default there are none."""

    @property
    def told(self) -> str:
        """Return the events that took place, for the row of the attack."""
        return ""

    @property
    def took_place(self) -> bool:
        """True if the attack could be played: one that could not is no evidence."""
        return True


class Fork(Disturbance):
    """Takes back the end of round 0 when round 1 has its roll, and lets the deadline pass.

    So round 0 is void, and round 1 opens again, at another model, when everybody has contributed to
    it already.
    """

    def __init__(self, net: Localnet) -> None:
        super().__init__(net)
        self._depth = 0
        self._undone: RoundView | None = None

    def __call__(self) -> None:
        net = self._net
        if self._undone is not None and _REPLACED in net.clock.waits_for:
            # A daemon that waits for its transaction learns of the fork only when that is mined.
            if net.devnet.has_pending():
                net.devnet.mine()
            return
        first, second = net.view.round(0), net.view.round(1)
        if self._undone is not None or first is None or second is None or second.roll is None:
            return
        if first.over_at is None:
            return
        self._undone = second
        self._depth = net.devnet.rpc.block_number() - first.over_at + 1
        with self._everybody_stopped():  # nobody sends again what the fork drops
            net.devnet.reorg(self._depth)
            net.devnet.rpc.request("anvil_dropAllTransactions")
            net.devnet.mine(max(1, first.schedule.finalise + 1 - net.devnet.rpc.block_number()))
        net.read_events()

    @contextmanager
    def _everybody_stopped(self) -> Iterator[None]:
        daemons = [each for each in self._net.daemons.values() if each.started and each.alive]
        for daemon in daemons:
            os.kill(daemon.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for daemon in daemons:
                os.kill(daemon.pid, signal.SIGCONT)

    @property
    def took_place(self) -> bool:
        before, after = self._undone, self._net.view.round(1)
        return before is not None and after is not None and after.model_hash != before.model_hash

    @property
    def told(self) -> str:
        before, after = self._undone, self._net.view.round(1)
        if before is None or after is None or after.opening == before.opening:
            return "the fork undid no round"
        model = "the same model" if after.model_hash == before.model_hash else "another model"
        return f"a fork of {self._depth} blocks, after which round 1 opened again at {model}"


class IdleStrangers(Disturbance):
    """Holds idle connections to ports of members and of the server for the whole job."""

    def __init__(self, net: Localnet) -> None:
        super().__init__(net)
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._limits[1], self._limits[1]))
        attack = STRANGERS["idle-connections"]
        settings = tomllib.loads((net.folder / "member-0.toml").read_text())
        ports = [urlsplit(net.daemons[name].url).netloc for name in ("member-1", "server")]
        with ExitStack() as attacks:
            self._attacks = [
                attacks.enter_context(attack(at, CONNECTIONS, ADDRESSES))
                for at in (*ports, *settings["mpc_addresses"])
            ]
            self._open = attacks.pop_all()

    def close(self) -> None:
        self._open.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)

    @property
    def took_place(self) -> bool:
        return all(attack.opened >= CONNECTIONS for attack in self._attacks[:2])

    @property
    def told(self) -> str:
        opened = sum(attack.opened for attack in self._attacks)
        return f"{opened:,} idle connections from {ADDRESSES} addresses"


class LyingNode(Disturbance):
    """The node of a member, which hands it any message as the one to sign with its BLS key."""

    VICTIM: Final = "member-0"

    def __init__(self, net: Localnet) -> None:
        super().__init__(net)
        node, beacon = net.devnet.rpc_url, net.job.contracts.beacon.address.lower()
        self.asked = self.forwarded = 0

        def lie(request: Any, answer: Any) -> Any:
            self.forwarded += 1
            call = request["params"][0] if request["method"] == "eth_call" else {}
            if str(call.get("to", "")).lower() != beacon:
                return answer
            if not str(call.get("data") or call.get("input")).startswith(_MESSAGE):
                return answer
            self.asked += 1
            return {**answer, "result": "0x" + encode(["bytes"], [CHOSEN]).hex()}

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = json.loads(body)
                forwarded = urllib.request.Request(node, body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(forwarded) as response:
                    answers = json.loads(response.read())
                if isinstance(asked, list):
                    by_id = {each["id"]: each for each in asked}
                    said = json.dumps([lie(by_id[each["id"]], each) for each in answers])
                else:
                    said = json.dumps(lie(asked, answers))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said.encode())

            def log_message(self, *given: Any) -> None:
                del given

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, name="node", daemon=True)
        self._thread.start()
        settings = net.folder / f"{self.VICTIM}.toml"
        lines = settings.read_text().replace(node, f"http://127.0.0.1:{self._server.server_port}")
        kept = [line for line in lines.splitlines() if not line.startswith("ws_url")]
        write_atomically(settings, "\n".join(kept) + "\n")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def took_place(self) -> bool:
        return self.forwarded > 0

    @property
    def told(self) -> str:
        rounds = self._net.view.rounds()
        seeds = sum(each.seed is not None for each in rounds)
        return (
            f"of {self.forwarded:,} requests to its node the member made {self.asked} for the"
            f" message to sign, and"
            f" {seeds} of {len(rounds)} beacons verified on chain"
        )
