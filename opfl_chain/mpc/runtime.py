"""One member's side of a session over an established link."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opfl_chain.mpc.aby3 import from_native, to_native
from opfl_chain.mpc.agreement import Agreement
from opfl_chain.mpc.encoding import combine, decode
from opfl_chain.mpc.errors import (
    CopiesDiffer,
    FrameInvalid,
    MessageInvalid,
    PeerLost,
    PeerStalled,
    ProgramFailed,
)
from opfl_chain.mpc.executable import Executable
from opfl_chain.mpc.native import libspu, reason_of
from opfl_chain.mpc.options import MpcOptions
from opfl_chain.mpc.ranks import Rank, peers_of
from opfl_chain.mpc.run_inputs import shares_of_inputs
from opfl_chain.mpc.run_log import RunLog
from opfl_chain.mpc.session import Procedure, RunResult, SessionInput
from opfl_chain.mpc.shares import Share, Words
from opfl_chain.mpc.statistics import (
    RunStatistics,
    parse_profile,
    peak_memory_bytes,
    reset_peak_memory,
)
from opfl_chain.mpc.wires import Wires

_TIMEOUT = re.compile(r"Get data timeout, key=.*:(\d)->\d")


class Runtime:
    """A `Session`, and the messages that it is made of. Used by one thread at a time."""

    def __init__(
        self,
        *,
        link: Any,
        wires: Wires,
        rank: Rank,
        addresses: Sequence[str],
        recv_seconds: float,
        log: RunLog,
    ) -> None:
        self.rank = rank
        self.sent_bytes = 0
        """By `send`; what SPU sends is in the statistics of its runs."""
        self.sent_messages = 0
        self.spu_sent_bytes = 0
        self._link = link
        self._wires = wires
        self._addresses = addresses
        self._recv_seconds = recv_seconds
        self._log = log
        self._machines: dict[str, Any] = {}

    # --- messages

    def send(self, rank: Rank, data: bytes) -> None:
        """Send a message. It arrives after those that were sent to the same member before."""
        try:
            self._wires.send(rank, data)
        except OSError as error:
            raise PeerLost(rank, self._addresses[rank]) from error
        self.sent_bytes += len(data)
        self.sent_messages += 1

    def receive(self, rank: Rank) -> bytes:
        """The next message of a member."""
        address = self._addresses[rank]
        try:
            return self._wires.receive(rank)
        except TimeoutError as error:
            raise PeerStalled(rank, address, self._recv_seconds) from error
        except OSError as error:
            raise PeerLost(rank, address) from error
        except FrameInvalid as error:
            raise MessageInvalid(rank, address, str(error)) from error

    def exchange(self, data: bytes) -> dict[Rank, bytes]:
        """Send the same to both peers and return what they sent."""
        for peer in peers_of(self.rank):
            self.send(peer, data)
        return {peer: self.receive(peer) for peer in peers_of(self.rank)}

    def invalid(self, rank: Rank, reason: str) -> MessageInvalid:
        """The error to raise for a message that is not what it should be."""
        return MessageInvalid(rank, self._addresses[rank], reason)

    # --- programs

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        shares = shares_of_inputs(self.rank, executable, inputs)
        self.agree(Agreement.to_run(executable, inputs))
        machine = self._machine(executable.options)
        for name, share in shares.items():
            machine.SetVar(name, to_native(share))
        del shares
        reset_peak_memory()
        self._log.begin()
        started = time.perf_counter()
        try:
            machine.Run(executable.native())
        except RuntimeError as error:
            self._log.fail()
            raise self._failure(executable.name, error) from error
        seconds = time.perf_counter() - started
        outputs = {
            each.name: from_native(self.rank, machine.GetVar(each.name))
            for each in executable.outputs
        }
        names = [each.name for each in executable.inputs]
        for name in {*names, *outputs}:
            machine.DelVar(name)
        sent_bytes, messages, operations = parse_profile(self._log.end())
        self.spu_sent_bytes += sent_bytes
        statistics = RunStatistics(
            executable.name, seconds, sent_bytes, messages, peak_memory_bytes(), operations
        )
        return RunResult(outputs, statistics)

    def call(self, procedure: Procedure, **arguments: Any) -> Any:
        result = procedure(self, **arguments)
        self._wires.flush()
        return result

    def agree(self, ours: Agreement) -> None:
        """Raise unless all members are about to do the same."""
        for peer, data in self.exchange(ours.to_bytes()).items():
            ours.compare(peer, self._addresses[peer], data)

    # --- opening

    def open(self, share: Share, fraction_bits: int) -> Words:
        return self.open_all([share], fraction_bits)[0]

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        """Each member gets the component it lacks from one holder and its hash from the other."""
        after, before = peers_of(self.rank)
        secrets = [share for share in shares if not share.storage.is_public]
        first = b"".join(share.components[0].tobytes() for share in secrets)
        second = b"".join(share.components[1].tobytes() for share in secrets)
        if secrets:
            self.send(before, second)
            self.send(after, hashlib.sha256(first).digest())
            received, copy = self.receive(after), self.receive(before)
            if len(received) != len(second):
                raise self.invalid(after, f"{len(received)} bytes instead of {len(second)}")
            if hashlib.sha256(received).digest() != copy:
                raise CopiesDiffer((self.rank + 2) % 3, (before, after))
        else:
            received = b""
        opened, start = [], 0
        for share in shares:
            words = share.words
            if not share.storage.is_public:
                size = share.words.nbytes // 2
                missing = np.frombuffer(received[start : start + size], share.storage.word)
                words = combine(share, missing.reshape(share.shape))
                start += size
            opened.append(decode(words, share.dtype, fraction_bits))
        return opened

    # --- inner

    def drop_link(self) -> None:
        """Free what belongs to the link. The session can no longer run programs."""
        self._machines.clear()
        self._link = None

    def _machine(self, options: MpcOptions) -> Any:
        """SPU's runtime for these options. Making one takes messages, so it is kept."""
        machine = self._machines.get(options.digest)
        if machine is None:
            config = options.runtime_config()
            config.enable_pphlo_profile = True
            try:
                machine = libspu.RuntimeWrapper(self._link, config)
            except RuntimeError as error:
                raise self._failure("setting up SPU", error) from error
            self._machines[options.digest] = machine
        return machine

    def _failure(self, program: str, error: RuntimeError) -> PeerStalled | ProgramFailed:
        message = reason_of(error)
        if late := _TIMEOUT.search(message):
            rank = int(late[1])
            return PeerStalled(rank, self._addresses[rank], self._recv_seconds)
        return ProgramFailed(program, message)
