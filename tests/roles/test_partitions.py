"""Clients that are cut off from everybody, the chain included, while they are audited.

Client daemons run by themselves. Everything they reach goes through a proxy that can be cut.
"""

import threading
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from cuttable_proxy import CuttableProxy
from seated import ANSWER, CONTRIBUTION, World

from opfl_chain.chain.bindings.types import ChargeStatus, Outcome, Role
from opfl_chain.roles.client.client import Client
from opfl_chain.roles.settings import ClientSettings, DataSettings

STUCK_SECONDS = 900
CLIENTS = 3


class CutOffClient:
    """A client daemon in a thread, behind proxies of its own."""

    def __init__(self, world, actor, part):
        self._open = ExitStack()
        self._proxies = {}
        folder = world.folder / f"client-{part}"
        data = DataSettings(dataset="synthetic", part=part, parts=CLIENTS)
        settings = world.player.settings(actor, folder, world.job, ClientSettings, data=data)
        chain = {**settings.chain.model_dump(), "rpc_url": self._behind(settings.chain.rpc_url)}
        self.daemon = Client(
            ClientSettings.model_validate({**settings.model_dump(), "chain": chain})
        )
        announced = self.daemon.view.endpoints
        self.daemon.view.endpoints = lambda: {
            member: self._behind(url) for member, url in announced().items()
        }
        self.address = self.daemon.address
        self._thread = threading.Thread(target=self.daemon.run)
        self._thread.start()

    def _behind(self, url):
        port = urlsplit(url).port
        if port not in self._proxies:
            self._proxies[port] = CuttableProxy(port)
        return f"http://127.0.0.1:{self._proxies[port].port}"

    def cut(self):
        for proxy in list(self._proxies.values()):
            proxy.cut()

    def connect(self):
        for proxy in list(self._proxies.values()):
            proxy.connect()

    def close(self):
        self.daemon.stop()
        self._thread.join(STUCK_SECONDS)
        self.daemon.close()
        self.cut()


def wait_until(reached):
    """Wait for daemons that run by themselves; no block is mined meanwhile."""
    until = time.monotonic() + STUCK_SECONDS
    while not reached():
        assert time.monotonic() < until, "timed out waiting for a daemon"
        time.sleep(0.05)


@pytest.fixture
def world(proved, tmp_path):
    with World(proved, tmp_path, clients=1, rounds=1, max_clients=CLIENTS) as world:
        yield world


def test_who_was_cut_off_during_its_audit_and_comes_back_in_time_loses_nothing(world):
    player, view = world.player, world.member(1).view
    back, late = (CutOffClient(world, player.clients[part], part) for part in (1, 2))
    with ExitStack() as open_:
        open_.callback(back.close)
        open_.callback(late.close)

        def has(kind, client):
            intake = {
                CONTRIBUTION: world.member(0).gradient_intake,
                ANSWER: world.member(0).answer_intake,
            }
            return client.address in intake[kind].hashes(view.round(0))

        def have_enrolled():
            world.catch_up()
            return len(view.clients()) == CLIENTS

        wait_until(have_enrolled)
        world.open()
        (stays,) = world.clients
        stays.deliver()
        wait_until(lambda: has(CONTRIBUTION, back) and has(CONTRIBUTION, late))
        world.until(lambda: view.round(0).roll is not None)
        back.cut()
        late.cut()
        world.until(lambda: view.round(0).seed is not None)
        stays.deliver(ANSWER)
        world.until(lambda: len(view.undecided()) == 2, blocks=4)
        response = view.round(0).schedule.response
        player.mine_past(response - 10)
        assert not has(ANSWER, back) and not has(ANSWER, late)
        back.connect()
        wait_until(lambda: has(ANSWER, back))
        player.mine_past(response)
        late.connect()
        world.until(lambda: not view.undecided(), blocks=4)
        ends = {each.client: (each.status, each.outcome) for each in view.charges()}
        assert ends == {
            back.address: (ChargeStatus.ACQUITTED, Outcome.PASSED),
            late.address: (ChargeStatus.CHARGED, Outcome.UNANSWERED),
        }
        account = player.contracts.deposits.account
        deposit = world.member(0).job.terms.client_deposit
        left = [account(world.job, Role.CLIENT, each.address).balance for each in (back, late)]
        assert left == [deposit, 0]
        assert not view.penalties()
