"""Moves a job on where nothing but the end of a phase is waited for.

Phases can then be as long as a busy machine needs, and cost no time on an idle one.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from opfl_chain.chain.bindings.types import ClientStatus, Reason
from opfl_chain.localnet.localnet import Localnet
from opfl_chain.nodes.chain_view import RoundView, SlashView

_MARGIN = 60
"""Blocks of a commit phase that are never skipped for the sake of an earlier round."""


class Pace:
    """Called again and again, as `each` of a localnet."""

    def __init__(self, net: Localnet) -> None:
        self._net = net

    def __call__(self) -> None:
        if not self._net.has_attested_all():
            return
        self._end_veto_phases()
        round_ = self._net.view.latest_round()
        if round_ is None or round_.over is not None:
            return
        if self.all_have_committed(round_):
            self._net.mine_to(round_.schedule.commit)
        if self._beacon_is_withheld(round_):
            self._net.mine_to(round_.schedule.beacon)

    def close(self) -> None:
        """For those that hold something."""

    def all_have_committed(self, round_: RoundView) -> bool:
        view = self._net.view
        active = [
            client for client in view.clients() if view.client_status(client) is ClientStatus.ACTIVE
        ]
        committed = len(view.direct_commitments(round_.id))
        if (batch := view.batch(round_.id)) is not None:
            committed += batch[1]
        return bool(active) and committed >= len(active)

    def receipts(self, client: str, number: int) -> int:
        """From how many members a client has a receipt of its delivery in a round."""
        return self._count(client, "SELECT count(*) FROM receipts WHERE round = ?", number)

    def _beacon_is_withheld(self, round_: RoundView) -> bool:
        """Whether all members but one have given up on the aggregate signature."""
        published = self._net.view.published_partials(round_.id)
        return round_.seed is None and len(published) == len(self._net.job.members) - 1

    def _end_veto_phases(self) -> None:
        """Where no veto can come any more, and no phase of a running round is cut short."""
        pending = self._net.view.pending_slashes()
        if not pending or not all(map(self._is_beyond_veto, pending)):
            return
        target = max(slash.executable_at for slash in pending)
        round_ = self._net.view.latest_round()
        if self._net.view.is_closed or (round_ and target < round_.schedule.commit - _MARGIN):
            self._net.mine_to(target)

    def _is_beyond_veto(self, slash: SlashView) -> bool:
        net = self._net
        names = {str(address): name for name, address in net.addresses.items()}
        if slash.reason is Reason.NOT_DELIVERED:
            return self.receipts(names[slash.client], slash.round) < 2
        statement = (
            "SELECT count(*) FROM second_replays WHERE round = ? AND client = ? AND NOT passed"
        )
        return slash.reason is not Reason.REPLAY_OUTSIDE or all(
            self._count(names[member], statement, slash.round, slash.client)
            for member in net.job.members
        )

    def _count(self, name: str, statement: str, *values: object) -> int:
        """From the state of a daemon, which tells nobody else."""
        path: Path = self._net.folder / "state" / name / "state.sqlite"
        state = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        try:
            return int(state.execute(statement, values).fetchone()[0])
        except sqlite3.OperationalError:  # it has not begun, or is just beginning
            return 0
        finally:
            state.close()
