"""Everything that can go wrong in MPC, under one root.

A `SessionError` ends a session: its members drop the link and serve the next audit over a new one.
"""

from __future__ import annotations

from opfl_chain.mpc.ranks import Rank


class MpcError(Exception):
    """The root of every error that `opfl_chain.mpc` raises on its own account."""


# --- programs


class OptionsInvalid(MpcError, ValueError):
    """An option that SPU does not have, or a value that it does not take."""


class CompilationFailed(MpcError):
    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"program {program!r} does not compile: {reason}")


class ExecutableInvalid(MpcError, ValueError):
    """Bytes that are not a stored executable."""


class InputMismatch(MpcError, ValueError):
    """An input that is not what the executable declares."""

    def __init__(self, executable: str, name: str, reason: str) -> None:
        super().__init__(f"input {name!r} of {executable!r}: {reason}")
        self.name = name


# --- shares


class ShareInvalid(MpcError, ValueError):
    """Not a share of the kind, shape or size that it claims to be."""


# --- messages


class FrameInvalid(MpcError, ValueError):
    """Bytes that are not a message of ours."""


# --- sessions


class SessionError(MpcError):
    """The session is over."""


class PeerError(SessionError):
    """Something is wrong with the member of this rank and address."""

    def __init__(self, rank: Rank, address: str, what: str) -> None:
        super().__init__(f"member {rank} at {address} {what}")
        self.rank = rank
        self.address = address


class PeerUnreachable(PeerError):
    """The member did not join the session."""

    def __init__(self, rank: Rank, address: str, seconds: float, reason: str) -> None:
        super().__init__(
            rank,
            address,
            f"did not join within {seconds:.3g} s ({reason}). Is it running, at that address, and "
            "at the same audit?",
        )
        self.seconds = seconds
        self.reason = reason


class PeerLost(PeerError):
    """The member's process ended, or the connection to it broke."""

    def __init__(self, rank: Rank, address: str) -> None:
        super().__init__(
            rank,
            address,
            "was lost in the middle of the session. Run the audit again when it is back.",
        )


class PeerStalled(PeerError):
    """The member is connected and says nothing."""

    def __init__(self, rank: Rank, address: str, seconds: float) -> None:
        super().__init__(
            rank,
            address,
            f"has been silent for {seconds:.3g} s. It may be suspended or cut off. Run the audit "
            "again when it answers.",
        )
        self.seconds = seconds


class PeerFailed(PeerError):
    """The member gave the session up, and says why."""

    def __init__(self, rank: Rank, address: str, reason: str) -> None:
        super().__init__(rank, address, f"gave the session up: {reason}")
        self.reason = reason


class ProgramMismatch(PeerError):
    """The member is about to run something else, or on other public inputs."""

    def __init__(self, rank: Rank, address: str, ours: str, theirs: str) -> None:
        super().__init__(
            rank,
            address,
            f"is about to run {theirs}, and we {ours}. All members must have the same policy, the "
            "same version of this package and the same public inputs.",
        )
        self.ours = ours
        self.theirs = theirs


class ExecutableMismatch(ProgramMismatch):
    """The member has other code under the same name."""


class MessageInvalid(PeerError):
    """The member sent something that the protocol does not allow here."""

    def __init__(self, rank: Rank, address: str, reason: str) -> None:
        super().__init__(rank, address, f"sent a message that does not fit: {reason}")
        self.reason = reason


class CopiesDiffer(SessionError):
    """The two holders of a component opened it differently: one of them is wrong."""

    def __init__(self, component: int, holders: tuple[Rank, Rank]) -> None:
        super().__init__(
            f"members {holders[0]} and {holders[1]} have different copies of component "
            f"{component}. One of them is faulty or cheats; nothing was opened."
        )
        self.component = component
        self.holders = holders


class LinkFailed(SessionError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"no link from {address}: {reason}")
        self.address = address


class AddressTaken(SessionError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen at {address}: {reason}. Does another process use it?")
        self.address = address


class DeadlineExceeded(SessionError):
    def __init__(self, seconds: float, phase: str) -> None:
        super().__init__(
            f"the session was not over after {seconds:.3g} s, while {phase}. Give it more seconds "
            "if the members were all at work."
        )
        self.seconds = seconds
        self.phase = phase


class ProgramFailed(SessionError):
    """SPU, or a procedure of ours, failed in the middle of a program."""

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"{program} failed: {reason}")
        self.program = program
        self.reason = reason


class RuntimeDied(SessionError):
    """Our own SPU process ended."""

    def __init__(self, rank: Rank, ending: str, log: str) -> None:
        super().__init__(
            f"the SPU process of member {rank}, our own, {ending}. The end of its log:\n{log}"
        )
        self.rank = rank
        self.ending = ending


class SessionClosed(SessionError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"the session is closed: {reason}. Open a new one.")
