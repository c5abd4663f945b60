"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from opfl_chain.chain.devnet import Backend

Chain: TypeAlias = Annotated[
    Backend,
    typer.Option(help="Which development chain to start; hardhat needs `make hardhat`."),
]

JsonFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON.", dir_okay=False),
]

Keystore: TypeAlias = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Encrypted key of the account that pays.", dir_okay=False),
]

Password: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="OPFL_PASSWORD",
        prompt=True,
        hide_input=True,
        help="Password of the key; better in the variable, or typed when asked.",
    ),
]
