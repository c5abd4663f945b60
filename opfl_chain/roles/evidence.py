"""Signed statements of members, collected and checked before they are used on chain."""

from __future__ import annotations

from dataclasses import dataclass

from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.signatures import SIGNATURE_BYTES
from opfl_chain.protocol.statements import Acquittal, RoundResult
from opfl_chain.roles.job import Job
from opfl_chain.roles.peers import Peers, hex_field
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.errors import TransportError

Signatures = tuple[bytes, bytes]


@dataclass(frozen=True)
class SignedResult:
    """The result of a round, signed by two members."""

    aggregate_hash: bytes
    model_hash: bytes
    signatures: Signatures


def two_acquittals(peers: Peers, job: Job, round_: RoundView, client: Address) -> Signatures | None:
    """Return the acquittals of two members, or None if there are fewer."""
    statement = Acquittal(job.id, round_.number, client)
    found = []
    for member in job.members:
        try:
            answer = peers.ask_member_json(member, f"/rounds/{round_.id}/acquittals/{client}")
            signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        except TransportError:
            continue
        if signer_of(statement, job.domain, signature) == member:
            found.append(signature)
    return (found[0], found[1]) if len(found) >= 2 else None


def two_results(peers: Peers, job: Job, round_: RoundView) -> SignedResult | None:
    """Return the result of a round that two members signed alike, or None if there is none."""
    if round_.verdict_hash is None:
        return None
    found: dict[tuple[bytes, bytes], list[bytes]] = {}
    for member in job.members:
        try:
            answer = peers.ask_member_json(member, f"/rounds/{round_.id}/result")
            hashes = hex_field(answer, "aggregate_hash", 32), hex_field(answer, "model_hash", 32)
            signature = hex_field(answer, "signature", SIGNATURE_BYTES)
        except TransportError:
            continue
        statement = RoundResult(job.id, round_.number, round_.verdict_hash, *hashes)
        if signer_of(statement, job.domain, signature) != member:
            continue
        signatures = found.setdefault(hashes, [])
        signatures.append(signature)
        if len(signatures) == 2:
            return SignedResult(*hashes, (signatures[0], signatures[1]))
    return None
