"""What the chain says of the contributions of a round, in the one order of all members."""

from __future__ import annotations

from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.chain.rpc import tohex
from opfl_chain.nodes.batches import Batch
from opfl_chain.nodes.chain_view import ChainView, RoundView
from opfl_chain.nodes.errors import ModelMissing
from opfl_chain.nodes.peers import Peers
from opfl_chain.nodes.state import State
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.identifiers import Address

SCHEMA = "CREATE TABLE IF NOT EXISTS batches (root BLOB PRIMARY KEY, body BLOB);"


class Claims:
    """Batches are asked for when they are needed, and kept."""

    def __init__(self, view: ChainView, state: State, peers: Peers) -> None:
        self._view = view
        self._state = state
        self._peers = peers
        self._read: dict[bytes, Batch] = {}

    def commitments(self, round_: RoundView) -> dict[Address, bytes]:
        """Of every client that is in the round. A direct commitment counts before a batch's.

        A batch whose list nobody has is as if it were empty: a relayer gains nothing by hiding it.
        """
        found = dict(self._view.direct_commitments(round_.id))
        if (batch := self.batch(round_)) is None:
            return found
        clients = self._view.clients()
        for client, entry in batch.signed.items():
            status = self._view.client_status(client, round_.schedule.commit)
            if client in clients and status is ClientStatus.ACTIVE:
                found.setdefault(client, entry.commitment)
        return found

    def of(self, round_: RoundView) -> dict[Address, Claim]:
        """Of a settled round, in the order of the clients' places."""
        clients = self._view.clients()
        commitments = self.commitments(round_)
        return {
            client: Claim(
                clients[client].index,
                round_.number,
                commitments[client],
                clients[client].root,
                self._view.is_audited(round_, client),
            )
            for client in sorted(commitments, key=lambda each: clients[each].index)
        }

    def lacks_batch(self, round_: RoundView) -> bool:
        """Whether there is a batch on chain whose list we do not have."""
        return self._view.batch(round_.id) is not None and self.batch(round_) is None

    def batch(self, round_: RoundView) -> Batch | None:
        """The round's batch, if there is one and we have its list or somebody gives it to us."""
        committed = self._view.batch(round_.id)
        if committed is None:
            return None
        root, _ = committed
        if root not in self._read:
            decoded = Batch.decode(
                self._view.job, round_.number, root, self.stored(root) or self._fetched(root)
            )
            if decoded is None:
                return None
            self.keep(root, decoded.encode())
            self._read = {root: decoded}  # the newest alone: others are hardly asked for
        return self._read[root]

    def _fetched(self, root: bytes) -> bytes:
        try:
            return self._peers.fetch_list(f"/batches/{tohex(root)}")
        except ModelMissing:
            return b""

    def stored(self, root: bytes) -> bytes | None:
        row = self._state.one("SELECT body FROM batches WHERE root = ?", root)
        return row[0] if row else None

    def keep(self, root: bytes, body: bytes) -> None:
        self._state.write("INSERT OR IGNORE INTO batches VALUES (?, ?)", root, body)
