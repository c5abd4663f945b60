"""The page of a job: participants, seats, balances and rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import (
    Claimed,
    ClientCharged,
    Credited,
    CreditWithdrawn,
    Distributed,
    Refunded,
)
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
            ">on the roll",
            ">audited",
            "verdict",
            ">charged",
            "model after",
            "outcome",
        ),
        [_round_row(history, round_) for round_ in history.rounds.values()],
    )
    yield html.heading("Seats")
    yield _seats(history)
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
        audit.ended.event.amount
        for (number, _), audit in history.audits.items()
        if number == round_.number
        and audit.ended is not None
        and isinstance(audit.ended.event, ClientCharged)
    )
    known = history.contributors(round_)
    audited = sum(round_.is_audited(client) for client in known)
    settled = round_.beacon is not None or bool(round_.attested)
    final = round_.finalised
    return (
        html.link(words.round_file(round_.number), f"round {round_.number}"),
        html.text(round_.opened.block if round_.opened is not None else ""),
        html.text(round_.roll.event.count if round_.roll is not None else ""),
        html.text(f"{audited} of {len(known)}" if settled else ""),
        words.verdict_summary(round_),
        html.money(taken),
        html.hexed(final.event.model_hash) if final is not None else html.text("as before"),
        words.outcome_chip(round_),
    )


def _seats(history: History) -> html.Html:
    names = words.Names(history)
    rows = [
        (html.text("first round"), *map(names.shown, history.terms.members)),
        *(
            (
                html.text(f"from block {change.block}"),
                *map(names.shown, history.seats_at((change.block, change.log_index + 1))),
            )
            for change in history.seat_changes
        ),
    ]
    return html.table(("", "seat 0", "seat 1", "seat 2"), rows)


def _balances(history: History) -> html.Html:
    ledger, names = final_ledger(history), words.Names(history)
    taken: dict[tuple[Role, Address], int] = defaultdict(int)
    credited: dict[Address, int] = defaultdict(int)
    claimed: dict[Address, int] = defaultdict(int)
    withdrawn: dict[Address, int] = defaultdict(int)
    for distribution in history.distributions:
        role = Role.CLIENT if distribution.payer is None else Role.MEMBER
        taken[role, distribution.cause.who or ""] += distribution.cause.event.amount
        for entry in distribution.credited:
            credited[entry.event.account] += entry.event.amount
    for claim in history.trail.of(Claimed):
        claimed[claim.event.account] += claim.event.amount
    for paid in history.trail.of(CreditWithdrawn):
        withdrawn[paid.event.account] += paid.event.amount
    owners = [(Role.CLIENT, client) for client in history.clients]
    owners += [(Role.MEMBER, member) for member in history.roster]
    rows = []
    blank = html.text("")
    for role, owner in owners:
        is_member = role is Role.MEMBER
        name = names.of(owner) if is_member else names.client(owner)
        rows.append(
            (
                html.Html(f"{html.text(name)} {html.code(owner)}"),
                html.money(ledger.locked[role, owner]),
                html.money(taken[role, owner]),
                html.money(ledger.withdrawn[role, owner]),
                html.money(ledger.stakes[role, owner]),
                html.money(claimed[owner]),
                html.money(credited[owner]) if is_member else blank,
                html.money(withdrawn[owner]) if is_member else blank,
            )
        )
    treasury = history.terms.treasury
    rows.append(
        (
            html.Html(f"treasury {html.code(treasury)}"),
            blank,
            blank,
            blank,
            blank,
            blank,
            html.money(credited[treasury]),
            html.money(withdrawn[treasury]),
        )
    )
    columns = ("", ">locked", ">lost", ">taken back", ">stake", ">pay", ">credited", ">credit paid")
    return html.table(columns, rows)


def _sums(history: History) -> html.Html:
    ledger, trail = final_ledger(history), history.trail
    distributed = [entry.event for entry in trail.of(Distributed)]
    credited = sum(entry.event.amount for entry in trail.of(Credited))
    funded = history.created.event.budget
    claimed = sum(entry.event.amount for entry in trail.of(Claimed))
    refunded = sum(entry.event.amount for entry in trail.of(Refunded))
    return html.facts(
        [
            ("locked", html.text(ether(sum(ledger.locked.values())))),
            ("taken back", html.text(ether(sum(ledger.withdrawn.values())))),
            ("held as stakes", html.text(ether(sum(ledger.stakes.values())))),
            ("set aside for undecided audits", html.text(ether(pending_wei(history)))),
            ("burned", html.text(ether(sum(event.burned for event in distributed)))),
            ("to the treasury", html.text(ether(sum(event.to_treasury for event in distributed)))),
            ("to other members", html.text(ether(sum(event.to_members for event in distributed)))),
            ("credited to these accounts, by all jobs", html.text(ether(credited))),
            ("budget", html.text(ether(funded))),
            ("paid for work", html.text(ether(claimed))),
            ("refunded", html.text(ether(refunded))),
            ("left of the budget", html.text(ether(funded - claimed - refunded))),
        ]
    )


def _terms(history: History) -> html.Html:
    terms, created = history.terms, history.created
    rate = float(probability_of(terms.audit_rate))
    return html.facts(
        [
            ("created", html.text(f"in block {created.block} by {created.event.creator}")),
            ("audit rate", html.text(f"{rate:.4g}")),
            ("deposit of a client", html.text(ether(terms.client_deposit))),
            ("stake of a member", html.text(ether(terms.member_stake))),
            ("pay for a contribution", html.text(ether(terms.pay.client))),
            ("pay for a seat", html.text(ether(terms.pay.member))),
            ("treasury's part of penalties", html.text(f"{terms.treasury_share / 100:g}%")),
            ("fewest contributions to a sum", html.text(terms.fewest_contributions)),
            ("rolls", html.text("public" if terms.public_roll else "roots only")),
            *(
                (f"penalty, {name.replace('_', ' ')}", html.text(ether(wei)))
                for name, wei in vars(terms.penalties).items()
            ),
            (
                "phases in blocks",
                html.text(", ".join(f"{name} {n}" for name, n in vars(terms.phases).items())),
            ),
            ("unbonding delay", html.text(f"{terms.unbonding_delay} blocks")),
            ("unlock delay", html.text(f"{terms.unlock_delay} blocks")),
            ("first model", html.hexed(terms.model_hash, whole=True)),
            ("policy", html.hexed(terms.policy_hash, whole=True)),
            ("boundary", html.hexed(terms.boundary_hash, whole=True)),
        ]
    )


def _document(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")
