"""The page of a round: who committed, who was audited, what was decided, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from opfl_chain.chain.bindings.events import MemberPenalised
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.trail.history import History
from opfl_chain.trail.pages.event_table import event_table
from opfl_chain.trail.pages.markup import (
    Html,
    chip,
    facts,
    folded,
    heading,
    hexed,
    join,
    link,
    money,
    note,
    page,
    table,
    text,
)
from opfl_chain.trail.pages.names import Names, round_file
from opfl_chain.trail.pages.outcome import (
    outcome_chip,
    reason_words,
    slash_chip,
    verdict_words,
)
from opfl_chain.trail.round_history import RoundHistory, attested_hash, read_verdict


def round_page(history: History, round_: RoundHistory) -> str:
    title = f"Job {history.trail.job}, round {round_.number}: audit trail"
    return page(title, _body(history, round_, Names(history)))


def _body(history: History, round_: RoundHistory, names: Names) -> Iterator[Html]:
    yield _navigation(history, round_)
    yield heading(f"Round {round_.number}", 1)
    yield outcome_chip(round_)
    yield _models(round_)
    yield heading("Contributions")
    yield _contributions(history, round_, names)
    yield heading("Beacon")
    yield _beacon(history, round_, names)
    yield heading("Verdicts")
    yield _verdicts(history, round_, names)
    yield heading("Slashes")
    yield _slashes(history, round_, names)
    yield heading("Penalties of members")
    yield table(
        ("member", "fault", ">amount", ">in block"),
        [
            (
                names.shown(entry.event.member),
                text(entry.event.fault.name.lower().replace("_", " ")),
                money(entry.event.amount),
                text(entry.block),
            )
            for entry in round_.of(MemberPenalised)
        ],
    )
    yield heading("Where the money went")
    yield _distributions(history, round_, names)
    yield heading("Phases")
    yield _phases(round_)
    yield folded(f"All {len(round_.entries)} events", event_table(round_.entries))


def _navigation(history: History, round_: RoundHistory) -> Html:
    links = [link("index.html", f"Job {history.trail.job}")]
    for number, words in ((round_.number - 1, "previous"), (round_.number + 1, "next")):
        if number in history.rounds:
            links.append(link(round_file(number), f"{words}: round {number}"))
    return Html(f"<nav>{join(links)}</nav>")


def _models(round_: RoundHistory) -> Html:
    before = round_.opened.event.model_hash if round_.opened is not None else b""
    final = round_.finalised
    pairs = [("model before", hexed(before, whole=True))]
    if final is not None:
        pairs.append(("model after", hexed(final.event.model_hash, whole=True)))
        pairs.append(("aggregate", hexed(final.event.aggregate_hash, whole=True)))
    else:
        pairs.append(("model after", text("as before" if round_.over else "not known yet")))
    return facts(pairs)


def _contributions(history: History, round_: RoundHistory, names: Names) -> Html:
    verdict = round_.verdict
    rows = []
    for client in history.participants(round_):
        index = history.clients[client].event.index
        direct = round_.direct.get(client)
        rows.append(
            (
                Html(f"{text(names.client(client))}"),
                hexed(direct.event.commitment) if direct is not None else text("in the batch"),
                _audited(round_, client),
                _judgement(verdict, index),
            )
        )
    parts = [table(("client", "commitment", "audited", "verdict"), rows)]
    if round_.batch is not None:
        batch = round_.batch
        words = text(f"A batch of {batch.event.count} in block {batch.block}, root ")
        parts.append(note(Html(f"{words}{hexed(batch.event.root)}")))
    return join(parts)


def _audited(round_: RoundHistory, client: Address) -> Html:
    if round_.beacon is None and not round_.attested:
        return text("")
    return chip("audited", "warn") if round_.is_audited(client) else text("no")


def _judgement(verdict: Verdict | None, index: int) -> Html:
    if verdict is None:
        return text("")
    if index in verdict.passed:
        return chip("passed", "good")
    for fault in verdict.faults:
        if fault.client == index:
            return chip(reason_words(fault.reason), "bad")
    return text("not judged")


def _beacon(history: History, round_: RoundHistory, names: Names) -> Html:
    parts = []
    if round_.beacon is not None:
        published = round_.beacon
        parts.append(
            facts(
                [
                    ("seed", hexed(published.event.seed, whole=True)),
                    ("signature", hexed(published.event.signature)),
                    ("published", text(f"in block {published.block}")),
                ]
            )
        )
    elif round_.schedule is not None:
        words = f"None: past block {round_.schedule.beacon} without one, everyone is audited."
        parts.append(note(text(words)))
    if round_.partials:
        rows = []
        for member in history.terms.members:
            entry = round_.partials.get(member)
            if entry is None:
                row = (names.shown(member), chip("withheld", "bad"), text(""))
            else:
                row = (names.shown(member), hexed(entry.event.signature), text(entry.block))
            rows.append(row)
        parts.append(table(("member", "partial signature", ">in block"), rows))
    return join(parts)


def _verdicts(history: History, round_: RoundHistory, names: Names) -> Html:
    rows = []
    for member in history.terms.members:
        entry = round_.attested.get(member)
        if entry is None:
            rows.append((names.shown(member), chip("silent", "warn"), text(""), text(""), text("")))
            continue
        verdict = read_verdict(entry)
        if not round_.majority:
            side = chip("no majority", "warn")
        else:
            agrees = member in round_.majority
            side = chip("majority", "good") if agrees else chip("dissents", "bad")
        rows.append(
            (
                names.shown(member),
                side,
                verdict_words(verdict) if verdict is not None else chip("no verdict", "bad"),
                _faults(history, verdict, names),
                hexed(attested_hash(entry)),
            )
        )
    return table(("member", "", "verdict", "faults", "hash"), rows)


def _faults(history: History, verdict: Verdict | None, names: Names) -> Html:
    if verdict is None:
        return text("")
    lines = []
    for fault in verdict.faults:
        client = history.client_at.get(fault.client)
        who = names.client(client) if client is not None else f"no client {fault.client}"
        lines.append(text(f"{who}: {reason_words(fault.reason)}"))
    return Html("<br>".join(lines))


def _slashes(history: History, round_: RoundHistory, names: Names) -> Html:
    return table(
        ("client", "reason", ">set aside", ">requested in block", "outcome"),
        [
            (
                Html(text(names.client(client))),
                text(slash.requested.event.reason.name.lower().replace("_", " ")),
                money(slash.requested.event.captured),
                text(slash.requested.block),
                slash_chip(slash),
            )
            for (number, client), slash in history.slashes.items()
            if number == round_.number
        ],
    )


def _distributions(history: History, round_: RoundHistory, names: Names) -> Html:
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
                money(cause.event.amount),
                money(found.event.burned),
                money(found.event.to_treasury),
                money(found.event.to_committee),
                text(", ".join(names.of(entry.event.account) for entry in members)),
            )
        )
    return table(("from", ">amount", ">burned", ">treasury", ">committee", "paid to"), rows)


def _phases(round_: RoundHistory) -> Html:
    if round_.opened is None or round_.schedule is None:
        return note(text("not opened"))
    schedule, opened = round_.schedule, round_.opened.block
    spans = [
        ("commit", opened, schedule.commit),
        ("beacon", schedule.commit + 1, schedule.beacon),
        ("deliver", schedule.beacon + 1, schedule.deliver),
        ("attest", schedule.deliver + 1, schedule.attest),
        ("finalise", schedule.attest + 1, schedule.finalise),
        ("request slashes", schedule.attest + 1, schedule.request),
    ]
    return table(
        ("phase", ">first block", ">last block"),
        [(text(name), text(first), text(last)) for name, first, last in spans],
    )
