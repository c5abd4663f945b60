"""A member's place in the committee: rank, addresses of all members, TLS files and ports."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

from opfl_chain.mpc.session.errors import AddressTaken
from opfl_chain.mpc.session.ranks import MEMBERS, Rank, certificate_name
from opfl_chain.transport.addresses import is_loopback, split_address
from opfl_chain.transport.errors import AddressInvalid, TlsRequired
from opfl_chain.transport.tls import TlsFiles


@dataclass(frozen=True)
class PartyConfig:
    """`addresses` are where all members meet, in order of rank. SPU's link uses new ports for every
    session, from `link_ports` (the first and the last) if it is set.
    """

    rank: Rank
    addresses: tuple[str, ...]
    tls: TlsFiles | None = None
    listen_host: str | None = None
    """The interface to listen at, if it differs from the host that peers connect to."""
    link_ports: tuple[int, int] | None = None
    names: tuple[str, ...] = tuple(map(certificate_name, range(MEMBERS)))
    """The names in the certificates of all members, in order of rank."""

    def __post_init__(self) -> None:
        if self.rank not in range(MEMBERS) or len(self.addresses) != MEMBERS:
            raise AddressInvalid(
                ", ".join(self.addresses), f"must be {MEMBERS} addresses, and the rank 0, 1 or 2"
            )
        for address in self.addresses:
            host, _ = split_address(address)
            if self.tls is None and not is_loopback(host):
                raise TlsRequired(address)
        if len(set(self.addresses)) != MEMBERS:
            raise AddressInvalid(", ".join(self.addresses), "must be different from each other")

    @property
    def address(self) -> str:
        return self.addresses[self.rank]

    @property
    def host(self) -> str:
        return split_address(self.address)[0]

    @property
    def interface(self) -> str:
        return self.listen_host or self.host

    def bind(self, port: int) -> socket.socket:
        """Reserve a port of our interface (0: any free one) with a socket that does not listen.

        Another socket of ours, or SPU's, can still bind the port and listen, but no outgoing
        connection of any process takes it.
        """
        family = socket.AF_INET6 if ":" in self.interface else socket.AF_INET
        holder = socket.socket(family)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((self.interface, port))
        except OSError as error:
            holder.close()
            raise AddressTaken(f"{self.interface}:{port}", str(error)) from error
        return holder

    def reserve_address(self) -> socket.socket:
        """Reserve the port at which members meet, between meetings."""
        return self.bind(split_address(self.address)[1])

    def reserve_link_port(self) -> socket.socket:
        """Reserve a port for SPU's link, until SPU has bound it."""
        if self.link_ports is None:
            return self.bind(0)
        first, last = self.link_ports
        for port in random.sample(range(first, last + 1), last + 1 - first):
            try:
                return self.bind(port)
            except AddressTaken:
                continue
        raise AddressTaken(f"{self.interface}, ports {first} to {last}", "none of them is free")
