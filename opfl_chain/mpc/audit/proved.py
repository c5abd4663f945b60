"""One member's part in auditing proved steps: checks and answers, without any session.

All three members do the same alone. `protocol.audit_exchange` compares their words, and concludes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opfl_chain.mpc.audit.judge import Report as ReportRefusal
from opfl_chain.mpc.audit.judge import Rules, Weights, check_deliveries, subject_of
from opfl_chain.protocol.audit_exchange import Answers, ReportRow
from opfl_chain.protocol.delivery import Checked, Claim, Delivery, Expected
from opfl_chain.protocol.errors import memory_for
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.answers import Query
from opfl_chain.protocol.proof.closing import Statement
from opfl_chain.protocol.shares import held_indices

ContextOf = Callable[[Claim, bytes], bytes]
"""Names a contribution, from its claim and the commitment to its input."""


def examine(
    expected: Expected,
    statement: Statement,
    context_of: ContextOf,
    claims: Sequence[Claim],
    deliveries: Mapping[ClientIndex, Delivery],
    report: ReportRefusal = lambda claim, reason: None,
) -> dict[ClientIndex, tuple[ReportRow, Answers]]:
    """Check the deliveries of audited clients, and answer on those without fault.

    Returns a row of the report and the member's words, by client.
    """
    checked = check_deliveries(expected, claims, deliveries, report)
    found: dict[ClientIndex, tuple[ReportRow, Answers]] = {}
    for claim, parts in checked.items():
        given = deliveries[claim.client].training_input
        context = context_of(claim, given.commitment if given else b"")
        answers = answer(expected.rank, statement, context, parts)
        found[claim.client] = ReportRow(answers.commitment), answers
    return found


def proved_subject(
    rules: Rules, weights: Weights, claims: Sequence[Claim], statement: Statement
) -> bytes:
    """Return a digest of the facts that must be the same for all members, as reports have it."""
    return sha256(subject_of(rules, weights, claims), statement.hash)


def answer(rank: int, statement: Statement, context: bytes, found: Checked) -> Answers:
    """Answer on both components that a member holds of an audited contribution."""
    if found.proof is None or found.training_input is None:
        raise AssertionError("an audited contribution was checked without its proof")
    with memory_for("the answers on a proof"):
        query = Query.of(statement, context, found.proof.leaves)
        held = zip(found.proof.held, found.gradient, found.training_input, strict=True)
        answers = [query.answer(part, gradient, words) for part, gradient, words in held]
    return Answers.of(rank, dict(zip(held_indices(rank), answers, strict=True)))
