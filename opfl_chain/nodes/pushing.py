"""Moving a job on: opening rounds, ending them with their result, voiding those that hang.

Anyone may do all of it. The server does it first; members wait their turn, and need no server.
"""

from __future__ import annotations

from opfl_chain.nodes.chain_view import RoundView
from opfl_chain.nodes.evidence import SignedResult, two_results
from opfl_chain.nodes.node import Moment, Node
from opfl_chain.nodes.turns import is_due


class Pushing:
    """`place` is 0 for whoever does not wait."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def act(self, now: Moment, place: int) -> None:
        view, jobs = self._node.view, self._node.job.contracts.jobs
        if view.is_closed:
            return
        round_ = view.latest_round()
        if round_ is None:
            if is_due(place, self._node.job.enrolment_end, now.head) and view.can_start:
                self._node.send(jobs.open_round(self._node.job.id), "open 0")
        elif round_.over is not None:
            if is_due(place, round_.over_at or 0, now.head):
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
        if now.head >= last:
            if is_due(place, last, now.head):
                self._node.send(jobs.void_round(round_.id), f"void {round_.number}")
        elif round_.decided_at is not None and is_due(place, round_.decided_at, now.head):
            result = two_results(self._node.peers, self._node.job, round_)
            if result is not None:
                self.finalise(round_, result)
