"""The plan of a job on one machine: who takes part, who cheats, how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opfl_chain.adversaries.clients import CheatUnknown, conduct_named
from opfl_chain.adversaries.members import member_named
from opfl_chain.adversaries.servers import SERVERS
from opfl_chain.chain.bindings.types import JobTerms, Phases
from opfl_chain.chain.devnet import Backend
from opfl_chain.chain.terms import FEWEST_CONTRIBUTIONS, default_terms
from opfl_chain.jobs.localnet.daemon import PlanInvalid
from opfl_chain.lab.calibration.reference import reference_boundary
from opfl_chain.learning.data.datasets import DATASETS
from opfl_chain.learning.errors import UnknownDataset
from opfl_chain.mpc.replay.default_policy import default_policy
from opfl_chain.mpc.session.ranks import MEMBERS as RANKS
from opfl_chain.protocol.commitments import Scheme
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.randomness import probability_of
from opfl_chain.roles.job_file import DEFAULT_BATCH_SIZE, DEFAULT_OPTIMIZER, first_model_hash
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import DEFAULT_RULE, rule_of_kind

PHASES: Final = Phases(
    enrol=40,
    deliver=20,
    roll=40,
    beacon=20,
    answer=20,
    attest=80,
    finalise=40,
    response=60,
)
"""In blocks. They are short, as the speed of the machine makes no difference; idle blocks are
skipped.
"""


@dataclass(frozen=True)
class Plan:
    """`None` is honest. Cheats of clients are attacks or false deliveries, by name."""

    clients: Sequence[str | None] = (None, None, None, "reuse:2", "amplify:10")
    members: Sequence[str | None] = (None, None, None)
    standbys: Sequence[str | None] = (None,)
    server: str | None = None
    rounds: int = 12
    audit_rate: float = 0.3
    chain: Backend = "anvil"
    confirmations: int = 0
    model: str = "lenet-61706"
    dataset: str = "mnist"
    scheme: Scheme = Scheme.SHARES
    seed: int = 0
    phases: Phases = PHASES
    audit: str = DEFAULT_RULE.replay
    """The kind of audits: plain or guided inside MPC, or proved."""
    score: bool = True
    """Make the server measure the accuracy of every model."""
    documents: tuple[Policy, Boundary] | None = None
    """Policy and boundary. By default they follow from the model, and come with the package."""

    @classmethod
    def of(cls, policy: Policy, boundary: Boundary, **rest: Any) -> Plan:
        """Plan a job with these documents; `rest` are the fields that they do not determine."""
        return cls(
            model=policy.model.name,
            audit_rate=float(probability_of(policy.audit_rate)),
            scheme=policy.commitment_scheme,
            audit=policy.replay.kind,
            seed=policy.seeds.model,
            documents=(policy, boundary),
            **rest,
        )

    def __post_init__(self) -> None:
        if len(self.clients) < FEWEST_CONTRIBUTIONS or self.rounds < 1:
            raise PlanInvalid(
                f"{len(self.clients)} clients and {self.rounds} rounds are too few: a job needs"
                f" {FEWEST_CONTRIBUTIONS} clients, so that the sum reveals none, and one round"
            )
        if len(self.members) != RANKS:
            raise PlanInvalid(f"{len(self.members)} members: a committee has {RANKS}")
        if self.dataset not in DATASETS:
            raise UnknownDataset(self.dataset, DATASETS.names())
        for cheat in self.clients:
            _require_known(cheat, conduct_named)
        for cheat in (*self.members, *self.standbys):
            _require_known(cheat, member_named)
        _require_known(self.server, SERVERS.__getitem__)

    @property
    def boundary(self) -> Boundary:
        return self.documents[1] if self.documents else reference_boundary(self.policy)

    @property
    def policy(self) -> Policy:
        if self.documents:
            return self.documents[0]
        return default_policy(
            self.model,
            rule=rule_of_kind(self.audit),
            optimizer=dict(DEFAULT_OPTIMIZER),
            batch_size=DEFAULT_BATCH_SIZE,
            audit_rate=self.audit_rate,
            scheme=self.scheme,
            seed=self.seed,
        )

    def terms(self, roster: Sequence[Address], treasury: Address) -> JobTerms:
        """Return the default terms, with the phases and rounds of this plan.

        The roster is the members, then the standbys.
        """
        terms = default_terms(
            policy_hash=self.policy.hash,
            boundary_hash=self.boundary.hash,
            model_hash=first_model_hash(self.policy),
            members=roster[:RANKS],
            standbys=roster[RANKS:],
            treasury=treasury,
            audit_rate=self.policy.audit_rate,
            rounds=self.rounds,
            phases=self.phases,
        )
        return replace(terms, max_clients=len(self.clients))


def _require_known(cheat: str | None, find: Callable[[str], object]) -> None:
    """Look up a cheat. The errors of attacks already say what is wrong with one."""
    try:
        if cheat is not None:
            find(cheat)
    except CheatUnknown as error:
        raise PlanInvalid(str(error)) from None
