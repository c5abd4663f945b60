"""The client: enrols, trains, delivers, answers audits, and leaves with its pay and its deposit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from opfl_chain.chain.bindings.types import ChargeStatus, ClientStatus, Role
from opfl_chain.chain.rpc import tohex
from opfl_chain.mpc.session.ranks import MEMBERS
from opfl_chain.protocol.audit_exchange import proof_context
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber, round_id_of
from opfl_chain.protocol.verdict import Verdict
from opfl_chain.roles.client import store as client_store
from opfl_chain.roles.client.conduct import Conduct, LocalContribution, Parcel
from opfl_chain.roles.client.contribution import Contributor, load_client_data
from opfl_chain.roles.client.packing import PATHS, Packing
from opfl_chain.roles.client.store import ClientStore
from opfl_chain.roles.node import Moment, Node
from opfl_chain.roles.peers import hex_field
from opfl_chain.roles.round_driver import RoundDriver
from opfl_chain.roles.settings import ClientSettings, JobUnusable
from opfl_chain.roles.view.records import ChargeView, RoundView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Route

_CLAIM_EVERY: Final = 64
"""Rounds between claims of pay, and the most that one transaction claims."""


class Client(Node):
    ROLE = "client"
    # Our own link may be the slow one, and all members are asked at the same time.
    DUE_SECONDS = math.inf
    SCHEMA: ClassVar[str] = client_store.SCHEMA

    def __init__(self, settings: ClientSettings, conduct: Conduct | None = None) -> None:
        """Make a client; it is honest unless a conduct is given."""
        super().__init__(settings)
        self._settings = settings
        self._store = ClientStore(self.state)
        self._conduct = conduct or Conduct()
        self._phase = "starting"
        self._left = False
        self._delivering = self.backoff(first=0.5, last=10.0)
        self._round_driver = RoundDriver(self)
        self._parcels: dict[tuple[bytes, BundleKind], Mapping[int, Parcel]] = {}
        if self.address in self.job.roster:
            self.close()
            raise JobUnusable(
                f"{self.address} is a member or standby of job {self.job.id}: a client needs an"
                " account of its own, because an account has one sender"
            )

    @cached_property
    def contributor(self) -> Contributor:
        data = load_client_data(self.job.policy, self._settings.data, self._conduct)
        return Contributor(
            self.job.policy,
            self.job.boundary,
            data,
            self._store.secret(),
            self._conduct,
            rounds=self.job.terms.rounds,
            threads=self._settings.threads,
            name_contribution=self._name_contribution,
        )

    def _name_contribution(
        self, t: int, opening: bytes, gradient: bytes, training_input: bytes
    ) -> bytes:
        round_id, separator = round_id_of(self.job.id, RoundNumber(t)), self.job.domain.separator
        return proof_context(separator, round_id, opening, self._index, gradient, training_input)

    @property
    def _index(self) -> ClientIndex:
        own = self.view.client(self.address)
        if own is None:
            raise JobUnusable(f"{self.address} has not enrolled in job {self.job.id}")
        return own.index

    @property
    def done(self) -> bool:
        return self._left

    def routes(self) -> list[Route]:
        return []

    def health(self) -> dict[str, Any]:
        rounds = self.state.one("SELECT count(*) FROM contributions")[0]
        return {"phase": self._phase, "contributions": rounds, "cheat": self._settings.cheat}

    # --- duties

    def act(self, now: Moment) -> None:
        status = self.view.client_status(self.address)
        if status is ClientStatus.UNKNOWN:
            self._enrol(now)
            return
        answerable = self._answerable(now)
        self._drop_parcels(answerable)
        over = self.view.is_closed or self.is_stillborn(now)
        leaving, round_ = over or status is ClientStatus.LEAVING, self.view.latest_round()
        if round_ is None:
            self._phase = "waiting for the first round"
        elif round_.over is None and not leaving:
            # First, because it has the nearest deadline: a member may take long to take an answer.
            with self.duty(f"round {round_.number}"):
                self._contribute(round_, now)
        for each in answerable:
            with self.duty(f"answer in round {each.number}"):
                self._answer(each, now)
        with self.duty("deposit"):
            self._unlock(now)
        if leaving:
            self._leave(now)
            return
        if round_ is not None and round_.number % _CLAIM_EVERY == 0:
            with self.duty("pay"):
                self._claim()
        with self.duty("moving on"):
            # Our turn is after the server and all members: without them, this frees our deposit.
            self._round_driver.act(now, MEMBERS + 1 + self._index)

    def _enrol(self, now: Moment) -> None:
        end = self.job.enrolment_end
        if now.has_seen(end):
            raise JobUnusable(
                f"enrolment in job {self.job.id} ended at block {end}, and {self.address} had not"
                " enrolled: wait for another job"
            )
        if not now.has_come(end):
            self._phase = "enrolling"
            self.contributor.warm()
            root, deposit = self.contributor.dataset.root, self.job.terms.client_deposit
            self.send(self.job.contracts.jobs.enrol(self.job.id, root, value=deposit), "enrol")

    # --- contributions

    def _contribute(self, round_: RoundView, now: Moment) -> None:
        """Train for this opening of the round, and deliver until the roll or the deadline."""
        eligible = self.view.client_status(self.address, round_.opened_at) is ClientStatus.ACTIVE
        if not eligible or round_.roll is not None or now.has_come(round_.schedule.deliver):
            return
        if self._delivered_to_all(round_, BundleKind.CONTRIBUTION):
            return
        contribution = self._store.contribution(round_.opening)
        if contribution is None:
            self._require_own_data()
            self._phase = f"training for round {round_.number}"
            contribution = self._train(round_, now)
            if contribution.refusal:
                reason = {"round": round_.number, "reason": contribution.refusal}
                self.log.warning("sitting the round out", extra=reason)
        if contribution.refusal:
            self._phase = f"sitting round {round_.number} out: {contribution.refusal}"
        else:
            self._deliver(round_, contribution, BundleKind.CONTRIBUTION)

    def _require_own_data(self) -> None:
        """Require the data set that we enrolled with: audits compare the training input with it."""
        own, root = self.view.client(self.address), self.contributor.dataset.root
        if own is not None and own.root != root:
            raise JobUnusable(
                f"{self.address} enrolled with the data set {tohex(own.root)}, but the settings and"
                f" the secret in {self.settings.state} make {tohex(root)}: an audit would cost the"
                " deposit. Restore both as they were"
            )

    def _train(self, round_: RoundView, now: Moment) -> LocalContribution:
        weights = self.peers.fetch_weights(round_.model_hash, self.contributor.parameters)
        memory = self._store.last_memory(round_.number)
        made = self.contributor.make(round_.number, round_.opening, weights, memory)
        self._store.forget_before(self._oldest_needed(now))
        self._store.keep_contribution(round_.opening, round_.number, made)
        return made

    # --- audits

    def _answerable(self, now: Moment) -> list[RoundView]:
        """Rounds in whose response window we are."""
        return self.view.rounds_opened_since(now.head - self.job.schedule(0).response)

    def _oldest_needed(self, now: Moment) -> int:
        rounds = [round_.number for round_ in self._answerable(now)]
        return min(rounds + [charge.round for charge in self._held()], default=0)

    def _held(self) -> list[ChargeView]:
        """Audits of us that are held and undecided."""
        return [charge for charge in self.view.undecided() if charge.client == self.address]

    def _answer(self, round_: RoundView, now: Moment) -> None:
        if not self._is_asked(round_, now) or self._delivered_to_all(round_, BundleKind.ANSWER):
            return
        contribution = self._store.contribution(round_.opening)
        if contribution is None or contribution.refusal:
            return
        if not now.has_come(round_.schedule.response):
            self._deliver(round_, contribution, BundleKind.ANSWER)

    def _is_asked(self, round_: RoundView, now: Moment) -> bool:
        """Return whether an audit of us is not decided yet."""
        if round_.roll is None or self.view.on_roll(round_, self.address) is False:
            return False
        if round_.over is not None and round_.verdict_hash is None:
            return False  # void: nobody is charged
        if not now.knows_audited(round_) or not self.view.is_audited(round_, self.address):
            return False
        charge = self.view.charge(round_, self.address)
        if charge is not None:
            return charge.status is ChargeStatus.HELD
        return not self._has_passed(round_)

    def _has_passed(self, round_: RoundView) -> bool:
        passes = self.view.decided_passes(round_)
        return passes is not None and self._index in Verdict.decode(passes).passed

    # --- bundles

    def _delivered_to_all(self, round_: RoundView, kind: BundleKind) -> bool:
        return self._store.delivered(round_.opening, kind) >= set(self.view.seats_of(round_))

    def _deliver(
        self, round_: RoundView, contribution: LocalContribution, kind: BundleKind
    ) -> None:
        """Post our bundle to every seat that has not acknowledged it."""
        parcels, seats = self._parcels_of(round_, contribution, kind), self.view.seats_of(round_)
        has = self._store.delivered(round_.opening, kind)
        pending = [seat for seat in sorted(parcels) if seats[seat] not in has]
        what = f"{kind.name.lower()} of round {round_.name}"
        if not pending or not self._delivering.is_due(what):
            return
        self._phase = f"delivering the {kind.name.lower()} of round {round_.number}"
        path, failed = f"/rounds/{round_.id}/{PATHS[kind]}/{self.address}", set(pending)

        def post(seat: int) -> bytes:
            parcel = parcels[seat]
            answer = self.peers.post_to_member(
                seats[seat], path, parcel.body, parcel.signature, patient=True
            )
            return hex_field(answer, "content_hash", 32)

        for seat, acknowledged in self.peers.together(pending, post):
            member = seats[seat]
            try:
                if isinstance(acknowledged, TransportError):
                    raise acknowledged
                if acknowledged != parcels[seat].content_hash:
                    raise TransportError("the member acknowledges another bundle")
                self._store.keep_delivered(round_.opening, kind, member)
                failed.remove(seat)
            except TransportError as error:
                self.log.warning("not delivered", extra={"member": member, "reason": str(error)})
        if failed:
            self._delivering.failed(what)

    def _parcels_of(
        self, round_: RoundView, contribution: LocalContribution, kind: BundleKind
    ) -> Mapping[int, Parcel]:
        """Return what each seat is sent; it is made once, unless we are restarted."""
        key = round_.opening, kind
        if key not in self._parcels:
            keys = [self.view.sealing_key(each) or b"" for each in self.view.seats_of(round_)]
            packing = Packing(
                self.job, round_, self.address, keys, self.contributor, contribution, self.sign
            )
            self._parcels[key] = self._conduct.parcels(packing, kind)
        return self._parcels[key]

    def _drop_parcels(self, answerable: list[RoundView]) -> None:
        """Drop bundles that nobody takes any more, those of other openings included."""
        wanted = {(round_.opening, BundleKind.ANSWER) for round_ in answerable}
        wanted |= {
            (round_.opening, BundleKind.CONTRIBUTION)
            for round_ in answerable
            if round_.roll is None and round_.over is None
        }
        self._parcels = {key: each for key, each in self._parcels.items() if key in wanted}

    # --- money

    def _unlock(self, now: Moment) -> None:
        """Free our deposit in a job without a standby, where nobody may be left to decide."""
        terms = self.job.terms
        if any(map(self.view.joined, terms.standbys)):
            return
        for held in self._held():
            round_ = self.view.round(held.round)
            if round_ is not None and now.has_come(held.held_at + terms.unlock_delay):
                call = self.job.contracts.charges.unlock(round_.id, self.address)
                self.send(call, f"unlock {round_.name}")

    def _claim(self) -> bool:
        """Claim our pay; return whether nothing is left to claim."""
        if not self.job.terms.pay.client:
            return True
        paid = self.view.claims(self.address)
        earned = [
            round_
            for round_ in self.view.rounds()
            if round_.number not in paid and self._has_passed(round_)
        ]
        for start in range(0, len(earned), _CLAIM_EVERY):
            rounds = earned[start : start + _CLAIM_EVERY]
            call = self.job.contracts.rewards.claim_contributions(
                self.address,
                tuple(round_.id for round_ in rounds),
                tuple(self.view.decided_passes(round_) or b"" for round_ in rounds),
            )
            self.send(call, f"claim {rounds[0].name} to {rounds[-1].name}")
        return not earned

    def _leave(self, now: Moment) -> None:
        """Take pay and deposit. The deposit is whole again when every audit of us is decided."""
        self._phase = "leaving"
        with self.duty("leaving"):
            claimed = self._claim()
            unbond = self.job.contracts.jobs.unbond_deposit(self.job.id)
            if self.view.unbonding(self.address, Role.CLIENT) is None:
                self.send(unbond, "unbond")
            elif self._held():
                self._phase = "waiting for the decision of an audit"
            else:
                self._left = self.take_money(Role.CLIENT, unbond, now) and claimed
