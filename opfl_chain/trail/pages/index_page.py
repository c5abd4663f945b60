"""The page of a job: who takes part, what became of the money, and its rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opfl_chain.chain.bindings.events import Credited, CreditWithdrawn, Distributed
from opfl_chain.chain.bindings.types import Role
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.sampling import probability_of
from opfl_chain.trail.checks.balances import pending_wei
from opfl_chain.trail.history import History
from opfl_chain.trail.ledger import final_ledger
from opfl_chain.trail.pages.event_table import event_table
from opfl_chain.trail.pages.markup import (
    Html,
    code,
    ether,
    facts,
    folded,
    heading,
    hexed,
    link,
    money,
    note,
    page,
    preformatted,
    table,
    text,
)
from opfl_chain.trail.pages.names import Names, round_file
from opfl_chain.trail.pages.outcome import outcome_chip, verdict_summary
from opfl_chain.trail.round_history import RoundHistory


def index_page(history: History, digest: str) -> str:
    return page(f"Job {history.trail.job}: audit trail", _body(history, digest))


def _body(history: History, digest: str) -> Iterator[Html]:
    trail, terms = history.trail, history.terms
    yield heading(f"Job {trail.job}", 1)
    yield note(
        text(
            f"{len(trail.entries)} events, {len(history.clients)} clients and"
            f" {len(history.rounds)} of {terms.rounds} rounds, from block {history.created.block}"
            f" to block {trail.block} of chain {trail.chain_id}"
        )
    )
    yield facts(
        [
            ("digest", code(digest, whole=True)),
            ("genesis", code(trail.genesis, whole=True)),
            *((name, code(address, whole=True)) for name, address in trail.contracts.items()),
        ]
    )
    yield heading("Rounds")
    yield table(
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
    yield heading("Money")
    yield _balances(history)
    yield _sums(history)
    yield heading("Terms")
    yield _terms(history)
    yield folded("Policy", preformatted(_document(history.created.event.policy)))
    yield folded("Boundary", preformatted(_document(history.created.event.boundary)))
    yield folded(
        "Events that belong to no round",
        event_table(entry for entry in trail.entries if entry.round is None),
    )


def _round_row(history: History, round_: RoundHistory) -> tuple[Html, ...]:
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
        link(round_file(round_.number), f"round {round_.number}"),
        text(round_.opened.block if round_.opened is not None else ""),
        text(len(round_.direct) + relayed),
        text(f"{audited} of {len(participants)}" if settled else ""),
        verdict_summary(round_),
        money(taken),
        hexed(final.event.model_hash) if final is not None else text("as before"),
        outcome_chip(round_),
    )


def _balances(history: History) -> Html:
    ledger, names = final_ledger(history), Names(history)
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
                Html(f"{text(name)} {code(owner)}"),
                money(ledger.locked[role, owner]),
                money(slashed[role, owner]),
                money(ledger.withdrawn[role, owner]),
                money(ledger.stakes[role, owner]),
                money(earned[owner]) if member else text(""),
                money(paid[owner]) if member else text(""),
            )
        )
    treasury = history.terms.treasury
    blank = text("")
    rows.append(
        (
            Html(f"treasury {code(treasury)}"),
            blank,
            blank,
            blank,
            blank,
            money(earned[treasury]),
            money(paid[treasury]),
        )
    )
    columns = ("", ">locked", ">slashed", ">taken back", ">stake", ">earned", ">credit paid")
    return table(columns, rows)


def _sums(history: History) -> Html:
    ledger = final_ledger(history)
    distributed = [entry.event for entry in history.trail.of(Distributed)]
    credited = sum(entry.event.amount for entry in history.trail.of(Credited))
    return facts(
        [
            ("locked", text(ether(sum(ledger.locked.values())))),
            ("taken back", text(ether(sum(ledger.withdrawn.values())))),
            ("held as stakes", text(ether(sum(ledger.stakes.values())))),
            ("set aside for pending slashes", text(ether(pending_wei(history)))),
            ("burned", text(ether(sum(event.burned for event in distributed)))),
            ("to the treasury", text(ether(sum(event.to_treasury for event in distributed)))),
            ("to members", text(ether(sum(event.to_committee for event in distributed)))),
            ("credited to these accounts, by all jobs", text(ether(credited))),
        ]
    )


def _terms(history: History) -> Html:
    terms, created = history.terms, history.created
    rate = float(probability_of(terms.audit_rate))
    split = terms.split
    return facts(
        [
            ("created", text(f"in block {created.block} by {created.event.creator}")),
            ("audit rate", text(f"{rate:.4g}")),
            ("deposit of a client", text(ether(terms.client_deposit))),
            ("stake of a member", text(ether(terms.member_stake))),
            (
                "split of slashes",
                text(
                    f"{split.burn / 100:g}% burned, {split.treasury / 100:g}% treasury,"
                    f" {split.committee / 100:g}% committee"
                ),
            ),
            *(
                (f"penalty, {name.replace('_', ' ')}", text(ether(wei)))
                for name, wei in vars(terms.penalties).items()
            ),
            (
                "phases in blocks",
                text(", ".join(f"{name} {n}" for name, n in vars(terms.phases).items())),
            ),
            ("unbonding delay", text(f"{terms.unbonding_delay} blocks")),
            ("first model", hexed(terms.model_hash, whole=True)),
            ("policy", hexed(terms.policy_hash, whole=True)),
            ("boundary", hexed(terms.boundary_hash, whole=True)),
        ]
    )


def _document(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")
