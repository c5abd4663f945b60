"""The `opfl` command line. Commands are imported on demand."""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_group

COMMANDS = {
    "demo": "demo:demo",
    "devnet": "devnet:devnet",
    "client": "daemons:client",
    "committee": "daemons:committee",
    "server": "daemons:server",
    "deploy": "deploy:deploy",
    "job": "job:job",
    "keys": "keys:keys",
    "certs": "keys:certs",
    "stake": "stake:stake",
    "calibrate": "calibrate:calibrate",
    "bench": "bench:bench",
    "evaluate": "evaluate:evaluate",
    "trail": "trail:trail",
    "hand-over": "blame:hand_over",
    "blame": "blame:blame",
}
"""The module of each command in `opfl_chain.cli`, and its function or group."""

FORESEEN = (
    "adversaries.gradients.attack:AttackError",
    "lab.errors:CalibrationError",
    "chain.errors:ChainError",
    "lab.errors:EvaluationError",
    "jobs.localnet.daemon:LocalnetError",
    "learning.errors:ModelError",
    "mpc.session.errors:MpcError",
    "roles.settings:NodeError",
    "protocol.errors:ProtocolError",
    "rules.rule:RuleError",
    "system.child:ChildFailed",
    "system.plugins:PluginError",
    "trail.report:TrailError",
    "learning.errors:TrainingError",
    "transport.errors:TransportError",
    "verifiers.verifier:VerifierError",
)
"""The root errors of all packages, which are shown without a traceback."""


class OnDemand(TyperGroup):
    """Imports commands on demand, so that a daemon starts without the imports of others."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        found = _imported(f"cli.{COMMANDS[cmd_name]}")
        holder = typer.Typer()
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(cmd_name)(found)
        return get_group(holder).commands[cmd_name]


app = typer.Typer(
    name="opfl",
    cls=OnDemand,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"opfl_chain {metadata.version('opfl_chain')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=show_version),
    ] = False,
) -> None:
    """Optimistic verification of federated learning, on an EVM chain."""


def main() -> None:
    """Run a command; print an expected error as one line, without a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)
    except Exception as error:
        if not isinstance(error, (OSError, *map(_imported, FORESEEN))):
            raise
        message = f"[red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        sys.exit(1)


def _imported(place: str) -> type:
    module, _, name = place.partition(":")
    found: type = getattr(import_module(f"opfl_chain.{module}"), name)
    return found
