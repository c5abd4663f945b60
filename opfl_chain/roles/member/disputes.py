"""Hand-over of a disputed component, from a member's state folder, to somebody who settles it.

The daemon may run meanwhile. The standby gets the same by itself; this is for everyone else.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.keys import load_ethereum_key
from opfl_chain.chain.rpc import Rpc
from opfl_chain.mpc.audit.judge import Rules
from opfl_chain.mpc.replay.replays import Replays
from opfl_chain.protocol.audit_exchange import Report, Reveal
from opfl_chain.protocol.bundle import Bundle, context
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.disputed import DisputedComponent
from opfl_chain.protocol.echo import Slot, readable, slot_number
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, ClientIndex, JobId, RoundNumber
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.referee import MOST_COMPONENTS
from opfl_chain.protocol.roll import Listed, candidates
from opfl_chain.protocol.sealing import derived_key
from opfl_chain.protocol.shares import held_indices, holders_of
from opfl_chain.protocol.unsealing import body_key
from opfl_chain.roles.job import Job
from opfl_chain.roles.member.member import Member
from opfl_chain.roles.member.store import MemberStore
from opfl_chain.roles.model_store import Models
from opfl_chain.roles.settings import MemberSettings, NodeError
from opfl_chain.roles.state import State
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView

_STATE: Final = "state.sqlite"
_SETTLER: Final = "whoever settles it"
"""Receivers of components outside of the protocol, counted as one."""


class HandOverRefused(NodeError):
    """A component that is not here, or that must not be handed over."""


def hand_over(
    settings: MemberSettings, number: int, client: int, component: int, attempt: int = 0
) -> DisputedComponent:
    """Return one component of an audited contribution on which its two holders differ.

    A member gives nothing else: only a liar disputes a component, and it holds it itself. As with
    a standby, at most two components of a contribution are shown in all.
    """
    if not (settings.state / _STATE).exists():
        raise HandOverRefused(f"{settings.state} is not the state folder of a member that ran")
    with ExitStack() as opened:
        rpc = opened.enter_context(Rpc(settings.chain.rpc_url))
        job = Job.find(rpc, Deployment.read(settings.chain.deployment), JobId(settings.chain.job))
        account = load_ethereum_key(settings.account.keystore, settings.account.password())
        owner = f"{Member.ROLE} {account.address} of job {job.id}"
        state = State(settings.state / _STATE, owner, Member.SCHEMA)
        opened.callback(state.close)
        view = ChainView(job, settings.state / "chain.sqlite")
        opened.callback(view.close)
        round_ = view.round(RoundNumber(number))
        if round_ is None or account.address not in view.seats_of(round_):
            raise HandOverRefused(f"{account.address} had no seat in round {number}")
        seat = view.seats_of(round_).index(account.address)
        if component not in held_indices(seat):
            have = " and ".join(map(str, held_indices(seat)))
            raise HandOverRefused(f"seat {seat} holds components {have}, not {component}")
        store = MemberStore(state)
        found = _Session(job, view, store, round_, attempt)
        found.require_dispute(ClientIndex(client), component)
        address = found.address(ClientIndex(client))
        if not store.may_show(round_.opening, _SETTLER, address, component, MOST_COMPONENTS):
            raise HandOverRefused(
                f"{MOST_COMPONENTS} components of client {client} were shown before: three would"
                " show its gradient"
            )
        key, answers = derived_key(keccak256(bytes(account.key)), b"member"), found.answers()
        given: dict[BundleKind, tuple[bytes, bytes]] = {}
        for kind, content in (
            (BundleKind.CONTRIBUTION, found.contribution(ClientIndex(client))),
            (BundleKind.ANSWER, answers.get(ClientIndex(client))),
        ):
            kept = store.bundle(round_.opening, kind, address, content) if content else None
            if kept is None:
                raise HandOverRefused(
                    f"the {kind.name.lower()} of client {client} in round {number} is not here: it"
                    " never came, or was deleted when its audit was decided"
                )
            bundle = Bundle.decode(kept.body, Limits.of(kind, found.rules.expected(seat)))
            place = context(job.domain.separator, round_.id, round_.opening, address, kind)
            given[kind] = kept.body, body_key(bundle, component, seat, key, place)
        contribution, gradient_key = given[BundleKind.CONTRIBUTION]
        answer, answer_key = given[BundleKind.ANSWER]
        weights = Models(view, state).required(round_.model_hash)
        return DisputedComponent(
            round_.number,
            attempt,
            ClientIndex(client),
            component,
            round_.opening,
            contribution,
            answer,
            gradient_key,
            answer_key,
            answers,
            weights.astype("<f4").tobytes(),
        )


class _Session:
    """The messages of one session on the proved steps of a round, as a member has them."""

    def __init__(
        self, job: Job, view: ChainView, store: MemberStore, round_: RoundView, attempt: int
    ) -> None:
        self.rules = Rules(job.policy, job.boundary, Replays(job.policy))
        self._view = view
        self._store = store
        self._round = round_
        self._attempt = attempt

    def address(self, client: ClientIndex) -> Address:
        known = {each.index: each.address for each in self._view.clients().values()}
        if client not in known:
            raise HandOverRefused(f"there is no client {client}: the job has {len(known)} clients")
        return known[client]

    def contribution(self, client: ClientIndex) -> bytes | None:
        """Return the content hash of a client's contribution on the roll."""
        entries = self._store.roll(self._round.opening)
        return next((each.content_hash for each in entries if each.client == client), None)

    def answers(self) -> dict[ClientIndex, bytes]:
        """Return the content hashes of the answers that the session is about."""
        most = len(self._view.clients())
        lists = readable(self._said(Slot.ANSWERS), lambda _, body: Listed.decode(body, most))
        return candidates(lists.values())

    def require_dispute(self, client: ClientIndex, component: int) -> None:
        """Raise unless both holders of a component have answered on it, and not the same."""
        first, second = (self._answer(seat, client, component) for seat in holders_of(component))
        if first is None or second is None or first == second:
            raise HandOverRefused(
                f"the holders of component {component} of client {client} do not differ in session"
                f" {self._attempt} of round {self._round.number}: nothing is disputed, so nothing"
                " is handed over. The health page and the log list disputed components"
            )

    def _answer(self, seat: int, client: ClientIndex, component: int) -> Answer | None:
        reports = readable(self._said(Slot.REPORT), lambda at, body: Report.decode(body, at))
        reveals = readable(self._said(Slot.REVEAL), lambda at, body: Reveal.decode(body, at))
        if seat not in reports or seat not in reveals or client not in reveals[seat].answers:
            return None
        return reveals[seat].answers[client].by_component()[component]

    def _said(self, slot: Slot) -> dict[int, bytes | None]:
        found: dict[int, bytes | None] = {}
        for seat, member in enumerate(self._view.seats_of(self._round)):
            number = slot_number(slot, self._attempt)
            message = self._store.first_message(self._round.opening, number, member)
            found[seat] = message.body if message is not None else None
        return found
