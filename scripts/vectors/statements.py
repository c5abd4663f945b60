"""Statements that clients and members sign off chain."""

from typing import Any

from vectors.made_up import CHAIN_ID, JOBS, addresses, words
from vectors.specification import spec
from vectors.values import Vector


def statements() -> Vector:
    """One file for all types: entry i of every array belongs to statement i of each type."""
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    ids = [(1, 0), (7, 3), (2**64 - 1, 2**32 - 1)]
    n = len(ids)
    openings, clients, contents = words("opening", n), addresses("client", n), words("content", n)
    roots, counts, pairs = words("root", n), [1, 5, 2**32 - 1], words("pairs", n)
    verdicts, aggregates, models = words("verdict", n), words("aggregate", n), words("model", n)
    outcomes, slots = [spec.PASSED, spec.OUTSIDE, spec.UNANSWERED], [1, 6, 2**32 - 1]
    members, faults = addresses("member", n), [2, 4, len(spec.MEMBER_FAULTS) - 1]
    epochs, seats, standbys = [0, 3, 255], [0, 1, 2], addresses("standby", n)

    def digests(name: str, *columns: list[Any]) -> list[bytes]:
        rows = zip(ids, openings, *columns, strict=True)
        return [
            spec.round_statement_digest(separator, name, *each, opening, *values)
            for each, opening, *values in rows
        ]

    return {
        "aggregateHashes": aggregates,
        "answerDigests": digests("Answer", clients, contents),
        "auditOutcomeDigests": digests("AuditOutcome", clients, outcomes),
        "chainId": CHAIN_ID,
        "clients": clients,
        "contentHashes": contents,
        "contributionDigests": digests("Contribution", clients, contents),
        "counts": counts,
        "domainSeparator": separator,
        "epochs": epochs,
        "faultNames": list(spec.MEMBER_FAULTS),
        "faults": faults,
        "jobs": [str(job) for job, _ in ids],
        "memberFaultDigests": digests("MemberFault", members, faults),
        "memberMessageDigests": digests("MemberMessage", slots, contents),
        "members": members,
        "modelHashes": models,
        "openings": openings,
        "outcomes": outcomes,
        "pairsHashes": pairs,
        "rollDigests": digests("Roll", roots, counts, pairs),
        "roots": roots,
        "roundResultDigests": digests("RoundResult", verdicts, aggregates, models),
        "rounds": [round_ for _, round_ in ids],
        "seatChangeDigests": [
            spec.seat_change_digest(separator, ids[i][0], epochs[i], seats[i], standbys[i])
            for i in range(n)
        ],
        "seats": seats,
        "slots": slots,
        "standbys": standbys,
        "verdictHashes": verdicts,
        "verifyingContract": JOBS,
    }
