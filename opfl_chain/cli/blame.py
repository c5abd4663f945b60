"""`opfl hand-over` and `opfl blame`: disputes between two members about a proved audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from opfl_chain.api.blame import EvidenceUnusable, Settlement, settle_dispute, words_of
from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.rpc import Rpc
from opfl_chain.cli.options import JsonFile, write_json
from opfl_chain.cli.trail import DeploymentFile, Job, RpcUrl
from opfl_chain.protocol.disputed import DisputedComponent
from opfl_chain.protocol.identifiers import JobId
from opfl_chain.roles.job import Job as FoundJob
from opfl_chain.roles.member.disputes import hand_over as take_component
from opfl_chain.roles.settings import MemberSettings
from opfl_chain.system.files import write_atomically
from opfl_chain.trail import read_trail
from opfl_chain.trail.answers import read_answers


def hand_over(
    config: Annotated[
        Path, typer.Option(metavar="FILE.toml", help="Settings of the member.", dir_okay=False)
    ],
    round_: Annotated[
        int, typer.Option("--round", min=0, metavar="R", help="Number of the round.")
    ],
    client: Annotated[
        int, typer.Option(min=0, metavar="I", help="Index of the client in the job.")
    ],
    component: Annotated[
        int, typer.Option(min=0, max=2, metavar="K", help="The disputed component, 0, 1 or 2.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Target file.", dir_okay=False)],
    session: Annotated[
        int, typer.Option(min=0, help="Session of the round; 0 is that before the verdict.")
    ] = 0,
) -> None:
    """Hand one disputed component of a contribution over, for `opfl blame`.

    For a member that holds the component. Writes both bundles of the client,
    the keys of this one component, and the weights of the round. One component
    tells nothing about gradient or input, but completes those that the third
    member holds: do not give it the file. A component on which its holders
    agree is refused. The daemon may run meanwhile.
    """
    found = take_component(MemberSettings.read(config), round_, client, component, session)
    write_atomically(out, found.encode().decode(), mode=0o600)
    Console().print(
        f"{out} written: component {component} of client {client} in round {round_}. Do not give it"
        " to the member that does not hold it",
        highlight=False,
        soft_wrap=True,
    )


def blame(
    rpc_url: RpcUrl,
    job: Job,
    answers: Annotated[
        Path, typer.Option(metavar="FILE", help="A member's answers.jsonl.", dir_okay=False)
    ],
    component: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File written by `opfl hand-over`.", dir_okay=False),
    ],
    deployment: DeploymentFile = Path("deployment.json"),
    json_file: JsonFile = None,
) -> None:
    """Settle a dispute about a proved audit: name the member that lied.

    Two members answer on each component of a contribution. If their answers
    differ, one of them lies. This command recomputes the answer from the
    component itself, which must be bound to the commitment on chain, to the
    client's data set and to the answer that both reports are about. The
    evidence (--json) holds the signed messages and the recomputed words.

    Exits with 1 if both holders are right.
    """
    console = Console()
    handed = DisputedComponent.decode(component.read_bytes())
    rounds = read_answers(answers)
    if handed.round not in rounds:
        raise EvidenceUnusable(f"{answers} has no answers of round {handed.round}")
    with Rpc(rpc_url) as rpc, console.status("reading the chain"):
        contracts = Deployment.read(deployment)
        trail = read_trail(rpc, contracts, job)
        terms = FoundJob.find(rpc, contracts, JobId(job))
    settled = settle_dispute(terms, trail, rounds[handed.round], handed)
    write_json(json_file, settled.document)
    _show(console, settled)
    if not settled.named:
        raise typer.Exit(1)


def _show(console: Console, settled: Settlement) -> None:
    handed = settled.handed
    console.print(
        f"round {handed.round}, client {handed.client}, component {handed.component}: the right"
        f" answer is {', '.join(words_of(settled.right))}",
        highlight=False,
        soft_wrap=True,
    )
    for each in settled.holders:
        says = "[red]lies[/]" if each.lies else "[green]is right[/]"
        if each.breaks_commitment:
            says += ", and [red]revealed other words than it had committed to[/]"
        console.print(f"seat {each.seat} ({each.member}) {says}", highlight=False, soft_wrap=True)
