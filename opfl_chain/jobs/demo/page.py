"""The page of a demo: verdicts, charts, money and costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opfl_chain.chain.bindings.events import Captured, Locked, Released
from opfl_chain.chain.bindings.types import Role
from opfl_chain.jobs.demo.narration import OUTCOMES
from opfl_chain.jobs.demo.result import DemoResult
from opfl_chain.jobs.demo.tables import cost_cells, rest_of_the_money
from opfl_chain.jobs.localnet.outcome import ACQUITTED, OUTSIDE, PASSED, UNANSWERED
from opfl_chain.protocol.economics import ETHER
from opfl_chain.render import html
from opfl_chain.render.svg import STYLE, Line, Point, bar_chart, line_chart, panel
from opfl_chain.render.text import bytes_in_words, rounded_ether, seconds_in_words
from opfl_chain.system.files import write_atomically

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


def deposit_lines(result: DemoResult) -> list[Line]:
    """Return chart lines; clients whose deposits took the same course share one."""
    cheats = {client.name: client.cheat for client in result.clients}
    same: dict[tuple[Point, ...], list[str]] = {}
    for name, points in _courses(result).items():
        same.setdefault(tuple(points), []).append(name)
    return [
        Line(
            _label(names, cheats),
            points,
            "bad" if points[-1][1] < points[0][1] else "good",
        )
        for points, names in same.items()
    ]


def _label(names: list[str], cheats: Mapping[str, str | None]) -> str:
    if len(names) == 1:
        return f"{names[0]} ({cheats[names[0]] or 'honest'})"
    kinds = {cheats[name] or "honest" for name in names}
    return f"{len(names)} clients ({', '.join(sorted(kinds))})"


def _courses(result: DemoResult) -> dict[str, list[Point]]:
    """Deposits in ETH by round, with a corner at every change."""
    outcome = result.outcome
    rounds = outcome.history.rounds
    opened = [r.opened.block if r.opened else 0 for r in rounds.values()]
    courses: dict[str, list[Point]] = {client.name: [] for client in result.clients}
    held = dict.fromkeys(courses, 0)
    for entry in outcome.trail.entries:
        event = entry.event
        if not isinstance(event, Locked | Captured | Released) or event.role is not Role.CLIENT:
            continue
        name, at = outcome.names[event.owner], _when(entry.block, opened)
        if courses[name]:
            courses[name].append((at, held[name] / ETHER))
        held[name] += -event.amount if isinstance(event, Captured) else event.amount
        courses[name].append((at, held[name] / ETHER))
    for name, points in courses.items():
        points.append((float(len(opened)), held[name] / ETHER))
    return courses


def _when(block: int, opened: list[int]) -> float:
    """Return the position of a block among the rounds: 2.5 is the middle of round 2."""
    for number, first in enumerate(opened):
        last = opened[number + 1] if number + 1 < len(opened) else None
        if block < first:
            return float(number)
        if last is not None and block < last:
            return number + (block - first) / (last - first)
    return float(len(opened))


def write_page(path: Path, result: DemoResult) -> None:
    body = [
        html.Html(f"<style>{STYLE}{_GRID_STYLE}</style>"),
        html.heading("opfl demo", 1),
        html.note(
            html.text(
                f"{len(result.plan.clients)} clients, {len(result.plan.members)} members,"
                f" {len(result.plan.standbys)} on the bench and a server"
                f"{f' that cheats ({result.plan.server})' if result.plan.server else ''}"
                f" trained {result.plan.model} on {result.plan.dataset} for"
                f" {result.outcome.rounds} rounds, each in a process of its own; audit rate"
                f" {result.plan.audit_rate:g}."
            )
        ),
        _figures(result),
        html.heading("Verdicts"),
        verdict_grid(result),
        html.note(
            html.text(
                "✓ audited and inside the boundary, ✗ charged, + acquitted after the verdict,"
                " · accepted unseen, - left out, empty: not on the roll"
            )
        ),
        html.heading("Over time"),
        html.Html(f'<div class="charts">{_accuracy(result)}{_deposits(result)}</div>'),
        html.heading("Money, in ETH"),
        _clients(result),
        html.Html("<p></p>"),
        _others(result),
        html.heading("Cost of each role"),
        _costs(result),
        html.Html(f'<p></p><div class="charts small">{_bars(result)}</div>'),
        html.heading("Audit trail"),
        _trail(result),
    ]
    write_atomically(path, html.page("opfl demo", body))


def verdict_grid(result: DemoResult) -> html.Html:
    outcome = result.outcome
    head = "".join(f"<th>{number}</th>" for number in range(outcome.rounds))
    rows = []
    for client in result.clients:
        cells = "".join(_cell(result, number, client.name) for number in range(outcome.rounds))
        cheat = html.chip(client.cheat, "bad") if client.cheat else html.chip("honest", "good")
        rows.append(f"<tr><td>{html.text(client.name)} {cheat}</td>{cells}</tr>")
    return html.Html(
        f'<div class="scroll"><table class="grid"><thead><tr><th>round</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(result: DemoResult, number: int, name: str) -> str:
    outcome = result.outcome
    verdict = outcome.verdict(number, name)
    if name not in outcome.participants(number):
        return "<td></td>"
    if verdict in (OUTSIDE, UNANSWERED):
        why = next(words for end, words in OUTCOMES.items() if end.name == verdict)
        return f'<td class="caught" title="{html.text(why)}">✗</td>'
    if verdict == ACQUITTED:
        return '<td class="seen" title="answered within the response window, passed">+</td>'
    if verdict != PASSED:
        return '<td class="out" title="nothing was decided on it">-</td>'
    if outcome.is_audited(number, name):
        return '<td class="seen" title="audited, passed">✓</td>'
    return '<td class="trusted" title="not audited">·</td>'


def _figures(result: DemoResult) -> html.Html:
    cheats = [client for client in result.clients if client.cheat is not None]
    charged = sum(client.charged > 0 for client in cheats)
    bad = result.bad_members
    scored = [accuracy for _, accuracy in sorted(result.accuracies.items())]
    figures = [
        (f"{charged} of {len(cheats)}", "cheats charged"),
        (
            f"{sum(member.penalised > 0 for member in bad)} of {len(bad)}" if bad else "",
            "bad members penalised",
        ),
        (f"{result.rounds_final} of {result.outcome.rounds}", "rounds final"),
        (str(result.honest_clients_lost), "honest clients lost anything"),
        (str(result.honest_members_lost), "honest members lost anything"),
        (rounded_ether(result.paid), "ETH paid for work"),
        (f"{scored[0]:.0%} → {scored[-1]:.0%}" if scored else "", "accuracy"),
        (seconds_in_words(result.seconds, 0), "from start to end"),
        ("holds" if result.trail.holds else "does not hold", "audit trail, recomputed"),
    ]
    shown = "".join(
        f"<div><b>{html.text(value)}</b><span>{html.text(name)}</span></div>"
        for value, name in figures
        if value
    )
    return html.Html(f'<div class="big">{shown}</div>')


def _accuracy(result: DemoResult) -> html.Html:
    if not result.accuracies:
        return html.Html("")
    points = [(float(n), 100 * accuracy) for n, accuracy in sorted(result.accuracies.items())]
    line = Line(f"{points[-1][1]:.1f} %", points, dots=True)
    across = max(1.0, points[-1][0])
    chart = line_chart([line], across=across, up=100, unit=" %", below="updates of the model")
    return panel("Accuracy on examples that nobody trains on", chart)


def _deposits(result: DemoResult) -> html.Html:
    lines = deposit_lines(result)
    most = max(point[1] for line in lines for point in line.points)
    rounds = float(max(1, result.outcome.rounds))
    chart = line_chart(lines, across=rounds, up=1.2 * most, unit="", below="round")
    return panel("Deposits in ETH", chart)


def _clients(result: DemoResult) -> html.Html:
    columns = ("client", "cheat", ">deposit before", ">after", ">rounds", ">cheated in")
    return html.table(
        (*columns, ">audited", ">failed", ">lost", ">earned"),
        [
            [
                html.text(client.name),
                html.chip(client.cheat, "bad") if client.cheat else html.chip("honest", "good"),
                html.text(rounded_ether(client.deposit_before)),
                html.text(rounded_ether(client.deposit_after)),
                html.text(client.rounds),
                html.text(client.cheated or ""),
                html.text(client.audited or ""),
                html.text(client.failed or ""),
                html.chip(rounded_ether(client.charged), "bad")
                if client.charged
                else html.text(""),
                html.text(rounded_ether(client.earned)),
            ]
            for client in result.clients
        ],
    )


def _others(result: DemoResult) -> html.Html:
    rows = [
        [
            html.text(member.name),
            html.chip(member.cheat, "bad") if member.cheat else html.chip("honest", "good"),
            html.text(rounded_ether(member.deposit_before)),
            html.text(rounded_ether(member.deposit_after)),
            html.chip(rounded_ether(member.penalised), "bad")
            if member.penalised
            else html.text(""),
            html.text(", ".join(member.faults)),
            html.text(rounded_ether(member.earned + member.compensated)),
        ]
        for member in result.members
    ]
    for name, amount in rest_of_the_money(result).items():
        rows.append([html.text(name), *[html.text("")] * 5, html.text(rounded_ether(amount))])
    columns = ("", "cheat", ">stake before", ">after", ">penalised", "for", ">received")
    return html.table(columns, rows)


def _costs(result: DemoResult) -> html.Html:
    return html.table(
        ("role", ">gas", ">sent", ">received", ">sent in MPC", ">CPU"),
        [
            [html.text(role), *map(html.text, cost_cells(cost))]
            for role, cost in result.roles.items()
        ],
    )


def _bars(result: DemoResult) -> html.Html:
    roles = result.roles.items()
    sent = {role: cost.bytes_sent + cost.mpc_bytes_sent for role, cost in roles}
    gas = {role: cost.gas for role, cost in roles}
    spent = {role: cost.cpu_seconds for role, cost in roles}
    return html.join(
        (
            panel("Gas", bar_chart(gas, {role: f"{each:,}" for role, each in gas.items()})),
            panel(
                "Bytes sent, MPC included",
                bar_chart(sent, {role: bytes_in_words(each) for role, each in sent.items()}),
            ),
            panel(
                "Processor time",
                bar_chart(spent, {role: seconds_in_words(each) for role, each in spent.items()}),
            ),
        )
    )


def _trail(result: DemoResult) -> html.Html:
    trail, report = result.outcome.trail, result.trail
    verdict = html.chip("everything holds", "good")
    if report.first_failure is not None:
        verdict = html.chip(str(report.first_failure), "bad")
    return html.facts(
        [
            ("recomputed", verdict),
            ("facts", html.text(f"{sum(report.facts.values()):,} in {len(report.facts)} checks")),
            ("events", html.text(f"{len(trail.entries)} up to block {trail.block}")),
            ("contract Jobs", html.code(trail.contracts["Jobs"], whole=True)),
            ("pages", html.link("trail/index.html", "every event, round by round")),
        ]
    )
