"""`opfl keys`: encrypted Ethereum and BLS keys."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from opfl_chain.chain.keys import (
    create_bls_key,
    create_ethereum_key,
    load_bls_key,
    load_ethereum_key,
)

keys = typer.Typer(
    help="Make keys, encrypted with a password.",
    no_args_is_help=True,
)

KeyFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The keystore.", dir_okay=False)
]
NewPassword: TypeAlias = Annotated[
    str,
    typer.Option(envvar="OPFL_PASSWORD", prompt=True, confirmation_prompt=True, hide_input=True),
]
OldPassword: TypeAlias = Annotated[
    str, typer.Option(envvar="OPFL_PASSWORD", prompt=True, hide_input=True)
]


@keys.command()
def ethereum(file: KeyFile, password: NewPassword) -> None:
    """Make the key of an account, in a file that any Ethereum wallet opens."""
    typer.echo(create_ethereum_key(file, password).address)


@keys.command()
def bls(file: KeyFile, password: NewPassword) -> None:
    """Make the key with which a committee member signs the beacon."""
    typer.echo("0x" + create_bls_key(file, password).public_key.compressed().hex())


@keys.command()
def show(file: KeyFile, password: OldPassword) -> None:
    """Open a key and print its address, or its public key if it is a BLS key."""
    if '"bls12381_g2"' in file.read_text(encoding="utf-8"):
        typer.echo("0x" + load_bls_key(file, password).public_key.compressed().hex())
    else:
        typer.echo(load_ethereum_key(file, password).address)
