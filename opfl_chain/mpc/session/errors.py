"""Errors of MPC, under one root.

A `SessionError` ends a session: its members drop the link and serve the next audit over a new one.
"""

from __future__ import annotations

from opfl_chain.mpc.session.ranks import Rank


class MpcError(Exception):
    """Root of all errors of `opfl_chain.mpc`."""


# --- programs


class OptionsInvalid(MpcError, ValueError):
    """An option that SPU does not have, or an invalid value of one."""


class CompilationFailed(MpcError):
    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"program {program!r} does not compile: {reason}")


class ExecutableInvalid(MpcError, ValueError):
    """Bytes that are not a stored executable."""


class InputMismatch(MpcError, ValueError):
    """An input that differs from the executable's declaration."""

    def __init__(self, executable: str, name: str, reason: str) -> None:
        super().__init__(f"input {name!r} of {executable!r}: {reason}")
        self.name = name


# --- shares


class ShareInvalid(MpcError, ValueError):
    """A share that is malformed, or of another kind, shape or size than it declares."""


# --- messages


class FrameInvalid(MpcError, ValueError):
    """Bytes that are not a valid message."""


# --- sessions


class SessionError(MpcError):
    """The session is over."""


class PeerError(SessionError):
    """A failure of the member with this rank and address."""

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
            "disconnected during the session. Run the audit again when it is back.",
        )


class PeerStalled(PeerError):
    """The member is connected but silent."""

    def __init__(self, rank: Rank, address: str, seconds: float) -> None:
        super().__init__(
            rank,
            address,
            f"has been silent for {seconds:.3g} s. It may be suspended or cut off. Run the audit "
            "again when it answers.",
        )
        self.seconds = seconds


class PeerFailed(PeerError):
    """The member aborted the session and gave a reason."""

    def __init__(self, rank: Rank, address: str, reason: str) -> None:
        super().__init__(rank, address, f"aborted the session: {reason}")
        self.reason = reason


class ProgramMismatch(PeerError):
    """The member is about to run a different program, or has different public inputs."""

    def __init__(self, rank: Rank, address: str, ours: str, theirs: str) -> None:
        super().__init__(
            rank,
            address,
            f"is about to run {theirs}, this member {ours}. All members must have the same policy, "
            "the same version of this package and the same public inputs.",
        )
        self.ours = ours
        self.theirs = theirs


class ExecutableMismatch(ProgramMismatch):
    """The member has different code under the same name."""


class PluginMismatch(ProgramMismatch):
    """The member has other sources of a plug-in that the policy uses, or does not have it."""

    def __init__(self, rank: Rank, address: str, plugin: str, ours: str, theirs: str) -> None:
        ours, theirs = ours[:12] or "none", theirs[:12] or "none"
        PeerError.__init__(
            self,
            rank,
            address,
            f"has plug-in {plugin} with digest {theirs}, this member has {ours}. Install the"
            " version whose digest the policy names.",
        )
        self.plugin = plugin
        self.ours = ours
        self.theirs = theirs


class MessageInvalid(PeerError):
    """The member sent a message that the protocol does not allow here."""

    def __init__(self, rank: Rank, address: str, reason: str) -> None:
        super().__init__(rank, address, f"sent an invalid message: {reason}")
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
        super().__init__(f"cannot create SPU's link at {address}: {reason}")
        self.address = address


class AddressTaken(SessionError):
    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen at {address}: {reason}. Does another process use it?")
        self.address = address


class DeadlineExceeded(SessionError):
    def __init__(self, seconds: float, phase: str) -> None:
        super().__init__(
            f"the session timed out after {seconds:.3g} s, while {phase}. Allow more seconds if "
            "all members were still working."
        )
        self.seconds = seconds
        self.phase = phase


class ProgramFailed(SessionError):
    """SPU or one of our procedures failed during a program."""

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f"{program} failed: {reason}")
        self.program = program
        self.reason = reason


class RuntimeDied(SessionError):
    """Our own SPU process ended."""

    def __init__(self, rank: Rank, ending: str, log: str) -> None:
        super().__init__(
            f"our own SPU process (member {rank}) {ending}. The end of its log:\n{log}"
        )
        self.rank = rank
        self.ending = ending


class SessionClosed(SessionError):
    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot use this session: {reason}. Open a new one.")
