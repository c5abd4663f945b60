"""Reads the trail of a job from a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opfl_chain.chain.bindings import events
from opfl_chain.chain.bindings.errors import UnknownJob
from opfl_chain.chain.bindings.types import JobTerms, Role
from opfl_chain.chain.contracts.contract import Event, Log, decode_event
from opfl_chain.chain.deployment import Contracts, Deployment
from opfl_chain.chain.follow.sources import LogSource
from opfl_chain.chain.follow.store import Block
from opfl_chain.chain.rpc import Rpc, checksum, unhex
from opfl_chain.protocol.identifiers import Address, JobId, job_and_number
from opfl_chain.trail.record import Entry, FinalState, Trail
from opfl_chain.trail.report import ChainUnsteady, NoSuchJob

_BLOCKS_AT_ONCE = 1000
_ATTEMPTS = 5
# The transactions of these events say more than the events do: most carry signatures and proofs.
_SHOWN_IN_CALLS = (
    events.KeyRegistered,
    events.MemberJoined,
    events.SeatChanged,
    events.RollCommitted,
    events.RoundFinalised,
    events.AuditHeld,
    events.ClientCharged,
    events.ClientAcquitted,
    events.MemberPenalised,
    events.Claimed,
)


def read_trail(rpc: Rpc, deployment: Deployment, job: int) -> Trail:
    """Read everything about a job from the chain, up to its newest block."""
    contracts = deployment.connect(rpc)
    for _ in range(_ATTEMPTS):
        head = rpc.block_number()
        logs = _logs(rpc, contracts, deployment.block, head)
        if logs is not None:
            return _trail(rpc, deployment, contracts, JobId(job), *logs)
    raise ChainUnsteady(rpc.url, _ATTEMPTS)


def _logs(rpc: Rpc, contracts: Contracts, first: int, head: int) -> tuple[Block, list[Log]] | None:
    """Return all logs up to `head` of one chain of blocks; None after a reorganisation."""
    source = LogSource(rpc, contracts.addresses, (), _BLOCKS_AT_ONCE)
    (position,) = source.blocks([first - 1])
    logs: list[Log] = []
    while position is not None and position.number < head:
        segment = source.after(position, head, volatile_from=head + 1)
        if segment is None:
            return None
        position = segment.blocks[-1]
        logs += segment.logs
    return None if position is None else (position, logs)


def _trail(
    rpc: Rpc,
    deployment: Deployment,
    contracts: Contracts,
    job: JobId,
    last: Block,
    logs: Sequence[Log],
) -> Trail:
    terms = _terms(contracts, job, last.number)
    names = {address: name for name, address in deployment.addresses.items()}
    accounts = {*terms.members, *terms.standbys, terms.treasury}
    entries = tuple(
        Entry(
            event,
            names[log.address],
            log.block_number,
            log.block_hash,
            log.transaction_hash,
            log.index,
        )
        for log in logs
        if belongs(event := decode_event(log), job, accounts)
    )
    return Trail(
        deployment.chain_id,
        deployment.genesis,
        dict(deployment.addresses),
        job,
        deployment.block,
        last.number,
        entries,
        dict(_calls(rpc, deployment, entries)),
        dict(_parents(rpc, entries)),
        _final_state(rpc, contracts, job, terms, entries, last.number),
    )


def belongs(event: Event, job: JobId, accounts: set[Address]) -> bool:
    """Return whether an event is of this job, or of no job and about one of the accounts."""
    if (round_id := getattr(event, "round", None)) is not None:
        return job_and_number(round_id)[0] == job
    if (owner := getattr(event, "job", None)) is not None:
        return bool(owner == job)
    return any(getattr(event, name, None) in accounts for name in ("member", "account"))


def _terms(contracts: Contracts, job: JobId, block: int) -> JobTerms:
    try:
        return contracts.jobs.terms(job, block=block)
    except UnknownJob:
        count = contracts.jobs.job_count(block=block)
        raise NoSuchJob(job, contracts.jobs.address, count) from None


def _calls(
    rpc: Rpc, deployment: Deployment, entries: Sequence[Entry[Event]]
) -> Iterator[tuple[str, bytes]]:
    """Yield the call data of transactions, except of those sent to foreign contracts."""
    callees = {
        entry.transaction: deployment.addresses[entry.contract]
        for entry in entries
        if isinstance(entry.event, _SHOWN_IN_CALLS)
    }
    answers = rpc.batch_or_raise([("eth_getTransactionByHash", (name,)) for name in callees])
    for (name, callee), answer in zip(callees.items(), answers, strict=True):
        if answer is not None and answer["to"] and checksum(answer["to"]) == callee:
            yield name, unhex(answer["input"])


def _parents(rpc: Rpc, entries: Sequence[Entry[Event]]) -> Iterator[tuple[int, str]]:
    """Yield the blocks in which rounds opened, with the hashes of their parents."""
    opened = dict.fromkeys(e.block for e in entries if isinstance(e.event, events.RoundOpened))
    answers = rpc.batch_or_raise(
        [("eth_getBlockByNumber", (hex(number), False)) for number in opened]
    )
    for number, answer in zip(opened, answers, strict=True):
        if answer is not None:
            yield number, answer["parentHash"]


def _final_state(
    rpc: Rpc,
    contracts: Contracts,
    job: JobId,
    terms: JobTerms,
    entries: Sequence[Entry[Event]],
    block: int,
) -> FinalState:
    clients = [e.event.client for e in entries if isinstance(e.event, events.ClientEnrolled)]
    roster = [*terms.members, *terms.standbys]
    owners = [(Role.CLIENT, client) for client in clients]
    owners += [(Role.MEMBER, member) for member in roster]
    ids = {
        job_and_number(e.event.round)[1]: e.event.round
        for e in entries
        if isinstance(e.event, events.RoundOpened)
    }
    jobs, rounds, deposits = contracts.jobs, contracts.rounds, contracts.deposits
    beacon, charges = contracts.beacon, contracts.charges
    seeds = {n: beacon.seed_of(id_, block=block) for n, id_ in ids.items()}
    held = [e.event for e in entries if isinstance(e.event, events.AuditHeld)]
    progress = rounds.progress(job, block=block)
    return FinalState(
        terms=terms,
        participants=jobs.participants(job, block=block),
        progress=progress,
        job_count=jobs.job_count(block=block),
        burned=deposits.burned(block=block),
        held=rpc.balance(deposits.address, block),
        budget=deposits.budget_of(job, block=block),
        earned=progress.earned,
        paid=contracts.rewards.paid(job, block=block),
        stakes={
            (role, owner): deposits.account(job, role, owner, block=block) for role, owner in owners
        },
        credits={
            account: deposits.credit_of(account, block=block)
            for account in dict.fromkeys([*roster, terms.treasury])
        },
        seeds=seeds,
        withheld={
            n: frozenset(
                member
                for member in rounds.seats_of(id_, block=block)
                if beacon.has_withheld(id_, member, block=block)
            )
            for n, id_ in ids.items()
            if not any(seeds[n])
        },
        rounds={n: rounds.round(id_, block=block) for n, id_ in ids.items()},
        clients={client: jobs.client(job, client, block=block) for client in clients},
        charges={
            (job_and_number(event.round)[1], event.client): charges.charge_of(
                event.round, event.client, block=block
            )
            for event in held
        },
    )
