"""A proof as it is sent: the words of all stages in three components, and their leaf hashes.

Components 0 and 1 are expanded from seeds, component 2 is sent as words, as in `shares`. A seed has
one leaf hash, component 2 has one for each stage: random coins follow from the leaf hashes of all
stages before them. These are salted: whoever holds both seeds could otherwise guess the words of a
stage, which follow from an input and the weights, and see by the hash whether the guess is right.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from opfl_chain.numerics.field import ELEMENT_BYTES, Elements, FieldError
from opfl_chain.protocol.commitments import COMPONENTS, SEED_BYTES, SENT_AS_WORDS
from opfl_chain.protocol.errors import ComponentMismatch, ShareError
from opfl_chain.protocol.hashing import TAG_PROOF, sha256
from opfl_chain.protocol.proof.closing import STAGES, Statement
from opfl_chain.protocol.proof.folding import level_sizes
from opfl_chain.protocol.proof.transcript import Transcript, labelled
from opfl_chain.protocol.shares import HASH_BYTES, SALT_BYTES, held_indices, key_stream
from opfl_chain.protocol.widths import bytes32

MAGIC: Final = b"OPFP"
VERSION: Final = 1
_HEADER: Final = struct.Struct(">4sBBQ")
"""Magic, version, rank, number of words."""


@dataclass(frozen=True)
class ProofForm:
    """The numbers of words of a proof: those of the statement's stages, then of each level."""

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, statement: Statement) -> ProofForm:
        """Return the form of the proofs of a statement."""
        stages = (statement.count(stage) for stage in range(STAGES))
        return cls((*stages, *level_sizes(statement.products)))

    @property
    def words(self) -> int:
        """The number of all words."""
        return sum(self.sizes)

    def sent_size(self, index: int) -> int:
        """Return the size of a component in bytes: a seed, or a salt and all words."""
        return SALT_BYTES + ELEMENT_BYTES * self.words if index == SENT_AS_WORDS else SEED_BYTES

    def stages_of(self, words: Elements) -> list[Elements]:
        """Cut all words into stages."""
        ends = list(accumulate(self.sizes, initial=0))
        return [words[start:end] for start, end in pairwise(ends)]


def expand_stage(seed: bytes, stage: int, count: int) -> Elements:
    """Return the words of one stage of a component that is sent as a seed."""
    key = labelled(bytes32("seed", seed), f"stage {stage}")
    return Elements.uniform(key_stream(key, ELEMENT_BYTES * count))


def seed_hash(index: int, seed: bytes) -> bytes:
    """Return the leaf hash of a component that is sent as a seed."""
    return sha256(TAG_PROOF, b"seed", bytes([index]), bytes32("seed", seed))


def stage_hash(stage: int, salt: bytes, words: bytes) -> bytes:
    """Return the leaf hash of one stage of the component that is sent as words."""
    return sha256(TAG_PROOF, b"words", stage.to_bytes(4, "big"), bytes32("salt", salt), words)


@dataclass(frozen=True)
class ProofLeaves:
    """All leaf hashes of a proof: those of both seeds, then one for each stage."""

    hashes: tuple[bytes, ...]

    def transcripts(self, start: Transcript, tossed: Sequence[bytes] = ()) -> list[Transcript]:
        """Return the transcript after each stage; `tossed` are members' coins after each."""
        stages = len(self.hashes) - 2
        coins = list(tossed) or [b""] * stages
        if len(coins) != stages:
            raise ShareError(f"coins were tossed {len(coins)} times, the proof has {stages} stages")
        found, now = [], start
        for stage, (leaf, toss) in enumerate(zip(self.hashes[2:], coins, strict=True)):
            now = now.then(b"".join(self.hashes[:2]) + leaf if stage == 0 else leaf, toss)
            found.append(now)
        return found


@dataclass(frozen=True)
class ProofComponent:
    """One component as it is sent: a seed, or a salt and all words."""

    index: int
    sent: bytes = field(repr=False)

    def stages(self, form: ProofForm) -> list[Elements]:
        """Return the words of all stages."""
        if len(self.sent) != (expected := form.sent_size(self.index)):
            raise ShareError(
                f"component {self.index} of the proof has {len(self.sent):,} bytes, this statement"
                f" takes {expected:,}"
            )
        if self.index != SENT_AS_WORDS:
            return [expand_stage(self.sent, stage, count) for stage, count in enumerate(form.sizes)]
        try:
            return form.stages_of(Elements.decode(self.sent[SALT_BYTES:], "words of the proof"))
        except FieldError as error:
            raise ShareError(str(error)) from error

    def leaf_hashes(self, form: ProofForm) -> dict[int, bytes]:
        """Return the leaf hashes that bind this component, by their place in `ProofLeaves`."""
        if self.index != SENT_AS_WORDS:
            return {self.index: seed_hash(self.index, self.sent)}
        salt = self.sent[:SALT_BYTES]
        ends = [SALT_BYTES + ELEMENT_BYTES * end for end in accumulate(form.sizes, initial=0)]
        parts = enumerate(self.sent[start:end] for start, end in pairwise(ends))
        return {2 + stage: stage_hash(stage, salt, part) for stage, part in parts}


@dataclass(frozen=True)
class ProofPackage:
    """The part of a proof that one member receives."""

    rank: int
    leaves: ProofLeaves
    held: tuple[ProofComponent, ProofComponent]

    def encode(self) -> bytes:
        """Return the wire format."""
        sent = [part.sent for part in self.held if part.index == SENT_AS_WORDS]
        words = sum((len(each) - SALT_BYTES) // ELEMENT_BYTES for each in sent)
        header = _HEADER.pack(MAGIC, VERSION, self.rank, words)
        return b"".join([header, *self.leaves.hashes, *(part.sent for part in self.held)])

    @classmethod
    def decode(cls, data: bytes, form: ProofForm, rank: int) -> ProofPackage:
        """Read the package of member ``rank`` for a statement whose proofs have this form.

        Sizes are known before it arrives, and one that claims others is refused unread.
        """
        if len(data) < _HEADER.size:
            raise ShareError(f"a proof has at least {_HEADER.size} bytes, this one {len(data)}")
        magic, version, package_rank, words = _HEADER.unpack_from(data)
        if (magic, version) != (MAGIC, VERSION):
            raise ShareError(
                f"a proof starts with {MAGIC!r} and version {VERSION}, not {magic!r} and {version}"
            )
        indices = held_indices(rank)
        expected = form.words if SENT_AS_WORDS in indices else 0
        if (package_rank, words) != (rank, expected):
            raise ShareError(
                f"proof is for member {package_rank} with {words:,} words, expected: member {rank}"
                f" with {expected:,} words"
            )
        sizes = [HASH_BYTES] * (2 + len(form.sizes))
        sizes += [form.sent_size(index) for index in indices]
        ends = list(accumulate(sizes, initial=_HEADER.size))
        if len(data) != ends[-1]:
            raise ShareError(f"proof has {len(data):,} bytes, this statement takes {ends[-1]:,}")
        *hashes, first, second = (bytes(data[start:end]) for start, end in pairwise(ends))
        held = ProofComponent(indices[0], first), ProofComponent(indices[1], second)
        return cls(rank, ProofLeaves(tuple(hashes)), held)

    def verify(self, form: ProofForm) -> None:
        """Raise unless both components match their leaf hashes."""
        for part in self.held:
            verify_component(part, self.leaves, form)
            if part.index == SENT_AS_WORDS:
                part.stages(form)  # raises unless all words are canonical


def verify_component(part: ProofComponent, leaves: ProofLeaves, form: ProofForm) -> None:
    """Raise unless a component matches its leaf hashes."""
    for place, found in part.leaf_hashes(form).items():
        if found != leaves.hashes[place]:
            raise ComponentMismatch(
                f"component {part.index} of the proof does not match its leaf {place}: it hashes to"
                f" 0x{found.hex()}, the leaf is 0x{leaves.hashes[place].hex()}"
            )


Packages = tuple[ProofPackage, ProofPackage, ProofPackage]
"""The packages of all members, by rank."""


def encode_all(packages: Packages) -> bytes:
    """Encode what all members receive, as the client keeps it: every component once."""
    _, second, _ = packages
    return packages[0].held[0].sent + second.encode()


def decode_all(data: bytes, form: ProofForm) -> Packages:
    """Read what a client kept."""
    first = ProofComponent(0, data[:SEED_BYTES])
    kept = ProofPackage.decode(data[SEED_BYTES:], form, 1)
    parts = [first, *kept.held]
    return _packages(kept.leaves, parts)


def _packages(leaves: ProofLeaves, parts: Sequence[ProofComponent]) -> Packages:
    p0, p1, p2 = (
        ProofPackage(rank, leaves, (parts[first], parts[second]))
        for rank in range(COMPONENTS)
        for first, second in [held_indices(rank)]
    )
    return p0, p1, p2


Toss: TypeAlias = Callable[[bytes], bytes]
"""Returns the coins that members toss after a stage, of which they know the leaf hashes."""


def no_coins(said: bytes) -> bytes:
    """Toss nothing: all coins are hashed."""
    return b""


@dataclass
class Sharing:
    """Shares the words of a proof stage by stage. Seeds and salt are random, secret, used once."""

    seeds: tuple[bytes, bytes] = field(repr=False)
    salt: bytes = field(repr=False)
    transcript: Transcript
    toss: Toss = no_coins
    _sent: list[bytes] = field(default_factory=list)
    _hashes: list[bytes] = field(default_factory=list)

    def share(self, words: Elements) -> Transcript:
        """Share the words of the next stage, and return the transcript after it."""
        stage = len(self._sent)
        masked = words.flat
        for seed in self.seeds:
            masked = masked - expand_stage(seed, stage, words.size)
        self._sent.append(masked.encode())
        leaf = stage_hash(stage, self.salt, self._sent[-1])
        self._hashes.append(leaf)
        said = b"".join(self._seed_hashes) + leaf if stage == 0 else leaf
        self.transcript = self.transcript.then(said, self.toss(said))
        return self.transcript

    @cached_property
    def _seed_hashes(self) -> tuple[bytes, ...]:
        return tuple(seed_hash(index, seed) for index, seed in enumerate(self.seeds))

    def packages(self) -> Packages:
        """Return the package of each member, by rank."""
        leaves = ProofLeaves((*self._seed_hashes, *self._hashes))
        sent = (*self.seeds, b"".join([self.salt, *self._sent]))
        return _packages(leaves, [ProofComponent(j, sent[j]) for j in range(COMPONENTS)])
