"""`opfl job`: create a job on any chain, and see what one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.files import write_atomically
from opfl_chain.chain.rpc import Rpc, tohex
from opfl_chain.commands.daemons import File, example_option
from opfl_chain.commands.job_example import JOB
from opfl_chain.commands.options import JsonFile
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.protocol.sampling import probability_of

if TYPE_CHECKING:
    from opfl_chain.nodes.job import Job
    from opfl_chain.nodes.job_terms import TrainingSection
    from opfl_chain.protocol.policy import Policy
    from opfl_chain.protocol.rules import Boundary

job = typer.Typer(help="Create a job, or show one.", no_args_is_help=True)

_WEI = 10**18


@job.command()
def create(
    file: File,
    example: Annotated[bool, example_option(JOB)] = False,
    json_file: JsonFile = None,
) -> None:
    """Create a job from a file: policy, boundary, members, money and phases.

    Can be interrupted and repeated: the same file creates one job. What was
    sent is kept beside it. The job is fixed from then on, for everybody; if
    terms are unsafe, the contract says which and creates nothing.
    """
    from opfl_chain.chain.bindings.events import JobCreated
    from opfl_chain.chain.keys import load_ethereum_key
    from opfl_chain.chain.sender import TransactionSender
    from opfl_chain.nodes.job import Job
    from opfl_chain.nodes.job_terms import JobFile
    from opfl_chain.protocol.hashing import keccak256

    settings = JobFile.read(file)
    policy, boundary = _documents(settings.training)
    terms = settings.terms(policy, boundary)
    account = load_ethereum_key(settings.account.keystore, settings.account.password())
    console = Console(highlight=False, soft_wrap=True)
    with (
        Rpc(settings.chain.rpc_url) as rpc,
        TransactionSender(
            rpc, account, file.resolve().parent, confirmations=settings.chain.confirmations
        ) as sender,
    ):
        deployment = Deployment.read(settings.chain.deployment)
        call = deployment.connect(rpc).jobs.create_job(
            terms, policy.canonical_json, boundary.canonical_json
        )
        key = f"create job {keccak256(call.data).hex()}"
        known = sender.nonce_of(key) is not None
        with Console(stderr=True).status("creating the job"):
            receipt = sender.send(call, key)
        created = JobCreated.in_receipt(receipt)
        found = Job.find(rpc, deployment, created.job)
    how = "was created by this file before" if known else f"created for {receipt.gas_used:,} gas"
    console.print(f"job {created.job} {how}; enrolment ends at block {found.enrolment_end}")
    if json_file is not None:
        write_atomically(json_file, json.dumps(_facts(found), indent=2) + "\n")


@job.command()
def show(
    number: Annotated[int, typer.Argument(metavar="JOB", min=1, help="Its number.")],
    rpc_url: Annotated[str, typer.Option(metavar="URL", help="A node of the chain.")],
    deployment: Annotated[
        Path, typer.Option(metavar="FILE", help="What `opfl deploy` wrote.", dir_okay=False)
    ] = Path("deployment.json"),
    json_file: JsonFile = None,
) -> None:
    """Show the terms of a job and how far it is, from the chain alone."""
    from opfl_chain.nodes.job import Job

    with Rpc(rpc_url) as rpc:
        found = Job.find(rpc, Deployment.read(deployment), JobId(number))
        facts = _facts(found) | {"progress": _progress(found, rpc.block_number())}
    console = Console(highlight=False, soft_wrap=True)
    lines = _lines(facts)
    width = 2 + max(len(name) for name, _ in lines)
    for name, value in lines:
        console.print(f"{name:<{width}}{value}")
    if json_file is not None:
        write_atomically(json_file, json.dumps(facts, indent=2) + "\n")


def _documents(training: TrainingSection) -> tuple[Policy, Boundary]:
    """From files, or the bounds that come with the package."""
    from opfl_chain.calibration.reference import reference_boundary
    from opfl_chain.models.registry import model_named
    from opfl_chain.mpc.default_policy import default_policy
    from opfl_chain.nodes.errors import JobUnusable
    from opfl_chain.protocol.gradient import Scheme
    from opfl_chain.protocol.policy import Policy
    from opfl_chain.protocol.rules import boundary_from_json

    if training.policy is None and training.boundary is None:
        policy = default_policy(
            model_named(training.model),
            optimizer=training.optimizer,
            batch_size=training.batch_size,
            audit_rate=training.audit_rate,
            scheme=Scheme(training.scheme),
            seed=training.seed,
        )
        return policy, reference_boundary(policy)
    if training.policy is None or training.boundary is None:
        raise JobUnusable("training names a policy or a boundary without the other: give both")
    policy = Policy.from_json(training.policy.read_bytes())
    boundary = boundary_from_json(training.boundary.read_bytes())
    if boundary.policy_hash != tohex(policy.hash):
        raise JobUnusable(
            f"{training.boundary} is of policy {boundary.policy_hash}, and {training.policy} has"
            f" the hash {tohex(policy.hash)}: give the two that one calibration wrote"
        )
    return policy, boundary


def _facts(found: Job) -> dict[str, Any]:
    terms = found.terms
    return {
        "job": found.id,
        "created_at_block": found.first_block,
        "enrolment_ends_at_block": found.enrolment_end,
        "jobs_contract": found.contracts.jobs.address,
        "model": found.policy.model.name,
        "replay": found.policy.replay.kind,
        "commitment_scheme": found.policy.commitment_scheme.value,
        "batch_size": found.policy.data.batch_size,
        "policy_hash": tohex(terms.policy_hash),
        "boundary_hash": tohex(terms.boundary_hash),
        "first_model_hash": tohex(terms.model_hash),
        "rounds": terms.rounds,
        "audit_probability": float(probability_of(terms.audit_rate)),
        "members": list(terms.members),
        "relayer": terms.relayer,
        "treasury": terms.treasury,
        "client_deposit_ether": terms.client_deposit / _WEI,
        "member_stake_ether": terms.member_stake / _WEI,
        "unbonding_delay_blocks": terms.unbonding_delay,
        "phases_blocks": vars(terms.phases),
        "penalties_ether": {name: wei / _WEI for name, wei in vars(terms.penalties).items()},
        "split_basis_points": vars(terms.split),
    }


def _progress(found: Job, head: int) -> dict[str, Any]:
    state = found.contracts.jobs.progress(found.id)
    joined = [m for i, m in enumerate(found.members) if state.joined >> i & 1]
    stage = "closed" if state.closed else "running" if state.next_round else "enrolling"
    if stage == "enrolling" and head >= found.enrolment_end:
        complete = len(joined) == len(found.members) and state.client_count
        stage = "ready for the first round" if complete else "stillborn: it can never start"
    return {
        "stage": stage,
        "block": head,
        "members_joined": joined,
        "clients": state.client_count,
        "rounds_opened": state.next_round,
        "void_rounds_in_a_row": state.void_streak,
        "model_hash": tohex(state.model_hash),
    }


def _lines(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested names with a dot, lists with commas."""
    lines: list[tuple[str, str]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            lines.append((prefix + name, ", ".join(map(str, value)) or "none"))
        else:
            lines.append((prefix + name, str(value)))
    return lines
