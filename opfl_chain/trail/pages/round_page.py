"""The page of a round: commitments, audits, verdicts, slashes and penalties."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import MemberPenalised
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.render import html
from opfl_chain.trail.history import History, RoundHistory, attested_hash, read_verdict
from opfl_chain.trail.pages.words import (
    Names,
    event_table,
    outcome_chip,
    reason_words,
    round_file,
    slash_chip,
    verdict_words,
)


def round_page(history: History, round_: RoundHistory) -> str:
    title = f"Job {history.trail.job}, round {round_.number}: audit trail"
    return html.page(title, _body(history, round_, Names(history)))


def _body(history: History, round_: RoundHistory, names: Names) -> Iterator[html.Html]:
    yield _navigation(history, round_)
    yield html.heading(f"Round {round_.number}", 1)
    yield outcome_chip(round_)
    yield _models(round_)
    yield html.heading("Contributions")
    yield _contributions(history, round_, names)
    yield html.heading("Beacon")
    yield _beacon(history, round_, names)
    yield html.heading("Verdicts")
    yield _verdicts(history, round_, names)
    yield html.heading("Slashes")
    yield _slashes(history, round_, names)
    yield html.heading("Penalties of members")
    yield html.table(
        ("member", "fault", ">amount", ">in block"),
        [
            (
                names.shown(entry.event.member),
                html.text(entry.event.fault.name.lower().replace("_", " ")),
                html.money(entry.event.amount),
                html.text(entry.block),
            )
            for entry in round_.of(MemberPenalised)
        ],
    )
    yield html.heading("Where the money went")
    yield _distributions(history, round_, names)
    yield html.heading("Phases")
    yield _phases(round_)
    yield html.folded(f"All {len(round_.entries)} events", event_table(round_.entries))


def _navigation(history: History, round_: RoundHistory) -> html.Html:
    links = [html.link("index.html", f"Job {history.trail.job}")]
    for number, words in ((round_.number - 1, "previous"), (round_.number + 1, "next")):
        if number in history.rounds:
            links.append(html.link(round_file(number), f"{words}: round {number}"))
    return html.Html(f"<nav>{html.join(links)}</nav>")


def _models(round_: RoundHistory) -> html.Html:
    before = round_.opened.event.model_hash if round_.opened is not None else b""
    final = round_.finalised
    pairs = [("model before", html.hexed(before, whole=True))]
    if final is not None:
        pairs.append(("model after", html.hexed(final.event.model_hash, whole=True)))
        pairs.append(("aggregate", html.hexed(final.event.aggregate_hash, whole=True)))
    else:
        pairs.append(("model after", html.text("as before" if round_.over else "not known yet")))
    return html.facts(pairs)


def _contributions(history: History, round_: RoundHistory, names: Names) -> html.Html:
    verdict = round_.verdict
    rows = []
    for client in history.participants(round_):
        index = history.clients[client].event.index
        direct = round_.direct.get(client)
        rows.append(
            (
                html.Html(f"{html.text(names.client(client))}"),
                html.hexed(direct.event.commitment)
                if direct is not None
                else html.text("in the batch"),
                _audited(round_, client),
                _judgement(verdict, index),
            )
        )
    parts = [html.table(("client", "commitment", "audited", "verdict"), rows)]
    if round_.batch is not None:
        batch = round_.batch
        words = html.text(f"A batch of {batch.event.count} in block {batch.block}, root ")
        parts.append(html.note(html.Html(f"{words}{html.hexed(batch.event.root)}")))
    return html.join(parts)


def _audited(round_: RoundHistory, client: Address) -> html.Html:
    if round_.beacon is None and not round_.attested:
        return html.text("")
    return html.chip("audited", "warn") if round_.is_audited(client) else html.text("no")


def _judgement(verdict: Verdict | None, index: int) -> html.Html:
    if verdict is None:
        return html.text("")
    if index in verdict.passed:
        return html.chip("passed", "good")
    for fault in verdict.faults:
        if fault.client == index:
            return html.chip(reason_words(fault.reason), "bad")
    return html.text("not judged")


def _beacon(history: History, round_: RoundHistory, names: Names) -> html.Html:
    parts = []
    if round_.beacon is not None:
        published = round_.beacon
        parts.append(
            html.facts(
                [
                    ("seed", html.hexed(published.event.seed, whole=True)),
                    ("signature", html.hexed(published.event.signature)),
                    ("published", html.text(f"in block {published.block}")),
                ]
            )
        )
    elif round_.schedule is not None:
        words = f"None: past block {round_.schedule.beacon} without one, everyone is audited."
        parts.append(html.note(html.text(words)))
    if round_.partials:
        rows = []
        for member in history.terms.members:
            entry = round_.partials.get(member)
            if entry is None:
                row = (names.shown(member), html.chip("withheld", "bad"), html.text(""))
            else:
                row = (
                    names.shown(member),
                    html.hexed(entry.event.signature),
                    html.text(entry.block),
                )
            rows.append(row)
        parts.append(html.table(("member", "partial signature", ">in block"), rows))
    return html.join(parts)


def _verdicts(history: History, round_: RoundHistory, names: Names) -> html.Html:
    rows = []
    for member in history.terms.members:
        entry = round_.attested.get(member)
        if entry is None:
            rows.append(
                (
                    names.shown(member),
                    html.chip("silent", "warn"),
                    html.text(""),
                    html.text(""),
                    html.text(""),
                )
            )
            continue
        verdict = read_verdict(entry)
        if not round_.majority:
            side = html.chip("no majority", "warn")
        else:
            agrees = member in round_.majority
            side = html.chip("majority", "good") if agrees else html.chip("dissents", "bad")
        rows.append(
            (
                names.shown(member),
                side,
                verdict_words(verdict) if verdict is not None else html.chip("no verdict", "bad"),
                _faults(history, verdict, names),
                html.hexed(attested_hash(entry)),
            )
        )
    return html.table(("member", "", "verdict", "faults", "hash"), rows)


def _faults(history: History, verdict: Verdict | None, names: Names) -> html.Html:
    if verdict is None:
        return html.text("")
    lines = []
    for fault in verdict.faults:
        client = history.client_at.get(fault.client)
        who = names.client(client) if client is not None else f"no client {fault.client}"
        lines.append(html.text(f"{who}: {reason_words(fault.reason)}"))
    return html.Html("<br>".join(lines))


def _slashes(history: History, round_: RoundHistory, names: Names) -> html.Html:
    return html.table(
        ("client", "reason", ">set aside", ">requested in block", "outcome"),
        [
            (
                html.Html(html.text(names.client(client))),
                html.text(slash.requested.event.reason.name.lower().replace("_", " ")),
                html.money(slash.requested.event.captured),
                html.text(slash.requested.block),
                slash_chip(slash),
            )
            for (number, client), slash in history.slashes.items()
            if number == round_.number
        ],
    )


def _distributions(history: History, round_: RoundHistory, names: Names) -> html.Html:
    rows = []
    for distribution in history.distributions:
        cause, found = distribution.cause, distribution.distributed
        if cause.round != round_.number or found is None:
            continue
        members = [
            entry for entry in distribution.credited if entry.event.account in round_.majority
        ]
        rows.append(
            (
                names.shown(cause.who),
                html.money(cause.event.amount),
                html.money(found.event.burned),
                html.money(found.event.to_treasury),
                html.money(found.event.to_committee),
                html.text(", ".join(names.of(entry.event.account) for entry in members)),
            )
        )
    return html.table(("from", ">amount", ">burned", ">treasury", ">committee", "paid to"), rows)


def _phases(round_: RoundHistory) -> html.Html:
    if round_.opened is None or round_.schedule is None:
        return html.note(html.text("not opened"))
    schedule, opened = round_.schedule, round_.opened.block
    spans = [
        ("commit", opened, schedule.commit),
        ("beacon", schedule.commit + 1, schedule.beacon),
        ("deliver", schedule.beacon + 1, schedule.deliver),
        ("attest", schedule.deliver + 1, schedule.attest),
        ("finalise", schedule.attest + 1, schedule.finalise),
        ("request slashes", schedule.attest + 1, schedule.request),
    ]
    return html.table(
        ("phase", ">first block", ">last block"),
        [(html.text(name), html.text(first), html.text(last)) for name, first, last in spans],
    )
