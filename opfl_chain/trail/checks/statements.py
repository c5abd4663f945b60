"""Checks again the signatures and proofs that contracts verified, from the call data.

If a foreign contract called ours, the transaction does not hold our call data, and the signatures
are not checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bls import PublicKey, Signature, verify_possession
from opfl_chain.chain.contracts.contract import Event
from opfl_chain.chain.errors import InvalidPoint
from opfl_chain.chain.keys import signer_of
from opfl_chain.protocol.accumulator import batch_leaf
from opfl_chain.protocol.hashing import verify_proof
from opfl_chain.protocol.randomness import PUBLIC_KEY_BYTES, proof_of_possession_message
from opfl_chain.protocol.statements import (
    Acquittal,
    DeliveryReceipt,
    GradientCommitment,
    RoundResult,
    SigningDomain,
    Statement,
)
from opfl_chain.trail.history import History
from opfl_chain.trail.record import (
    Entry,
    Finalise,
    RegisterKey,
    RequestSlash,
    VetoWithAcquittals,
    VetoWithReceipts,
    decode_call,
)
from opfl_chain.trail.report import Finding, at


def check_statements(history: History) -> Iterator[Finding]:
    trail = history.trail
    for registered in trail.of(events.KeyRegistered):
        yield from _possession(history, registered)
    for number, round_ in history.rounds.items():
        for finalised in round_.of(events.RoundFinalised):
            call = decode_call(trail.calls.get(finalised.transaction), Finalise)
            if call is not None and round_.decided is not None:
                result = RoundResult(
                    trail.job,
                    number,
                    round_.decided.event.verdict_hash,
                    finalised.event.aggregate_hash,
                    finalised.event.model_hash,
                )
                yield _two_members(history, finalised, result, call.signatures)
        for vetoed in round_.of(events.SlashVetoed):
            yield from _veto(history, vetoed)
        for requested in round_.of(events.SlashRequested):
            if requested.event.client not in round_.direct:
                yield from _batched(history, requested)


def _possession(history: History, entry: Entry[events.KeyRegistered]) -> Iterator[Finding]:
    trail, event = history.trail, entry.event
    call = decode_call(trail.calls.get(entry.transaction), RegisterKey)
    if call is None or len(event.public_key) != PUBLIC_KEY_BYTES:
        return
    message = proof_of_possession_message(
        trail.chain_id, trail.contracts["Beacon"], event.member, event.public_key
    )
    try:
        key, proof = PublicKey.from_eip2537(event.public_key), Signature.from_eip2537(call.proof)
        valid = verify_possession(key, message, proof)
    except InvalidPoint:
        valid = False
    yield at(entry, "the member's proof that it holds the key is valid", True, valid)


def _veto(history: History, entry: Entry[events.SlashVetoed]) -> Iterator[Finding]:
    job, number, client = history.trail.job, entry.round, entry.event.client
    if number is None:
        return
    data = history.trail.calls.get(entry.transaction)
    if (receipts := decode_call(data, VetoWithReceipts)) is not None:
        audited = history.rounds[number].is_audited(client)
        receipt = DeliveryReceipt(job, number, client, audited)
        yield _two_members(history, entry, receipt, receipts.signatures)
    elif (acquittals := decode_call(data, VetoWithAcquittals)) is not None:
        acquittal = Acquittal(job, number, client)
        yield _two_members(history, entry, acquittal, acquittals.signatures)


def _batched(history: History, entry: Entry[events.SlashRequested]) -> Iterator[Finding]:
    """Check that a slashed client without a direct commitment signed one in the batch."""
    trail, number, client = history.trail, entry.round, entry.event.client
    call = decode_call(trail.calls.get(entry.transaction), RequestSlash)
    if call is None or number is None:
        return
    batch = history.rounds[number].batch
    leaf = batch_leaf(trail.job, number, client, call.commitment)
    included = batch is not None and verify_proof(call.path, batch.event.root, leaf)
    yield at(entry, "the slashed client is in the batch", True, included)
    commitment = GradientCommitment(trail.job, number, client, call.commitment)
    signer = _signer(history, commitment, call.signature)
    yield at(entry, "signer of the batched commitment", client, signer)


def _two_members(
    history: History, entry: Entry[Event], statement: Statement, signatures: Sequence[bytes]
) -> Finding:
    signers = {_signer(history, statement, signature) for signature in signatures}
    return at(
        entry,
        f"two members signed the {type(statement).__name__}",
        "2 of " + ", ".join(history.terms.members),
        ", ".join(sorted(map(str, signers))),
        holds=len(signers & set(history.terms.members)) == 2,
    )


def _signer(history: History, statement: Statement, signature: bytes) -> str | None:
    trail = history.trail
    return signer_of(statement, SigningDomain(trail.chain_id, trail.contracts["Jobs"]), signature)
