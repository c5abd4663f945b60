"""A member that wants verdicts on proved steps to tell it secrets, and wants several of them.

It shifts its words so that their sum is accepted only if a secret word is as guessed, and withholds
them when the others have revealed theirs, so that the audit would be held again with another guess,
or with a correction of what a client that cheats has proved.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.audit_exchange import Answers, Reveal
from opfl_chain.protocol.delivery import Claim, Delivery
from opfl_chain.protocol.echo import Slot, readable
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.roles.member.hearings import Hearing
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.view.records import RoundView

_LOGGER = logging.getLogger("opfl.committee")


def guessing(answer: Answer, guess: int) -> Answer:
    """Shift an answer so that the sum of all is accepted only if its left word is the guess.

    Honest answers add up to (x, y, x y, 0), and x (y + 1) is x y plus the guess if x is the guess.
    """
    right, product = (answer.right + 1) % MODULUS, (answer.product + guess) % MODULUS
    return replace(answer, right=right, product=product)


def corrected(answer: Answer, total: Answer) -> Answer:
    """Shift an answer so that the sum of all, which is known to be `total`, is accepted."""
    product = answer.product + total.left * total.right - total.product
    rest = answer.rest - total.rest
    return replace(answer, product=product % MODULUS, rest=rest % MODULUS)


class GuessingAudits(ProvedAudits):
    """Guesses in every hearing. Its log has what peers revealed in each of them."""

    def _words(self, round_: RoundView, claim: Claim, delivery: Delivery) -> Answers:
        """Commit to a guess: that what we do not hold is zero, and then what was revealed.

        What was revealed also tells which sum is not accepted, and how to correct it.
        """
        right = super()._words(round_, claim, delivery)
        missing = self._revealed(round_, claim.client)
        total = sum([missing] if missing is not None else [], right.own + right.following)
        if missing is not None and not total.holds:
            return replace(right, own=corrected(right.own, total))
        return replace(right, own=guessing(right.own, total.left))

    def reveal(self, hearing: Hearing) -> Reveal:
        """Reveal nothing in the first hearing, so that there would be another one."""
        kept = super().reveal(hearing)
        if hearing.attempt:
            return kept
        _LOGGER.info("leak", extra={"round": hearing.round.number, "guesses": len(kept.answers)})
        return replace(kept, answers={})

    def _revealed(self, round_: RoundView, client: ClientIndex) -> Answer | None:
        """The word on the component that we do not hold, as both its holders revealed it."""
        parts, said = self._parts, {}
        for seat, _ in parts.messages.peers(round_):
            message = parts.messages.first(round_, Slot.REVEAL, seat)
            said[seat] = message.body if message is not None else None
        missing = (parts.messages.seat(round_) + 2) % 3
        for reveal in readable(said, lambda seat, body: Reveal.decode(body, seat)).values():
            if client in reveal.answers:
                return reveal.answers[client].by_component().get(missing)
        return None
