"""What a job on one machine is to be: who takes part, who cheats, how long it takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from opfl_chain.attacks.registry import attack_named
from opfl_chain.chain.bindings.types import JobTerms, Penalties, Phases, Split
from opfl_chain.chain.devnet import Backend
from opfl_chain.localnet.errors import PlanInvalid
from opfl_chain.models.initialisation import initial_parameters
from opfl_chain.models.registry import model_named
from opfl_chain.mpc.default_policy import default_policy
from opfl_chain.nodes.misconduct import MEMBERS as MEMBER_CHEATS
from opfl_chain.nodes.misconduct import SERVERS as SERVER_CHEATS
from opfl_chain.nodes.misdelivery import MISDELIVERIES
from opfl_chain.protocol.gradient import Scheme
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.rules import Boundary
from opfl_chain.protocol.sampling import audit_rate_of
from opfl_chain.training.aggregate import weights_hash

ETHER: Final = 10**18
DEPOSIT: Final = 10 * ETHER
STAKE: Final = 20 * ETHER
BATCH_SIZE: Final = 8
OPTIMIZER: Final = {"name": "adamw", "learning_rate": 0.006}

PHASES: Final = Phases(
    enrol=800,  # until all are there: then blocks are made to end it
    commit=20,
    beacon=40,
    deliver=60,
    attest=160,
    finalise=80,
    request=80,
    veto=50,
)
"""In blocks, of which there is one every quarter of a second and one for every transaction.

Nobody waits for the end of any but the first two, as long as nobody fails.
"""


@dataclass(frozen=True)
class Plan:
    """`None` is honest. Cheats of clients are attacks or ways to deliver wrongly, by name."""

    clients: Sequence[str | None] = (None, None, None, "reuse:2", "amplify:10")
    members: Sequence[str | None] = (None, None, None)
    server: str | None = None
    rounds: int = 12
    audit_rate: float = 0.3
    chain: Backend = "anvil"
    block_seconds: float = 0.25
    confirmations: int = 0
    model: str = "lenet-61706"
    dataset: str = "mnist"
    scheme: Scheme = Scheme.SHARES
    commit: Literal["direct", "relayed"] = "direct"
    seed: int = 0
    phases: Phases = PHASES
    score: bool = True
    """Whether the server measures the accuracy of every model."""

    def __post_init__(self) -> None:
        if len(self.clients) < 2 or self.rounds < 1:
            raise PlanInvalid(
                f"{len(self.clients)} clients and {self.rounds} rounds are no job: there must be"
                " two clients, whose sum shows neither, and a round"
            )
        for cheat in self.clients:
            if cheat is not None and cheat not in MISDELIVERIES:
                attack_named(cheat)  # refuses what it does not know
        for cheat in self.members:
            _require_known(cheat, MEMBER_CHEATS)
        _require_known(self.server, SERVER_CHEATS)

    @property
    def policy(self) -> Policy:
        return default_policy(
            model_named(self.model),
            optimizer=dict(OPTIMIZER),
            batch_size=BATCH_SIZE,
            audit_rate=self.audit_rate,
            scheme=self.scheme,
            seed=self.seed,
        )

    def terms(
        self, boundary: Boundary, members: Sequence[Address], relayer: Address, treasury: Address
    ) -> JobTerms:
        """Under which a failed replay costs the whole deposit."""
        layout = model_named(self.model).layout
        weights = layout.flatten(initial_parameters(layout, self.policy.seeds.model))
        phases = self.phases
        lifetime = phases.commit + phases.beacon + phases.deliver + phases.attest
        lifetime += phases.finalise + phases.request + phases.veto
        return JobTerms(
            policy_hash=self.policy.hash,
            boundary_hash=boundary.hash,
            model_hash=weights_hash(weights),
            members=tuple(members),
            relayer=relayer,
            treasury=treasury,
            client_deposit=DEPOSIT,
            member_stake=STAKE,
            audit_rate=audit_rate_of(self.audit_rate),
            rounds=self.rounds,
            unbonding_delay=lifetime + 1,
            phases=phases,
            penalties=Penalties(
                commitment_mismatch=DEPOSIT // 2,
                not_delivered=DEPOSIT // 10,
                input_not_committed=DEPOSIT,
                replay_outside=DEPOSIT,
                beacon_withheld=STAKE // 4,
                verdict_dissent=STAKE // 5,
                verdict_silence=STAKE // 10,
            ),
            split=Split(burn=5000, treasury=2000, committee=3000),
        )


def _require_known(cheat: str | None, known: Collection[str]) -> None:
    if cheat is not None and cheat not in known:
        raise PlanInvalid(f"{cheat!r} is no cheat of this role; there are {', '.join(known)}")
