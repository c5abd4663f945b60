"""`opfl hand-over` and `opfl blame`: disputes between two members about a proved audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from opfl_chain.api.blame import Evidence, EvidenceUnusable, Settlement, settle_dispute
from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.rpc import Rpc
from opfl_chain.cli.options import JsonFile, write_json
from opfl_chain.cli.trail import DeploymentFile, Job, RpcUrl
from opfl_chain.protocol.errors import HandOverInvalid
from opfl_chain.protocol.hand_over import HandOver
from opfl_chain.protocol.identifiers import JobId, RoundNumber
from opfl_chain.roles.hand_over import hand_over as take_component
from opfl_chain.roles.hand_over import read_settings
from opfl_chain.roles.job import Job as FoundJob
from opfl_chain.roles.settings import ClientSettings
from opfl_chain.system.files import write_atomically
from opfl_chain.trail import read_trail
from opfl_chain.trail.answers import read_answers
from opfl_chain.trail.report import AnswersUnreadable

Round: TypeAlias = Annotated[
    int, typer.Option("--round", min=0, metavar="R", help="Number of the round.")
]
ClientNumber: TypeAlias = Annotated[
    int, typer.Option("--client", min=0, metavar="I", help="Index of the client in the job.")
]
_UNUSABLE = 2


def hand_over(
    config: Annotated[
        Path,
        typer.Option(
            metavar="FILE.toml", help="Settings of the member or of the client.", dir_okay=False
        ),
    ],
    round_: Round,
    client: ClientNumber,
    component: Annotated[
        int, typer.Option(min=0, max=2, metavar="J", help="The disputed component, 0, 1 or 2.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Target file.", dir_okay=False)],
) -> None:
    """Hand one component of a disputed contribution over, for `opfl blame`.

    Writes what one of three components holds of the gradient, the input and
    the proof of an audited contribution, with its salts and all leaf hashes.
    One component tells nothing about the contribution: it looks the same
    whatever was shared. Two components and a member that holds the third tell
    everything, so a second component of a contribution is refused, for ever.
    A member hands over only a component on which its two holders differ.

    Give the file to somebody who is not a member: never to the member that
    lacks this component, which would then hold all three. Members delete
    their shares when no slash can need them any more, clients keep those of
    their last two rounds. The daemon may run meanwhile.
    """
    settings = read_settings(config)
    conduct = None
    if isinstance(settings, ClientSettings) and settings.cheat is not None:
        from opfl_chain.adversaries.clients import conduct_named

        conduct = conduct_named(settings.cheat)
    found = take_component(settings, round_, client, component, conduct)
    write_atomically(out, found.encode(), mode=0o600)
    lacking = (component + 1) % 3
    Console().print(
        f"{out} written: component {component} of client {client} in round {round_}. Do not give it"
        f" to member {lacking}, who holds the two others",
        highlight=False,
        soft_wrap=True,
    )


def blame(
    rpc_url: RpcUrl,
    job: Job,
    answers: Annotated[
        Path,
        typer.Option(metavar="FILE", help="A member's answers.jsonl.", dir_okay=False),
    ],
    round_: Round,
    client: ClientNumber,
    component: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="File written by `opfl hand-over`.", dir_okay=False),
    ],
    weights: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Weights of the round's model: GET /models/HASH of the server or a member.",
            dir_okay=False,
        ),
    ],
    deployment: DeploymentFile = Path("deployment.json"),
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="List of the round's relayed batch, if it has one: GET /batches/ROOT.",
            dir_okay=False,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Settle a dispute about a proved audit: name the member that lied.

    Two members answer on each component of a contribution. If their answers
    differ, one of them lies. This command recomputes the answer from the
    component itself, which must be bound to the commitment on chain, to the
    client's data set, and to the leaf hashes that both members signed. The
    evidence (--json) holds the signed messages and the recomputed words:
    anyone can check it with the same command.

    Exits with 0 if somebody is named, with 1 if both are right, and with 2 if
    the evidence is not usable.
    """
    console = Console()
    try:
        if len(component) != 1:
            raise EvidenceUnusable(
                f"{len(component)} components given: one settles a dispute, and two must never come"
                " together"
            )
        handed = _read_component(component[0])
        rounds, values = read_answers(answers), _read_weights(weights)
        listed = _read(batch) if batch is not None else None
        if RoundNumber(round_) not in rounds:
            raise EvidenceUnusable(f"{answers} has no answers of round {round_}")
        with Rpc(rpc_url) as rpc, console.status("reading the chain"):
            contracts = Deployment.read(deployment)
            found = read_trail(rpc, contracts, job)
            terms = FoundJob.find(rpc, contracts, JobId(job))
        evidence = Evidence(rounds[RoundNumber(round_)], values, listed)
        settled = settle_dispute(terms, found, round_, client, handed, evidence)
    except (EvidenceUnusable, AnswersUnreadable) as error:
        message = f"[red]unusable evidence:[/] {escape(str(error))}"
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        raise typer.Exit(_UNUSABLE) from None
    write_json(json_file, settled.document)
    _show(console, settled)
    if not settled.named:
        raise typer.Exit(1)


def _show(console: Console, settled: Settlement) -> None:
    console.print(
        f"round {settled.round}, client {settled.client}, component {settled.component}:"
        f" the right answer is {', '.join(settled.document['recomputed'])}",
        highlight=False,
        soft_wrap=True,
    )
    for each in settled.holders:
        says = "[red]lies[/]" if each.lies else "[green]is right[/]"
        if each.breaks_commitment:
            says += ", and [red]revealed other answers than it had committed to[/]"
        who = f"member {each.rank} ({each.member})"
        console.print(f"{who} {says}", highlight=False, soft_wrap=True)
    if not settled.named:
        console.print("nobody is named: both answers are right")
    elif not any(each.lies for each in settled.holders):
        console.print("both answers are right: only a commitment was broken")


def _read_component(path: Path) -> HandOver:
    try:
        return HandOver.decode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceUnusable(f"{path} cannot be read: {error}") from None
    except HandOverInvalid as error:
        raise EvidenceUnusable(f"{path} is not a component: {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvidenceUnusable(f"{path} cannot be read: {error}") from None


def _read_weights(path: Path) -> NDArray[np.float32]:
    data = _read(path)
    if len(data) % 4:
        raise EvidenceUnusable(f"{path} has {len(data):,} bytes: weights have four each")
    return np.frombuffer(data, "<f4").astype(np.float32)
