"""Signed results of rounds, collected from members and checked before they are used on chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import RoundResult
from opfl_chain.roles.peers import Peers, hex_field
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView
from opfl_chain.transport.errors import TransportError


@dataclass(frozen=True)
class SignedResult:
    """The result of a round, signed by two members."""

    aggregate_hash: bytes
    model_hash: bytes
    signatures: tuple[bytes, bytes]


def two_results(peers: Peers, view: ChainView, round_: RoundView) -> SignedResult | None:
    """Return the result of a round that two of its seats signed alike, or None if there is none.

    A signature counts for the opening and the verdict of our own view alone.
    """
    if round_.verdict_hash is None:
        return None
    job = view.job
    found: dict[tuple[bytes, bytes], list[bytes]] = {}

    def ask(member: Address) -> dict[str, Any]:
        return peers.ask_member_json(member, f"/rounds/{round_.id}/result")

    for member, answer in peers.together(view.seats_of(round_), ask):
        if isinstance(answer, TransportError):
            continue
        try:
            hashes = hex_field(answer, "aggregate_hash", 32), hex_field(answer, "model_hash", 32)
            signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        except TransportError:
            continue
        statement = RoundResult(job.id, round_.number, round_.opening, round_.verdict_hash, *hashes)
        if signer_of(statement, job.domain, signature) != member:
            continue
        signatures = found.setdefault(hashes, [])
        signatures.append(signature)
        if len(signatures) == 2:
            return SignedResult(*hashes, (signatures[0], signatures[1]))
    return None
