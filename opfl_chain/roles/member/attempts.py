"""Later hearings of a round: when each begins, and who has the seats in it.

A hearing after the verdict is held by those who have the seats when it begins, so that audits of a
round are finished whoever has left the committee since.
"""

from __future__ import annotations

from dataclasses import replace

from opfl_chain.protocol.echo import SLOTS_PER_ATTEMPT
from opfl_chain.roles.node import Node
from opfl_chain.roles.view.records import RoundView


def attempt_at(node: Node, round_: RoundView, block: int) -> int:
    """The hearing of a round that is due at a block; 0 until the time for its verdict is over."""
    return max(0, (block - attempt_start(node, round_, 1)) // _length(node) + 1)


def attempt_start(node: Node, round_: RoundView, attempt: int) -> int:
    """The block at which a later hearing of a round begins."""
    return round_.schedule.attest + 1 + (attempt - 1) * _length(node)


def attempt_end(node: Node, round_: RoundView, attempt: int) -> int:
    """The block at which a later hearing of a round ends."""
    return attempt_start(node, round_, attempt + 1)


def as_heard(node: Node, round_: RoundView, attempt: int) -> RoundView:
    """The round with the seats of one of its hearings."""
    if attempt == 0:
        return round_
    return replace(round_, epoch=node.view.epoch_at(attempt_start(node, round_, attempt)))


def as_said(node: Node, round_: RoundView, slot: int) -> RoundView:
    """The round with the seats of the hearing that a slot belongs to."""
    return as_heard(node, round_, slot // SLOTS_PER_ATTEMPT)


def _length(node: Node) -> int:
    return node.job.terms.phases.attest
