"""A client's bundle: its contribution to a round or its answer to an audit, one for all members.

Each of the three components is encrypted under a key of its own, which is sealed to the component's
two holders. Public are the leaf hashes that bind the components. Whoever has the bundle can relay
it, and what a member cannot open it shows by a complaint that everybody checks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opfl_chain.protocol import abi
from opfl_chain.protocol.commitments import (
    COMPONENTS,
    SEED_BYTES,
    SENT_AS_WORDS,
    Scheme,
    Subject,
    shares_commitment,
)
from opfl_chain.protocol.delivery import MOST_PROOF_NODES, Expected, InputDelivery
from opfl_chain.protocol.errors import BundleError, DoesNotOpen, ShareError
from opfl_chain.protocol.hashing import TAG_BODY_KEY, TAG_BUNDLE, keccak256, sha256
from opfl_chain.protocol.identifiers import Address, RoundId
from opfl_chain.protocol.proof.package import Packages as ProofPackages
from opfl_chain.protocol.proof.package import (
    ProofComponent,
    ProofLeaves,
    ProofPackage,
    verify_component,
)
from opfl_chain.protocol.ring import RING_WORD_BYTES
from opfl_chain.protocol.sealing import (
    KNOWLEDGE_BYTES,
    POINT_BYTES,
    Complaint,
    SealingKey,
    derived_key,
    envelope_key,
    file_complaint,
    is_point,
    knows_secret,
    prove_knowledge,
    verify_complaint,
)
from opfl_chain.protocol.shares import (
    HASH_BYTES,
    SALT_BYTES,
    Committed,
    Component,
    SharePackage,
    held_indices,
    holders_of,
    verify_components,
)
from opfl_chain.protocol.widths import bytes32, unsigned_bytes

MAGIC: Final = b"OPFB"
VERSION: Final = 2
KEY_BYTES: Final = 32
ENVELOPES: Final = 2 * COMPONENTS

_HEADER: Final = struct.Struct(">4sBBIQQQ")
"""Magic, version, kind, size of the public part, sizes of the three bodies."""
_FIXED: Final = (POINT_BYTES, KNOWLEDGE_BYTES, *[KEY_BYTES] * ENVELOPES)
"""The sizes of ephemeral key, proof of knowledge and envelopes, which follow the public part."""


class BundleKind(IntEnum):
    """The purpose of a bundle."""

    CONTRIBUTION = 1
    ANSWER = 2


def context(
    separator: bytes, round_id: RoundId, opening: bytes, client: Address, kind: BundleKind
) -> bytes:
    """Return the digest that names the one place where a bundle is valid.

    The proof of knowledge and all envelopes bind it.
    """
    return sha256(
        TAG_BUNDLE,
        bytes32("domain separator", separator),
        unsigned_bytes("round identifier", round_id, 96),
        bytes32("opening", opening),
        abi.address_bytes("client", client),
        unsigned_bytes("kind of bundle", kind, 8),
    )


@dataclass(frozen=True)
class Limits:
    """The sizes that a bundle may have, known before it arrives."""

    kind: BundleKind
    fewest_public: int
    most_public: int
    """Sizes of the public part: an answer has as many nodes as its data set is deep."""
    bodies: tuple[int, int, int]

    @classmethod
    def of(cls, kind: BundleKind, expected: Expected) -> Limits:
        """Return the sizes of a bundle for what a job expects. Its rank does not matter."""
        if kind is BundleKind.CONTRIBUTION:
            words = expected.package_words(expected.gradient_words)
            public = COMPONENTS * HASH_BYTES
            return cls(kind, public, public, _sizes(words))
        sizes = _sizes(expected.package_words(expected.input_words))
        public = 1 + HASH_BYTES * (COMPONENTS + _extra_leaves(expected))
        bodies = tuple(a + b for a, b in zip(sizes, _extra_sizes(expected), strict=True))
        first, second, third = bodies
        return cls(kind, public, public + HASH_BYTES * MOST_PROOF_NODES, (first, second, third))

    @property
    def largest(self) -> int:
        """The maximum size of a bundle in bytes; readers may stop there."""
        return _HEADER.size + HASH_BYTES + self.most_public + sum(_FIXED) + sum(self.bodies)


@dataclass(frozen=True)
class Parts:
    """The content of a bundle before it is sealed."""

    commitment: bytes
    public: bytes
    plaintexts: tuple[bytes, bytes, bytes] = field(repr=False)


@dataclass(frozen=True)
class Bundle:
    """A sealed bundle. Make one with `seal`."""

    kind: BundleKind
    commitment: bytes
    """The commitment to the gradient; of an answer that to the input."""
    public: bytes
    """Leaf hashes, and of an answer the path of its input in the data set."""
    ephemeral: bytes
    knowledge: bytes
    """The proof that the client knows the secret of its ephemeral key."""
    envelopes: tuple[bytes, ...]
    """For each component, its key as sealed to the two holders, in the order of their seats."""
    bodies: tuple[bytes, bytes, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        _check_size("commitment", self.commitment, HASH_BYTES)
        _check_size("ephemeral key", self.ephemeral, POINT_BYTES)
        _check_size("proof of knowledge", self.knowledge, KNOWLEDGE_BYTES)
        if len(self.envelopes) != ENVELOPES or len(self.bodies) != COMPONENTS:
            raise BundleError(f"a bundle has {ENVELOPES} envelopes and {COMPONENTS} bodies")
        for number, envelope in enumerate(self.envelopes):
            _check_size(f"envelope {number}", envelope, KEY_BYTES)

    @cached_property
    def rest_hash(self) -> bytes:
        """The hash of everything but the commitment, with each body replaced by its hash."""
        hashes = (sha256(body) for body in self.bodies)
        return keccak256(self._header, self._middle, *hashes)

    @property
    def content_hash(self) -> bytes:
        """The hash that the client signs, and that the roll has."""
        return content_hash(self.commitment, self.rest_hash)

    def encode(self) -> bytes:
        """Return the wire format."""
        return b"".join([self._header, self.commitment, self._middle, *self.bodies])

    @classmethod
    def decode(cls, data: bytes, limits: Limits) -> Bundle:
        """Read a bundle of sizes that are known before. What it says about itself is checked."""
        if len(data) < _HEADER.size:
            raise BundleError(f"a bundle has at least {_HEADER.size} bytes, this has {len(data)}")
        magic, version, kind, public, *bodies = _HEADER.unpack_from(data)
        if (magic, version) != (MAGIC, VERSION):
            raise BundleError(
                f"a bundle starts with {MAGIC!r} and version {VERSION}, not {magic!r} and {version}"
            )
        if kind != limits.kind:
            raise BundleError(f"the bundle is of kind {kind}, expected {limits.kind}")
        if not limits.fewest_public <= public <= limits.most_public:
            raise BundleError(
                f"the public part has {public:,} bytes, expected {limits.fewest_public:,} to"
                f" {limits.most_public:,}"
            )
        if tuple(bodies) != limits.bodies:
            raise BundleError(f"the bodies have {bodies} bytes, expected {list(limits.bodies)}")
        sizes = (HASH_BYTES, public, *_FIXED, *bodies)
        ends = list(accumulate(sizes, initial=_HEADER.size))
        if len(data) != ends[-1]:
            raise BundleError(f"the bundle has {len(data):,} bytes, its header says {ends[-1]:,}")
        commitment, text, ephemeral, knowledge, *rest = (
            bytes(data[start:end]) for start, end in pairwise(ends)
        )
        envelopes, (first, second, third) = rest[:ENVELOPES], rest[ENVELOPES:]
        return cls(
            BundleKind(kind),
            commitment,
            text,
            ephemeral,
            knowledge,
            tuple(envelopes),
            (first, second, third),
        )

    @property
    def _header(self) -> bytes:
        sizes = (len(self.public), *map(len, self.bodies))
        return _HEADER.pack(MAGIC, VERSION, self.kind, *sizes)

    @property
    def _middle(self) -> bytes:
        return b"".join([self.public, self.ephemeral, self.knowledge, *self.envelopes])


def content_hash(commitment: bytes, rest_hash: bytes) -> bytes:
    """Return the hash of a bundle from its commitment and the hash of the rest, as contracts do."""
    return keccak256(
        abi.abi_encode(abi.word("commitment", commitment), abi.word("hash of the rest", rest_hash))
    )


def contribution_parts(gradient: Committed) -> Parts:
    """Return the content of a contribution: the three components of a gradient."""
    return Parts(
        gradient.commitment,
        b"".join(gradient.packages[0].leaf_hashes),
        _plaintexts(_components(gradient.packages)),
    )


def answer_parts(
    training_input: Committed,
    path: Sequence[bytes],
    advice: Sequence[SharePackage] | None = None,
    proof: ProofPackages | None = None,
) -> Parts:
    """Return the content of an answer: the components of the input, and of advice or proof."""
    if advice is not None and proof is not None:
        raise BundleError("an answer has advice or a proof, not both")
    if len(path) > MOST_PROOF_NODES:
        raise BundleError(f"the path has {len(path)} nodes, at most {MOST_PROOF_NODES} are allowed")
    nodes = [bytes32(f"path[{i}]", node) for i, node in enumerate(path)]
    leaves = list(training_input.packages[0].leaf_hashes)
    sent = list(_plaintexts(_components(training_input.packages)))
    extra: Sequence[bytes] = [b""] * COMPONENTS
    if advice is not None:
        leaves += advice[0].leaf_hashes
        extra = _plaintexts(_components(advice))
    elif proof is not None:
        leaves += proof[0].leaves.hashes
        parts = {part.index: part.sent for package in proof for part in package.held}
        extra = [parts[index] for index in range(COMPONENTS)]
    first, second, third = (a + b for a, b in zip(sent, extra, strict=True))
    public = b"".join([bytes([len(nodes)]), *nodes, *leaves])
    return Parts(training_input.commitment, public, (first, second, third))


def seal(
    kind: BundleKind, context: bytes, parts: Parts, sealing_keys: Sequence[bytes], seed: bytes
) -> Bundle:
    """Seal the content of a bundle to the members, whose sealing keys come by seat.

    Keys are derived from the secret seed, the context and the content: the same content yields the
    same bytes after a restart, and no key encrypts two contents. A member that registered no point
    of the curve as its key gets an envelope of zeros: it harms itself, not the bundle.
    """
    bytes32("context", context)
    if len(sealing_keys) != COMPONENTS:
        raise BundleError(f"got {len(sealing_keys)} sealing keys, there are {COMPONENTS} seats")
    purpose = (context, bytes32("commitment", parts.commitment), sha256(parts.public))
    ephemeral = derived_key(seed, *purpose)
    keys = [sha256(TAG_BODY_KEY, seed, *purpose, bytes([k])) for k in range(COMPONENTS)]
    envelopes = [
        _sealed(ephemeral, sealing_keys[seat], keys[k], k, seat, context)
        for k in range(COMPONENTS)
        for seat in holders_of(k)
    ]
    first, second, third = (
        _encrypted(key, text) for key, text in zip(keys, parts.plaintexts, strict=True)
    )
    return Bundle(
        kind,
        parts.commitment,
        parts.public,
        ephemeral.public,
        prove_knowledge(ephemeral, context),
        tuple(envelopes),
        (first, second, third),
    )


def check_bundle(bundle: Bundle, context: bytes, expected: Expected) -> None:
    """Raise unless everything in a bundle fits that everybody sees.

    That is the proof of knowledge, and in the scheme ``shares`` that the leaf hashes make up the
    commitment. Whether the input of an answer is in the data set, `check_delivery` says.
    """
    if not is_point(bundle.ephemeral):
        raise BundleError("the ephemeral key of the bundle is not a point")
    if not knows_secret(bundle.ephemeral, bundle.knowledge, context):
        raise BundleError("the bundle does not prove that its client knows the ephemeral secret")
    if bundle.kind is BundleKind.CONTRIBUTION:
        subject, leaves = Subject.GRADIENT, _leaves(bundle.public)
    else:
        subject = Subject.INPUT
        leaves = _AnswerPublic.decode(bundle.public, expected).leaves
    if expected.scheme is Scheme.SHARES and (
        shares_commitment(subject, leaves) != bundle.commitment
    ):
        raise BundleError(
            f"leaf hashes do not match the {subject.name.lower()} commitment"
            f" 0x{bundle.commitment.hex()}"
        )


def open_contribution(
    bundle: Bundle, seat: int, key: SealingKey, context: bytes, expected: Expected
) -> SharePackage:
    """Return the components of a gradient that the member in a seat holds.

    Raises `DoesNotOpen` if one does not match its leaf hash.
    """
    texts = _opened(bundle, seat, key.shared_point(bundle.ephemeral), context)
    return _gradient(bundle, seat, texts, expected)


def open_answer(
    bundle: Bundle, seat: int, key: SealingKey, context: bytes, expected: Expected
) -> tuple[InputDelivery, SharePackage | None, ProofPackage | None]:
    """Return the components of input, advice and proof that the member in a seat holds.

    Raises `DoesNotOpen` if one does not match its leaf hashes.
    """
    texts = _opened(bundle, seat, key.shared_point(bundle.ephemeral), context)
    return _answer(bundle, seat, texts, expected)


def complain(bundle: Bundle, seat: int, key: SealingKey, context: bytes) -> Complaint:
    """Show to everybody what the member in a seat sees of a bundle."""
    return file_complaint(key, seat, bundle.ephemeral, context)


def complaint_stands(
    bundle: Bundle, sealing_key: bytes, complaint: Complaint, context: bytes, expected: Expected
) -> bool:
    """Return whether a complaint shows that a component does not open to its leaf hashes."""
    if not verify_complaint(complaint, sealing_key, bundle.ephemeral, context):
        return False
    texts = _opened(bundle, complaint.seat, complaint.shared_point, context)
    try:
        if bundle.kind is BundleKind.CONTRIBUTION:
            _gradient(bundle, complaint.seat, texts, expected)
        else:
            _answer(bundle, complaint.seat, texts, expected)
    except DoesNotOpen:
        return True
    return False


def body_key(bundle: Bundle, component: int, seat: int, key: SealingKey, context: bytes) -> bytes:
    """Return the key of one component's body, which a holder hands to a referee."""
    return _body_key(bundle, component, seat, key.shared_point(bundle.ephemeral), context)


def is_body_key(bundle: Bundle, component: int, key: bytes, expected: Expected) -> bool:
    """Return whether a key opens one component's body to its leaf hash, whoever gave it."""
    leaves, words = (
        (_leaves(bundle.public), expected.gradient_words)
        if bundle.kind is BundleKind.CONTRIBUTION
        else (_AnswerPublic.decode(bundle.public, expected).leaves, expected.input_words)
    )
    cut = _sizes(expected.package_words(words))[component]
    text = _encrypted(bytes32("key", key), bundle.bodies[component])[:cut]
    found = Component(component, text[:SALT_BYTES], text[SALT_BYTES:])
    return found.leaf_hash == leaves[component]


def contribution_with_keys(
    bundle: Bundle, seat: int, keys: tuple[bytes, bytes], expected: Expected
) -> SharePackage:
    """Open a contribution for a member that took a seat, with keys that others handed over."""
    return _gradient(bundle, seat, _decrypted(bundle, seat, keys), expected)


def answer_with_keys(
    bundle: Bundle, seat: int, keys: tuple[bytes, bytes], expected: Expected
) -> tuple[InputDelivery, SharePackage | None, ProofPackage | None]:
    """Open an answer for a member that took a seat, with keys that others handed over."""
    return _answer(bundle, seat, _decrypted(bundle, seat, keys), expected)


def open_gradient_component(
    bundle: Bundle, component: int, key: bytes, expected: Expected
) -> Component:
    """Return one component of a gradient, for a referee that was given the key of its body."""
    text = _encrypted(bytes32("key", key), bundle.bodies[component])
    return _component(component, text, _leaves(bundle.public)[component])


def open_answer_component(
    bundle: Bundle, component: int, key: bytes, expected: Expected
) -> tuple[Component, ProofComponent, ProofLeaves]:
    """Return one component of input and proof, for a referee that was given the key of its body."""
    if expected.proof is None:
        raise BundleError("answers of this job have no proof")
    public = _AnswerPublic.decode(bundle.public, expected)
    text = _encrypted(bytes32("key", key), bundle.bodies[component])
    cut = _sizes(expected.package_words(expected.input_words))[component]
    given = _component(component, text[:cut], public.leaves[component])
    part, leaves = ProofComponent(component, text[cut:]), ProofLeaves(public.extra)
    try:
        verify_component(part, leaves, expected.proof)
    except ShareError as error:
        raise DoesNotOpen(str(error)) from error
    return given, part, leaves


def input_path(bundle: Bundle, expected: Expected) -> tuple[bytes, ...]:
    """Return the path of an answer's input in the data set, as the answer states it."""
    return _AnswerPublic.decode(bundle.public, expected).path


Texts = tuple[bytes, bytes]
"""The opened bodies of a member's two components."""


def _opened(bundle: Bundle, seat: int, shared_point: bytes, context: bytes) -> Texts:
    texts = []
    for k in held_indices(seat):
        key = _body_key(bundle, k, seat, shared_point, context)
        texts.append(_encrypted(key, bundle.bodies[k]))  # counter mode is its own inverse
    first, second = texts
    return first, second


def _decrypted(bundle: Bundle, seat: int, keys: tuple[bytes, bytes]) -> Texts:
    first, second = (
        _encrypted(bytes32("key", key), bundle.bodies[k])
        for k, key in zip(held_indices(seat), keys, strict=True)
    )
    return first, second


def _body_key(
    bundle: Bundle, component: int, seat: int, shared_point: bytes, context: bytes
) -> bytes:
    envelope = bundle.envelopes[2 * component + holders_of(component).index(seat)]
    mask = envelope_key(shared_point, bundle.ephemeral, component, seat, context)
    return _xor(envelope, mask)


def _component(index: int, text: bytes, leaf: bytes) -> Component:
    found = Component(index, text[:SALT_BYTES], text[SALT_BYTES:])
    if found.leaf_hash != leaf:
        raise DoesNotOpen(f"component {index} does not open to its leaf hash 0x{leaf.hex()}")
    return found


def _gradient(bundle: Bundle, seat: int, texts: Texts, expected: Expected) -> SharePackage:
    count = expected.package_words(expected.gradient_words)
    return _share_package(expected, seat, count, _leaves(bundle.public), texts)


def _answer(
    bundle: Bundle, seat: int, texts: Texts, expected: Expected
) -> tuple[InputDelivery, SharePackage | None, ProofPackage | None]:
    public = _AnswerPublic.decode(bundle.public, expected)
    count = expected.package_words(expected.input_words)
    sizes = _sizes(count)
    cuts = [sizes[k] for k in held_indices(seat)]
    first, second = (text[:cut] for text, cut in zip(texts, cuts, strict=True))
    package = _share_package(expected, seat, count, public.leaves, (first, second))
    given = InputDelivery(package, bundle.commitment, public.path)
    rest = [text[cut:] for text, cut in zip(texts, cuts, strict=True)]
    if expected.proof is not None:
        held = [ProofComponent(k, sent) for k, sent in zip(held_indices(seat), rest, strict=True)]
        proof = ProofPackage(seat, ProofLeaves(public.extra), (held[0], held[1]))
        try:
            proof.verify(expected.proof)
        except ShareError as error:
            raise DoesNotOpen(str(error)) from error
        return given, None, proof
    if expected.advice_words:
        leaves = _three(public.extra)
        texts = rest[0], rest[1]
        return given, _share_package(expected, seat, expected.advice_words, leaves, texts), None
    return given, None, None


def _share_package(
    expected: Expected, seat: int, count: int, leaves: tuple[bytes, bytes, bytes], texts: Texts
) -> SharePackage:
    first, second = (
        Component(k, text[:SALT_BYTES], text[SALT_BYTES:])
        for k, text in zip(held_indices(seat), texts, strict=True)
    )
    try:
        package = SharePackage(expected.scheme, seat, count, leaves, (first, second))
        verify_components(package)
    except ShareError as error:
        raise DoesNotOpen(str(error)) from error
    return package


@dataclass(frozen=True)
class _AnswerPublic:
    """The public part of an answer: the path, and the leaf hashes of input and advice or proof."""

    path: tuple[bytes, ...]
    leaves: tuple[bytes, bytes, bytes]
    extra: tuple[bytes, ...]

    @classmethod
    def decode(cls, data: bytes, expected: Expected) -> _AnswerPublic:
        nodes = data[0] if data else 0
        extra = _extra_leaves(expected)
        size = 1 + HASH_BYTES * (nodes + COMPONENTS + extra)
        if nodes > MOST_PROOF_NODES or len(data) != size:
            raise BundleError(
                f"the public part of an answer has {len(data):,} bytes and a path of {nodes} nodes:"
                f" expected {size:,} bytes, and at most {MOST_PROOF_NODES} nodes"
            )
        hashes = [data[at : at + HASH_BYTES] for at in range(1, size, HASH_BYTES)]
        path, leaves = hashes[:nodes], hashes[nodes : nodes + COMPONENTS]
        return cls(tuple(path), _three(leaves), tuple(hashes[nodes + COMPONENTS :]))


def _leaves(public: bytes) -> tuple[bytes, bytes, bytes]:
    if len(public) != COMPONENTS * HASH_BYTES:
        raise BundleError(
            f"the public part of a contribution has {len(public):,} bytes, expected"
            f" {COMPONENTS} leaf hashes"
        )
    return _three([public[at : at + HASH_BYTES] for at in range(0, len(public), HASH_BYTES)])


def _three(hashes: Sequence[bytes]) -> tuple[bytes, bytes, bytes]:
    first, second, third = hashes
    return first, second, third


def _components(packages: Sequence[SharePackage]) -> list[Component]:
    parts = {part.index: part for package in packages for part in package.held}
    return [parts[index] for index in range(COMPONENTS)]


def _plaintexts(components: Sequence[Component]) -> tuple[bytes, bytes, bytes]:
    return _three([part.salt + part.sent for part in components])


def _sizes(words: int) -> tuple[int, int, int]:
    """Return the sizes of the three components of so many words, with their salts."""
    first, second, third = (
        SALT_BYTES + (RING_WORD_BYTES * words if k == SENT_AS_WORDS else SEED_BYTES)
        for k in range(COMPONENTS)
    )
    return first, second, third


def _extra_leaves(expected: Expected) -> int:
    if expected.proof is not None:
        return 2 + len(expected.proof.sizes)
    return COMPONENTS if expected.advice_words else 0


def _extra_sizes(expected: Expected) -> tuple[int, int, int]:
    """Return the sizes of the three components of advice or proof."""
    if expected.proof is not None:
        first, second, third = (expected.proof.sent_size(k) for k in range(COMPONENTS))
        return first, second, third
    return _sizes(expected.advice_words) if expected.advice_words else (0, 0, 0)


def _sealed(
    ephemeral: SealingKey, sealing_key: bytes, key: bytes, component: int, seat: int, context: bytes
) -> bytes:
    if not is_point(sealing_key):
        return bytes(KEY_BYTES)
    shared = ephemeral.shared_point(sealing_key)
    return _xor(key, envelope_key(shared, ephemeral.public, component, seat, context))


def _encrypted(key: bytes, text: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16)))
    return cipher.encryptor().update(text)


def _xor(first: bytes, second: bytes) -> bytes:
    both = int.from_bytes(first, "big") ^ int.from_bytes(second, "big")
    return both.to_bytes(len(first), "big")


def _check_size(name: str, value: bytes, size: int) -> None:
    if len(value) != size:
        raise BundleError(f"{name} has {len(value)} bytes, it must have {size}")
