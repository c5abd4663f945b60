"""Statements that clients and members sign off chain."""

from vectors.made_up import CHAIN_ID, JOBS, addresses, word, words
from vectors.specification import spec
from vectors.values import Vector


def statements() -> Vector:
    """One file for all types: entry i of every array belongs to statement i of each type."""
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    ids = [(1, 0), (7, 3), (2**64 - 1, 2**32 - 1)]
    n = len(ids)
    clients, commitments = addresses("client", n), words("gradient", n)
    audited = [True, False, True]
    verdicts, aggregates, models = words("verdict", n), words("aggregate", n), words("model", n)
    members, deliveries = addresses("member", n), [b"", b"delivery", word("delivery")]
    return {
        "acquittalDigests": [
            spec.acquittal_digest(separator, *ids[i], clients[i]) for i in range(n)
        ],
        "aggregateHashes": aggregates,
        "audited": audited,
        "chainId": CHAIN_ID,
        "clients": clients,
        "commitments": commitments,
        "deliveries": deliveries,
        "deliveryEnvelopeDigests": [
            spec.delivery_envelope_digest(separator, *ids[i], clients[i], members[i], deliveries[i])
            for i in range(n)
        ],
        "deliveryReceiptDigests": [
            spec.delivery_receipt_digest(separator, *ids[i], clients[i], audited[i])
            for i in range(n)
        ],
        "domainSeparator": separator,
        "gradientCommitmentDigests": [
            spec.gradient_commitment_digest(separator, *ids[i], clients[i], commitments[i])
            for i in range(n)
        ],
        "jobs": [str(job) for job, _ in ids],
        "members": members,
        "modelHashes": models,
        "roundResultDigests": [
            spec.round_result_digest(separator, *ids[i], verdicts[i], aggregates[i], models[i])
            for i in range(n)
        ],
        "rounds": [round_ for _, round_ in ids],
        "verdictHashes": verdicts,
        "verifyingContract": JOBS,
    }
