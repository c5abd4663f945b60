"""Hearings: the sessions in which members find out how audits of a round end.

The first one is held before the verdict, on all audited contributions of the roll. What is left
undecided, because a client was away or members could not agree, is heard again, as often as it
takes. That a client has not answered is found only after the response window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.bundle import input_path
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.echo import Slot, readable, slot_number
from opfl_chain.protocol.identifiers import Address, ClientIndex
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.roll import Listed, candidates
from opfl_chain.protocol.verdict import Outcome
from opfl_chain.roles.member.attempts import as_heard, attempt_at, attempt_end, attempt_start
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.intake import Intake
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.newcomers import Newcomers
from opfl_chain.roles.member.steps import StepEnds, Steps, parts_of
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.view.records import RoundView

PARTS: Final = 16
"""Parts of a hearing. Each of its echoed steps takes two; the rest is for what is between them."""


@dataclass(frozen=True)
class Hearing:
    """One attempt to decide the audits of these clients."""

    round: RoundView
    attempt: int
    """0 is the hearing before the verdict."""
    clients: tuple[Address, ...]
    start: int
    end: int

    def slot(self, slot: Slot) -> int:
        """The slot of a step in this attempt."""
        return slot_number(slot, self.attempt)

    def ends(self, first: int) -> StepEnds:
        """The blocks at which the two parts of a step end.

        The first part of a hearing is left for events of its first block to be confirmed.
        """
        return StepEnds(self.part(first + 1), self.part(first + 2))

    def part(self, index: int) -> int:
        """The block at which a part ends."""
        return parts_of(self.start, self.end, PARTS)[index]


_ROUNDS_KEPT: Final = 16
"""Rounds of which a member remembers the answers that it checked."""

Outcomes = Mapping[Address, Outcome | None]
"""Ends of audits; None if they could not be decided."""


class Answers:
    """The answers of audited clients, agreed among the members."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        messages: Messages,
        steps: Steps,
        intake: Intake,
        contributions: Contributions,
        newcomers: Newcomers,
    ) -> None:
        self._node = node
        self._store = store
        self._messages = messages
        self._steps = steps
        self._intake = intake
        self._contributions = contributions
        self._newcomers = newcomers
        self._of_input: dict[bytes, dict[tuple[Address, bytes], bool]] = {}
        """Findings on answers, true if they are of the committed input; reading them takes long."""

    def refusal(self, round_: RoundView, client: Address) -> str | None:
        """Say why no answer of a client is taken, or None."""
        moment = self._node.moment
        if moment is None or not round_.settled(moment.seen):
            return "it is not yet known who is audited: try again"
        claim = self._contributions.claims(round_).get(client)
        if claim is None:
            return f"{client} is not on the roll of round {round_.number}"
        if not claim.audited:
            return f"{client} is not audited in round {round_.number}: do not send its input"
        if moment.head > round_.schedule.response or self._store.outcome(round_.opening, client):
            return f"answers for round {round_.number} were accepted until it was decided"
        return None

    def all_here(self, round_: RoundView, clients: tuple[Address, ...]) -> bool:
        """Return whether every one of these clients has answered to us."""
        return set(clients) <= set(self._own(round_, clients))

    def has_signed_two(self, round_: RoundView, client: Address) -> bool:
        """Return whether a client has signed two answers. An honest one signs the same again."""
        return len(self._intake.hashes(round_).get(client, ())) > 1

    def agree(self, hearing: Hearing, now: Moment) -> dict[Address, bytes] | None:
        """Return the content hash of the answer of each client that has one, or None for now."""
        round_ = hearing.round
        lists = self._steps.take(
            round_,
            hearing.slot(Slot.ANSWERS),
            hearing.ends(0),
            now,
            lambda: self._list(round_, hearing.clients),
        )
        if lists is None:
            return None
        addresses = {self._index(client): client for client in hearing.clients}
        most = len(self._node.view.clients())
        read = readable(lists.values, lambda _, body: Listed.decode(body, most))
        found = {
            addresses[index]: content_hash
            for index, content_hash in candidates(read.values()).items()
            if index in addresses
        }
        seats = self._messages.seats(round_)
        for client, content_hash in found.items():
            index = self._index(client)
            tellers = [
                seats[seat] for seat, each in read.items() if each.hashes.get(index) == content_hash
            ]
            self._intake.fetch(round_, client, content_hash, tellers)
            if self._intake.has(round_, client, content_hash):
                self._newcomers.hand_over(round_, BundleKind.ANSWER, client, content_hash)
        for seat, each in read.items():
            for index in set(each.hashes) & set(addresses):
                if addresses[index] not in found:
                    self._compare(round_, addresses[index], each.hashes[index], seats[seat])
        return found

    def _compare(
        self, round_: RoundView, client: Address, content_hash: bytes, member: Address
    ) -> None:
        """Have the answer that another list names, of a client on which no two lists agree.

        Who sends each of us another answer would otherwise never be decided: each keeps its own.
        """
        if not self.has_signed_two(round_, client):
            self._intake.fetch(round_, client, content_hash, [member])

    def _list(self, round_: RoundView, clients: tuple[Address, ...]) -> bytes:
        """The answers that we have, or that a peer has: to have answered one of us is enough."""
        peers = [member for _, member in self._messages.peers(round_)]
        self._intake.collect(round_, clients, peers)
        own = self._own(round_, clients)
        return Listed({self._index(client): found for client, found in own.items()}).encode()

    def _own(self, round_: RoundView, clients: tuple[Address, ...]) -> dict[Address, bytes]:
        """The smallest answer that we have of each client, without those found to be invalid."""
        found = {}
        for client, hashes in self._intake.hashes(round_).items():
            left = [each for each in hashes if self._is_valid(round_, client, each)]
            if client in clients and left:
                found[client] = left[0]
        return found

    def _is_valid(self, round_: RoundView, client: Address, content_hash: bytes) -> bool:
        """Return whether an answer is of the committed input, and not known not to open."""
        if self._store.is_invalid_answer(round_.opening, client, content_hash):
            return False
        known = self._of_input.setdefault(round_.opening, {})
        if (client, content_hash) not in known:
            bundle = self._intake.required(round_, client, content_hash)
            path = input_path(bundle, self._intake.expected(round_))
            root = self._node.view.clients()[client].root
            known[client, content_hash] = is_input_of_round(
                root, round_.number, bundle.commitment, list(path)
            )
            for opening in list(self._of_input)[:-_ROUNDS_KEPT]:
                del self._of_input[opening]
        return known[client, content_hash]

    def _index(self, client: Address) -> ClientIndex:
        return self._node.view.clients()[client].index


class HearingPlan:
    """The plan of hearings: the one of a round that is due."""

    def __init__(
        self, node: Node, subjects: Callable[[RoundView, int], list[Address]], store: MemberStore
    ) -> None:
        """`subjects` returns the clients whose audits were not decided at a block."""
        self._node = node
        self._subjects = subjects
        self._store = store

    def later(self, round_: RoundView, now: Moment) -> Hearing | None:
        """The hearing at present of what the verdict left undecided, if there is one.

        It is about the same clients, among the same seats, for every honest member: both follow
        from the events up to its first block, which must be known. Who has found out how an audit
        ends comes nevertheless, or it would be missed.
        """
        attempt = max(1, attempt_at(self._node, round_, now.head))
        start = attempt_start(self._node, round_, attempt)
        end = attempt_end(self._node, round_, attempt)
        if now.seen < start:
            if self._subjects(round_, now.seen):
                now.has_seen(start)
            return None
        if self._store.is_heard(round_.opening, attempt):
            if self._subjects(round_, now.seen):
                now.has_seen(end)  # the next attempt begins
            return None
        clients = tuple(self._subjects(round_, start))
        if not clients:
            return None
        now.has_seen(end)
        heard = as_heard(self._node, round_, attempt)
        if self._node.address not in self._node.view.seats_of(heard):
            return None
        return Hearing(heard, attempt, clients, start, end)
