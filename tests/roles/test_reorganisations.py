"""Reorganisations of every depth, in every phase of a round: real members on a real chain.

Members wait for two confirmations. A depth up to that undoes what they have sent and not what they
have acted on; a greater one undoes both, in the end the opening of the round itself.
"""

import pytest
from seated import ANSWER, CONTRIBUTION, TickingMember, World

from opfl_chain.chain.bindings.types import RoundStatus
from opfl_chain.protocol.identifiers import round_id_of
from opfl_chain.protocol.verdict import Verdict

CONFIRMATIONS = 2
BELOW, ABOVE = (1, CONFIRMATIONS), (CONFIRMATIONS + 1, CONFIRMATIONS + 2)
PHASES = ("roll", "beacon", "attest", "finalise")


class Signing(TickingMember):
    """Notes every statement about an opening that is not the chain's."""

    def __init__(self, settings):
        super().__init__(settings)
        self.astray = []

    def sign(self, statement):
        if (opening := getattr(statement, "opening", None)) is not None:
            round_id = round_id_of(self.job.id, statement.round)
            if self.job.contracts.rounds.round(round_id).opening != opening:
                self.astray.append(statement)
        return super().sign(statement)


class Shaken(World):
    """A job whose chain is reorganised."""

    def __init__(self, player, folder):
        members = dict.fromkeys(range(4), Signing)
        super().__init__(player, folder, cheats=members, confirmations=CONFIRMATIONS)
        self.open()

    @property
    def head(self):
        return self.player.rpc.block_number()

    def is_past(self, phase, block="latest"):
        """Return whether the chain has the end of a phase, confirmed or not."""
        contracts, round_id = self.player.contracts, self.round.id
        stated = contracts.rounds.round(round_id, block=block)
        return {
            "roll": any(stated.root),
            "beacon": any(contracts.beacon.seed_of(round_id, block=block)),
            "attest": any(stated.verdict_hash),
            "finalise": stated.status is RoundStatus.FINALISED,
        }[phase]

    def reach(self, phase):
        """Have members act until what ends a phase is mined; return in which block it was."""
        for _ in range(200):
            for member in self.members:
                if self.is_past(phase):
                    blocks = range(self.head, self.round.opened_at, -1)
                    return next(b for b in blocks if not self.is_past(phase, b - 1))
                member.tick()
            self.player._mine(1)
        raise AssertionError(f"the {phase} phase does not end")

    def settle(self, phase):
        """Reach the end of a phase, with its confirmations."""
        self.reach(phase)
        self.confirm()

    def undo(self, phase, depth):
        """Undo what ends a phase when it lies at least so deep, and all that followed."""
        block = self.reach(phase)
        if (missing := block + depth - 1 - self.head) > 0:
            self.player._mine(missing)
        if depth > CONFIRMATIONS:
            self.tick()  # they act on it
        else:
            self.catch_up()
        self.fork(self.head - block + 1)
        assert not self.is_past(phase)

    def fork(self, depth):
        self.player.rpc.request("anvil_reorg", depth, [])
        self.catch_up()

    def reopen(self):
        """Undo everything since before the opening, and open the round again."""
        self.player.reopened(self.job, self, self.head - self.round.opened_at + 1)
        self.confirm()

    reorg = fork
    """As a chain has it, for the player."""

    def deliver(self, kind, clients=None):
        for client in clients or self.clients:
            assert client.deliver(kind) == [200] * 3

    def play(self, undo=lambda phase: None):
        """Play the round to its end; `undo` is called when a phase is to end."""
        for phase in PHASES:
            undo(phase)
            self.settle(phase)
            if phase == "beacon":
                self.deliver(ANSWER)

    def check_that_nothing_is_lost(self):
        view = self.member(1).view
        passed = Verdict.decode(view.decided_passes(view.round(0))).passed
        assert len(passed) == len(self.clients)
        assert view.round(0).over == "finalised"
        assert view.charges() == view.penalties() == []
        assert [member.astray for member in self.members] == [[]] * 4


@pytest.fixture
def world(proved, tmp_path):
    with Shaken(proved, tmp_path) as world:
        yield world


@pytest.mark.parametrize("depths", [BELOW, ABOVE], ids=["below", "above"])
def test_what_was_sent_is_sent_again_at_every_depth_in_every_phase(world, depths):
    """The opening stays, and nothing about it changes: also beyond the confirmations."""
    opening = world.round.opening
    world.deliver(CONTRIBUTION)
    for depth in BELOW:  # a greater one reaches the opening
        world.fork(depth)
    world.play(lambda phase: [world.undo(phase, depth) for depth in depths])
    world.check_that_nothing_is_lost()
    assert world.round.opening == opening


def test_nothing_of_an_opening_that_is_gone_counts_for_the_next_one(world):
    """One client delivers to the second opening only: what was attested before leaves it out."""
    first, early = world.round, world.clients[:2]
    world.deliver(CONTRIBUTION, early)
    old = [client.bundle(CONTRIBUTION) for client in early]
    signatures = [c.sign(CONTRIBUTION, b) for c, b in zip(early, old, strict=True)]
    world.settle("beacon")
    world.deliver(ANSWER, early)
    world.settle("attest")
    world.until(lambda: len(world.member(0).view.attestations(first.id)) == 3)
    world.reopen()
    assert world.round.opening != first.opening
    assert world.member(0).gradient_intake.hashes(world.round) == {}
    for client, bundle, signature in zip(early, old, signatures, strict=True):
        assert client.deliver(bundle=bundle, signature=signature) == [400] * 3
    world.deliver(CONTRIBUTION)
    world.play()
    world.check_that_nothing_is_lost()
