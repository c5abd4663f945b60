"""One member tampers with everything it sends in audits of proved steps.

Its two peers are honest. The client is honest, cheats, or forges its proof; then it colludes, and
the member knows all its secrets. Members are played by the functions that daemons use: what honest
ones send does not depend on what the tampering one sends.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from opfl_chain.adversaries.provers import PROVERS
from opfl_chain.bench.tamper_daemons import COUNTED as DAEMONS_COUNTED
from opfl_chain.lab.calibration.replayer import shared
from opfl_chain.lab.sample_step import ProvedSample
from opfl_chain.learning.model import Model
from opfl_chain.learning.proved_step import statement_of
from opfl_chain.mpc.session.ranks import MEMBERS, peers_of
from opfl_chain.numerics.field import ELEMENT_BYTES, MODULUS
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.exchange import (
    Answers,
    HeardOtherwise,
    Report,
    ReportRow,
    conclude,
    decode_revealed,
    encode_revealed,
    settle,
    standing,
)
from opfl_chain.protocol.hashing import sha256
from opfl_chain.protocol.proof.answers import Query, accepts
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.proof.package import ProofComponent, ProofPackage
from opfl_chain.protocol.proof.prover import Prover
from opfl_chain.protocol.shares import HASH_BYTES, SharedVector
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.render.text import markdown_table, terminal_table

Progress = Callable[[str], None]
Client = Literal["honest", "cheating", "forging"]
MOVE: Final = 1e-3
"""The part of its norm by which a cheat moves its gradient."""
BIT_CLASSES: Final = (0, 1, 7, 63, 64, 100, 126, 127)
"""Bits of a word: low, around the limbs' border, high, and the one that is never set."""
_WORDS: Final = ("left", "right", "product", "rest")
_HEADER_BYTES: Final = 10
_HEARD_BYTES: Final = MEMBERS * HASH_BYTES
_SUBJECT: Final = sha256(b"a benchmark's round")


CLIENTS: Final[Sequence[tuple[Client, str]]] = (
    ("honest", "plain proof"),
    ("cheating", "plain proof"),
    *(("forging", name) for name in PROVERS if name != "plain proof"),
)
"""The clients, and how they prove."""


@dataclass(frozen=True, eq=False)
class Proved:
    """A proved contribution, and what honest members say about it, by rank."""

    client: Client
    name: str
    query: Query
    packages: Sequence[ProofPackage]
    gradient: SharedVector
    training_input: SharedVector
    answers: tuple[Answers, ...]
    row: ReportRow

    @property
    def right(self) -> bool:
        """The right verdict."""
        return self.client == "honest"

    def report(self, rank: int) -> Report:
        row = replace(self.row, commitment=self.answers[rank].commitment)
        return Report(rank, _SUBJECT, (row,))

    def component(self, index: int) -> ProofComponent:
        held = (part for package in self.packages for part in package.held)
        return next(part for part in held if part.index == index)


@dataclass(frozen=True)
class Said:
    """What the tampering member sends one of its peers; None if it is silent."""

    report: bytes | None
    answers: Callable[[Sequence[bytes]], bytes | None]
    """The second message, which follows the three reports that the peer has heard."""


@dataclass(frozen=True)
class Attack:
    """A way of tampering: what each peer is sent."""

    name: str
    said: Mapping[int, Said]
    aims_at_verdict: bool = False
    """It would turn the verdict around if the two holders' answers were not compared."""


@dataclass(frozen=True)
class End:
    """The end of an audit at one honest member: a verdict, or those that are named."""

    accepted: bool | None
    named: tuple[int, ...] = ()


def proved(model: Model, client: Client, prover: str, seed: int) -> Proved:
    """Make a contribution, and all answers on it. Clients that are not honest move G."""
    sample = ProvedSample(model, seed)
    statement = statement_of(sample.policy, sample.proved_boundary.tolerance, sample.weights)
    words = sample.gradient if client == "honest" else _moved(sample.gradient, seed)
    gradient, training_input = shared(words), shared(sample.training_input)
    context, entropy = secrets.token_bytes(HASH_BYTES), secrets.token_bytes(HASH_BYTES)
    make: Callable[..., Prover] = PROVERS[prover]
    rings = gradient.components, training_input.components
    packages = make(statement, context, entropy, *rings).prove().packages
    leaves = packages[0].leaves
    query = Query.of(statement, context, leaves)
    return Proved(
        client,
        prover,
        query,
        packages,
        gradient,
        training_input,
        tuple(_answers(rank, query, packages[rank], gradient, training_input) for rank in range(3)),
        ReportRow(None, leaves.digest),
    )


def _moved(gradient: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    direction = np.random.default_rng(seed).standard_normal(gradient.size)
    norm = np.linalg.norm(gradient.astype(np.float64))
    direction *= MOVE * norm / np.linalg.norm(direction)
    moved: NDArray[np.int64] = gradient + direction.astype(np.int64)
    return moved


def _answers(
    rank: int,
    query: Query,
    package: ProofPackage,
    gradient: SharedVector,
    training_input: SharedVector,
) -> Answers:
    held = zip(package.held, gradient.held_by(rank), training_input.held_by(rank), strict=True)
    found = {part.index: query.answer(part, own, given) for part, own, given in held}
    return Answers.of(rank, query, found)


# --- attacks


class Tampering:
    """All attacks of one member on one contribution."""

    def __init__(self, proved: Proved, rank: int, seed: int) -> None:
        self._proved = proved
        self._rank = rank
        self._random = random.Random(seed)
        self._own = proved.answers[rank]
        self._report = proved.report(rank)

    def all(self) -> Iterator[Attack]:
        yield from self._bits_of_answers()
        yield from self._corrections()
        yield from self._reports()
        yield from self._messages()

    def _bits_of_answers(self) -> Iterator[Attack]:
        """Flip a bit of each class in each word, committed to, or revealed only."""
        for side in ("own", "following"):
            for word in _WORDS:
                for bit in BIT_CLASSES:
                    place = ELEMENT_BYTES * _WORDS.index(word) + bit // 8
                    place += 0 if side == "own" else ELEMENT_BYTES * len(_WORDS)
                    name = f"bit {bit} of {word}, {side} component"
                    yield self._raw(f"{name}, committed", place, bit % 8, committed=True)
                    yield self._raw(f"{name}, revealed only", place, bit % 8, committed=False)

    def _raw(self, name: str, place: int, bit: int, *, committed: bool) -> Attack:
        both = bytearray(self._own.encode())
        both[place] ^= 1 << bit
        return self._revealing(name, bytes(both), committed=committed)

    def _corrections(self) -> Iterator[Attack]:
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
        total = _total(self._proved)
        if self._proved.right:
            yield "error of one", lambda answer: _added(answer, rest=1)
            yield "error in the product", lambda answer: _added(answer, product=1)
            drawn = self._random.randrange(1, MODULUS)
            yield "random error", lambda answer: _added(answer, left=drawn, rest=drawn)
            return
        product = (total.left * total.right - total.product) % MODULUS
        rest = -total.rest % MODULUS
        yield "correction", lambda answer: _added(answer, product=product, rest=rest)
        shift = self._random.randrange(1, MODULUS)
        moved = ((total.left + shift) * total.right - total.product) % MODULUS
        yield (
            "correction, moved",
            lambda answer: _added(answer, left=shift, product=moved, rest=rest),
        )

    def _reports(self) -> Iterator[Attack]:
        """False findings, to both peers and to one of them."""
        (row,) = self._report.rows
        rows = {
            **{f"fault {fault.name}": ReportRow(fault) for fault in FaultReason},
            "other leaves": replace(row, leaves=self._noise(HASH_BYTES)),
            "other commitment": replace(row, commitment=self._noise(HASH_BYTES)),
            "a peer's commitment": replace(
                row, commitment=self._proved.answers[peers_of(self._rank)[0]].commitment
            ),
        }
        for name, false in rows.items():
            body = replace(self._report, rows=(false,)).encode()
            for peer in (None, *peers_of(self._rank)):
                to = "" if peer is None else f", to member {peer} only"
                yield self._reporting(f"{name}{to}", body, peer)

    def _messages(self) -> Iterator[Attack]:
        """Messages that are no messages, or those of somebody else."""
        body = self._report.encode()
        sheet = self._sheet(self._own.encode())
        peer = peers_of(self._rank)[0]
        bodies: dict[str, bytes | None] = {
            "silence": None,
            "nothing": b"",
            "cut": body[:-1],
            "surplus": body + b"\0",
            "noise": self._noise(len(body)),
            "that of a peer": self._proved.report(peer).encode(),
        }
        for at in (0, 4, 5, 9, _HEADER_BYTES, _HEADER_BYTES + HASH_BYTES):
            changed = bytearray(body)
            changed[at] ^= 1 << self._random.randrange(8)
            bodies[f"byte {at}"] = bytes(changed)
        for name, changed_body in bodies.items():
            yield self._reporting(f"report: {name}", changed_body, None)

        def theirs(reports: Sequence[bytes]) -> bytes:
            answers = {0: self._proved.answers[peer]}
            return encode_revealed(peer, reports, answers)

        changes: dict[str, Callable[[bytes], bytes | None]] = {
            "silence": lambda data: None,
            "nothing": lambda data: b"",
            "cut": lambda data: data[:-1],
            "surplus": lambda data: data + b"\0",
            "noise": lambda data: self._noise(len(data)),
        }
        heard = _HEARD_BYTES
        for at in (0, HASH_BYTES, 2 * HASH_BYTES, heard, heard + 4, heard + 5, heard + 9):
            changes[f"byte {at}"] = lambda data, at=at: _flipped(data, at)  # type: ignore[misc]
        for at in (heard + _HEADER_BYTES + 3, heard + _HEADER_BYTES + 4):
            changes[f"byte {at}"] = lambda data, at=at: _flipped(data, at)  # type: ignore[misc]
        for name, change in changes.items():
            said = {
                to: Said(body, lambda reports, change=change: change(sheet(reports)))  # type: ignore[misc]
                for to in peers_of(self._rank)
            }
            yield Attack(f"answers: {name}", said)
        said = {to: Said(body, theirs) for to in peers_of(self._rank)}
        yield Attack("answers: those of a peer", said)

    def _revealing(
        self,
        name: str,
        both: bytes,
        *,
        committed: bool,
        only: int | None = None,
        aims: bool = False,
    ) -> Attack:
        """Reveal other answers, to both peers or to one of them."""
        honest = Said(self._report.encode(), self._sheet(self._own.encode()))
        commitment = self._own.commitment
        if committed:
            commitment = _commitment(self._rank, self._own.transcript, both)
        (row,) = self._report.rows
        report = replace(self._report, rows=(replace(row, commitment=commitment),)).encode()
        false = Said(report, self._sheet(both))
        said = {to: honest if only not in (None, to) else false for to in peers_of(self._rank)}
        return Attack(name, said, aims)

    def _reporting(self, name: str, body: bytes | None, only: int | None) -> Attack:
        """Send another report, to both peers or to one of them."""
        sheet = self._sheet(self._own.encode())
        said = {
            to: Said(body if only in (None, to) else self._report.encode(), sheet)
            for to in peers_of(self._rank)
        }
        return Attack(name, said)

    def _sheet(self, both: bytes) -> Callable[[Sequence[bytes]], bytes]:
        right = self._own.encode()

        def revealed(reports: Sequence[bytes]) -> bytes:
            sheet = encode_revealed(self._rank, reports, {0: self._own})
            return sheet[: -len(right)] + both

        return revealed

    def _noise(self, count: int) -> bytes:
        return self._random.randbytes(count)


def _flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def _commitment(rank: int, transcript: bytes, both: bytes) -> bytes:
    """Commit to any bytes: those of no canonical answer as well."""
    half = len(both) // 2
    try:
        own, following = Answer.decode(both[:half]), Answer.decode(both[half:])
    except (ProtocolError, ValueError):
        return sha256(both)
    return Answers(rank, transcript, own, following).commitment


def _added(
    answer: Answer, left: int = 0, right: int = 0, product: int = 0, rest: int = 0
) -> Answer:
    pairs = zip(answer.words, (left, right, product, rest), strict=True)
    return Answer(*((a + b) % MODULUS for a, b in pairs))


def _total(proved: Proved) -> Answer:
    first, second, third = (each.own for each in proved.answers)
    return first + second + third


# --- an audit


@dataclass(frozen=True)
class Played:
    """An audit with a tampering member: how it ended at each honest one, and what these said."""

    ends: Mapping[int, End]
    opened: frozenset[tuple[int, bytes]]
    """The answers that honest members revealed, by their rank."""

    @property
    def named(self) -> set[int]:
        return {rank for end in self.ends.values() for rank in end.named}

    @property
    def is_aborted(self) -> bool:
        return any(end.accepted is None for end in self.ends.values())


def audit(proved: Proved, attacker: int, attack: Attack) -> Played:
    """Play an audit in which one member tampers."""
    honest = peers_of(attacker)
    reports = {rank: proved.report(rank).encode() for rank in honest}
    heard: dict[int, list[bytes] | None] = {}
    for rank in honest:
        report = attack.said[rank].report
        told = {**reports, attacker: report}
        complete = None if report is None else [told[each] or b"" for each in range(MEMBERS)]
        heard[rank] = complete
    revealed = {rank: _reveal(proved, rank, heard[rank]) for rank in honest}
    ends = {
        rank: _end(proved, attacker, rank, heard, revealed, attack.said[rank]) for rank in honest
    }
    sheets = ((rank, data[_HEARD_BYTES:]) for rank, data in revealed.items() if data)
    return Played(ends, frozenset(each for each in sheets if len(each[1]) > _HEADER_BYTES))


def _sound(reports: Sequence[bytes]) -> list[Report] | int:
    """Decode reports, or return the rank whose report is none."""
    found = []
    for rank, body in enumerate(reports):
        try:
            found.append(Report.decode(body, rank, _SUBJECT, 1))
        except ProtocolError:
            return rank
    return found


def _reveal(proved: Proved, rank: int, heard: list[bytes] | None) -> bytes | None:
    """Return what an honest member reveals: nothing until it has three reports."""
    reports = None if heard is None else _sound(heard)
    if heard is None or reports is None or isinstance(reports, int):
        return None
    is_sound = standing([report.rows[0] for report in reports]).is_sound
    return encode_revealed(rank, heard, {0: proved.answers[rank]} if is_sound else {})


def _end(
    proved: Proved,
    attacker: int,
    rank: int,
    heard: Mapping[int, list[bytes] | None],
    revealed: Mapping[int, bytes | None],
    said: Said,
) -> End:
    own = heard[rank]
    if own is None:
        return End(None, (attacker,))  # the one that is silent
    reports = _sound(own)
    if isinstance(reports, int):
        return End(None, (reports,))
    rows = [report.rows[0] for report in reports]
    if not (found := standing(rows)).is_sound:
        if found.charged is not None:
            return End(False)
        return End(None, _false_findings(proved, rows))
    sheets = []
    for each in range(MEMBERS):
        data = said.answers(own) if each == attacker else revealed[each]
        if data is None:
            # A peer that reveals nothing shows the signed report that it could not read.
            return End(None, (attacker,))
        try:
            sheets.append(decode_revealed(data, each, own, [0])[0])
        except HeardOtherwise as error:
            return End(None, _settle_heard(error, heard))
        except (ProtocolError, ValueError):
            return End(None, (each,))
    end = conclude([row.commitment for row in rows], sheets)
    if end.component is None:
        return End(end.accepted, end.suspects)
    given = {each: sheets[each].by_component()[end.component] for each in end.suspects}
    return End(None, _settle(proved, end.component, given))


def _settle(proved: Proved, index: int, given: Mapping[int, Answer]) -> tuple[int, ...]:
    """A third party recomputes one component."""
    part = proved.component(index)
    words = proved.gradient.components[index], proved.training_input.components[index]
    return settle(proved.query, part, *words, given)


def _false_findings(proved: Proved, rows: Sequence[ReportRow]) -> tuple[int, ...]:
    """A third party repeats the check of the delivery that a member complains about."""
    false = []
    for rank, row in enumerate(rows):
        package, form = proved.packages[rank], proved.query.form
        package.verify(form)
        if (row.fault, row.leaves) != (None, package.leaves.digest):
            false.append(rank)
    return tuple(false)


def _settle_heard(
    error: HeardOtherwise, heard: Mapping[int, list[bytes] | None]
) -> tuple[int, ...]:
    """A third party has both show the signed report: an honest member shows what it was sent."""
    about = error.suspects[0]
    signed = {reports[about] for reports in heard.values() if reports is not None}
    return (about,) if len(signed) > 1 else error.suspects[-1:]


def uncompared(proved: Proved, attacker: int, attack: Attack) -> bool | None:
    """Return the verdict if each component were answered by one holder only, and not compared."""
    rank = peers_of(attacker)[0]
    said = attack.said[rank]
    heard = [proved.report(each).encode() for each in range(MEMBERS)]
    data = said.answers(heard)
    try:
        own = decode_revealed(data or b"", attacker, heard, [0])[0].own
    except (ProtocolError, ValueError):
        return None
    return accepts([own if each == attacker else proved.answers[each].own for each in range(3)])


# --- the benchmark

COUNTED: Final = (
    "runs",
    "wrong_verdicts",
    "aborts",
    "named",
    "misnamed",
    "unnamed",
    "uncompared_attacks",
    "uncompared_wrong_verdicts",
)


def bench_tamper(model: Model, repeats: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Play all attacks by each member on each kind of client, `repeats` times."""
    rows: list[dict[str, Any]] = []
    for client, prover in CLIENTS:
        total: Counter[str] = Counter()
        opened = 0
        for repeat in range(repeats):
            progress(f"{client} client, {prover} ({repeat + 1} of {repeats})")
            contribution = proved(model, client, prover, seed + repeat)
            for attacker in range(MEMBERS):
                found, bits = _attacked(contribution, attacker, seed + repeat)
                total += found
                opened = max(opened, bits)
        rows.append({"client": client, "proof": prover, **_shown(total, opened)})
    together: Counter[str] = Counter()
    for row in rows:
        together += Counter({name: row[name] for name in COUNTED})
    opened = max(row["opened_bits_per_contribution"] for row in rows)
    return {"model": model.name, "seed": seed, **_shown(together, opened), "clients": rows}


def _shown(total: Counter[str], opened: int) -> dict[str, int]:
    return {**{name: total[name] for name in COUNTED}, "opened_bits_per_contribution": opened}


def _attacked(contribution: Proved, attacker: int, seed: int) -> tuple[Counter[str], int]:
    """Play all attacks of one member, and count how they end.

    Whatever it sends, honest members reveal one answer each: the opened bit is the verdict.
    """
    total: Counter[str] = Counter()
    opened: set[tuple[int, bytes]] = set()
    for attack in Tampering(contribution, attacker, seed).all():
        played = audit(contribution, attacker, attack)
        opened |= played.opened
        total["runs"] += 1
        verdicts = {end.accepted for end in played.ends.values()}
        total["wrong_verdicts"] += (not contribution.right) in verdicts
        if played.is_aborted:
            total["aborts"] += 1
            named = played.named
            total["named"] += named == {attacker}
            total["misnamed"] += bool(named - {attacker})
            total["unnamed"] += not named
        if attack.aims_at_verdict:
            verdict = uncompared(contribution, attacker, attack)
            total["uncompared_attacks"] += 1
            total["uncompared_wrong_verdicts"] += verdict is not contribution.right
    ranks = Counter(rank for rank, _ in opened)
    return total, max(ranks.values())


_COLUMNS: Final = (
    "client",
    "proof",
    ">runs",
    ">wrong verdicts",
    ">aborts",
    ">liar named",
    ">misnamed",
    ">unnamed",
    ">wrong verdicts, uncompared",
)


def _rows(report: dict[str, Any]) -> list[list[str]]:
    rows = [*report["clients"], {**report, "client": "all", "proof": ""}]
    return [
        [
            row["client"],
            row["proof"],
            *(f"{row[name]:,}" for name in COUNTED[:6]),
            f"{row['uncompared_wrong_verdicts']} of {row['uncompared_attacks']}",
        ]
        for row in rows
    ]


def tamper_table(report: dict[str, Any]) -> Table:
    """Format the report for a terminal."""
    opened = report["opened_bits_per_contribution"]
    caption = f"opened bits of a contribution: {opened}"
    return terminal_table(_COLUMNS, _rows(report), title=report["model"], caption=caption)


def tamper_markdown(report: dict[str, Any]) -> str:
    """Format the report for a page."""
    parts = [markdown_table(list(_COLUMNS), _rows(report))]
    if "daemons" in report:
        columns = ["member", ">audits", ">wrong verdicts", ">aborts", ">liar named"]
        columns += [">pair named", ">misnamed", ">unnamed"]
        rows = [
            [each["cheat"], *(f"{each[name]:,}" for name in DAEMONS_COUNTED)]
            if "runs" in each
            else [each["cheat"], "stuck", *[""] * 6]
            for each in report["daemons"]
        ]
        parts.append(markdown_table(columns, rows))
    return "\n\n".join(parts)
