"""Moves a job on where nothing but the end of a phase is waited for.

Phases can then be as long as a busy machine needs, and cost no time on an idle one.
"""

from __future__ import annotations

from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.nodes.chain_view import RoundView


class Pace:
    """Called again and again, as `each` of a localnet."""

    def __init__(self, net: Localnet) -> None:
        self._net = net

    def __call__(self) -> None:
        round_ = self._net.view.latest_round()
        if round_ is None or round_.over is not None:
            return
        if self.all_have_committed(round_):
            self._net.mine_to(round_.schedule.commit)
        if self._beacon_is_withheld(round_):
            self._net.mine_to(round_.schedule.beacon)

    def all_have_committed(self, round_: RoundView) -> bool:
        view = self._net.view
        active = [
            client for client in view.clients() if view.client_status(client) is ClientStatus.ACTIVE
        ]
        committed = len(view.direct_commitments(round_.id))
        if (batch := view.batch(round_.id)) is not None:
            committed += batch[1]
        return bool(active) and committed >= len(active)

    def _beacon_is_withheld(self, round_: RoundView) -> bool:
        """Whether all members but one have given up on the aggregate signature."""
        published = self._net.view.published_partials(round_.id)
        return round_.seed is None and len(published) == len(self._net.job.members) - 1
