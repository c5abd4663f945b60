"""Three sessions driven from one process, for tests, benches and demonstrations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from opfl_chain.mpc.encoding import split
from opfl_chain.mpc.errors import PeerError
from opfl_chain.mpc.executable import Executable, Visibility
from opfl_chain.mpc.ranks import MEMBERS
from opfl_chain.mpc.session import RunResult, Session, SessionInput
from opfl_chain.mpc.shares import Words

T = TypeVar("T")


class Committee:
    """All three members' sessions."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = tuple(sessions)

    def each(self, action: Callable[[Session], T]) -> list[T]:
        """Have all members do something at the same time, and return what they return.

        If it fails, the error of the member that failed for a reason of its own is raised, rather
        than that of a member that lost a peer to it.
        """
        return in_parallel([lambda s=session: action(s) for session in self.sessions])  # type: ignore[misc]

    def run(
        self, executable: Executable, inputs: Sequence[Mapping[str, SessionInput]]
    ) -> list[RunResult]:
        """Run an executable on the inputs of each member."""
        return self.each(lambda session: session.run(executable, inputs[session.rank]))

    def run_plain(self, executable: Executable, inputs: Mapping[str, Words]) -> dict[str, Words]:
        """Share the secret inputs, run, and open all outputs: what the program computes."""
        fraction_bits = executable.options.fraction_bits
        members: list[dict[str, SessionInput]] = [{} for _ in range(MEMBERS)]
        for declared in executable.inputs:
            value = inputs[declared.name]
            public = declared.visibility is Visibility.PUBLIC
            parts: Sequence[SessionInput] = (
                [value] * MEMBERS if public else split(value, fraction_bits)
            )
            for member, part in zip(members, parts, strict=True):
                member[declared.name] = part

        def run_and_open(session: Session) -> list[Words]:
            outputs = session.run(executable, members[session.rank]).outputs
            return session.open_all(list(outputs.values()), fraction_bits)

        opened = self.each(run_and_open)[0]
        return {each.name: array for each, array in zip(executable.outputs, opened, strict=True)}


def in_parallel(actions: Sequence[Callable[[], T]]) -> list[T]:
    """Run actions in threads until all have ended.

    Ctrl-C does not wait for them: whoever it interrupts ends the sessions that they wait for.
    """
    futures: list[Future[T]] = [Future() for _ in actions]
    threads = [
        threading.Thread(target=_settle, args=each, daemon=True)
        for each in zip(futures, actions, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return [future.result() for future in futures]


def _settle(future: Future[T], action: Callable[[], T]) -> None:
    try:
        future.set_result(action())
    except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
        future.set_exception(error)
