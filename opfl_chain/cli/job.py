"""`opfl job`: create a job from a file, or show one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.rpc import Rpc, tohex
from opfl_chain.chain.terms import budget
from opfl_chain.cli.daemons import File, example_option
from opfl_chain.cli.options import JsonFile, write_json
from opfl_chain.protocol.economics import ETHER
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.protocol.randomness import probability_of

if TYPE_CHECKING:
    from opfl_chain.protocol.policy import Policy
    from opfl_chain.roles.job import Job
    from opfl_chain.roles.job_file import TrainingSection
    from opfl_chain.rules.boundary import Boundary


JOB = """\
# opfl job create FILE.toml. Paths are relative to this file. Terms cannot be changed later.
rounds = 100
max_clients = 100                  # the budget pays so many in every round
fewest_contributions = 3           # a sum of fewer is never opened
members = [                        # accounts of the committee, in order of their seats
    "0x0000000000000000000000000000000000000001",
    "0x0000000000000000000000000000000000000002",
    "0x0000000000000000000000000000000000000003",
]
standbys = [                       # up to 5, who take seats that become free, in this order;
    "0x0000000000000000000000000000000000000004",  # without one, one member can stop the job
]
treasury = "0x0000000000000000000000000000000000000005"
treasury_share = 2000              # basis points of penalties; the rest is burnt
client_deposit = "0.5"             # ether; `opfl stake` computes the deposit that deters
member_stake = "1"                 # of members and standbys
public_roll = true                 # commitments on chain; false: only their root, for many clients
unbonding_delay = 7200             # blocks; longer than a round and its response window
unlock_delay = 7200                # blocks until a held deposit is free, in jobs without a standby

[chain]
rpc_url = "https://rpc.example"    # any EVM chain with Prague
deployment = "deployment.json"     # written by `opfl deploy`
confirmations = 2

[account]
keystore = "creator.json"          # pays for the transaction, and has no rights afterwards
# password_file = "password"       # otherwise the password is taken from OPFL_PASSWORD

[training]
# policy = "run/policy.json"       # both written by `opfl calibrate`; or, without them:
# boundary = "run/boundary.json"
model = "lenet-61706"              # a boundary for it comes with the package
batch_size = 8
audit = "proved"                   # or "guided", "plain": replays, by members that trust each other
audit_rate = 0.1                   # probability that a contribution is audited
scheme = "shares"                  # or "mpc", as in the paper, for replays
seed = 0
optimizer = { name = "adamw", learning_rate = 0.006 }

[phases]                           # in blocks; here for one block every 12 seconds
enrol = 7200                       # a day until the first round
deliver = 50                       # 10 minutes to train and deliver
roll = 25                          # 5 minutes for members to agree on who is in
beacon = 25                        # 5 minutes; members need seconds
answer = 50                        # 10 minutes for audited clients to answer
attest = 100                       # 20 minutes for audits
finalise = 50
response = 1800                    # 6 hours in which a client that was away can still answer

[penalties]
client = 1.0                       # part of the deposit: outside the boundary, or no answer
silence = 0.1                      # parts of the stake; a false statement costs all of it
dissent = 0.2
absence = 0.2
withheld = 0.25

[pay]                              # ether, for each round; escrowed when the job is created
client = "0.001"                   # for a contribution that is accepted
member = "0.01"                    # for a seat that attests what is decided
"""


job = typer.Typer(help="Create a job, or show one.", no_args_is_help=True)


@job.command()
def create(
    file: File,
    example: Annotated[bool, example_option(JOB)] = False,
    json_file: JsonFile = None,
) -> None:
    """Create a job from a file: policy, boundary, members, money and phases.

    Escrows the pay for all rounds; what nobody earned comes back when the job
    is over. Can be interrupted and repeated: the same file creates one job. The journal
    of sent transactions is kept beside it. The terms of a job cannot change;
    if terms are unsafe, the contract names them and creates nothing.
    """
    from opfl_chain.chain.bindings.events import JobCreated
    from opfl_chain.chain.keys import load_ethereum_key
    from opfl_chain.chain.send.sender import TransactionSender
    from opfl_chain.protocol.hashing import keccak256
    from opfl_chain.roles.job import Job
    from opfl_chain.roles.job_file import JobFile

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
            terms, policy.canonical_json, boundary.canonical_json, value=budget(terms)
        )
        key = f"create job {keccak256(call.data).hex()}"
        known = sender.nonce_of(key) is not None
        with Console(stderr=True).status("creating the job"):
            receipt = sender.send(call, key)
        created = JobCreated.in_receipt(receipt)
        found = Job.find(rpc, deployment, created.job)
    how = "was created by this file before" if known else f"created for {receipt.gas_used:,} gas"
    console.print(f"job {created.job} {how}; enrolment ends at block {found.enrolment_end}")
    console.print(f"{budget(terms) / ETHER:g} ether are escrowed to pay for its work")
    write_json(json_file, _facts(found))


@job.command()
def show(
    number: Annotated[int, typer.Argument(metavar="JOB", min=1, help="Number of the job.")],
    rpc_url: Annotated[str, typer.Option(metavar="URL", help="RPC address of a node.")],
    deployment: Annotated[
        Path, typer.Option(metavar="FILE", help="File written by `opfl deploy`.", dir_okay=False)
    ] = Path("deployment.json"),
    json_file: JsonFile = None,
) -> None:
    """Show the terms and the progress of a job, from the chain alone."""
    from opfl_chain.roles.job import Job

    with Rpc(rpc_url) as rpc:
        found = Job.find(rpc, Deployment.read(deployment), JobId(number))
        facts = _facts(found) | {"progress": _progress(found, rpc.block_number())}
    console = Console(highlight=False, soft_wrap=True)
    lines = _lines(facts)
    width = 2 + max(len(name) for name, _ in lines)
    for name, value in lines:
        console.print(f"{name:<{width}}{value}")
    write_json(json_file, facts)


def _documents(training: TrainingSection) -> tuple[Policy, Boundary]:
    """Read policy and boundary from files, or take the defaults of the package."""
    from opfl_chain.lab.calibration.reference import reference_boundary
    from opfl_chain.learning.registry import model_named
    from opfl_chain.mpc.replay.default_policy import default_policy
    from opfl_chain.protocol.commitments import Scheme
    from opfl_chain.roles.settings import JobUnusable
    from opfl_chain.rules.registry import documents_from_json, rule_of_kind

    if training.policy is None and training.boundary is None:
        policy = default_policy(
            model_named(training.model),
            rule=rule_of_kind(training.audit),
            optimizer=training.optimizer,
            batch_size=training.batch_size,
            audit_rate=training.audit_rate,
            scheme=Scheme(training.scheme),
            seed=training.seed,
        )
        return policy, reference_boundary(policy)
    if training.policy is None or training.boundary is None:
        raise JobUnusable("training names only one of policy and boundary: give both or neither")
    policy, boundary = documents_from_json(
        training.policy.read_bytes(), training.boundary.read_bytes()
    )
    if boundary.policy_hash != tohex(policy.hash):
        raise JobUnusable(
            f"{training.boundary} is for policy {boundary.policy_hash}, but {training.policy} has"
            f" hash {tohex(policy.hash)}: give the two files of one calibration"
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
        "standbys": list(terms.standbys),
        "max_clients": terms.max_clients,
        "fewest_contributions": terms.fewest_contributions,
        "public_roll": terms.public_roll,
        "treasury": terms.treasury,
        "treasury_share_basis_points": terms.treasury_share,
        "client_deposit_ether": terms.client_deposit / ETHER,
        "member_stake_ether": terms.member_stake / ETHER,
        "unbonding_delay_blocks": terms.unbonding_delay,
        "unlock_delay_blocks": terms.unlock_delay,
        "phases_blocks": vars(terms.phases),
        "penalties_ether": {name: wei / ETHER for name, wei in vars(terms.penalties).items()},
        "pay_ether": {name: wei / ETHER for name, wei in vars(terms.pay).items()},
        "budget_ether": budget(terms) / ETHER,
    }


def _progress(found: Job, head: int) -> dict[str, Any]:
    contracts = found.contracts
    state, present = contracts.rounds.progress(found.id), contracts.jobs.participants(found.id)
    joined = [each for n, each in enumerate(found.roster) if present.joined >> n & 1]
    stage = "closed" if state.closed else "running" if state.next_round else "enrolling"
    if stage == "enrolling" and head >= found.enrolment_end:
        complete = set(found.members) <= set(joined) and present.client_count
        stage = "ready for the first round" if complete else "stillborn: it can never start"
    return {
        "stage": stage,
        "block": head,
        "joined": joined,
        "seats": [found.roster[number] for number in present.seats],
        "seat_changes": present.epoch,
        "clients": present.client_count,
        "audits_undecided": present.undecided,
        "rounds_opened": state.next_round,
        "void_rounds_in_a_row": state.void_streak,
        "model_hash": tohex(state.model_hash),
        "paid_ether": contracts.rewards.paid(found.id) / ETHER,
        "budget_left_ether": contracts.deposits.budget_of(found.id) / ETHER,
    }


def _lines(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested facts: names joined by dots, lists by commas."""
    lines: list[tuple[str, str]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            lines.append((prefix + name, ", ".join(map(str, value)) or "none"))
        else:
            lines.append((prefix + name, str(value)))
    return lines
