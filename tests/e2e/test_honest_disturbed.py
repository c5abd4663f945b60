"""Everybody is honest, but the chain, its node and a disk fail."""

import os
import signal
import time
from urllib.parse import urlsplit

from cuttable_proxy import CuttableProxy
from expectations import EveryJob
from scenario import Scenario
from small_disk import SmallDisk

from opfl_chain.bench.attacks.disturbances import Disturbance
from opfl_chain.jobs.localnet.outcome import PASSED

CONFIRMATIONS = 2
AWAY_SECONDS = 10
NOTICING = ("server", "member-0", "client-0")
"""Daemons that the node has to be away for."""
REORGANISED, CUT_OFF, FULL = 0, 1, 2
"""The round of each disturbance."""
BAD_DISK = "member-1"
CLIENTS = ("client-0", "client-1", "client-2")
LATE = "client-0"


class Disturbed(Disturbance):
    """Two reorganisations, a node that is away, and a full disk, each in a round of its own."""

    def __init__(self, net):
        super().__init__(net)
        self.undone: list[int] = []
        """Numbers of rolls, then beacons, that reorganisations took back."""
        self._away_since: float | None = None
        self._was_away = False
        self._disk = SmallDisk(net.folder / "state" / BAD_DISK)
        self._disk_is = "good"
        self._refused_before = self._seed_known_at = 0
        self._proxy = CuttableProxy(urlsplit(net.devnet.rpc_url).port)
        for settings in net.folder.glob("*.toml"):
            real, cuttable = urlsplit(net.devnet.rpc_url).netloc, f"127.0.0.1:{self._proxy.port}"
            settings.write_text(settings.read_text().replace(real, cuttable))

    def close(self):
        self._proxy.cut()
        self._disk.close()

    def __call__(self):
        round_ = self._net.view.latest_round()
        if round_ is not None and round_.over is None:
            if round_.number == REORGANISED:
                self._reorganise(round_)
            elif round_.number == CUT_OFF:
                self._cut_off(round_)
            elif round_.number == FULL:
                self._fill(round_)

    def _reorganise(self, round_):
        net = self._net
        if not self.undone and round_.roll is not None:
            net.devnet.reorg(CONFIRMATIONS)
            net.read_events()
            self.undone.append(int(net.view.round(round_.number).roll is None))
        elif len(self.undone) == 1 and round_.seed is not None:
            net.devnet.reorg(CONFIRMATIONS)
            net.read_events()
            self.undone.append(int(net.view.round(round_.number).seed is None))

    def _cut_off(self, round_):
        now = time.monotonic()
        if self._away_since is None and not self._was_away and round_.seed is not None:
            self._away_since = now
            self._proxy.cut()
        elif (
            self._away_since is not None
            and now > self._away_since + AWAY_SECONDS
            and all("no connection" in self._net.daemons[name].log for name in NOTICING)
        ):
            self._away_since, self._was_away = None, True
            self._proxy.connect()

    def _fill(self, round_):
        """A client is held back, so that it answers when the disk is full."""
        net = self._net
        member, late, refused = net.daemons[BAD_DISK], net.daemons[LATE], self._count_refused()
        if self._disk_is == "good" and round_.seed is not None:
            os.kill(late.pid, signal.SIGSTOP)
            self._seed_known_at = net.devnet.rpc.block_number()
            net.devnet.mine(CONFIRMATIONS)  # by hand: the clock waits for the client
            self._disk_is = "about to be full"
        elif self._disk_is == "about to be full" and self._knows_seed(BAD_DISK):
            self._disk.fill(member.pid)
            os.kill(late.pid, signal.SIGCONT)
            self._disk_is, self._refused_before = "full", refused
        elif self._disk_is == "full" and refused > self._refused_before:
            self._disk.free(member.pid)
            self._disk_is = "good again"

    def _knows_seed(self, name):
        health = self._net.health(name)
        return (
            health is not None
            and health["settled_at"] is not None
            and (health["settled_at"]["block"] or 0) >= self._seed_known_at
        )

    def _count_refused(self):
        """Count the bundles that the member with the disk has not taken from the client."""
        said = f'"not delivered", "member": "{self._net.addresses[BAD_DISK]}"'
        return self._net.daemons[LATE].log.count(said)


class TestHonestAndDisturbed(EveryJob):
    scenario = Scenario.of(
        Disturbed,
        clients=(None, None, None),
        rounds=3,
        audit_rate=1.0,
        confirmations=CONFIRMATIONS,
        seed=1,
        score=True,
    )

    def test_everybody_passes_in_every_round(self, outcome):
        verdicts = {outcome.verdict(t, name) for t in range(outcome.rounds) for name in CLIENTS}
        assert verdicts == {PASSED}

    def test_nothing_is_held(self, outcome):
        assert outcome.held() == set()

    def test_every_model_is_scored(self, played):
        assert set(played.accuracies) == set(range(4))

    def test_reorganisation_below_the_confirmations_takes_back_work_that_is_done_again(
        self, played, outcome
    ):
        assert played.meanwhile.undone == [1, 1]
        assert outcome.participants(REORGANISED) == set(CLIENTS)

    def test_node_that_is_away_for_ten_seconds_is_waited_for(self, played, outcome):
        for name in NOTICING:
            reasons = [str(event.get("reason")) for event in played.events(name)]
            assert any("no connection" in reason for reason in reasons), name
        assert outcome.attested(CUT_OFF) == {"member-0", "member-1", "member-2"}

    def test_member_with_a_full_disk_takes_nothing_until_it_can_store(self, played, outcome):
        """It confirms a bundle only when it is on disk, and clients try again."""
        refused = [
            event
            for event in played.events(LATE)
            if event["event"] == "not delivered"
            and event["member"] == outcome.address(BAD_DISK)
            and "refused with status" in str(event["reason"])
        ]
        assert refused
        assert outcome.attested(FULL) == {"member-0", "member-1", "member-2"}


class DeepFork(Disturbance):
    """The first round is taken back whole, in the middle of its audits, and opened again."""

    def __init__(self, net):
        super().__init__(net)
        self.openings: list[bytes] = []

    def __call__(self):
        net, round_ = self._net, self._net.view.latest_round()
        if round_ is None or round_.number:
            return
        if round_.opening not in self.openings:
            self.openings.append(round_.opening)
        if len(self.openings) == 1 and round_.seed is not None and round_.over is None:
            net.devnet.reorg(net.devnet.rpc.block_number() - round_.opened_at + 1)
            net.devnet.mine()  # by hand: a fork shows when it is longer


class TestForkBeyondConfirmations(EveryJob):
    """All have acted on what is taken back, for it had its confirmations."""

    scenario = Scenario.of(
        DeepFork,
        clients=(None, None, None),
        rounds=2,
        audit_rate=1.0,
        audit="proved",
        confirmations=1,
    )

    def test_round_was_opened_twice(self, played):
        assert len(played.meanwhile.openings) == 2

    def test_everybody_passes_in_every_round(self, outcome):
        verdicts = {outcome.verdict(t, name) for t in range(outcome.rounds) for name in CLIENTS}
        assert verdicts == {PASSED}

    def test_nothing_is_held(self, outcome):
        assert outcome.held() == set()
