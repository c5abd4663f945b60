"""The outcome of a job on one machine, from its trail alone, by participants' names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from opfl_chain.chain.bindings.events import (
    Claimed,
    ClientAcquitted,
    ClientCharged,
    Credited,
    JobCreated,
    MemberPenalised,
    Refunded,
    SeatChanged,
)
from opfl_chain.chain.bindings.types import MemberFault, Outcome, Role
from opfl_chain.chain.devnet import BALANCE_ETHER
from opfl_chain.chain.rpc import Rpc, checksum
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.trail import Report, Trail, check_trail, read_trail
from opfl_chain.trail.history import Audit, History, RoundHistory
from opfl_chain.trail.ledger import Ledger, final_ledger

PASSED: Final = Outcome.PASSED.name
OUTSIDE: Final = Outcome.OUTSIDE.name
UNANSWERED: Final = Outcome.UNANSWERED.name
ACQUITTED: Final = "ACQUITTED"
"""The state of a client that passed after the verdict, within its response window."""
UNDECIDED: Final = "UNDECIDED"
"""The state of a client that did not pass and was neither charged nor acquitted."""
LEFT_OUT: Final = "LEFT_OUT"
"""The state of a client that is not on the roll, or is neither audited nor accepted."""
OPERATOR: Final = "operator"
"""The account that deployed the contracts and created the job."""


@dataclass(frozen=True)
class JobOutcome:
    """Participants are named `client-0`, `member-2`, `standby-0`, like their settings files."""

    trail: Trail
    names: dict[str, str]
    """Names by address."""
    unaccounted_wei: int
    """Initial balances of all accounts, less final balances (contract included) and gas."""
    gas: dict[str, int]
    """Gas used, by name; transactions of any other account count as the operator's."""

    @classmethod
    def of(cls, net: Localnet) -> JobOutcome:
        trail = read_trail(net.devnet.rpc, net.deployment, net.job.id)
        names = {str(address): name for name, address in net.addresses.items()}
        head = net.devnet.rpc.block_number()
        receipts = _receipts(net.devnet.rpc, head)
        return cls(trail, names, _unaccounted(net, receipts, head), _gas(names, receipts))

    @cached_property
    def history(self) -> History:
        return History(self.trail, next(self.trail.of(JobCreated)))

    @cached_property
    def report(self) -> Report:
        """Report on the trail, recomputed from the chain."""
        return check_trail(self.trail)

    # --- rounds

    @property
    def rounds(self) -> int:
        return len(self.history.rounds)

    def is_final(self, number: int) -> bool:
        return self._round(number).finalised is not None

    def is_audited(self, number: int, name: str) -> bool:
        """Return whether a client is on the roll of a round and audited in it."""
        audited = self._round(number).is_audited(self.address(name))
        return audited and name in self.participants(number)

    def participants(self, number: int) -> set[str]:
        """The clients on the roll."""
        return {self.names[each] for each in self.history.contributors(self._round(number))}

    def seats(self, number: int) -> tuple[str, ...]:
        """The members that have the seats in a round."""
        return tuple(self.names[member] for member in self._round(number).seats)

    def seat_changes(self) -> list[tuple[str, str]]:
        """Changes of seats: the member that lost it, and the one that took it, in order."""
        changes = (entry.event for entry in self.trail.of(SeatChanged))
        return [(self.names[change.from_], self.names[change.to]) for change in changes]

    def attested(self, number: int) -> set[str]:
        """The members that attested anything."""
        return {self.names[member] for member in self._round(number).attested}

    def verdict(self, number: int, name: str) -> str | None:
        """The end of a contribution, late decisions included; None where nothing was decided.

        PASSED, LEFT_OUT, OUTSIDE, UNANSWERED, ACQUITTED or UNDECIDED.
        """
        round_ = self._round(number)
        if round_.passed is None:
            return None
        if self.client_index(name) in round_.passed:
            return PASSED
        audit = self.audit(number, name)
        if audit is None:
            return UNDECIDED if self.is_audited(number, name) else LEFT_OUT
        ended = audit.ended.event if audit.ended is not None else None
        if isinstance(ended, ClientCharged):
            return ended.outcome.name
        return ACQUITTED if isinstance(ended, ClientAcquitted) else UNDECIDED

    def client_index(self, name: str) -> ClientIndex:
        """Return the number of a client on chain: clients enrol in any order."""
        return ClientIndex(self.history.clients[self.address(name)].event.index)

    # --- audits and faults

    def audit(self, number: int, name: str) -> Audit | None:
        """The held audit of a client, if it did not pass in its round."""
        return self.history.audits.get((RoundNumber(number), self.address(name)))

    def held(self) -> set[tuple[int, str]]:
        """All audits that were held, whatever became of them."""
        return {(number, self.names[client]) for number, client in self.history.audits}

    def charged(self) -> dict[tuple[int, str], str]:
        """The outcome of every audit that was charged: OUTSIDE or UNANSWERED."""
        return {
            (entry.round or 0, self.names[entry.event.client]): entry.event.outcome.name
            for entry in self.trail.of(ClientCharged)
        }

    def acquitted(self) -> set[tuple[int, str]]:
        """The audits that were held and passed after all."""
        return {
            (entry.round or 0, self.names[entry.event.client])
            for entry in self.trail.of(ClientAcquitted)
        }

    def penalties(self) -> dict[tuple[int, str], set[str]]:
        """Faults that members paid for, by round and name."""
        found: dict[tuple[int, str], set[str]] = {}
        for entry in self.trail.of(MemberPenalised):
            place = (entry.round or 0, self.names[entry.event.member])
            found.setdefault(place, set()).add(MemberFault(entry.event.fault).name)
        return found

    # --- money

    def locked_wei(self, name: str) -> int:
        """The deposit or stake at the start."""
        return self._ledger.locked[self._owner(name)]

    def lost_wei(self, name: str) -> int:
        """The part of a deposit or stake that did not come back."""
        return self.locked_wei(name) - self._ledger.withdrawn[self._owner(name)]

    def earned_wei(self, name: str) -> int:
        """The pay for accepted contributions, or for decided verdicts."""
        address = self.address(name)
        claims = (entry.event for entry in self.trail.of(Claimed))
        return sum(claim.amount for claim in claims if claim.account == address)

    @property
    def refunded_wei(self) -> int:
        """The part of the budget that nobody earned, and that went back to the creator."""
        return sum(entry.event.amount for entry in self.trail.of(Refunded))

    @property
    def unowed_wei(self) -> int:
        """Wei in the contract that are neither burned, nor owed to anybody, nor in the budget."""
        state = self.trail.final_state
        stakes = sum(stake.balance for stake in state.stakes.values())
        audits = self.history.audits.values()
        pending = sum(audit.held.event.held for audit in audits if audit.ended is None)
        owed = stakes + pending + sum(state.credits.values()) + state.budget
        return state.held - state.burned - owed

    @cached_property
    def credited_wei(self) -> dict[str, int]:
        """Credit from charges and penalties, by address."""
        found: dict[str, int] = {}
        for entry in self.trail.of(Credited):
            found[entry.event.account] = found.get(entry.event.account, 0) + entry.event.amount
        return found

    def address(self, name: str) -> str:
        return next(address for address, each in self.names.items() if each == name)

    @cached_property
    def _ledger(self) -> Ledger:
        return final_ledger(self.history)

    def _owner(self, name: str) -> tuple[Role, str]:
        return Role.CLIENT if name.startswith("client") else Role.MEMBER, self.address(name)

    def _round(self, number: int) -> RoundHistory:
        return self.history.rounds[RoundNumber(number)]


def _receipts(rpc: Rpc, head: int) -> list[dict[str, Any]]:
    """Receipts of all transactions up to a block."""
    blocks = rpc.batch_or_raise(
        [("eth_getBlockByNumber", (hex(number), False)) for number in range(head + 1)]
    )
    sent = [transaction for block in blocks for transaction in block["transactions"]]
    return rpc.batch_or_raise([("eth_getTransactionReceipt", (each,)) for each in sent])


def _gas(names: dict[str, str], receipts: Sequence[dict[str, Any]]) -> dict[str, int]:
    used: dict[str, int] = {}
    for receipt in receipts:
        name = names.get(checksum(receipt["from"]), OPERATOR)
        used[name] = used.get(name, 0) + int(receipt["gasUsed"], 16)
    return used


def _unaccounted(net: Localnet, receipts: Sequence[dict[str, Any]], head: int) -> int:
    rpc = net.devnet.rpc
    holders = [account.address for account in net.devnet.accounts]
    first = BALANCE_ETHER * ETHER * len(holders)
    now = sum(rpc.balance(each, head) for each in (*holders, net.job.contracts.deposits.address))
    gas = sum(
        int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) for receipt in receipts
    )
    return first - now - gas
