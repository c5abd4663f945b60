"""`opfl keys` and `opfl certs`: keys of accounts, and certificates of members and server."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from opfl_chain.chain.keys import (
    create_bls_key,
    create_ethereum_key,
    load_bls_key,
    load_ethereum_key,
)
from opfl_chain.mpc.session.ranks import MEMBERS, certificate_name
from opfl_chain.roles.peers import SERVER_NAME
from opfl_chain.transport.certificates import MEMBER_DAYS, Authority

keys = typer.Typer(
    help="Make keys, encrypted with a password.",
    no_args_is_help=True,
)

KeyFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="Keystore file.", dir_okay=False)
]
NewPassword: TypeAlias = Annotated[
    str,
    typer.Option(envvar="OPFL_PASSWORD", prompt=True, confirmation_prompt=True, hide_input=True),
]
OldPassword: TypeAlias = Annotated[
    str, typer.Option(envvar="OPFL_PASSWORD", prompt=True, hide_input=True)
]
_USUAL_NAMES = (*map(certificate_name, range(MEMBERS)), SERVER_NAME)


@keys.command()
def ethereum(file: KeyFile, password: NewPassword) -> None:
    """Make the key of an account, in a keystore that any Ethereum wallet can open."""
    typer.echo(create_ethereum_key(file, password).address)


@keys.command()
def bls(file: KeyFile, password: NewPassword) -> None:
    """Make the BLS key with which a committee member signs the beacon."""
    typer.echo("0x" + create_bls_key(file, password).public_key.compressed().hex())


@keys.command()
def show(file: KeyFile, password: OldPassword) -> None:
    """Print the address of a key, or the public key of a BLS key."""
    if '"bls12381_g2"' in file.read_text(encoding="utf-8"):
        typer.echo("0x" + load_bls_key(file, password).public_key.compressed().hex())
    else:
        typer.echo(load_ethereum_key(file, password).address)


def certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Target folder.", file_okay=False)],
    name: Annotated[
        list[str] | None,
        typer.Option(help="Issue one for this name instead of the default ones. May be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="Validity in days.")] = MEMBER_DAYS,
) -> None:
    """Make certificates for the members and the server, issued by their own authority.

    The authority in DIR issues them; if there is none, it is created. Nothing is overwritten.
    """
    names = list(dict.fromkeys(name or _USUAL_NAMES))
    authority = Authority.open_or_create(folder)
    issued = authority.issue_all(names, days)
    hosts = {str(authority.certificate): "to every host, clients' too"}
    for each, files in issued.items():
        both = f"{files.certificate}, {files.private_key.name}"
        hosts[both] = f"to the host of {each}, and no other"
    hosts[str(authority.private_key)] = (
        "to no host: whoever has it can pass for any member. Keep it apart."
    )
    width = max(map(len, hosts))
    for what, where in hosts.items():
        typer.echo(f"{what:{width}}  {where}")
