"""In which rounds a client cheats: an attack may be honest now and then."""

from __future__ import annotations

from collections.abc import Collection

from opfl_chain.attacks.registry import attack_named
from opfl_chain.attacks.reuse import Reuse
from opfl_chain.nodes.misdelivery import MISDELIVERIES


def cheats_in(cheat: str | None, number: int, took_part: Collection[int]) -> bool:
    """Whether a client with this cheat departed from the protocol in a round that it was in.

    Who reuses gradients has to compute one first, and a fresh one from time to time.
    """
    if cheat is None or number not in took_part:
        return False
    if cheat in MISDELIVERIES:
        return True
    attack = attack_named(cheat)
    if isinstance(attack, Reuse):
        return not attack.is_fresh(number) and min(took_part) < number
    return True
