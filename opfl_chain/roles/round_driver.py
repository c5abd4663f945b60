"""Transitions of rounds that anyone may make, staggered so that one daemon makes each."""

from __future__ import annotations

from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.roles.evidence import SignedResult, two_results
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.view.view import RoundView

STAGGER_BLOCKS = 4
"""Blocks that each place waits for the one before."""


def turn_of(place: int, since: int) -> int:
    """Return the block at which this place performs an action that is possible since a block."""
    return since + place * STAGGER_BLOCKS


def place_of(rank: int, number: int) -> int:
    """Return a member's place in a round: the first place rotates from round to round."""
    return (rank - number) % MEMBERS


class RoundDriver:
    """Makes the transitions that are due. `place` is our turn: 0 does not wait."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def act(self, now: Moment, place: int) -> None:
        view, jobs = self._node.view, self._node.job.contracts.jobs
        if view.is_closed:
            return
        round_ = view.latest_round()
        if round_ is None:
            if now.has_come(turn_of(place, self._node.job.enrolment_end)) and view.can_start:
                self._node.send(jobs.open_round(self._node.job.id), "open 0")
        elif round_.over is not None:
            if now.has_come(turn_of(place, round_.over_at or 0)):
                self._node.send(jobs.open_round(self._node.job.id), f"open {round_.number + 1}")
        else:
            self._end(round_, now, place)

    def finalise(self, round_: RoundView, result: SignedResult) -> None:
        call = self._node.job.contracts.jobs.finalise(
            round_.id, result.aggregate_hash, result.model_hash, result.signatures
        )
        self._node.send(call, f"finalise {round_.number} {result.model_hash.hex()}")

    def _end(self, round_: RoundView, now: Moment, place: int) -> None:
        jobs, deadlines = self._node.job.contracts.jobs, round_.schedule
        last = deadlines.attest if round_.verdict_hash is None else deadlines.finalise
        if now.has_come(last):
            if now.has_come(turn_of(place, last)):
                self._node.send(jobs.void_round(round_.id), f"void {round_.number}")
        elif round_.decided_at is not None and now.has_come(turn_of(place, round_.decided_at)):
            result = two_results(self._node.peers, self._node.job, round_)
            if result is None:
                self._node.agenda.again()
            else:
                self.finalise(round_, result)
