"""A client's bundle: its contribution to a round or its answer to an audit, one for all members.

Each of the three components is encrypted under a key of its own, which is sealed to the component's
two holders. Public are the leaf hashes that bind the components. Whoever has the bundle can relay
it; `unsealing` opens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opfl_chain.protocol import abi
from opfl_chain.protocol.bundle_form import (
    ENVELOPES,
    FIXED_SIZES,
    HEADER,
    KEY_BYTES,
    MAGIC,
    VERSION,
    AnswerPublic,
    BundleKind,
    Limits,
    gradient_leaves,
    three,
)
from opfl_chain.protocol.commitments import (
    COMPONENTS,
    Scheme,
    Subject,
    shares_commitment,
)
from opfl_chain.protocol.delivery import MOST_PROOF_NODES, Expected
from opfl_chain.protocol.errors import BundleError
from opfl_chain.protocol.hashing import TAG_BODY_KEY, TAG_BUNDLE, keccak256, sha256
from opfl_chain.protocol.identifiers import Address, RoundId
from opfl_chain.protocol.proof.package import Packages as ProofPackages
from opfl_chain.protocol.sealing import (
    KNOWLEDGE_BYTES,
    POINT_BYTES,
    SealingKey,
    derived_key,
    envelope_key,
    is_point,
    knows_secret,
    prove_knowledge,
)
from opfl_chain.protocol.shares import (
    HASH_BYTES,
    Committed,
    Component,
    SharePackage,
    holders_of,
)
from opfl_chain.protocol.widths import bytes32, unsigned_bytes


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
    """The key of each component, sealed to its two holders in the order of their seats."""
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
        if len(data) < HEADER.size:
            raise BundleError(f"a bundle has at least {HEADER.size} bytes, this has {len(data)}")
        magic, version, kind, public, *bodies = HEADER.unpack_from(data)
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
        sizes = (HASH_BYTES, public, *FIXED_SIZES, *bodies)
        ends = list(accumulate(sizes, initial=HEADER.size))
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
        return HEADER.pack(MAGIC, VERSION, self.kind, *sizes)

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
        encrypted(key, text) for key, text in zip(keys, parts.plaintexts, strict=True)
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
        subject, leaves = Subject.GRADIENT, gradient_leaves(bundle.public)
    else:
        subject = Subject.INPUT
        leaves = AnswerPublic.decode(bundle.public, expected).leaves
    if expected.scheme is Scheme.SHARES and (
        shares_commitment(subject, leaves) != bundle.commitment
    ):
        raise BundleError(
            f"leaf hashes do not match the {subject.name.lower()} commitment"
            f" 0x{bundle.commitment.hex()}"
        )


def input_path(bundle: Bundle, expected: Expected) -> tuple[bytes, ...]:
    """Return the path of an answer's input in the data set, as the answer states it."""
    return AnswerPublic.decode(bundle.public, expected).path


def _components(packages: Sequence[SharePackage]) -> list[Component]:
    parts = {part.index: part for package in packages for part in package.held}
    return [parts[index] for index in range(COMPONENTS)]


def _plaintexts(components: Sequence[Component]) -> tuple[bytes, bytes, bytes]:
    return three([part.salt + part.sent for part in components])


def _sealed(
    ephemeral: SealingKey, sealing_key: bytes, key: bytes, component: int, seat: int, context: bytes
) -> bytes:
    if not is_point(sealing_key):
        return bytes(KEY_BYTES)
    shared = ephemeral.shared_point(sealing_key)
    return xor(key, envelope_key(shared, ephemeral.public, component, seat, context))


def encrypted(key: bytes, text: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16)))
    return cipher.encryptor().update(text)


def xor(first: bytes, second: bytes) -> bytes:
    both = int.from_bytes(first, "big") ^ int.from_bytes(second, "big")
    return both.to_bytes(len(first), "big")


def _check_size(name: str, value: bytes, size: int) -> None:
    if len(value) != size:
        raise BundleError(f"{name} has {len(value)} bytes, it must have {size}")
