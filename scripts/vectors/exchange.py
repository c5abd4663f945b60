"""An exchange among members on a round of proved steps: reports, answers and the verdict."""

import struct

from vectors.made_up import CHAIN_ID, JOBS, single, word, words
from vectors.proof import SmallProof
from vectors.specification import spec
from vectors.values import Vector

CLIENTS = [1, 3, 4, 6, 7, 9, 10, 11]
"""Passes, is outside the boundary, is not audited, is charged by two members, by one only; answers
that differ, answers that break their commitment, deliveries that differ."""
HONEST, CHEATING, UNAUDITED, CHARGED, FRAMED, DISPUTED, BROKEN, SPLIT = range(len(CLIENTS))
AUDITED = [place != UNAUDITED for place in range(len(CLIENTS))]
ROUND, JOB = 5, 7
NOTHING = bytes(32)
FAULTS = {(CHARGED, 0): 3, (CHARGED, 2): 1, (FRAMED, 1): 2}
"""By place and rank."""


def answered_by(rank: int, proof: SmallProof) -> tuple[bytes, list[int], list[int]]:
    own, following = (proof.answer(k) for k in spec.held_by(rank))
    return proof.states[-1], own, following


def exchange() -> Vector:
    honest, cheating = SmallProof(0, []), SmallProof(1, [])
    proofs = {place: honest for place, audited in enumerate(AUDITED) if audited}
    proofs[CHEATING] = cheating
    told = [
        {place: answered_by(rank, proof) for place, proof in proofs.items()} for rank in range(3)
    ]
    state, own, following = told[2][DISPUTED]
    told[2][DISPUTED] = state, [(own[0] + 1) % spec.P, *own[1:]], following
    leaves = [words(f"leaf of client {client}", 6) for client in CLIENTS]
    digests = [
        spec.delivered_digest(each, proofs[place].leaves if place in proofs else [])
        for place, each in enumerate(leaves)
    ]
    gradients, roots = words("exchanged gradient", len(CLIENTS)), words("root", len(CLIENTS))
    lines = [
        spec.claim_line(client, ROUND, gradients[i], roots[i], AUDITED[i])
        for i, client in enumerate(CLIENTS)
    ]
    weights = struct.pack("<4f", *(single(f"weight {i}") for i in range(4)))
    policy, boundary, statement = word("policy"), word("boundary"), honest.statement["hash"]
    subject = spec.exchange_subject(policy, boundary, lines, weights, statement)

    def row(place: int, rank: int) -> tuple[int, bytes, bytes]:
        if fault := FAULTS.get((place, rank), 0):
            return fault, NOTHING, NOTHING
        digest = word("another delivery") if (place, rank) == (SPLIT, 1) else digests[place]
        if place not in proofs:
            return 0, digest, NOTHING
        return 0, digest, spec.answers_commitment(rank, told[rank][place])

    rows = [[row(place, rank) for place in range(len(CLIENTS))] for rank in range(3)]
    reports = [spec.encode_report(rank, subject, rows[rank]) for rank in range(3)]
    stands = [spec.standing(list(each)) for each in zip(*rows, strict=True)]
    assert stands == [0, 0, 0, 1, None, 0, 0, None]
    state, own, following = told[1][BROKEN]
    told[1][BROKEN] = state, own, [*following[:3], (following[3] + 1) % spec.P]
    sound = [place for place in proofs if stands[place] == 0]
    revealed = [
        spec.encode_revealed(rank, reports, {place: told[rank][place] for place in sound})
        for rank in range(3)
    ]
    ends = {
        place: spec.conclude(
            [rows[rank][place][2] for rank in range(3)], [told[rank][place] for rank in range(3)]
        )
        for place in sound
    }
    assert ends == {HONEST: True, CHEATING: False, DISPUTED: None, BROKEN: None}
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    model, given = word("model"), words("exchanged input", len(CLIENTS))
    round_id = spec.round_id(JOB, ROUND)
    return {
        "answers": [spec.field_bytes(x + y) for _, x, y in (told[r][HONEST] for r in range(3))],
        "audited": AUDITED,
        "auditMessageDigests": [
            [
                spec.audit_message_digest(separator, JOB, ROUND, stage, messages[rank])
                for rank in range(3)
            ]
            for stage, messages in ((1, reports), (2, revealed))
        ],
        "boundaryHash": boundary,
        "chainId": CHAIN_ID,
        "charged": {str(CLIENTS[place]): reason for place, reason in enumerate(stands) if reason},
        "clientIndices": CLIENTS,
        "commitments": [spec.answers_commitment(rank, told[rank][HONEST]) for rank in range(3)],
        "contexts": [
            spec.proof_context(separator, round_id, client, model, gradients[i], given[i])
            for i, client in enumerate(CLIENTS)
        ],
        "datasetRoots": roots,
        "digests": digests,
        "ends": {str(CLIENTS[place]): accepted for place, accepted in ends.items()},
        "gradientCommitments": gradients,
        "inputCommitments": given,
        "job": JOB,
        "leaves": leaves,
        "modelHash": model,
        "policyHash": policy,
        "proofLeaves": [proofs[i].leaves if i in proofs else [] for i in range(len(CLIENTS))],
        "reports": reports,
        "revealed": revealed,
        "round": ROUND,
        "roundId": str(round_id),
        "state": honest.states[-1],
        "statementHash": statement,
        "subject": subject,
        "verifyingContract": JOBS,
        "weights": weights,
    }
