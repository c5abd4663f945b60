"""`opfl certs`: the certificates with which members and server show who they are."""

from pathlib import Path
from typing import Annotated

import typer

from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.mpc.tls import certificate_name
from opfl_chain.nodes.peers import SERVER_NAME
from opfl_chain.transport.certificates import MEMBER_DAYS, Authority

_USUAL_NAMES = (*map(certificate_name, range(MEMBERS)), SERVER_NAME)


def certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where they go.", file_okay=False)],
    name: Annotated[
        list[str] | None,
        typer.Option(help="Issue one for this name, instead of the usual ones. May be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="How long they are valid.")] = MEMBER_DAYS,
) -> None:
    """Make certificates for the members and the server, under an authority of their own.

    An authority that is in DIR already issues them; if there is none, it is made. Nothing is
    overwritten.
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
