"""Transitions of rounds that anyone may make, staggered so that one daemon makes each."""

from __future__ import annotations

from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.roles.evidence import SignedResult, two_results
from opfl_chain.roles.job import Job
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.view.records import RoundView

STAGGER_BLOCKS = 4
"""Blocks that each place waits for the one before."""


def turn_of(place: int, since: int) -> int:
    """Return the block at which this place performs an action that is possible since a block."""
    return since + place * STAGGER_BLOCKS


def place_of(seat: int, number: int) -> int:
    """Return the place of a seat in a round: the first place rotates from round to round."""
    return (seat - number) % MEMBERS


class RoundDriver:
    """Makes the transitions that are due. `place` is our turn: 0 does not wait."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def act(self, now: Moment, place: int) -> None:
        view, job = self._node.view, self._node.job
        round_ = view.latest_round()
        if round_ is not None and view.is_closed:
            # Until then its third member can attest, and earn.
            if now.has_come(turn_of(place, round_.schedule.attest)):
                self._refund()
        elif round_ is None:
            if now.has_come(turn_of(place, job.enrolment_end)):
                if view.can_start:
                    self._node.send(job.contracts.rounds.open_round(job.id), "open 0")
                elif self._node.is_stillborn(now):
                    self._refund()
        elif round_.over is not None:
            if now.has_come(turn_of(place, round_.over_at or 0)):
                key = f"open {round_.number + 1} after {round_.name}"
                self._node.send(job.contracts.rounds.open_round(job.id), key)
        else:
            self._end(round_, now, place)

    def finalise(self, round_: RoundView, result: SignedResult) -> None:
        call = self._node.job.contracts.rounds.finalise(
            round_.id, result.aggregate_hash, result.model_hash, result.signatures
        )
        self._node.send(call, f"finalise {round_.name} {result.model_hash.hex()}")

    def _end(self, round_: RoundView, now: Moment, place: int) -> None:
        deadlines = round_.schedule
        last = deadlines.finalise
        if round_.roll is None:
            last = deadlines.roll
        elif round_.verdict_hash is None:
            last = deadlines.attest
        if now.has_come(last):
            if now.has_come(turn_of(place, last)):
                call = self._node.job.contracts.rounds.void_round(round_.id)
                self._node.send(call, f"void {round_.name}")
        elif round_.decided_at is not None and now.has_come(turn_of(place, round_.decided_at)):
            result = two_results(self._node.peers, self._node.view, round_)
            if result is None:
                self._node.agenda.again()
            else:
                self.finalise(round_, result)

    def _refund(self) -> None:
        """Give the creator what nobody can earn any more."""
        if not self._node.view.is_refunded and unearned(self._node.job):
            self._node.send(self._node.job.contracts.rewards.refund(self._node.job.id), "refund")


def unearned(job: Job) -> int:
    """Return what is left of the budget of a job besides what was earned and not claimed."""
    contracts = job.contracts
    outstanding = contracts.rounds.progress(job.id).earned - contracts.rewards.paid(job.id)
    return contracts.deposits.budget_of(job.id) - outstanding
