"""What the rules refuse."""


class ProtocolError(ValueError):
    """A value that the protocol does not allow. Every error of this package is one."""


class WidthError(ProtocolError):
    """A value that does not have exactly the width of its type."""


class MerkleError(ProtocolError):
    """A tree without leaves, or a leaf that is not in the tree."""


class SamplingError(ProtocolError):
    """An audit rate or probability out of range."""


class VerdictError(ProtocolError):
    """A verdict that is not well formed."""


class SlashError(ProtocolError):
    """An amount or a split of it that is not possible."""


class EconomicsError(ProtocolError):
    """Parameters under which no deposit deters, or that make no sense."""


class EncodingError(ProtocolError):
    """A number, array or label that has no ring words."""


class ShareError(ProtocolError):
    """Secret shares that are malformed, or not the ones that were expected."""


class ComponentMismatch(ShareError):
    """A component that is not the one its leaf hash was made of."""


class CommitmentMismatch(ShareError):
    """Leaf hashes that are not the ones the commitment was made of."""


class DeliveryMissing(ProtocolError):
    """Something that a client had to deliver and did not."""


class InputNotCommitted(ProtocolError):
    """A training input that is not in the client's data set, or not at this round's place."""


class DocumentError(ProtocolError):
    """A policy or boundary that is not well formed, or not in its one canonical form."""


class ProfileError(ProtocolError):
    """Gradients that cannot be compared with each other or with a boundary."""
