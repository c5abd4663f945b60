"""The `opfl` command line."""

import sys
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from opfl_chain.attacks.errors import AttackError
from opfl_chain.calibration.errors import CalibrationError
from opfl_chain.chain.errors import ChainError
from opfl_chain.commands import (
    bench,
    calibrate,
    certs,
    daemons,
    demo,
    deploy,
    devnet,
    evaluate,
    keys,
    stake,
    trail,
)
from opfl_chain.evaluation.errors import EvaluationError
from opfl_chain.models.errors import ModelError
from opfl_chain.mpc.errors import MpcError
from opfl_chain.nodes.errors import NodeError
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.trail.errors import TrailError
from opfl_chain.training.errors import TrainingError
from opfl_chain.transport.errors import TransportError
from opfl_chain.verifiers.errors import VerifierError

FORESEEN = (
    AttackError,
    CalibrationError,
    ChainError,
    EvaluationError,
    ModelError,
    MpcError,
    NodeError,
    OSError,
    ProtocolError,
    TrailError,
    TrainingError,
    VerifierError,
    TransportError,
)

app = typer.Typer(
    name="opfl",
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


app.command()(demo.demo)
app.command()(devnet.devnet)
app.command()(daemons.client)
app.command()(daemons.committee)
app.command()(daemons.server)
app.command()(deploy.deploy)
app.add_typer(keys.keys, name="keys")
app.command()(certs.certs)
app.command()(stake.stake)
app.command()(calibrate.calibrate)
app.add_typer(bench.bench, name="bench")
app.add_typer(evaluate.evaluate, name="evaluate")
app.add_typer(trail.trail, name="trail")


def main() -> None:
    """Run a command; an error that we foresaw is one line, not a traceback."""
    try:
        app()
    except FORESEEN as error:
        message = f"[red]error:[/] {escape(str(error))}"
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)


if __name__ == "__main__":
    main()
