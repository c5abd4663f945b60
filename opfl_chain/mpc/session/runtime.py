"""A member's side of a session: runs programs over a link, with messages to the peers."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opfl_chain.mpc.session import errors
from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.channels import Channels
from opfl_chain.mpc.session.executable import Executable, Input, MpcOptions, Visibility
from opfl_chain.mpc.session.libspu import from_spu, libspu, reason_of, to_spu
from opfl_chain.mpc.session.ranks import Rank, peers_of
from opfl_chain.mpc.session.session import P, Procedure, RunResult, SessionInput, T
from opfl_chain.mpc.session.shares import Share, Words, combine, decode, public_share
from opfl_chain.mpc.session.statistics import (
    RunLog,
    RunStatistics,
    parse_profile,
    peak_memory_bytes,
    reset_peak_memory,
)

_TIMEOUT = re.compile(r"Get data timeout, key=.*:(\d)->\d")


def shares_of_inputs(
    rank: Rank, executable: Executable, inputs: Mapping[str, SessionInput]
) -> dict[str, Share]:
    """Return all inputs as this member's shares."""
    declared = {each.name: each for each in executable.inputs}
    if different := set(declared) ^ set(inputs):
        name = min(different)
        reason = "is missing" if name in declared else "is not an input of it"
        raise errors.InputMismatch(executable.name, name, reason)
    shares = {}
    for name, each in declared.items():
        try:
            shares[name] = _share_of(rank, executable, each, inputs[name])
        except errors.ShareInvalid as error:
            raise errors.InputMismatch(executable.name, name, str(error)) from error
    return shares


def _share_of(rank: Rank, executable: Executable, declared: Input, value: SessionInput) -> Share:
    if isinstance(value, Share) != (declared.visibility is Visibility.SECRET):
        given = "a share" if isinstance(value, Share) else "an array"
        raise errors.ShareInvalid(f"it is {declared.visibility}, and {given} was given")
    if tuple(value.shape) != declared.shape or str(value.dtype) != declared.dtype:
        raise errors.ShareInvalid(
            f"it is {declared.dtype} of shape {declared.shape}, and {value.dtype} of shape"
            f" {tuple(value.shape)} was given"
        )
    if not isinstance(value, Share):
        return public_share(rank, value, executable.options.fraction_bits, declared.name)
    if value.rank != rank:
        raise errors.ShareInvalid(
            f"it is the share of member {value.rank}, and we are member {rank}"
        )
    if value.storage.is_public:
        raise errors.ShareInvalid("it is secret, and the share is of a public value")
    return value


class Runtime:
    """A `Session` and its messages to the peers. Used by one thread at a time."""

    def __init__(
        self,
        *,
        link: Any,
        channels: Channels,
        rank: Rank,
        addresses: Sequence[str],
        recv_seconds: float,
        log: RunLog,
    ) -> None:
        self.rank = rank
        self.sent_bytes = 0
        """Bytes sent by `send`; SPU's traffic is in the statistics of its runs."""
        self.sent_messages = 0
        self.spu_sent_bytes = 0
        self._link = link
        self._channels = channels
        self._addresses = addresses
        self._recv_seconds = recv_seconds
        self._log = log
        self._machines: dict[str, Any] = {}

    # --- messages

    def send(self, rank: Rank, data: bytes) -> None:
        """Send a message. Messages to the same member arrive in order."""
        try:
            self._channels.send(rank, data)
        except OSError as error:
            raise errors.PeerLost(rank, self._addresses[rank]) from error
        self.sent_bytes += len(data)
        self.sent_messages += 1

    def receive(self, rank: Rank) -> bytes:
        """Return the next message of a member."""
        address = self._addresses[rank]
        try:
            return self._channels.receive(rank)
        except TimeoutError as error:
            raise errors.PeerStalled(rank, address, self._recv_seconds) from error
        except OSError as error:
            raise errors.PeerLost(rank, address) from error
        except errors.FrameInvalid as error:
            raise errors.MessageInvalid(rank, address, str(error)) from error

    def exchange(self, data: bytes) -> dict[Rank, bytes]:
        """Send the same message to both peers and return theirs."""
        for peer in peers_of(self.rank):
            self.send(peer, data)
        return {peer: self.receive(peer) for peer in peers_of(self.rank)}

    def invalid(self, rank: Rank, reason: str) -> errors.MessageInvalid:
        """Return the error to raise for an invalid message."""
        return errors.MessageInvalid(rank, self._addresses[rank], reason)

    # --- programs

    def run(self, executable: Executable, inputs: Mapping[str, SessionInput]) -> RunResult:
        shares = shares_of_inputs(self.rank, executable, inputs)
        self.agree(Agreement.to_run(executable, inputs))
        machine = self._machine(executable.options)
        for name, share in shares.items():
            machine.SetVar(name, to_spu(share))
        del shares
        reset_peak_memory()
        self._log.begin()
        started = time.perf_counter()
        try:
            machine.Run(executable.to_spu())
        except RuntimeError as error:
            self._log.fail()
            raise self._failure(executable.name, error) from error
        seconds = time.perf_counter() - started
        outputs = {
            each.name: from_spu(self.rank, machine.GetVar(each.name)) for each in executable.outputs
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

    def call(self, procedure: Procedure[P, T], *args: P.args, **arguments: P.kwargs) -> T:
        result = procedure(self, *args, **arguments)
        self._channels.flush()
        return result

    def agree(self, ours: Agreement) -> None:
        """Raise unless all members have the same agreement."""
        for peer, data in self.exchange(ours.to_bytes()).items():
            ours.compare(peer, self._addresses[peer], data)

    # --- opening

    def open(self, share: Share, fraction_bits: int) -> Words:
        return self.open_all([share], fraction_bits)[0]

    def open_all(self, shares: Sequence[Share], fraction_bits: int) -> list[Words]:
        """Receive the missing component from one holder and compare its hash from the other."""
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
                raise errors.CopiesDiffer((self.rank + 2) % 3, (before, after))
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
        """Release the link. The session can no longer run programs."""
        self._machines.clear()
        self._link = None

    def _machine(self, options: MpcOptions) -> Any:
        """Return SPU's runtime for these options; cached, since creating one takes messages."""
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

    def _failure(
        self, program: str, error: RuntimeError
    ) -> errors.PeerStalled | errors.ProgramFailed:
        message = reason_of(error)
        if late := _TIMEOUT.search(message):
            rank = int(late[1])
            return errors.PeerStalled(rank, self._addresses[rank], self._recv_seconds)
        return errors.ProgramFailed(program, message)
