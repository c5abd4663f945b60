"""Tables over all rules and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from opfl_chain.evaluation.evaluated import Evaluated, Row
from opfl_chain.evaluation.rates import Rate
from opfl_chain.evaluation.records import GUIDED


def across_datasets(all_evaluated: Sequence[Evaluated]) -> list[Row]:
    """Every pair of data sets under the same rule and model."""
    return [
        one.on_another(other)
        for one in all_evaluated
        for other in all_evaluated
        if one is not other
        and one.records.rule == other.records.rule
        and one.records.run.model is other.records.run.model
    ]


def totals(rows: Sequence[Row]) -> list[Row]:
    """All runs of a rule together."""
    by_rule: dict[str, Counter[str]] = {row["rule"]: Counter() for row in rows}
    causes: dict[str, Counter[str]] = {rule: Counter() for rule in by_rule}
    for row in rows:
        by_rule[row["rule"]].update(honest_steps=row["honest_steps"], rejected=row["rejected"])
        causes[row["rule"]].update(row["rejected_by_cause"])
    return [
        {
            "rule": rule,
            **Rate(each["honest_steps"], each["rejected"], dict(causes[rule])).report,
        }
        for rule, each in by_rule.items()
    ]


def trade_offs(all_evaluated: Sequence[Evaluated]) -> list[Row]:
    return [
        row for each in all_evaluated if each.records.rule == GUIDED for row in each.trade_off()
    ]
