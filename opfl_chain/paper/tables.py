"""Results as Markdown tables, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opfl_chain.paper.published import ADAPTIVE_LENET, COST, GENERAL_ATTACKS, TAIL_LENET, TITLES
from opfl_chain.render.text import bytes_in_words, markdown_table, milliseconds_in_words, percent

Report = Mapping[str, Any]


def general_attacks(report: Report) -> str:
    parts = []
    for run in report["runs"]:
        names = list(run["honest"])
        columns = ["attack", ">steps", ">the paper's OPFL", *(f">{TITLES[name]}" for name in names)]
        rows = [
            [
                each["attack"],
                f"{each['attacked_steps']:,}",
                "0" if each["attack"].split(":")[0] in GENERAL_ATTACKS else "",
                *(percent(each["asr"][name]) for name in names),
            ]
            for each in run["attacks"]
        ]
        honest = [percent(run["honest"][name]["frr"]) for name in names]
        rows.append(["**honest steps rejected**", f"{run['judged_steps']:,}", "0", *honest])
        guided = run["honest"]["opfl-guided"]
        parts.append(
            f"**{run['run']}**: success in per cent of the attacked steps, among"
            f" {run['judged_steps']:,} held-out steps from {run['first_step']:,} to"
            f" {run['last_step']:,}, after {run['calibration_steps']} for calibration."
            f" Our rule rejected {guided['rejected']:.0f} honest steps; with 95 % confidence the"
            f" rate is below {percent(guided['frr_upper95'], 2)} %."
            f" {run['honest']['opfl-paper']['honest_steps']:,} of the steps were replayed by the"
            " paper's rule.\n\n" + markdown_table(columns, rows)
        )
    return "\n\n".join(parts)


def adaptive_pgd(report: Report) -> str:
    parts = []
    for stage, steps in report["instances"].items():
        rows = [row for row in report["rows"] if row["stage"] == stage]
        names = unique(row["verifier"] for row in rows)
        table = _by_beta(rows, names, ADAPTIVE_LENET)
        reach = [row for row in report["largest_accepted_move"] if row["stage"] == stage]
        told = "; ".join(
            f"{TITLES[row['verifier']]}: at most {row['beta_max']:.1e}, {row['flipped']} of"
            f" {row['instances']} predictions flipped"
            for row in reach
        )
        parts.append(
            f"**{stage}**: {len(steps)} instances, steps {steps[0]:,} to {steps[-1]:,} of"
            f" {report['run']}. Success in per cent, the paper's in brackets.\n\n{table}\n\n"
            "How far a gradient can be moved at all, relative to its norm, if every coordinate"
            f" takes all that the boundary leaves it: {told}."
        )
        parts.append(
            _at_learning_rates([row for row in report["learning_rates"] if row["stage"] == stage])
        )
        judged = min(row["instances"] for row in rows)
        if judged < len(steps):
            parts.append(f"The paper's rule judged the {judged} that were replayed by it.")
        audits = [row for row in rows if "asr_of_randomised_audit" in row]
        apart = max((abs(row["asr"] - row["asr_of_randomised_audit"]) for row in audits), default=0)
        parts.append(
            "RiseFL's success is expected by the chi-square law; with actual random projections it"
            f" was the same within {percent(apart)} points."
        )
    return "\n\n".join(parts)


def _at_learning_rates(rows: Sequence[Report]) -> str:
    """Return the table of attacks without a verifier, by learning rate."""
    found = {(row["learning_rate"], row["beta"]): row["asr"] for row in rows}
    counts = {row["learning_rate"]: row["instances"] for row in rows}
    betas = unique(row["beta"] for row in rows)
    table = markdown_table(
        [">learning rate of the update", ">instances", *(f">beta {beta:g}" for beta in betas)],
        [
            [f"{rate:g}", f"{count}", *(percent(found[rate, beta]) for beta in betas)]
            for rate, count in counts.items()
        ],
    )
    return (
        "Without a verifier, if the attacked update is taken at a larger learning rate, of those"
        f" instances whose honest update still predicts rightly:\n\n{table}"
    )


def tail_pgd(report: Report) -> str:
    judged, count = min(row["instances"] for row in report["rows"]), len(report["instances"])
    parts = [
        f"{count} instances of {report['run']}, {report['stage']}."
        + (f" The paper's rule judged the {judged} replayed by it." if judged < count else "")
        + " Success in per cent, the paper's in brackets."
    ]
    for support in unique(row["support"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["support"] == support]
        names = unique(row["verifier"] for row in rows)
        table = _by_beta(rows, names, TAIL_LENET[support])
        grid = report["grids"][f"{support:g}"]
        parts.append(
            f"**{support:.0%} of the coordinates**, quantiles up to {grid[-1] / 1000:g}\n\n{table}"
        )
    return "\n\n".join(parts)


def drift(report: Report) -> str:
    columns = [
        *("verifier", ">accepted, of " + f"{report['rounds']:,}", ">honest accepted"),
        *(">moved, of the norm", ">accuracy", ">loss", ">distance from the honest model"),
    ]
    rows = [
        [
            TITLES[row["verifier"]],
            f"{row['accepted']:,.0f}",
            f"{row['honest_accepted']:,.0f}",
            f"{row['relative_move_median']:.2g}",
            f"{row['accuracy']:.2%}",
            "" if row["loss"] is None else f"{row['loss']:.4g}",
            _distance(row),
        ]
        for row in report["rows"]
    ]
    honest = report["all_honest"]
    poisoned = ", ".join(
        f"{each['accepted']} of {each['steps']} by rule {each['rule']}" for each in report["poison"]
    )
    return (
        f"{report['clients']} clients, of which one drifts, for {report['rounds']:,} rounds from a"
        f" model with accuracy {report['at_the_start']['accuracy']:.2%}. With honest clients alone"
        f" it ends at {honest['accuracy']:.2%} and loss {honest['loss']:.4f}, at a distance"
        f" of {honest['distance_moved']:.2f} from the start.{_elsewhere(report)} Every"
        " submission is verified.\n\n"
        f"{markdown_table(columns, rows)}\n\n"
        "Data poisoning is not seen either: of steps on labels that were wrong before they were"
        f" committed to, audits accepted {poisoned}. The paper's rule rejects them, where"
        " it does, as it rejects honest steps of this stage."
    )


def _elsewhere(report: Report) -> str:
    """Tell where honest clients end on the machine that rows of further rules were made on."""
    if (honest := report.get("all_honest_of_further_rules")) is None:
        return ""
    return (
        f" On the machine of the last rows it ends at {honest['accuracy']:.2%} and loss"
        f" {honest['loss']:.4f}, at a distance of {honest['distance_moved']:.2f}; their distance is"
        " from there."
    )


def _distance(row: Report) -> str:
    if lost := row["rounds_until_the_model_is_lost"]:
        return f"model lost after {lost} rounds"
    return f"{row['distance_from_honest_model']:.2g}"


def cost(report: Report) -> str:
    seconds = [
        *("method", ">audits or computation", ">gate", ">transfer", ">sums", ">together"),
        *(">the chain's node", ">gas, millions", ">audits and sums alone", ">the paper"),
        ">clients' own work",
    ]
    ratios = [
        *("method", ">naive full MPC", ">with the chain's node", ">audits and sums alone"),
        *(">full MPC, our operations", ">with the chain's node", ">audits and sums alone"),
        *(">the paper", ">deposit", ">the paper", ">naive full MPC, with clients' own work"),
    ]
    beside = report["round"]
    spent = {
        what: milliseconds_in_words(beside[f"{what}_seconds"])
        for what in ("gate", "transfer", "aggregation", "chain_node")
    }
    audited = [row for row in report["rows"] if "audit_rate" in row]
    return (
        f"{report['clients']} clients, {report['rounds']:,} rounds,"
        f" {report['clients'] * report['rounds']:,} gradients of {report['model']}. One gradient:"
        f" commitment gate {spent['gate']}, transfer {spent['transfer']} for"
        f" {bytes_in_words(beside['transfer_bytes'], 2)} over loopback to disks, without TLS. One"
        f" round: sum {spent['aggregation']}, and {beside['gas']:,} gas, for which the chain's node"
        f" took {spent['chain_node']} of CPU time, questions of the senders included. The load"
        f" average of this machine of {report['cores']} cores was"
        f" {report['load_before']:.1f} before the measurement and {report['load_after']:.1f} after"
        " it.\n\nSeconds:\n\n"
        + markdown_table(seconds, [_seconds_row(row) for row in report["rows"]])
        + "\n\nHow many times cheaper:\n\n"
        + markdown_table(ratios, [_ratios_row(row) for row in audited])
    )


def _seconds_row(row: Report) -> list[str]:
    parts = row["parts"]
    method = "full MPC" if row["method"].startswith("full MPC") else row["method"]
    return [
        row["method"],
        f"{parts.get('audits', parts.get('computation')):,.1f}",
        *(
            _shown(parts.get(name), ",.1f")
            for name in ("commitment_gate", "share_transfer", "aggregation")
        ),
        f"{row['seconds_without_chain_node']:,.0f}",
        _shown(parts.get("chain"), ",.1f"),
        _shown(row["gas"] / 1e6 if "gas" in row else None, ",.0f"),
        _shown(row.get("seconds_as_the_paper_counts"), ",.1f"),
        _shown(COST.get(method, (None, None))[0], ",.1f"),
        _shown(row.get("client_seconds"), ",.1f"),
    ]


def _ratios_row(row: Report) -> list[str]:
    theirs = COST.get(row["method"], (None, None))
    ways = ("_without_chain_node", "", "_as_the_paper_counts")
    return [
        row["method"],
        *(
            f"{row[f'times_cheaper_than_{full}{way}']:.1f}"
            for full in ("naive_full_mpc", "full_mpc")
            for way in ways
        ),
        "" if theirs[0] is None else f"{COST['full MPC'][0] / theirs[0]:.1f}",
        _shown(row.get("deposit"), ".2f"),
        _shown(theirs[1], ".2f"),
        _shown(row.get("times_cheaper_than_naive_full_mpc_with_clients"), ".1f"),
    ]


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def deterrence(report: Report) -> str:
    rows = [
        [
            f"{row['audit_rate']:g}",
            percent(row["detected"]),
            percent(row["formula"]),
            "yes" if row["within_95_percent"] else "no",
            "none" if row["required_deposit"] is None else f"{row['required_deposit']:.2f}",
        ]
        for row in report["rows"]
    ]
    columns = [">audit rate", ">detected, %", ">formula, %", "within 95 %", ">deposit that deters"]
    detection = markdown_table(columns, rows)
    profits = report["profits"]
    deposits = sorted({row["deposit"] for row in profits if row["audit_rate"] == 0.01})
    cells = {(row["attack"], row["deposit"]): row for row in profits if row["audit_rate"] == 0.01}
    attacks = unique(row["attack"] for row in profits)
    table = markdown_table(
        [
            "cheat",
            ">rejected when audited, %",
            *(f">deposit {deposit:.2f}" for deposit in deposits),
        ],
        [
            [
                attack,
                percent(cells[attack, deposits[0]]["rejected_when_audited"]),
                *(f"{cells[attack, deposit]['profit']:+.2f}" for deposit in deposits),
            ]
            for attack in attacks
        ],
    )
    return (
        f"{report['jobs']:,} simulated jobs a rate, in which a client cheats in"
        f" {report['cheating_rounds']} of {report['rounds']:,} rounds; audits are drawn as the"
        f" protocol draws them.\n\n{detection}\n\nWhat cheating earns at p = 0.01, by deposit; the"
        " unit is what the cheat is worth to the client. Rejections when audited are those of"
        f" {report['chances_from']}.\n\n{table}\n\n{_strategies(report)}"
    )


def _strategies(report: Report) -> str:
    cells = {(row["strategy"], row["audit_rate"]): row for row in report["strategies"]}
    rates = unique(rate for _, rate in cells)
    table = markdown_table(
        ["strategy", *(f">p = {rate:g}" for rate in rates), ">version 1, p = 0.01"],
        [
            [
                name,
                *(
                    f"{cells[name, rate]['gain']:+.2f} ({cells[name, rate]['expected_gain']:+.2f})"
                    for rate in rates
                ),
                f"{cells[name, 0.01]['expected_gain_in_version_1']:+.2f}",
            ]
            for name in unique(name for name, _ in cells)
        ],
    )
    deposits = ", ".join(f"{cells['honest', rate]['deposit']:.1f}" for rate in rates)
    return (
        f"What strategies earn more than honesty in jobs of {report['cheating_rounds']} rounds,"
        " simulated and expected (in parentheses). A contribution costs 1 and earns"
        f" {report['pay']:g}; the deposits are those of `opfl stake` for that: {deposits}. An"
        " audited cheat takes the cheapest way that its strategy knows: whom it answers, whether it"
        " has asked for its deposit, what a colluding member says. The functions of the protocol"
        " end its audit, and the terms price the end: it always loses its deposit, and its place"
        " in the job. `opfl bench attacks` shows the same on daemons. In version 1 an answer that"
        " was withheld cost a tenth of it, and one that was evaded, or judged with a colluding"
        f" member, nothing.\n\n{table}"
    )


TABLES: dict[str, tuple[str, Callable[[Report], str]]] = {
    "general-attacks": ("Attacks that do not look at the verifier", general_attacks),
    "adaptive-pgd": ("Adaptive attacks", adaptive_pgd),
    "tail-pgd": ("Adaptive attacks on few coordinates", tail_pgd),
    "drift": ("Drift within the boundary", drift),
    "cost": ("Cost", cost),
    "deterrence": ("Deterrence", deterrence),
}


def _by_beta(
    rows: Sequence[Report], names: Sequence[str], published: Mapping[str, Mapping[float, float]]
) -> str:
    found = {(row["verifier"], row["beta"]): row["asr"] for row in rows}
    betas = unique(row["beta"] for row in rows)

    def cell(name: str, beta: float) -> str:
        theirs = published.get(name, {}).get(beta)
        told = f" ({theirs:g})" if theirs is not None else ""
        return percent(found[name, beta]) + told

    return markdown_table(
        [">beta", *(f">{TITLES[name]}" for name in names)],
        [[f"{beta:g}", *(cell(name, beta) for name in names)] for beta in betas],
    )


def unique(values: Any) -> list[Any]:
    return list(dict.fromkeys(values))
