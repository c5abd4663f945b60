"""Parsing of `host:port` addresses and detection of loopback hosts."""

from __future__ import annotations

import ipaddress
import re

from opfl_chain.transport.errors import AddressInvalid

_PORT = re.compile("[0-9]{1,5}")
_PORTS = range(1, 1 << 16)


def split_address(address: str, *, any_port: bool = False) -> tuple[str, int]:
    """Return the host and port of `host:port` or `[host]:port`. `any_port` allows port 0."""
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise AddressInvalid(address, "has no port")
    if not _PORT.fullmatch(port) or (int(port) not in _PORTS and not (any_port and port == "0")):
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
        return False  # a DNS name, which may resolve to any host
