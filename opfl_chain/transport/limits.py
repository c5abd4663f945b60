"""What a server puts up with from those who connect to it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from opfl_chain.transport.errors import LimitInvalid


@dataclass(frozen=True)
class Limits:
    """For a server as a whole. How long a body may be is a matter of its route."""

    connections: int = 256
    connections_per_address: int = 128
    """Whoever has one address cannot take all connections."""
    requests_per_second: float = 50.0
    """From one address, in the long run."""
    burst: int = 200
    """So many requests at once from an address that was silent before."""
    header_bytes: int = 16 * 1024
    """Of the request line and all headers together."""
    receive_seconds: float = 30.0
    """From the connection to the last byte of the request, however steadily bytes come."""
    answer_seconds: float = 60.0
    """For all of the answer, however steadily the peer reads."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise LimitInvalid(f"{field.name} is {value}. Give a number above 0.")
