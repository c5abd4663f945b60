"""A proved audit: the client's proof, and the members' answers as a procedure of their processes.

The procedure exchanges what daemons exchange, with the hash and the signature of every message.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_typing import Hash32
from hexbytes import HexBytes
from numpy.typing import NDArray

from opfl_chain.bench.counting import Counted, CountingTransport
from opfl_chain.circuits.arithmetic import Held
from opfl_chain.circuits.boolean import Transport
from opfl_chain.lab.calibration.replayer import shared
from opfl_chain.lab.sample_step import ProvedSample
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.mpc.session.ranks import MEMBERS, peers_of
from opfl_chain.protocol.audit_exchange import (
    Answers,
    Report,
    ReportRow,
    Reveal,
    Row,
    bound_by,
    conclude,
)
from opfl_chain.protocol.echo import Bound, Echo, Signed, common, lacking_seats, readable
from opfl_chain.protocol.hashing import keccak256, sha256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.package import ProofForm, ProofPackage
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.shares import HASH_BYTES, SharedVector
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.rules.proved_rule import ProvedBoundary

_SIGNATURE_BYTES = 65


@dataclass(frozen=True, eq=False)
class ProvedContribution:
    """A step that is shared and proved; packages are by rank."""

    context: bytes
    gradient: SharedVector
    training_input: SharedVector
    packages: list[bytes]


def prove(sample: ProvedSample) -> ProvedContribution:
    """Share an honest step, and prove it, as a client does."""
    gradient, training_input = shared(sample.gradient), shared(sample.training_input)
    statement = statement_of(sample.policy, sample.proved_boundary.tolerance, sample.weights)
    context, entropy = secrets.token_bytes(HASH_BYTES), secrets.token_bytes(HASH_BYTES)
    prover = Prover(statement, context, entropy, gradient.components, training_input.components)
    proof = prover.prove()
    if not proof.usage.holds:
        raise AssertionError(f"an honest step fails: {', '.join(proof.usage.failures())}")
    packages = [package.encode() for package in proof.packages]
    return ProvedContribution(context, gradient, training_input, packages)


class SignedLink:
    """Sends messages with their hash and its signature, and checks those of the peers."""

    def __init__(self, transport: Transport) -> None:
        self.rank = transport.rank
        self._transport = transport

    def exchange(self, message: bytes) -> list[bytes]:
        """Send a message to both peers, and return those of all members, by rank."""
        digest = sha256(message)
        signed = digest + bytes(_account(self.rank).unsafe_sign_hash(Hash32(digest)).signature)
        for peer in peers_of(self.rank):
            self._transport.send(peer, signed + message)
        found = {peer: self._opened(peer) for peer in peers_of(self.rank)}
        return [found.get(rank, message) for rank in range(MEMBERS)]

    def _opened(self, peer: int) -> bytes:
        data = self._transport.receive(peer)
        digest, rest = data[:HASH_BYTES], data[HASH_BYTES:]
        signature, message = rest[:_SIGNATURE_BYTES], rest[_SIGNATURE_BYTES:]
        signer = Account._recover_hash(HexBytes(digest), signature=HexBytes(signature))
        if sha256(message) != digest or signer != _account(peer).address:
            raise self._transport.invalid(peer, "a message that it did not sign")
        return message


@cache
def _account(rank: int) -> LocalAccount:
    account: LocalAccount = Account.from_key(keccak256(b"benchmark", bytes([rank])))
    return account


def counted_answers(
    transport: Transport,
    *,
    policy: bytes,
    boundary: ProvedBoundary,
    weights: Mapping[str, NDArray[np.float32]],
    contexts: list[bytes],
    packages: list[bytes],
    gradients: list[Held],
    inputs: list[Held],
) -> Counted:
    """Check and answer the proofs of a round, exchange answers, and conclude; counting."""
    counting = CountingTransport(transport)
    link, rank = SignedLink(counting), transport.rank
    statement = statement_of(Policy.from_json(policy), boundary.tolerance, weights)
    form = ProofForm.of(statement)
    answers: dict[ClientIndex, Answers] = {}
    rows: dict[ClientIndex, Row] = {}
    for number, (context, data) in enumerate(zip(contexts, packages, strict=True)):
        place = ClientIndex(number)
        package = ProofPackage.decode(data, form, rank)
        package.verify(form)
        query = Query.of(statement, context, package.leaves)
        held = zip(package.held, gradients[place], inputs[place], strict=True)
        found = {part.index: query.answer(part, own, given) for part, own, given in held}
        answers[place] = Answers.of(rank, found)
        rows[place] = ReportRow(answers[place].commitment)
    subject = sha256(policy, boundary.hash, statement.hash)
    said = _echoed(link, rank, Report(rank, subject, rows).encode())
    reports = readable(said, lambda seat, body: Report.decode(body, seat, subject, list(rows)))
    said = _bound(link, rank, Reveal(rank, answers).encode(), bound_by(reports))
    reveals = readable(said, lambda seat, body: Reveal.decode(body, seat, list(rows)))
    ends = [
        conclude(
            {seat: each.rows[place] for seat, each in reports.items()},
            {seat: each.answers[place] for seat, each in reveals.items()},
        )
        for place in rows
    ]
    return counting.counted(all(end.outcome is Outcome.PASSED for end in ends))


def _echoed(link: SignedLink, rank: int, body: bytes) -> dict[int, bytes | None]:
    """Say something, say what was heard, and return what all have said."""
    heard = dict(enumerate(link.exchange(body)))
    echoed = link.exchange(Echo.of(heard).encode())
    echoes = {seat: Echo.decode(each) for seat, each in enumerate(echoed)}
    return common(rank, body, echoes, _signed(heard)).values


def _bound(link: SignedLink, rank: int, body: bytes, bound: Bound) -> dict[int, bytes | None]:
    """Say what was committed to, and return what all have said: it fits, so nobody need echo it."""
    heard = dict(enumerate(link.exchange(body)))
    if lacking := lacking_seats(rank, heard, bound):
        raise AssertionError(f"the words of members {lacking} are not those of their reports")
    return common(rank, body, {rank: Echo.of(heard)}, _signed(heard), bound).values


def _signed(heard: Mapping[int, bytes]) -> dict[tuple[int, bytes], Signed]:
    """Return messages as the link has checked them: it keeps no signatures."""
    signed = ((seat, Signed(each, b"")) for seat, each in heard.items())
    return {(seat, each.hash): each for seat, each in signed}
