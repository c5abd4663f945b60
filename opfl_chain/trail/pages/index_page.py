"""The page of a job: participants, balances and rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Credited, CreditWithdrawn, Distributed
from opfl_chain.chain.bindings.types import Role
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.randomness import probability_of
from opfl_chain.render import html
from opfl_chain.render.text import ether
from opfl_chain.trail.checks.balances import pending_wei
from opfl_chain.trail.history import History, RoundHistory
from opfl_chain.trail.ledger import final_ledger
from opfl_chain.trail.pages import words


def index_page(history: History, digest: str) -> str:
    return html.page(f"Job {history.trail.job}: audit trail", _body(history, digest))


def _body(history: History, digest: str) -> Iterator[html.Html]:
    trail, terms = history.trail, history.terms
    yield html.heading(f"Job {trail.job}", 1)
    yield html.note(
        html.text(
            f"{len(trail.entries)} events, {len(history.clients)} clients and"
            f" {len(history.rounds)} of {terms.rounds} rounds, from block {history.created.block}"
            f" to block {trail.block} of chain {trail.chain_id}"
        )
    )
    yield html.facts(
        [
            ("digest", html.code(digest, whole=True)),
            ("genesis", html.code(trail.genesis, whole=True)),
            *((name, html.code(address, whole=True)) for name, address in trail.contracts.items()),
        ]
    )
    yield html.heading("Rounds")
    yield html.table(
        (
            "round",
            ">opened in block",
            ">committed",
            ">audited",
            "verdict",
            ">slashed for good",
            "model after",
            "outcome",
        ),
        [_round_row(history, round_) for round_ in history.rounds.values()],
    )
    yield html.heading("Money")
    yield _balances(history)
    yield _sums(history)
    yield html.heading("Terms")
    yield _terms(history)
    yield html.folded("Policy", html.preformatted(_document(history.created.event.policy)))
    yield html.folded("Boundary", html.preformatted(_document(history.created.event.boundary)))
    yield html.folded(
        "Events that belong to no round",
        words.event_table(entry for entry in trail.entries if entry.round is None),
    )


def _round_row(history: History, round_: RoundHistory) -> tuple[html.Html, ...]:
    taken = sum(
        slash.executed.event.amount
        for (number, _), slash in history.slashes.items()
        if number == round_.number and slash.executed is not None
    )
    relayed = round_.batch.event.count if round_.batch is not None else 0
    participants = history.participants(round_)
    audited = sum(round_.is_audited(client) for client in participants)
    settled = round_.beacon is not None or bool(round_.attested)
    final = round_.finalised
    return (
        html.link(words.round_file(round_.number), f"round {round_.number}"),
        html.text(round_.opened.block if round_.opened is not None else ""),
        html.text(len(round_.direct) + relayed),
        html.text(f"{audited} of {len(participants)}" if settled else ""),
        words.verdict_summary(round_),
        html.money(taken),
        html.hexed(final.event.model_hash) if final is not None else html.text("as before"),
        words.outcome_chip(round_),
    )


def _balances(history: History) -> html.Html:
    ledger, names = final_ledger(history), words.Names(history)
    slashed: dict[tuple[Role, Address], int] = defaultdict(int)
    for distribution in history.distributions:
        role = Role.CLIENT if distribution.payer is None else Role.MEMBER
        slashed[role, distribution.cause.who or ""] += distribution.cause.event.amount
    earned: dict[Address, int] = defaultdict(int)
    paid: dict[Address, int] = defaultdict(int)
    for distribution in history.distributions:
        for entry in distribution.credited:
            earned[entry.event.account] += entry.event.amount
    for withdrawn in history.trail.of(CreditWithdrawn):
        paid[withdrawn.event.account] += withdrawn.event.amount
    owners = [(Role.CLIENT, client) for client in history.clients]
    owners += [(Role.MEMBER, member) for member in history.terms.members]
    rows = []
    for role, owner in owners:
        name = names.client(owner) if role is Role.CLIENT else names.of(owner)
        member = role is Role.MEMBER
        rows.append(
            (
                html.Html(f"{html.text(name)} {html.code(owner)}"),
                html.money(ledger.locked[role, owner]),
                html.money(slashed[role, owner]),
                html.money(ledger.withdrawn[role, owner]),
                html.money(ledger.stakes[role, owner]),
                html.money(earned[owner]) if member else html.text(""),
                html.money(paid[owner]) if member else html.text(""),
            )
        )
    treasury = history.terms.treasury
    blank = html.text("")
    rows.append(
        (
            html.Html(f"treasury {html.code(treasury)}"),
            blank,
            blank,
            blank,
            blank,
            html.money(earned[treasury]),
            html.money(paid[treasury]),
        )
    )
    columns = ("", ">locked", ">slashed", ">taken back", ">stake", ">earned", ">credit paid")
    return html.table(columns, rows)


def _sums(history: History) -> html.Html:
    ledger = final_ledger(history)
    distributed = [entry.event for entry in history.trail.of(Distributed)]
    credited = sum(entry.event.amount for entry in history.trail.of(Credited))
    return html.facts(
        [
            ("locked", html.text(ether(sum(ledger.locked.values())))),
            ("taken back", html.text(ether(sum(ledger.withdrawn.values())))),
            ("held as stakes", html.text(ether(sum(ledger.stakes.values())))),
            ("set aside for pending slashes", html.text(ether(pending_wei(history)))),
            ("burned", html.text(ether(sum(event.burned for event in distributed)))),
            ("to the treasury", html.text(ether(sum(event.to_treasury for event in distributed)))),
            ("to members", html.text(ether(sum(event.to_committee for event in distributed)))),
            ("credited to these accounts, by all jobs", html.text(ether(credited))),
        ]
    )


def _terms(history: History) -> html.Html:
    terms, created = history.terms, history.created
    rate = float(probability_of(terms.audit_rate))
    split = terms.split
    return html.facts(
        [
            ("created", html.text(f"in block {created.block} by {created.event.creator}")),
            ("audit rate", html.text(f"{rate:.4g}")),
            ("deposit of a client", html.text(ether(terms.client_deposit))),
            ("stake of a member", html.text(ether(terms.member_stake))),
            (
                "split of slashes",
                html.text(
                    f"{split.burn / 100:g}% burned, {split.treasury / 100:g}% treasury,"
                    f" {split.committee / 100:g}% committee"
                ),
            ),
            *(
                (f"penalty, {name.replace('_', ' ')}", html.text(ether(wei)))
                for name, wei in vars(terms.penalties).items()
            ),
            (
                "phases in blocks",
                html.text(", ".join(f"{name} {n}" for name, n in vars(terms.phases).items())),
            ),
            ("unbonding delay", html.text(f"{terms.unbonding_delay} blocks")),
            ("first model", html.hexed(terms.model_hash, whole=True)),
            ("policy", html.hexed(terms.policy_hash, whole=True)),
            ("boundary", html.hexed(terms.boundary_hash, whole=True)),
        ]
    )


def _document(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")
