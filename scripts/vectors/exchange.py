"""An exchange among members on proved steps: reports, words, referees and conclusions."""

import struct
from typing import Any

from vectors.made_up import CHAIN_ID, JOBS, single, word, words
from vectors.proof import SmallProof
from vectors.sealing import SECRETS
from vectors.specification import spec
from vectors.values import Vector

CLIENTS = [1, 3, 4]
"""Honest, outside the boundary, and one whose answer member 2 complains about."""
HONEST, CHEATING, COMPLAINED = CLIENTS
ROUND, JOB = 5, 7
OPENING = word("opening of an exchange")
LIAR = 2
Words = tuple[list[int], list[int]]


def words_of(seat: int, proof: SmallProof) -> Words:
    own, following = (proof.answer(k) for k in spec.held_by(seat))
    return own, following


def changed(said: Words, component: int) -> Words:
    """Words that differ on the member's own component (0), or the following one (1)."""
    own, following = ([(x + (k == component)) % spec.P, *more] for k, (x, *more) in enumerate(said))
    return own, following


def forged(told: dict[int, list[int]], component: int) -> list[int]:
    """A word on a component with which those on the others accept, whatever they are."""
    left, right, product, rest = (
        sum(words) for words in zip(*(told[k] for k in told if k != component), strict=True)
    )
    return [0, 0, (left * right - product) % spec.P, -rest % spec.P]


def conclusion(
    why: str,
    rows: dict[int, Any],
    said: dict[int, Words],
    standing: set[int] = frozenset(),
    referee: dict[int, list[int]] | None = None,
) -> Vector:
    found = spec.conclude(rows, said, standing, referee or {})
    return {
        "disputed": list(found["disputes"]),
        "disputedSeats": list(found["disputes"].values()),
        "liars": found["liars"],
        "outcome": found["outcome"] or 0,
        "referee": spec.encode_referee(
            3, {(HONEST, k): answer for k, answer in (referee or {}).items()}
        ),
        "reports": [spec.encode_report(s, bytes(32), {HONEST: row}) for s, row in rows.items()],
        "seats": list(rows),
        "standing": sorted(standing),
        "unconfirmed": found["unconfirmed"],
        "why": why,
        "words": [spec.encode_words(s, {HONEST: each}) for s, each in said.items()],
        "wordSeats": list(said),
    }


def conclusions() -> list[Vector]:
    """Conclusions on a good step and on a bad one, with everything that member 2 can do."""
    found = []
    for name, proof in (("good", SmallProof(0, [])), ("bad", SmallProof(1, []))):
        said = {seat: words_of(seat, proof) for seat in range(3)}
        answers = {k: proof.answer(k) for k in range(3)}
        complaint = spec.file_complaint(SECRETS[LIAR], LIAR, spec.public_key(7), word("context"))

        def rows(said: dict[int, Words]) -> dict[int, bytes]:
            return {s: spec.words_commitment(s, each) for s, each in said.items()}

        own = {**said, LIAR: changed(said[LIAR], 0)}
        both = {**said, LIAR: changed(own[LIAR], 1)}
        away = {seat: said[seat] for seat in range(3) if seat != LIAR}
        wrong = {k: changed((answer, answer), 0)[0] for k, answer in answers.items()}
        # Member 1 is away: nobody else answers for component 2, and a client can tell the rest.
        alone = {0: said[0], LIAR: (forged(answers, LIAR), said[LIAR][1])}
        found += [
            conclusion(f"{name} step, all agree", rows(said), said),
            conclusion(f"{name} step, member 2 is away", rows(away), away),
            conclusion(f"{name} step, member 2 says no words", rows(said), away),
            conclusion(f"{name} step, 2 away, referee", rows(away), away, referee=answers),
            conclusion(f"{name} step, 2 away, bad referee", rows(away), away, referee=wrong),
            conclusion(f"{name} step, 1 away, 2 forges", rows(alone), alone),
            conclusion(
                f"{name} step, 1 away, 2 forges, referee", rows(alone), alone, referee=answers
            ),
            conclusion(f"{name} step, member 2 lies", rows(own), own),
            conclusion(f"{name} step, 2 lies, referee", rows(own), own, referee=answers),
            conclusion(f"{name} step, 2 lies on both", rows(both), both, referee=answers),
            conclusion(f"{name} step, 2 breaks its commitment", rows(said), own),
            conclusion(
                f"{name} step, a complaint that does not stand",
                {**rows(away), LIAR: complaint},
                away,
            ),
            conclusion(
                f"{name} step, a complaint that stands",
                {**rows(away), LIAR: complaint},
                away,
                {LIAR},
            ),
        ]
    return found


def fitting(rows: dict[int, Any], said: dict[int, Words]) -> list[Vector]:
    """Words of member 2, which complains about the last answer, and whether they fit its report."""
    right = spec.encode_words(LIAR, said)
    few = {client: each for client, each in said.items() if client == HONEST}
    many = {**said, COMPLAINED: said[HONEST]}
    lie = {**said, HONEST: changed(said[HONEST], 0)}
    coarse = b"\xff" * 16  # no canonical element
    strange = spec.encode_words(LIAR, few)[:-16] + coarse
    odd = spec.sha256(spec.TAG_PROOF_ANSWERS + bytes([LIAR]) + strange[14:]).digest()
    cases = [
        ("the words that were committed to", rows, right),
        ("words on fewer answers", rows, spec.encode_words(LIAR, few)),
        ("words on more answers", rows, spec.encode_words(LIAR, many)),
        ("other words", rows, spec.encode_words(LIAR, lie)),
        ("words of another member", rows, spec.encode_words(0, said)),
        ("a byte more", rows, right + b"\0"),
        ("a byte less", rows, right[:-1]),
        ("nothing", rows, b""),
        ("no commitments, no words", {}, spec.encode_words(LIAR, {})),
        ("a complaint alone, no words", {1: rows[COMPLAINED]}, spec.encode_words(LIAR, {})),
        ("no commitments, and words", {}, right),
        ("a commitment to what is not canonical", {HONEST: odd}, strange),
    ]
    return [
        {
            "fits": spec.fits_report(LIAR, committed, words),
            "report": spec.encode_report(LIAR, bytes(32), committed),
            "seat": LIAR,
            "why": why,
            "words": words,
        }
        for why, committed, words in cases
    ]


def exchange() -> Vector:
    proofs = {HONEST: SmallProof(0, []), CHEATING: SmallProof(1, []), COMPLAINED: SmallProof(0, [])}
    n = len(CLIENTS)
    gradients, roots = words("exchanged gradient", n), words("root", n)
    lines = [
        spec.claim_line(client, ROUND, gradients[i], roots[i], True)
        for i, client in enumerate(CLIENTS)
    ]
    weights = struct.pack("<4f", *(single(f"weight {i}") for i in range(4)))
    policy, boundary = word("policy"), word("boundary")
    statement, answers = proofs[HONEST].statement["hash"], words("answer", n)
    subject = spec.exchange_subject(policy, boundary, lines, weights, statement, answers)
    told = [{c: words_of(seat, proof) for c, proof in proofs.items()} for seat in range(3)]
    rows: list[dict[int, Any]] = [
        {c: spec.words_commitment(seat, told[seat][c]) for c in CLIENTS} for seat in range(3)
    ]
    rows[LIAR][COMPLAINED] = spec.file_complaint(
        SECRETS[LIAR], LIAR, spec.public_key(7), word("context")
    )
    del told[LIAR][COMPLAINED]
    reports = [spec.encode_report(seat, subject, rows[seat]) for seat in range(3)]
    revealed = [spec.encode_words(seat, told[seat]) for seat in range(3)]
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    given, round_id = words("exchanged input", n), spec.round_id(JOB, ROUND)
    return {
        "answerHashes": answers,
        "boundaryHash": boundary,
        "chainId": CHAIN_ID,
        "clientIndices": CLIENTS,
        "commitments": [rows[seat][HONEST] for seat in range(3)],
        "conclusions": conclusions(),
        "contexts": [
            spec.proof_context(separator, round_id, OPENING, client, gradients[i], given[i])
            for i, client in enumerate(CLIENTS)
        ],
        "datasetRoots": roots,
        "fitting": fitting(rows[LIAR], told[LIAR]),
        "gradientCommitments": gradients,
        "inputCommitments": given,
        "job": JOB,
        "messageDigests": [
            [
                spec.round_statement_digest(
                    separator, "MemberMessage", JOB, ROUND, OPENING, slot, spec.keccak256(body)
                )
                for body in bodies
            ]
            for slot, bodies in ((spec.SLOTS["report"], reports), (spec.SLOTS["words"], revealed))
        ],
        "opening": OPENING,
        "policyHash": policy,
        "reports": reports,
        "revealed": revealed,
        "round": ROUND,
        "roundId": str(round_id),
        "statementHash": statement,
        "subject": subject,
        "verifyingContract": JOBS,
        "weights": weights,
        "words": [spec.field_bytes(x + y) for x, y in (told[s][HONEST] for s in range(3))],
    }
