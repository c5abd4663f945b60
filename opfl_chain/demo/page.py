"""report.html: what a demo ended with, on one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path

from opfl_chain.chain.files import write_atomically
from opfl_chain.demo.charts import STYLE, Line, bar_chart, line_chart, panel
from opfl_chain.demo.events import REASONS
from opfl_chain.demo.money import deposit_lines
from opfl_chain.demo.result import DemoResult
from opfl_chain.demo.tables import bytes_in_words, cost_cells, ether
from opfl_chain.localnet.outcome import LEFT_OUT, PASSED
from opfl_chain.trail.pages.markup import (
    Html,
    chip,
    code,
    facts,
    heading,
    join,
    link,
    note,
    page,
    table,
    text,
)

_GRID_STYLE = """\
.grid td, .grid th { text-align: center; padding: 0.3rem 0.2rem; min-width: 1.7rem; }
.grid td:first-child, .grid th:first-child { text-align: left; padding-left: 0.8rem; }
.grid .seen { color: var(--good); background: var(--good-ground); font-weight: 600; }
.grid .caught { color: var(--bad); background: var(--bad-ground); font-weight: 600; }
.grid .out { color: var(--warn); } .grid .trusted { color: var(--soft); }
.big { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0; }
.big div {
  background: var(--raised); border: 1px solid var(--line); border-radius: 8px;
  padding: 0.8rem 1.2rem; min-width: 9rem;
}
.big b { display: block; font-size: 1.5rem; font-weight: 600; }
.big span { color: var(--soft); font-size: 0.86em; }
"""


def write_page(path: Path, result: DemoResult) -> None:
    body = [
        Html(f"<style>{STYLE}{_GRID_STYLE}</style>"),
        heading("opfl demo", 1),
        note(
            text(
                f"{len(result.clients)} clients, {len(result.members)} members and a server"
                f" trained {result.plan.model} on {result.plan.dataset} for"
                f" {result.outcome.rounds} rounds, each in a process of its own; audit rate"
                f" {result.plan.audit_rate:g}."
            )
        ),
        _figures(result),
        heading("Verdicts"),
        verdict_grid(result),
        note(
            text(
                "✓ replayed in MPC and inside the boundary, ✗ at fault, · accepted unseen,"
                " - left out, empty: took no part"
            )
        ),
        heading("Over time"),
        Html(f'<div class="charts">{_accuracy(result)}{_deposits(result)}</div>'),
        heading("Money, in ETH"),
        _clients(result),
        Html("<p></p>"),
        _others(result),
        heading("Cost of each role"),
        _costs(result),
        Html(f'<p></p><div class="charts small">{_bars(result)}</div>'),
        heading("Audit trail"),
        _trail(result),
    ]
    write_atomically(path, page("opfl demo", body))


def verdict_grid(result: DemoResult) -> Html:
    outcome = result.outcome
    head = "".join(f"<th>{number}</th>" for number in range(outcome.rounds))
    rows = []
    for client in result.clients:
        cells = "".join(_cell(result, number, client.name) for number in range(outcome.rounds))
        cheat = chip(client.cheat, "bad") if client.cheat else chip("honest", "good")
        rows.append(f"<tr><td>{text(client.name)} {cheat}</td>{cells}</tr>")
    return Html(
        f'<div class="scroll"><table class="grid"><thead><tr><th>round</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(result: DemoResult, number: int, name: str) -> str:
    outcome = result.outcome
    verdict = outcome.verdict(number, name)
    if name not in outcome.participants(number):
        return "<td></td>"
    if verdict in (None, LEFT_OUT):
        return '<td class="out" title="nothing was decided on it">-</td>'
    if verdict != PASSED:
        why = next(words for reason, words in REASONS.items() if reason.name == verdict)
        return f'<td class="caught" title="{text(why)}">✗</td>'
    if outcome.is_audited(number, name):
        return '<td class="seen" title="audited, passed">✓</td>'
    return '<td class="trusted" title="not audited">·</td>'


def _figures(result: DemoResult) -> Html:
    cheats = sum(client.cheat is not None for client in result.clients)
    scored = [accuracy for _, accuracy in sorted(result.accuracies.items())]
    figures = [
        (f"{result.caught} of {cheats}", "cheats slashed"),
        (str(result.honest_slashed), "honest clients lost anything"),
        (f"{scored[0]:.0%} → {scored[-1]:.0%}" if scored else "", "accuracy"),
        (f"{result.seconds:.0f} s", "from start to end"),
        ("holds" if result.trail.holds else "does not hold", "audit trail, recomputed"),
    ]
    shown = "".join(
        f"<div><b>{text(value)}</b><span>{text(name)}</span></div>"
        for value, name in figures
        if value
    )
    return Html(f'<div class="big">{shown}</div>')


def _accuracy(result: DemoResult) -> Html:
    if not result.accuracies:
        return Html("")
    points = [(float(n), 100 * accuracy) for n, accuracy in sorted(result.accuracies.items())]
    line = Line(f"{points[-1][1]:.1f} %", points, dots=True)
    across = max(1.0, points[-1][0])
    chart = line_chart([line], across=across, up=100, unit=" %", below="updates of the model")
    return panel("Accuracy on examples that nobody trains on", chart)


def _deposits(result: DemoResult) -> Html:
    lines = deposit_lines(result)
    most = max(point[1] for line in lines for point in line.points)
    rounds = float(max(1, result.outcome.rounds))
    chart = line_chart(lines, across=rounds, up=1.2 * most, unit="", below="round")
    return panel("Deposits in ETH", chart)


def _clients(result: DemoResult) -> Html:
    columns = ("client", "cheat", ">deposit before", ">after", ">rounds", ">cheated in")
    return table(
        (*columns, ">audited", ">failed", ">slashed"),
        [
            [
                text(client.name),
                chip(client.cheat, "bad") if client.cheat else chip("honest", "good"),
                text(ether(client.deposit_before)),
                text(ether(client.deposit_after)),
                text(client.rounds),
                text(client.cheated or ""),
                text(client.audited or ""),
                text(client.failed or ""),
                chip(ether(client.slashed), "bad") if client.slashed else text(""),
            ]
            for client in result.clients
        ],
    )


def _others(result: DemoResult) -> Html:
    rows = [
        [
            text(member.name),
            text(ether(member.deposit_before)),
            text(ether(member.deposit_after)),
            chip(ether(member.penalised), "bad") if member.penalised else text(""),
            text(ether(member.earned) if member.earned else ""),
        ]
        for member in result.members
    ]
    for name, amount in (("treasury", result.treasury_credit), ("burned", result.burned)):
        rows.append([text(name), text(""), text(""), text(""), text(ether(amount))])
    return table(("", ">stake before", ">after", ">penalised", ">received"), rows)


def _costs(result: DemoResult) -> Html:
    return table(
        ("role", ">gas", ">sent", ">received", ">sent in MPC", ">CPU"),
        [[text(role), *map(text, cost_cells(cost))] for role, cost in result.roles.items()],
    )


def _bars(result: DemoResult) -> Html:
    roles = result.roles.items()
    sent = {role: cost.bytes_sent + cost.mpc_bytes_sent for role, cost in roles}
    gas = {role: cost.gas for role, cost in roles}
    spent = {role: cost.cpu_seconds for role, cost in roles}
    return join(
        (
            panel("Gas", bar_chart(gas, {role: f"{each:,}" for role, each in gas.items()})),
            panel(
                "Bytes sent, MPC included",
                bar_chart(sent, {role: bytes_in_words(each) for role, each in sent.items()}),
            ),
            panel(
                "Processor time",
                bar_chart(spent, {role: f"{each:.1f} s" for role, each in spent.items()}),
            ),
        )
    )


def _trail(result: DemoResult) -> Html:
    trail, report = result.outcome.trail, result.trail
    verdict = chip("everything holds", "good")
    if report.first_failure is not None:
        verdict = chip(str(report.first_failure), "bad")
    return facts(
        [
            ("recomputed", verdict),
            ("facts", text(f"{sum(report.facts.values()):,} in {len(report.facts)} checks")),
            ("events", text(f"{len(trail.entries)} up to block {trail.block}")),
            ("contract Jobs", code(trail.contracts["Jobs"], whole=True)),
            ("pages", link("trail/index.html", "every event, round by round")),
        ]
    )
