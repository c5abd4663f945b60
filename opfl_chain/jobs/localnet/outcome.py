"""The outcome of a job on one machine, from its trail alone, by participants' names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from opfl_chain.chain.bindings.events import Credited, JobCreated, MemberPenalised
from opfl_chain.chain.bindings.types import MemberFault, Role
from opfl_chain.chain.devnet import BALANCE_ETHER
from opfl_chain.chain.rpc import Rpc, checksum
from opfl_chain.jobs.localnet.localnet import Localnet
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.trail import Report, Trail, check_trail, read_trail
from opfl_chain.trail.history import History, Slash
from opfl_chain.trail.ledger import Ledger, final_ledger

PASSED: Final = "PASSED"
LEFT_OUT: Final = "LEFT_OUT"
"""The state of a client that was neither accepted nor charged with a fault."""
OPERATOR: Final = "operator"
"""The account that deployed the contracts and created the job."""


@dataclass(frozen=True)
class JobOutcome:
    """Clients and members are named `client-0`, `member-2`, like their settings files."""

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

    @property
    def rounds(self) -> int:
        return len(self.history.rounds)

    def is_final(self, number: int) -> bool:
        return self.history.rounds[self._number(number)].finalised is not None

    def is_audited(self, number: int, name: str) -> bool:
        return self.history.rounds[self._number(number)].is_audited(self.address(name))

    def participants(self, number: int) -> set[str]:
        """The clients that committed, directly or in a batch."""
        round_ = self.history.rounds[self._number(number)]
        return {self.names[client] for client in self.history.participants(round_)}

    def attested(self, number: int) -> set[str]:
        """The members that attested anything."""
        return {self.names[m] for m in self.history.rounds[self._number(number)].attested}

    def verdict(self, number: int, name: str) -> str | None:
        """PASSED, LEFT_OUT or the name of a fault; None where nothing was decided."""
        verdict = self.history.rounds[self._number(number)].verdict
        if verdict is None:
            return None
        index = self.client_index(name)
        if index in verdict.passed:
            return PASSED
        reasons = {fault.client: FaultReason(fault.reason) for fault in verdict.faults}
        return reasons[index].name if index in reasons else LEFT_OUT

    def client_index(self, name: str) -> ClientIndex:
        """Return the number of a client on chain: clients enrol in any order."""
        return ClientIndex(self.history.clients[self.address(name)].event.index)

    def slash(self, number: int, name: str) -> Slash | None:
        return self.history.slashes.get((self._number(number), self.address(name)))

    def executed(self) -> dict[tuple[int, str], str]:
        """The reason of every slash that was executed."""
        return {
            (number, self.names[client]): FaultReason(slash.requested.event.reason).name
            for (number, client), slash in self.history.slashes.items()
            if slash.executed is not None
        }

    def penalties(self) -> dict[tuple[int, str], set[str]]:
        """Faults that members paid for, by round and name."""
        found: dict[tuple[int, str], set[str]] = {}
        for entry in self.trail.of(MemberPenalised):
            place = (entry.round or 0, self.names[entry.event.member])
            found.setdefault(place, set()).add(MemberFault(entry.event.fault).name)
        return found

    def lost_wei(self, name: str) -> int:
        """The part of a deposit or stake that did not come back."""
        role = Role.MEMBER if name.startswith("member") else Role.CLIENT
        owner = (role, self.address(name))
        return self._ledger.locked[owner] - self._ledger.withdrawn[owner]

    @cached_property
    def credited_wei(self) -> dict[str, int]:
        """Credit from slashes and penalties, by address."""
        found: dict[str, int] = {}
        for entry in self.trail.of(Credited):
            found[entry.event.account] = found.get(entry.event.account, 0) + entry.event.amount
        return found

    def address(self, name: str) -> str:
        return next(address for address, each in self.names.items() if each == name)

    @cached_property
    def _ledger(self) -> Ledger:
        return final_ledger(self.history)

    def _number(self, number: int) -> RoundNumber:
        return RoundNumber(number)


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
