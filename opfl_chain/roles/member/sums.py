"""The sum of the accepted contributions of a round, opened from the components that members hold.

Members first tell each other the hashes of their components, so that all know which are agreed, and
then fetch the words by hash. A member reveals the sum of one verdict of a round, and no other.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

import numpy as np

from opfl_chain.chain.bindings.types import MemberFault
from opfl_chain.protocol.aggregate import NOTHING, open_sum, sum_components
from opfl_chain.protocol.commitments import COMPONENTS
from opfl_chain.protocol.delivery import Expected, Held
from opfl_chain.protocol.echo import Common, Slot, readable
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.ring import UnsignedWords, Words
from opfl_chain.protocol.roll import Complaints
from opfl_chain.protocol.shares import held_indices, verify_components
from opfl_chain.protocol.sums import (
    AgreedSum,
    Stated,
    agree,
    decode_parts,
    encode_parts,
    part_hash,
)
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.member.charges import Charges
from opfl_chain.roles.member.contributions import Contributions
from opfl_chain.roles.member.messages import Messages
from opfl_chain.roles.member.referees import Referees
from opfl_chain.roles.member.steps import StepEnds, Steps, parts_of
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.errors import TransportError

PARTS: Final = 4
"""Parts of the finalise phase: hashes, their echo, the referee, and the result."""
_ROUNDS_KEPT: Final = 2
_WORD_BYTES: Final = 8

_LOGGER = logging.getLogger("opfl.committee")


class MemberSums:
    """Sums of one member, which holds two of the three components itself."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        messages: Messages,
        steps: Steps,
        contributions: Contributions,
        expected: Callable[[RoundView], Expected],
        charges: Charges,
        referees: Referees,
    ) -> None:
        self._node = node
        self._store = store
        self._messages = messages
        self._steps = steps
        self._contributions = contributions
        self._expected = expected
        self._charges = charges
        self._referees = referees
        self._kept: dict[bytes, tuple[bytes, Held]] = {}
        self._finished: set[bytes] = set()
        self._summing = threading.Lock()

    def open(self, round_: RoundView, now: Moment) -> Words | None:
        """Return the aggregate of a decided round, or None while it is not known."""
        passes = self._node.view.decided_passes(round_)
        if passes is None or round_.decided_at is None:
            return None
        if len(Verdict.decode(passes).passed) < self._node.job.terms.fewest_contributions:
            return NOTHING
        held, passed = self.held(round_), Verdict.decode(passes).passed
        unopened = self._unopened(round_, passed) if held is None else None
        if held is None and unopened is None:
            return None
        agreed = self._agreed(round_, passed, now, lambda: _said(held, unopened))
        if agreed is None:
            return None
        components = {
            index: found
            for index, digest in agreed.hashes.items()
            if (found := self._component(round_, held, index, digest)) is not None
        }
        return open_sum(components) if len(components) == COMPONENTS else None

    def finish(self, round_: RoundView, now: Moment) -> None:
        """Note who lied about the sum of a final round that others opened before we could.

        The liar and one honest member are enough to make it final, and two must note the lie.
        """
        said, passes = self._messages.own(round_, Slot.SUM), self._node.view.decided_passes(round_)
        if round_.opening in self._finished or said is None or passes is None:
            return
        passed = Verdict.decode(passes).passed
        agreed = self._agreed(round_, passed, now, lambda: said.body)
        if agreed is not None and len(agreed.hashes) == COMPONENTS:
            self._finished.add(round_.opening)

    def _agreed(
        self,
        round_: RoundView,
        passed: Collection[ClientIndex],
        now: Moment,
        own: Callable[[], bytes],
    ) -> AgreedSum | None:
        """Return what members agree on about the sum, and note who lied or was away."""
        ends = parts_of(round_.schedule.attest, round_.schedule.finalise, PARTS)
        said = self._steps.take(
            round_,
            Slot.SUM,
            StepEnds(*ends[0:2]),
            now,
            own,
        )
        if said is None:
            return None
        parts = readable(said.values, lambda _, body: decode_parts(body))
        agreed = agree(parts)
        if agreed.for_referee:
            agreed = self._settled(round_, parts, agreed)
        for seat, member in enumerate(self._messages.seats(round_)):
            away = seat not in parts and seat not in said.equivocators
            if said.in_time and away and not self._is_excused(round_, passed, seat, said):
                self._charges.note(round_, member, MemberFault.ABSENCE)
        return agreed

    def _settled(
        self, round_: RoundView, parts: Mapping[int, Stated], agreed: AgreedSum
    ) -> AgreedSum:
        """Have the standby add up what two do not agree about, and note who lied."""
        if agreed.disputes:
            disputes = agreed.disputes
            _LOGGER.warning("disputed sum", extra={"round": round_.number, "disputes": disputes})
        judged = self._referees.judged_sum(round_, agreed.for_referee)
        settled = agree(parts, judged or {})
        for seat in settled.liars:
            liar = self._messages.seats(round_)[seat]
            self._charges.note(round_, liar, MemberFault.FALSEHOOD)
        return settled

    def _unopened(self, round_: RoundView, passed: Collection[ClientIndex]) -> Complaints | None:
        """Complain of a contribution that does not open for us, if there is one in the sum.

        It is on the roll because we were away when members complained, and we have no parts now.
        """
        for entry in self._store.roll(round_.opening):
            if entry.client in passed:
                complaint = self._contributions.complaint(round_, entry.address)
                if complaint is not None:
                    return Complaints({entry.client: (entry.content_hash, complaint)})
        return None

    def _is_excused(
        self, round_: RoundView, passed: Collection[ClientIndex], seat: int, said: Common
    ) -> bool:
        """Return whether a seat has shown that a contribution in the sum does not open for it."""
        body = said.values.get(seat)
        read = readable(
            {seat: body}, lambda at, text: Complaints.decode(text, at, len(passed))
        ).get(seat)
        entries = {each.client: each for each in self._store.roll(round_.opening)}
        return read is not None and any(
            client in passed
            and client in entries
            and entries[client].content_hash == content
            and self._contributions.stands(round_, entries[client].address, seat, complaint)
            for client, (content, complaint) in read.filed.items()
        )

    def held(self, round_: RoundView) -> Held | None:
        """Our components of a decided round; of a round that is over, only if still cached.

        Anyone may ask, so a request must not make us add up again.
        """
        with self._summing:
            kept = self._kept.get(round_.opening)
            if kept is not None and kept[0] == round_.verdict_hash:
                return kept[1]
            if round_.verdict_hash is None or round_.over is not None:
                return None
            passes = self._node.view.decided_passes(round_)
            if passes is None or not self._store.may_sum(round_.opening, round_.verdict_hash):
                return None
            held = self._summed(round_, passes)
            if held is not None:
                self._kept[round_.opening] = round_.verdict_hash, held
                for opening in list(self._kept)[:-_ROUNDS_KEPT]:
                    del self._kept[opening]
            return held

    def _summed(self, round_: RoundView, passes: bytes) -> Held | None:
        """Add up our components of all that passed, or None if one is missing."""
        if len(Verdict.decode(passes).passed) < self._node.job.terms.fewest_contributions:
            return None
        total: Held | None = None
        passed, found = Verdict.decode(passes).passed, 0
        for client, claim in self._contributions.claims(round_).items():
            if claim.client not in passed:
                continue
            try:
                parts = self._gradient(round_, client)
            except ProtocolError as error:
                _LOGGER.warning("no sum", extra={"client": client, "reason": str(error)})
                return None
            found += 1
            # One after the other: together they may not fit into memory.
            total = parts if total is None else sum_components([total, parts], fewest=2)
        return total if found == len(Verdict.decode(passes).passed) else None

    def _gradient(self, round_: RoundView, client: str) -> Held:
        """Our components of one gradient, without a salt."""
        words = self._node.job.boundary.coordinates
        delivery = self._contributions.delivery(round_, client, self._expected(round_))
        own, following = verify_components(delivery.gradient)
        return own[:words], following[:words]

    def _component(
        self, round_: RoundView, held: Held | None, index: int, digest: bytes
    ) -> UnsignedWords | None:
        """The words of a component with this hash: our own, or those of a member that has them."""
        for mine, words in zip(held_indices(self._messages.seat(round_)), held or (), strict=False):
            if mine == index and part_hash(words) == digest:
                return words
        size = _WORD_BYTES * self._node.job.boundary.coordinates
        seats = {
            member: seat
            for seat, member in self._messages.peers(round_)
            if index in held_indices(seat)
        }
        for member in self._node.peers.likely(list(seats)):
            try:
                body = self._node.peers.ask_member(member, f"/rounds/{round_.id}/sum", 2 * size)
            except TransportError as error:
                _LOGGER.info("no sum yet", extra={"member": member, "reason": str(error)})
                continue
            place = held_indices(seats[member]).index(index)
            part = body[place * size : (place + 1) * size]
            words = np.frombuffer(part, "<u8")
            if part_hash(words) == digest:
                return words
        self._node.agenda.again()
        return None


def _said(held: Held | None, unopened: Complaints | None) -> bytes:
    """Return our message about a sum: the hashes of our parts, or why we have none."""
    if held is not None:
        return encode_parts([part_hash(part) for part in held])
    return unopened.encode() if unopened is not None else b""
