"""The page of a round: roll, audits, verdicts, charges, penalties and pay."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Claimed, MemberPenalised
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.verdict import passed_clients, verdict_hash
from opfl_chain.render import html
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.limits import failed
from opfl_chain.trail.pages.words import (
    Names,
    audit_chip,
    event_table,
    outcome_chip,
    round_file,
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
    yield html.heading("Roll")
    yield _contributions(history, round_, names)
    yield html.heading("Beacon")
    yield _beacon(round_, names)
    yield html.heading("Verdicts")
    yield _verdicts(round_, names)
    yield html.heading("Audits that did not pass")
    yield _audits(history, round_, names)
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
    yield html.heading("Pay")
    yield html.table(
        ("paid to", ">amount", ">in block"),
        [
            (names.shown(e.event.account), html.money(e.event.amount), html.text(e.block))
            for e in round_.of(Claimed)
        ],
    )
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
    opening = round_.opened.event.opening if round_.opened is not None else b""
    pairs = [
        ("opening", html.hexed(opening, whole=True)),
        ("model before", html.hexed(before, whole=True)),
    ]
    if final is not None:
        pairs.append(("model after", html.hexed(final.event.model_hash, whole=True)))
        pairs.append(("aggregate", html.hexed(final.event.aggregate_hash, whole=True)))
    else:
        pairs.append(("model after", html.text("as before" if round_.over else "not known yet")))
    return html.facts(pairs)


def _contributions(history: History, round_: RoundHistory, names: Names) -> html.Html:
    if round_.roll is None:
        return html.note(html.text("none"))
    commitments = dict(round_.pairs or ())
    rows = []
    for client in history.contributors(round_):
        index = history.clients[client].event.index
        commitment = commitments.get(ClientIndex(index))
        rows.append(
            (
                html.text(names.client(client)),
                html.hexed(commitment) if commitment is not None else html.text("not public"),
                _audited(round_, client),
                _judgement(round_, index),
            )
        )
    roll = round_.roll
    words = html.text(f"{roll.event.count} contributions, in block {roll.block}, root ")
    return html.join(
        (
            html.table(("client", "commitment", "audited", "verdict"), rows),
            html.note(html.Html(f"{words}{html.hexed(roll.event.root)}")),
        )
    )


def _audited(round_: RoundHistory, client: Address) -> html.Html:
    if round_.beacon is None and not round_.attested:
        return html.text("")
    return html.chip("audited", "warn") if round_.is_audited(client) else html.text("no")


def _judgement(round_: RoundHistory, index: int) -> html.Html:
    if round_.passed is None:
        return html.text("")
    passed = index in round_.passed
    return html.chip("passed", "good") if passed else html.chip("did not pass", "bad")


def _beacon(round_: RoundHistory, names: Names) -> html.Html:
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
    elif round_.roll is not None and round_.schedule is not None:
        words = f"None: past block {round_.schedule.beacon} without one, everyone is audited."
        parts.append(html.note(html.text(words)))
    if round_.partials:
        rows = []
        for member in round_.seats:
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


def _verdicts(round_: RoundHistory, names: Names) -> html.Html:
    rows = []
    blank = html.text("")
    for member in round_.seats:
        entry = round_.attested.get(member)
        if entry is None:
            rows.append((names.shown(member), html.chip("silent", "warn"), blank, blank, blank))
            continue
        if not round_.majority:
            side = html.chip("no majority", "warn")
        else:
            agrees = member in round_.majority
            side = html.chip("majority", "good") if agrees else html.chip("dissents", "bad")
        passes = entry.event.passes
        rows.append(
            (
                names.shown(member),
                side,
                verdict_words(round_, passed_clients(passes)),
                html.code("0x" + passes.hex()),
                html.hexed(verdict_hash(passes)),
            )
        )
    return html.table(("member", "", "verdict", "bitmap", "hash"), rows)


def _audits(history: History, round_: RoundHistory, names: Names) -> html.Html:
    rows = []
    for client in failed(history, round_):
        audit = history.audits.get((round_.number, client))
        held = audit.held if audit is not None else None
        rows.append(
            (
                html.text(names.client(client)),
                html.money(held.event.held) if held is not None else html.text(""),
                html.text(held.block if held is not None else ""),
                audit_chip(audit),
            )
        )
    return html.table(("client", ">set aside", ">held in block", "outcome"), rows)


def _distributions(history: History, round_: RoundHistory, names: Names) -> html.Html:
    rows = []
    for distribution in history.distributions:
        cause, found = distribution.cause, distribution.distributed
        if cause.round != round_.number or found is None:
            continue
        members = [entry for entry in distribution.credited if entry.event.account in round_.seats]
        rows.append(
            (
                names.shown(cause.who),
                html.money(cause.event.amount),
                html.money(found.event.burned),
                html.money(found.event.to_treasury),
                html.money(found.event.to_members),
                html.text(", ".join(names.of(entry.event.account) for entry in members)),
            )
        )
    return html.table(("from", ">amount", ">burned", ">treasury", ">members", "paid to"), rows)


def _phases(round_: RoundHistory) -> html.Html:
    if round_.opened is None or round_.schedule is None:
        return html.note(html.text("not opened"))
    schedule, opened = round_.schedule, round_.opened.block
    spans = [
        ("deliver", opened, schedule.deliver),
        ("roll", schedule.deliver + 1, schedule.roll),
        ("beacon", schedule.roll + 1, schedule.beacon),
        ("answer", schedule.beacon + 1, schedule.answer),
        ("attest", schedule.answer + 1, schedule.attest),
        ("finalise", schedule.attest + 1, schedule.finalise),
        ("response", schedule.attest + 1, schedule.response),
    ]
    return html.table(
        ("phase", ">first block", ">last block"),
        [(html.text(name), html.text(first), html.text(last)) for name, first, last in spans],
    )
