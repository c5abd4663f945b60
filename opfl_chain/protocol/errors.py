"""Errors of the protocol rules."""

from collections.abc import Iterator
from contextlib import contextmanager


class ProtocolError(ValueError):
    """A value that the protocol does not allow: the root error of this package."""


class WidthError(ProtocolError):
    """A value that does not have exactly the width of its type."""


class MerkleError(ProtocolError):
    """A tree without leaves, or a leaf that is not in the tree."""


class SamplingError(ProtocolError):
    """An audit rate or probability out of range."""


class PenaltyError(ProtocolError):
    """An impossible amount, or an impossible split of one."""


class EconomicsError(ProtocolError):
    """Parameters that are invalid, or under which no deposit deters."""


class EncodingError(ProtocolError):
    """A number, array or label that cannot be encoded as ring words."""


class ShareError(ProtocolError):
    """Secret shares that are malformed or not the expected ones."""


class ComponentMismatch(ShareError):
    """A component that does not match its leaf hash."""


class CommitmentMismatch(ShareError):
    """Leaf hashes that do not match the commitment."""


class SealingError(ProtocolError):
    """A key, a proof or a complaint that is malformed."""


class BundleError(ProtocolError):
    """A bundle that is malformed, or whose public parts do not fit."""


class DoesNotOpen(ProtocolError):
    """A component of a bundle that does not open to its leaf hashes: the member complains."""


class MessageError(ProtocolError):
    """A message among members that is malformed or not about the same facts."""


class RollError(ProtocolError):
    """A roll that is empty, out of order, or without the client that was asked for."""


class DeliveryMissing(ProtocolError):
    """A required part of a delivery that the client did not send."""


class AnswersInvalid(ProtocolError):
    """Published answers that cannot be read."""


class InputNotCommitted(ProtocolError):
    """A training input that is not in the client's data set at this round."""


class DocumentError(ProtocolError):
    """A policy or boundary that is malformed or not in canonical form."""


class ProfileError(ProtocolError):
    """Gradients that cannot be compared, with each other or with a boundary."""


class AggregateError(ProtocolError, ValueError):
    """A mean or a hash of weights was asked for of values that have none."""


class OutOfMemory(ProtocolError):
    """A statement, a proof or an answer that this machine has no memory for."""


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Turn a failed allocation into a typed error that says what it was for."""
    try:
        yield
    except MemoryError as error:
        reason = str(error) or "an allocation failed"
        raise OutOfMemory(f"this machine has no memory for {what}: {reason}") from error
