"""All that one member can send its peers instead of what it should."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opfl_chain.adversaries.leak import corrected, guessing
from opfl_chain.bench.tampering.contributions import CLIENT, Proved
from opfl_chain.mpc.session.ranks import peers_of
from opfl_chain.numerics.field import ELEMENT_BYTES, MODULUS
from opfl_chain.protocol.audit_exchange import Answers, Report, ReportRow, Reveal, Row
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.sealing import SealingKey, derived_key, file_complaint
from opfl_chain.protocol.shares import HASH_BYTES

BIT_CLASSES: Final = (0, 1, 7, 63, 64, 100, 126, 127)
"""Bits of a word: low, around the limbs' border, high, and the one that is never set."""
_WORDS: Final = ("left", "right", "product", "rest")
_HEADER_BYTES: Final = 10
_ROW_HEAD_BYTES: Final = 5


@dataclass(frozen=True)
class Said:
    """The message of the tampering member to one of its peers; None if it is silent."""

    report: bytes | None
    answers: bytes | None
    """The second message, which follows the reports of all."""


@dataclass(frozen=True)
class Guess:
    """A guess at a secret word, which is tried in some way."""

    how: str
    is_right: bool


@dataclass(frozen=True)
class TamperedMessages:
    """The messages of one attack to each peer."""

    name: str
    said: Mapping[int, Said]
    aims_at_verdict: bool = False
    """True if it would reverse the verdict, were the two holders' answers not compared."""
    guess: Guess | None = None
    """The guess at a secret that the verdict would confirm or refute."""


class Tampering:
    """All attacks of one member on one contribution."""

    def __init__(self, proved: Proved, rank: int, seed: int) -> None:
        self._proved = proved
        self._rank = rank
        self._random = random.Random(seed)
        self._own = proved.answers[rank]
        self._report = proved.report(rank)

    def all(self) -> Iterator[TamperedMessages]:
        yield from self._bits_of_answers()
        yield from self._corrections()
        if self._proved.right:
            yield from self._guesses()
        yield from self._reports()
        yield from self._messages()

    def _bits_of_answers(self) -> Iterator[TamperedMessages]:
        """Flip a bit of each class in each word, committed to, or revealed only."""
        for side in ("own", "following"):
            for word in _WORDS:
                for bit in BIT_CLASSES:
                    place = ELEMENT_BYTES * _WORDS.index(word) + bit // 8
                    place += 0 if side == "own" else ELEMENT_BYTES * len(_WORDS)
                    name = f"bit {bit} of {word}, {side} component"
                    yield self._raw(f"{name}, committed", place, bit % 8, committed=True)
                    yield self._raw(f"{name}, revealed only", place, bit % 8, committed=False)

    def _raw(self, name: str, place: int, bit: int, *, committed: bool) -> TamperedMessages:
        both = bytearray(self._own.encode())
        both[place] ^= 1 << bit
        return self._revealing(name, bytes(both), committed=committed)

    def _corrections(self) -> Iterator[TamperedMessages]:
        """Errors that turn the verdict around, with the client's secrets if it colludes."""
        for name, change in self._targeted():
            for sides in (("own",), ("following",), ("own", "following")):
                own, following = self._own.own, self._own.following
                changed = replace(
                    self._own,
                    own=change(own) if "own" in sides else own,
                    following=change(following) if "following" in sides else following,
                )
                aims, how = sides == ("own",), " and ".join(sides)
                for peer in (None, *peers_of(self._rank)):
                    to = "" if peer is None else f", to member {peer} only"
                    yield self._revealing(
                        f"{name}, {how}{to}",
                        changed.encode(),
                        committed=True,
                        only=peer,
                        aims=aims and peer is None,
                    )

    def _targeted(self) -> Iterator[tuple[str, Callable[[Answer], Answer]]]:
        total = self._proved.total
        if self._proved.right:
            yield "error of one", lambda answer: _added(answer, rest=1)
            yield "error in the product", lambda answer: _added(answer, product=1)
            drawn = self._random.randrange(1, MODULUS)
            yield "random error", lambda answer: _added(answer, left=drawn, rest=drawn)
            return
        yield "correction", lambda answer: corrected(answer, total)
        shift = self._random.randrange(1, MODULUS)
        moved = ((total.left + shift) * total.right - total.product) % MODULUS
        yield (
            "correction, moved",
            lambda answer: _added(answer, left=shift, product=moved, rest=-total.rest),
        )

    def _guesses(self) -> Iterator[TamperedMessages]:
        """Guess a secret word of an honest client, rightly and wrongly: `leak`."""
        right = self._proved.total.left
        for is_right, guess in ((True, right), (False, (right + 1) % MODULUS)):
            for side in ("own", "following"):
                for peer in (None, *peers_of(self._rank)):
                    yield self.guessing(guess, side, peer, is_right=is_right)

    def guessing(
        self, guess: int, side: str = "own", only: int | None = None, *, is_right: bool
    ) -> TamperedMessages:
        """Have the sum accepted only if its left word is as guessed."""
        own, following = self._own.own, self._own.following
        if side == "own":
            own = guessing(own, guess)
        else:
            following = guessing(following, guess)
        both = replace(self._own, own=own, following=following).encode()
        how = f"{side}{'' if only is None else f', to member {only} only'}"
        name = f"{'right' if is_right else 'wrong'} guess, {how}"
        found = self._revealing(name, both, committed=True, only=only)
        return replace(found, guess=Guess(how, is_right))

    def _reports(self) -> Iterator[TamperedMessages]:
        """False findings, to both peers and to one of them."""
        rows: dict[str, Row | None] = {
            "complaint": file_complaint(
                _key(b"member"), self._rank, _key(b"client").public, self._noise(HASH_BYTES)
            ),
            "nothing found": None,
            "other commitment": ReportRow(self._noise(HASH_BYTES)),
            "a peer's commitment": ReportRow(
                self._proved.answers[peers_of(self._rank)[0]].commitment
            ),
        }
        for name, false in rows.items():
            body = self._reporting_row(false).encode()
            for peer in (None, *peers_of(self._rank)):
                to = "" if peer is None else f", to member {peer} only"
                yield self._reporting(f"{name}{to}", body, peer)

    def _messages(self) -> Iterator[TamperedMessages]:
        """Messages that are no messages, or those of somebody else."""
        peer, body = peers_of(self._rank)[0], self._report.encode()
        row = _HEADER_BYTES + HASH_BYTES
        in_row = row + _ROW_HEAD_BYTES
        at_report = (0, 4, 5, 9, _HEADER_BYTES, row, row + 4, in_row, len(body) - 1)
        for name, changed in self._changes(body, self._proved.report(peer).encode(), at_report):
            yield self._reporting(f"report: {name}", changed, None)
        sheet, theirs = self._sheet(self._own.encode()), self._proved.answers[peer]
        at = (0, 4, 5, 9, _HEADER_BYTES, _HEADER_BYTES + 4, len(sheet) - 1)
        other = Reveal(peer, {CLIENT: theirs}).encode()
        changes = [
            *self._changes(sheet, other, at),
            ("no words", Reveal(self._rank, {}).encode()),
        ]
        for name, changed in changes:
            said = Said(body, changed)
            yield TamperedMessages(f"answers: {name}", dict.fromkeys(peers_of(self._rank), said))

    def _changes(
        self, body: bytes, theirs: bytes, places: Sequence[int]
    ) -> Iterator[tuple[str, bytes | None]]:
        yield "silence", None
        yield "nothing", b""
        yield "cut", body[:-1]
        yield "surplus", body + b"\0"
        yield "noise", self._noise(len(body))
        yield "that of a peer", theirs
        for at in places:
            changed = bytearray(body)
            changed[at] ^= 1 << self._random.randrange(8)
            yield f"byte {at}", bytes(changed)

    def _revealing(
        self,
        name: str,
        both: bytes,
        *,
        committed: bool,
        only: int | None = None,
        aims: bool = False,
    ) -> TamperedMessages:
        """Reveal other answers, to both peers or to one of them."""
        honest = Said(self._report.encode(), self._sheet(self._own.encode()))
        commitment = self._own.commitment
        if committed:
            commitment = _commitment(self._rank, both)
        report = self._reporting_row(ReportRow(commitment)).encode()
        false = Said(report, self._sheet(both))
        said = {to: honest if only not in (None, to) else false for to in peers_of(self._rank)}
        return TamperedMessages(name, said, aims)

    def _reporting(self, name: str, body: bytes | None, only: int | None) -> TamperedMessages:
        """Send another report, to both peers or to one of them."""
        sheet = self._sheet(self._own.encode())
        said = {
            to: Said(body if only in (None, to) else self._report.encode(), sheet)
            for to in peers_of(self._rank)
        }
        return TamperedMessages(name, said)

    def _reporting_row(self, row: Row | None) -> Report:
        return replace(self._report, rows={} if row is None else {CLIENT: row})

    def _sheet(self, both: bytes) -> bytes:
        sheet = Reveal(self._rank, {CLIENT: self._own}).encode()
        return sheet[: -len(both)] + both

    def _noise(self, count: int) -> bytes:
        return self._random.randbytes(count)


def _key(name: bytes) -> SealingKey:
    return derived_key(sha256(b"a benchmark's key"), name)


def _commitment(rank: int, both: bytes) -> bytes:
    """Commit to any bytes: those of no canonical answer as well."""
    half = len(both) // 2
    try:
        own, following = Answer.decode(both[:half]), Answer.decode(both[half:])
    except (ProtocolError, ValueError):
        return sha256(both)
    return Answers(rank, own, following).commitment


def _added(
    answer: Answer, left: int = 0, right: int = 0, product: int = 0, rest: int = 0
) -> Answer:
    pairs = zip(answer.words, (left, right, product, rest), strict=True)
    return Answer(*((a + b) % MODULUS for a, b in pairs))
