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
