"""`opfl client`, `opfl committee` and `opfl server`: the daemons of a job.

An honest daemon loads nothing of `adversaries`: only a cheat in its settings does.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from opfl_chain.roles.node import Node


_SERVER = 'server = "https://server.example:9000"\n'

_COMMON = """\
state = "state/{name}"             # a separate folder; keep it until the job is over
listen = "{host}:{port}"{pad}# address of this daemon, /health included
server = "https://server.example:9000"

[chain]
rpc_url = "https://rpc.example"    # any EVM chain with Prague
# ws_url = "wss://rpc.example"     # subscribe to new heads; without it, poll
deployment = "deployment.json"     # written by `opfl deploy`
job = 1
confirmations = 2                  # blocks on top of a block before acting on it
poll_seconds = 4.0                 # interval of polling for new blocks

[account]
keystore = "{name}.json"           # made by `opfl keys ethereum`
# password_file = "password"       # otherwise the password is taken from OPFL_PASSWORD

[tls]                              # made by `opfl certs`; may be left out on one machine
authority = "certs/authority.pem"
"""

_CERTIFICATE = """\
certificate = "certs/{certificate}.pem"
private_key = "certs/{certificate}.key"
"""

CLIENT = (
    """\
# opfl client FILE.toml. Paths are relative to this file.
threads = 1                        # torch threads
"""
    + _COMMON.format(name="client-0", host="127.0.0.1", port=9100, pad=" " * 9)
    + """
[data]
dataset = "mnist"                  # mnist, fashion-mnist or synthetic
# data_dir = "data"                # your own copy
split = "iid"                      # or "dirichlet", with alpha
part = 0                           # this client's part of the data set ...
parts = 5                          # ... of so many
"""
)

COMMITTEE = (
    """\
# opfl committee FILE.toml, for a member or a standby. Paths are relative to this file.
bls_keystore = "member-0-bls.json" # made by `opfl keys bls`, with the same password
announce = "https://member-0.example:9200"  # published on chain: clients deliver to it
mpc_addresses = [                  # of all members, then of all standbys
    "member-0.example:9300", "member-1.example:9300", "member-2.example:9300",
    "member-3.example:9300",
]
# mpc_listen_host = "0.0.0.0"      # if it differs from the host of our own address
# mpc_link_ports = [9301, 9399]    # port range of SPU's links, for firewalls; default: any
# mpc_join_seconds = 5.0           # how long to wait for a peer before retrying
"""
    + _COMMON.format(name="member-0", host="0.0.0.0", port=9200, pad=" " * 11)
    + _CERTIFICATE.format(certificate="member-0")
)

SERVER = (
    """\
# opfl server FILE.toml. Paths are relative to this file.
# test_dataset = "mnist"           # measure the accuracy of every model
"""
    + _COMMON.format(name="server", host="0.0.0.0", port=9000, pad=" " * 11).replace(_SERVER, "")
    + _CERTIFICATE.format(certificate="server")
)
File: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE.toml", help="Settings.", dir_okay=False)
]


def example_option(example: str) -> typer.models.OptionInfo:
    """Make the option `--example`, which prints a file and exits."""

    def show(wanted: bool) -> None:
        if wanted:
            typer.echo(example, nl=False)
            raise typer.Exit

    option: typer.models.OptionInfo = typer.Option(
        "--example", help="Print a commented settings file.", is_eager=True, callback=show
    )
    return option


def client(file: File, example: Annotated[bool, example_option(CLIENT)] = False) -> None:
    """Take part in a job as a client, from deposit to withdrawal.

    Locks the deposit, commits to its data, trains on every model, delivers
    secret shares of the gradient to the members, answers audits, and takes its
    pay and its deposit when the job is over. All of its state is in the folder
    named in FILE.toml: killed at any point, it resumes on restart.
    """
    from opfl_chain.roles.client.client import Client
    from opfl_chain.roles.settings import ClientSettings
    from opfl_chain.system.logs import log_to_stderr

    settings = ClientSettings.read(file)
    log_to_stderr(file.stem)
    conduct = None
    if settings.cheat is not None:
        from opfl_chain.adversaries.clients import conduct_named

        conduct = conduct_named(settings.cheat)
    with Client(settings, conduct) as node:
        serve(node)


def committee(file: File, example: Annotated[bool, example_option(COMMITTEE)] = False) -> None:
    """Take part in a job as a member of its committee, or as a standby.

    Stakes, agrees with the two others on who contributed, signs the audit
    randomness, audits with them, attests verdicts, aggregates accepted
    gradients, checks every new model, and has clients charged whose audits
    fail. A standby follows, settles disputes, and takes a seat that is free.
    """
    from opfl_chain.roles.member.member import Member
    from opfl_chain.roles.settings import MemberSettings
    from opfl_chain.system.logs import log_to_stderr
    from opfl_chain.system.resources import keep_freed_memory

    settings = MemberSettings.read(file)
    log_to_stderr(file.stem)
    keep_freed_memory()
    kind: type[Member] = Member
    if settings.cheat is not None:
        from opfl_chain.adversaries.members import member_named

        kind = member_named(settings.cheat)
    with kind(settings) as node:
        serve(node)


def server(file: File, example: Annotated[bool, example_option(SERVER)] = False) -> None:
    """Advance a job and serve its models.

    The server is not trusted: models are checked by their hashes, and members
    take over its work if it fails.
    """
    from opfl_chain.roles.server.server import Server
    from opfl_chain.roles.settings import ServerSettings
    from opfl_chain.system.logs import log_to_stderr

    settings = ServerSettings.read(file)
    log_to_stderr(file.stem)
    kind: type[Server] = Server
    if settings.cheat is not None:
        from opfl_chain.adversaries.servers import SERVERS

        kind = SERVERS[settings.cheat]
    with kind(settings) as node:
        serve(node)


def serve(node: Node) -> None:
    """Run until the job is over; SIGTERM and Ctrl-C stop it after the current step."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.stop())
    node.run()
