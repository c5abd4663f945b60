"""`opfl client`, `opfl committee`, `opfl server`: one role per process, from a TOML file."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from opfl_chain.commands.daemon_examples import CLIENT, COMMITTEE, SERVER

if TYPE_CHECKING:
    from opfl_chain.nodes.node import Node


def example_option(example: str) -> typer.models.OptionInfo:
    """`--example`, which prints a file and does nothing else."""

    def show(wanted: bool) -> None:
        if wanted:
            typer.echo(example, nl=False)
            raise typer.Exit

    option: typer.models.OptionInfo = typer.Option(
        "--example", help="Print a commented settings file.", is_eager=True, callback=show
    )
    return option


File: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE.toml", help="Settings.", dir_okay=False)
]


def client(file: File, example: Annotated[bool, example_option(CLIENT)] = False) -> None:
    """Take part in a job as a client, from deposit to withdrawal.

    Locks the deposit, commits to its data, trains on every model, commits to
    the gradient, delivers secret shares to the members, answers accusations,
    and withdraws its deposit when the job is over. All of its state is in the
    folder that FILE.toml names: killed at any point, it goes on where it was.
    """
    from opfl_chain.nodes.client import Client
    from opfl_chain.nodes.logs import log_to_stderr
    from opfl_chain.nodes.settings import ClientSettings

    settings = ClientSettings.read(file)
    log_to_stderr(file.stem)
    with Client(settings) as node:
        serve(node)


def committee(file: File, example: Annotated[bool, example_option(COMMITTEE)] = False) -> None:
    """Take part in a job as a member of its committee.

    Stakes, signs the audit randomness, keeps clients' shares, replays audited
    steps with the two other members inside MPC, attests verdicts, adds up what
    passed, checks every new model, and has those slashed who failed twice.
    """
    from opfl_chain.nodes.allocator import keep_freed_memory
    from opfl_chain.nodes.logs import log_to_stderr
    from opfl_chain.nodes.misconduct import member_of
    from opfl_chain.nodes.settings import MemberSettings

    settings = MemberSettings.read(file)
    log_to_stderr(file.stem)
    keep_freed_memory()
    with member_of(settings) as node:
        serve(node)


def server(file: File, example: Annotated[bool, example_option(SERVER)] = False) -> None:
    """Move a job on, serve its models, and relay commitments in batches.

    The server is trusted with nothing: models are checked by their hashes, and
    members do its work when it does not.
    """
    from opfl_chain.nodes.logs import log_to_stderr
    from opfl_chain.nodes.misconduct import server_of
    from opfl_chain.nodes.settings import ServerSettings

    settings = ServerSettings.read(file)
    log_to_stderr(file.stem)
    with server_of(settings) as node:
        serve(node)


def serve(node: Node) -> None:
    """Run until the job is over; SIGTERM and Ctrl-C end it after the step that it is in."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.stop())
    node.run()
