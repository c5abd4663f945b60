"""The job of a daemon: everything that was fixed when it was created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.chain.bindings.types import JobTerms, Schedule
from opfl_chain.chain.contracts.contract import Log
from opfl_chain.chain.deployment import Contracts, Deployment
from opfl_chain.chain.rpc import Rpc
from opfl_chain.chain.terms import schedule_of
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, JobId
from opfl_chain.protocol.policy import Policy
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.roles.settings import JobUnusable
from opfl_chain.rules.boundary import Boundary
from opfl_chain.rules.registry import documents_from_json
from opfl_chain.system.plugins import PluginError


@dataclass(frozen=True)
class Job:
    """Read from the chain alone, and constant."""

    id: JobId
    terms: JobTerms
    policy: Policy
    boundary: Boundary
    contracts: Contracts
    domain: SigningDomain
    first_block: int

    @classmethod
    def find(cls, rpc: Rpc, deployment: Deployment, job: JobId) -> Job:
        contracts = deployment.connect(rpc)
        known = contracts.jobs.job_count()
        if not 0 < job <= known:
            raise JobUnusable(
                f"job {job} does not exist at {contracts.jobs.address}: these contracts have"
                f" {known} jobs"
            )
        # The block follows from the terms. Many nodes refuse to search all blocks for it.
        terms, participants = contracts.jobs.terms(job), contracts.jobs.participants(job)
        created_at = participants.enrol_deadline - terms.phases.enrol
        logs = rpc.request(
            "eth_getLogs",
            {
                "address": contracts.jobs.address,
                "topics": ["0x" + JobCreated.TOPIC.hex(), f"0x{job:064x}"],
                "fromBlock": hex(created_at),
                "toBlock": hex(created_at),
            },
        )
        if not logs:
            raise JobUnusable(
                f"the node does not have the event of block {created_at} that created job {job}"
            )
        log = Log.from_rpc(logs[0])
        created = JobCreated.decode(log)
        for name, data, stated in (
            ("policy", created.policy, created.terms.policy_hash),
            ("boundary", created.boundary, created.terms.boundary_hash),
        ):
            if keccak256(data) != stated:
                raise JobUnusable(f"the {name} of job {job} does not match its hash in the terms")
        try:
            policy, boundary = documents_from_json(created.policy, created.boundary)
        except PluginError as error:
            raise JobUnusable(f"job {job} cannot be run here: {error}") from error
        return cls(
            job,
            created.terms,
            policy,
            boundary,
            contracts,
            SigningDomain(rpc.chain_id(), contracts.jobs.address),
            log.block_number,
        )

    @property
    def enrolment_end(self) -> int:
        """The last block in which members join and clients enrol."""
        return self.first_block + self.terms.phases.enrol

    @property
    def members(self) -> Sequence[Address]:
        """Members of the terms, who have the seats at first."""
        return self.terms.members

    @property
    def roster(self) -> Sequence[Address]:
        """Members, then standbys; a place in it is a number."""
        return (*self.terms.members, *self.terms.standbys)

    def schedule(self, opened_at: int) -> Schedule:
        return schedule_of(self.terms.phases, opened_at)
