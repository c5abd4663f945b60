"""A member that wants verdicts on proved steps to tell it secrets, and wants several of them.

It shifts its answers so that their sum is accepted only if a secret word is as guessed. When its
peers have revealed theirs it reveals nothing, begins the exchange anew, and tries another guess, or
corrects the sum of a client that cheats.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opfl_chain.mpc.session.ranks import MEMBERS, peers_of
from opfl_chain.numerics.field import MODULUS
from opfl_chain.protocol.delivery import Claim
from opfl_chain.protocol.exchange import Answers, ReportRow, decode_sheet
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.proof.answers import accepts
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import ANSWERS
from opfl_chain.protocol.shares import HASH_BYTES
from opfl_chain.roles.member.audit_messages import SignedMessage
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.view.view import RoundView

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


class _Withheld(Exception):
    """Nothing is revealed in this run, or not yet."""


class GuessingAudits(ProvedAudits):
    """Two runs on every round, with two guesses. Its log has what each of them showed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._first: dict[int, list[dict[int, Answers]]] = {}
        """The answers that peers revealed in the first run, by round."""
        self._logged: set[int] = set()
        """The rounds whose second run has shown all that it will."""

    def examine(
        self, round_: RoundView, claims: Sequence[Claim]
    ) -> tuple[list[ReportRow], dict[int, Answers]]:
        """Commit to a guess: that what we do not hold is zero, and then what was revealed.

        What was revealed also tells which sum is not accepted, and how to correct it.
        """
        rows, answers = super().examine(round_, claims)
        seen = self._first.get(round_.number, [])
        for place, right in answers.items():
            others = [sheet[place].own for sheet in seen if place in sheet]
            total = sum(others or [right.following], right.own)
            if others and not total.holds:
                false = replace(right, own=corrected(right.own, total))
            else:
                false = replace(right, own=guessing(right.own, total.left))
            answers[place], rows[place] = false, replace(rows[place], commitment=false.commitment)
        return rows, answers

    def judge(self, round_: RoundView) -> None:
        with contextlib.suppress(_Withheld):
            super().judge(round_)
        number = round_.number
        if number in self._first and number not in self._logged:
            count = len(self._first[number][0])
            if (sheets := self._revealed_by_peers(number, count)) is not None:
                self._log(round_, 2, sheets)
                self._logged.add(number)

    def reveal(
        self, round_: RoundView, heard: Sequence[bytes], places: Sequence[int]
    ) -> SignedMessage:
        """Reveal in the second run only; end the first when both peers have revealed."""
        number = round_.number
        if number in self._first:
            return super().reveal(round_, heard, places)
        if (sheets := self._revealed_by_peers(number, len(places))) is None:
            raise _Withheld
        self._log(round_, 1, sheets)
        self._first[number] = sheets
        self._store.forget_exchange(number)
        self._node.wake()
        raise _Withheld

    def _revealed_by_peers(self, number: int, count: int) -> list[dict[int, Answers]] | None:
        found = []
        for rank in peers_of(self.rank):
            if (kept := self._store.audit_message(number, rank, ANSWERS)) is None:
                return None
            found.append(decode_sheet(kept[0][HASH_BYTES * MEMBERS :], rank, count))
        return found

    def _log(self, round_: RoundView, run: int, sheets: Sequence[dict[int, Answers]]) -> None:
        """Log what peers revealed, and the verdict if nobody compared answers."""
        body, count = self._store.answer_sheet(round_.number)
        own, claims = decode_sheet(body, self.rank, count), list(self._claims.of(round_).values())
        for place in sheets[0]:
            said = [sheet[place] for sheet in sheets]
            shown = {
                "round": round_.number,
                "client": claims[place].client,
                "run": run,
                "revealed": [sha256(each.encode()).hex() for each in said],
                "accepted_uncompared": accepts([own[place].own, *(each.own for each in said)]),
            }
            _LOGGER.info("leak", extra=shown)
