"""What the chain says of the contributions of a round, in the one order of all members."""

from __future__ import annotations

from opfl_chain.chain.bindings.types import ClientStatus
from opfl_chain.chain.rpc import tohex
from opfl_chain.nodes.batches import Batch
from opfl_chain.nodes.chain_view import ChainView, RoundView
from opfl_chain.nodes.patience import Patience
from opfl_chain.nodes.peers import Peers
from opfl_chain.nodes.state import State
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.identifiers import Address

SCHEMA = "CREATE TABLE IF NOT EXISTS batches (root BLOB PRIMARY KEY, body BLOB);"


class Claims:
    """Any thread may ask for what is known; `fetch` is for the one that acts."""

    def __init__(self, view: ChainView, state: State, peers: Peers) -> None:
        self._view = view
        self._state = state
        self._peers = peers
        self._read: dict[bytes, Batch] = {}
        self._asking = Patience()

    def commitments(self, round_: RoundView) -> dict[Address, bytes]:
        """Of every client that is in the round. A direct commitment counts before a batch's.

        A batch whose list nobody has is as if it were empty: a relayer gains nothing by hiding it.
        """
        found = dict(self._view.direct_commitments(round_.id))
        if (batch := self.batch(round_)) is None:
            return found
        for client, entry in batch.signed.items():
            if client not in found and self._may_be_relayed(client, round_):
                found[client] = entry.commitment
        return found

    def has_committed(self, round_: RoundView, client: Address) -> bool:
        """Whether one client is in the round, without looking at all of them."""
        if self._view.direct_commitment(round_.id, client) is not None:
            return True
        batch = self.batch(round_)
        return batch is not None and client in batch.signed and self._may_be_relayed(client, round_)

    def _may_be_relayed(self, client: Address, round_: RoundView) -> bool:
        """Who had left or was suspended when the round closed cannot be put into it by others."""
        return self._view.client_status(client, round_.schedule.commit) is ClientStatus.ACTIVE

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
        """The round's batch, if there is one and we have its list."""
        committed = self._view.batch(round_.id)
        if committed is None:
            return None
        root, _ = committed
        if (batch := self._read.get(root)) is None:
            batch = Batch.decode(self._view.job, round_.number, root, self.stored(root) or b"")
            if batch is not None:
                self._read = {root: batch}  # the newest alone: others are hardly asked for
        return batch

    def fetch(self, round_: RoundView) -> None:
        """Ask everybody for the list of the round's batch, until each client in it has signed.

        A relayer could give some of us a list with a signature spoiled, and others the right one.
        """
        committed, batch = self._view.batch(round_.id), self.batch(round_)
        if committed is None or (batch is not None and self._all_signed(batch)):
            return
        root, path = committed[0], f"/batches/{tohex(committed[0])}"
        if not self._asking.is_due(path):
            return
        self._asking.failed(path)
        for body in self._peers.lists(path, Batch.most_bytes(len(self._view.clients()))):
            found = Batch.decode(self._view.job, round_.number, root, body)
            if found is None:
                continue
            batch = found if batch is None else batch.merged(found)
            if self._all_signed(batch):
                break
        if batch is not None:
            self.keep(root, batch.encode())
            self._read = {root: batch}

    def stored(self, root: bytes) -> bytes | None:
        row = self._state.one("SELECT body FROM batches WHERE root = ?", root)
        return row[0] if row else None

    def keep(self, root: bytes, body: bytes) -> None:
        self._state.write("INSERT OR REPLACE INTO batches VALUES (?, ?)", root, body)

    def _all_signed(self, batch: Batch) -> bool:
        clients, valid = self._view.clients(), set(batch.valid)
        return all(entry in valid for entry in batch.entries if entry.client in clients)
