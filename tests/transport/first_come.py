"""The policy of version 1, for tests that show an attack succeed."""

from __future__ import annotations

from opfl_chain.transport.pool import G, Pool


class FirstCome(Pool[G]):
    """Sends newcomers away when all places are taken."""

    def enter(self, guest: G) -> G | None:
        own = [each for each in self._guests if each.sender == guest.sender]
        if len(self) >= self.places or len(own) >= self.places_per_sender:
            return guest
        return super().enter(guest)
