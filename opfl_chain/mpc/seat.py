"""A member's place in the committee: who it is, where it listens, and where its peers do."""

from __future__ import annotations

import ipaddress
import random
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opfl_chain.mpc.errors import AddressInvalid, AddressTaken, TlsRequired
from opfl_chain.mpc.ranks import MEMBERS, Rank
from opfl_chain.mpc.tls import TlsFiles

_PORTS = range(1, 1 << 16)
_ATTEMPTS = 50


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[host]:port`."""
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise AddressInvalid(address, "has no port")
    if not port.isdecimal() or int(port) not in _PORTS:
        raise AddressInvalid(address, "has a port that is not a number from 1 to 65535")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise AddressInvalid(address, "has an IPv6 address without brackets")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name: wherever it leads


@dataclass(frozen=True)
class Seat:
    """`addresses` are of all members in order of rank. They meet there; SPU's link has ports of its
    own, new ones for every session, from `link_ports` (the first and the last) if it is set.
    """

    rank: Rank
    addresses: tuple[str, ...]
    tls: TlsFiles | None = None
    listen_host: str | None = None
    """The interface to listen at, where it is not the host that peers connect to."""
    link_ports: tuple[int, int] | None = None

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

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "addresses": list(self.addresses),
            "tls": self.tls and [str(path) for path in self.tls.paths],
            "listen_host": self.listen_host,
            "link_ports": self.link_ports,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Seat:
        tls, ports = document["tls"], document["link_ports"]
        return cls(
            document["rank"],
            tuple(document["addresses"]),
            tls and TlsFiles(*map(Path, tls)),
            document["listen_host"],
            ports and tuple(ports),
        )

    def reserve_link_port(self) -> socket.socket:
        """Bind a free port for SPU's link. SPU can bind it too, until the socket is closed.

        Both allow the address to be reused and ours does not listen, so that no other process, and
        no outgoing connection of any, takes the port before SPU does.
        """
        family = socket.AF_INET6 if ":" in self.interface else socket.AF_INET
        for _ in range(_ATTEMPTS):
            port = random.randint(*self.link_ports) if self.link_ports else 0
            holder = socket.socket(family)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                holder.bind((self.interface, port))
                return holder
            except OSError as error:
                holder.close()
                reason = str(error)
        raise AddressTaken(f"{self.interface}, ports {self.link_ports or 'any'}", reason)
