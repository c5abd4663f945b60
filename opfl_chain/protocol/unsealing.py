"""Opening of bundles: with the sealing key of a member, or with keys that others hand over.

Whoever cannot open a bundle shows it by a complaint that everybody checks.
"""

from __future__ import annotations

from opfl_chain.protocol.bundle import Bundle, encrypted, xor
from opfl_chain.protocol.bundle_form import (
    AnswerPublic,
    BundleKind,
    component_sizes,
    gradient_leaves,
    three,
)
from opfl_chain.protocol.delivery import Expected, InputDelivery
from opfl_chain.protocol.errors import BundleError, DoesNotOpen, ShareError
from opfl_chain.protocol.proof.package import (
    ProofComponent,
    ProofLeaves,
    ProofPackage,
    verify_component,
)
from opfl_chain.protocol.sealing import (
    Complaint,
    SealingKey,
    envelope_key,
    file_complaint,
    verify_complaint,
)
from opfl_chain.protocol.shares import (
    SALT_BYTES,
    Component,
    SharePackage,
    held_indices,
    holders_of,
    verify_components,
)
from opfl_chain.protocol.widths import bytes32

Texts = tuple[bytes, bytes]
"""The opened bodies of a member's two components."""


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
        (gradient_leaves(bundle.public), expected.gradient_words)
        if bundle.kind is BundleKind.CONTRIBUTION
        else (AnswerPublic.decode(bundle.public, expected).leaves, expected.input_words)
    )
    cut = component_sizes(expected.package_words(words))[component]
    text = encrypted(bytes32("key", key), bundle.bodies[component])[:cut]
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
    text = encrypted(bytes32("key", key), bundle.bodies[component])
    return _component(component, text, gradient_leaves(bundle.public)[component])


def open_answer_component(
    bundle: Bundle, component: int, key: bytes, expected: Expected
) -> tuple[Component, ProofComponent, ProofLeaves]:
    """Return one component of input and proof, for a referee that was given the key of its body."""
    if expected.proof is None:
        raise BundleError("answers of this job have no proof")
    public = AnswerPublic.decode(bundle.public, expected)
    text = encrypted(bytes32("key", key), bundle.bodies[component])
    cut = component_sizes(expected.package_words(expected.input_words))[component]
    given = _component(component, text[:cut], public.leaves[component])
    part, leaves = ProofComponent(component, text[cut:]), ProofLeaves(public.extra)
    try:
        verify_component(part, leaves, expected.proof)
    except ShareError as error:
        raise DoesNotOpen(str(error)) from error
    return given, part, leaves


def _opened(bundle: Bundle, seat: int, shared_point: bytes, context: bytes) -> Texts:
    texts = []
    for k in held_indices(seat):
        key = _body_key(bundle, k, seat, shared_point, context)
        texts.append(encrypted(key, bundle.bodies[k]))  # counter mode is its own inverse
    first, second = texts
    return first, second


def _decrypted(bundle: Bundle, seat: int, keys: tuple[bytes, bytes]) -> Texts:
    first, second = (
        encrypted(bytes32("key", key), bundle.bodies[k])
        for k, key in zip(held_indices(seat), keys, strict=True)
    )
    return first, second


def _body_key(
    bundle: Bundle, component: int, seat: int, shared_point: bytes, context: bytes
) -> bytes:
    envelope = bundle.envelopes[2 * component + holders_of(component).index(seat)]
    mask = envelope_key(shared_point, bundle.ephemeral, component, seat, context)
    return xor(envelope, mask)


def _component(index: int, text: bytes, leaf: bytes) -> Component:
    found = Component(index, text[:SALT_BYTES], text[SALT_BYTES:])
    if found.leaf_hash != leaf:
        raise DoesNotOpen(f"component {index} does not open to its leaf hash 0x{leaf.hex()}")
    return found


def _gradient(bundle: Bundle, seat: int, texts: Texts, expected: Expected) -> SharePackage:
    count = expected.package_words(expected.gradient_words)
    return _share_package(expected, seat, count, gradient_leaves(bundle.public), texts)


def _answer(
    bundle: Bundle, seat: int, texts: Texts, expected: Expected
) -> tuple[InputDelivery, SharePackage | None, ProofPackage | None]:
    public = AnswerPublic.decode(bundle.public, expected)
    count = expected.package_words(expected.input_words)
    sizes = component_sizes(count)
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
        leaves = three(public.extra)
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
