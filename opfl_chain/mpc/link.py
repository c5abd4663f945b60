"""SPU's link between processes."""

from __future__ import annotations

from typing import Any

from opfl_chain.mpc.errors import LinkFailed
from opfl_chain.mpc.native import libspu, reason_of
from opfl_chain.mpc.seat import Seat
from opfl_chain.transport.deadline import Deadline

_RETRY_MILLISECONDS = 20
"""Peers meet first and create the link at the same time, so that waiting long makes no sense."""
_RETRIES = 10_000 // _RETRY_MILLISECONDS


def create_link(seat: Seat, link_id: str, addresses: tuple[str, ...], deadline: Deadline) -> Any:
    """Connect to both peers, whose links must be created at about the same time.

    The link itself is never encrypted: off loopback, the addresses are those of a `Tunnel`.
    """
    milliseconds = max(1, int(deadline.remaining * 1000))
    description = libspu.link.Desc()
    description.id = link_id
    for rank, address in enumerate(addresses):
        description.add_party(f"member-{rank}", address)
    description.recv_timeout_ms = milliseconds
    description.http_timeout_ms = milliseconds
    description.connect_retry_times = max(1, milliseconds // _RETRY_MILLISECONDS)
    description.connect_retry_interval_ms = _RETRY_MILLISECONDS
    # By default a message that was refused is sent again after a second, and one was, always. If
    # it cannot be sent at all libspu ends the process, so let the watch be first to find out why.
    description.retry_opts.retry_interval_ms = _RETRY_MILLISECONDS
    description.retry_opts.retry_interval_incr_ms = 0
    description.retry_opts.max_retry = _RETRIES
    try:
        return libspu.link.create_brpc(description, seat.rank)
    except RuntimeError as error:
        raise LinkFailed(addresses[seat.rank], reason_of(error)) from error
