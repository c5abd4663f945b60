"""Messages between members over sockets, and from a member's SPU process to the member."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from fuzz_target import RecordedStream, Target, joined, parts_of

from opfl_chain.circuits.boolean import BooleanCircuit
from opfl_chain.mpc.session.agreement import Agreement
from opfl_chain.mpc.session.channels import SocketChannels
from opfl_chain.mpc.session.codec import decode_error, encode_error
from opfl_chain.mpc.session.errors import (
    FrameInvalid,
    MessageInvalid,
    MpcError,
    PeerUnreachable,
    ProgramMismatch,
)
from opfl_chain.mpc.session.greeting import Hello, Refused
from opfl_chain.mpc.session.heartbeat import complaint_in
from opfl_chain.mpc.session.messages import HUGE, Frame, FrameBuffer, pack, receive_frame
from opfl_chain.transport.addresses import split_address
from opfl_chain.transport.deadline import Deadline


def json_of(document: Any) -> bytes:
    return json.dumps(document).encode()


def frame_bytes(text: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">4sIQ", b"OPFL", len(text), len(body)) + text + body


def frame_of(header: bytes, *blobs: bytes) -> Frame:
    """The frame that arrives with this header."""
    text = b'{"blobs": %s, "header": %s}' % (json_of([len(blob) for blob in blobs]), header)
    (frame,) = FrameBuffer(HUGE).feed(frame_bytes(text, b"".join(blobs)))
    return frame


def decode_frames(data: bytes) -> list[Frame]:
    return list(FrameBuffer().feed(data))


def encode_frames(frames: list[Frame]) -> bytes:
    return b"".join(bytes(part) for frame in frames for part in pack(frame))


def decode_stream(data: bytes) -> list[Frame]:
    return [receive_frame(RecordedStream(data), None, HUGE)]


def decode_message(data: bytes) -> bytes:
    return SocketChannels({1: RecordedStream(data)}, Deadline(1)).receive(1)


def encode_message(message: bytes) -> bytes:
    return struct.pack(">Q", len(message)) + message


def decode_greeting(data: bytes) -> Hello:
    """Decode, report a refusal and create the link, as members do."""
    try:
        hello = Hello.from_json(frame_of(data).header)
    except Refused as refusal:
        str(refusal).encode()
        raise
    split_address(f"host:{hello.link_port}")
    hello.nonce.encode()
    return hello


def greeting(**changes: Any) -> bytes:
    return json_of(HELLO.to_json("watch") | changes)


def decode_reported_error(data: bytes) -> MpcError:
    return decode_error(frame_of(b'{"error": %s}' % data).header.get("error"))


def encode_reported_error(error: MpcError) -> bytes:
    return json_of(encode_error(error))


def decode_agreement(data: bytes) -> Agreement:
    """Decode and report a mismatch, as members do."""
    try:
        AGREEMENT.compare(1, "host:1", data)
    except ProgramMismatch as error:
        str(error).encode()
        raise
    return AGREEMENT


def decode_complaint(data: bytes) -> str | None:
    """Decode and report it, as members do."""
    complaint = complaint_in(frame_of(b'{"left": %s}' % data).header)
    str(complaint).encode()
    return complaint


class RecordedMembers:
    """Members 1 and 2, with their recorded messages to member 0."""

    rank = 0

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = list(messages)

    def send(self, rank: int, data: bytes) -> None:
        """Discard the message."""

    def receive(self, rank: int) -> bytes:
        return self._messages.pop(0) if self._messages else b""

    def invalid(self, rank: int, reason: str) -> MessageInvalid:
        return MessageInvalid(rank, "host:1", reason)


def decode_messages_of_a_circuit(data: bytes) -> bytes:
    circuit = BooleanCircuit(RecordedMembers(parts_of(data)), bytes(32))
    shared = circuit.public(np.arange(3, dtype=np.uint64))
    circuit.open(circuit.conjunction(shared, shared))
    return data


HELLO = Hello("audit 7", 2, 40123, "0123456789abcdef" * 2)
AGREEMENT = Agreement("program", "c0de" * 16, "feed" * 16)

MESSAGE_TARGETS = {
    "frames": Target(
        decode_frames,
        encode_frames,
        (FrameInvalid,),
        (
            encode_frames([Frame({"pulse": True}), Frame({"left": "why"}, (b"ab", b""))]),
            encode_frames([Frame(HELLO.to_json("watch"))]),
        ),
        findings=(frame_bytes(b'{"header": {}, "blobs": ""}'),),
    ),
    "stream-of-frames": Target(
        decode_stream,
        encode_frames,
        (FrameInvalid, ConnectionError),
        (encode_frames([Frame({"result": {"$": "bytes", "blob": 0}}, (b"abc",))]),),
        findings=(struct.pack(">4sIQ", b"OPFL", 0, HUGE),),
    ),
    "message": Target(
        decode_message,
        encode_message,
        (FrameInvalid, ConnectionError),
        (encode_message(b""), encode_message(b"stopped")),
    ),
    "greeting": Target(
        decode_greeting,
        lambda hello: json_of(hello.to_json("watch")),
        (Refused, FrameInvalid),
        (greeting(), json_of({"refused": "it is at audit 'b'"})),
        findings=(
            greeting(nonce="\ud800"),
            greeting(link_port=0),
            greeting(link_port=1 << 16),
            greeting(link_port=True),
            b'{"refused": "\\ud800"}',
        ),
    ),
    "agreement": Target(
        decode_agreement,
        Agreement.to_bytes,
        (MessageInvalid, ProgramMismatch),
        (AGREEMENT.to_bytes(), Agreement("program", "").to_bytes()),
        findings=(
            Agreement("program", "\ud800").to_bytes(),
            Agreement("program", "", "\ud800").to_bytes(),
            Agreement("program", "", "", {"rule:\ud800": "\ud800"}).to_bytes(),
            json_of({"name": "program", "code": "", "public": "", "plugins": []}),
            json_of({"name": "program", "code": "", "public": "", "plugins": {"rule:a": 1}}),
        ),
    ),
    "complaint": Target(
        decode_complaint,
        json_of,
        (FrameInvalid,),
        (json_of("why"), b"null", b"[[]]", json_of("\ud800" * 5000)),
    ),
    "circuit": Target(
        decode_messages_of_a_circuit,
        bytes,
        (MessageInvalid,),
        (joined(bytes(32), bytes(24), bytes(24)),),
        findings=(
            joined(bytes(31)),
            joined(bytes(32), bytes(23)),
            joined(bytes(32), bytes(16)),
            joined(bytes(32), bytes(24), bytes(23)),
            joined(bytes(32), bytes(24), bytes(32)),
        ),
    ),
    "error": Target(
        decode_reported_error,
        encode_reported_error,
        (FrameInvalid,),
        (
            encode_reported_error(PeerUnreachable(2, "host:1", 3.5, "why")),
            json_of({"type": "Unheard", "message": "", "state": {}}),
        ),
        findings=(
            b"{}",
            b'{"type": [], "message": "", "state": {}}',
            b'{"type": "MpcError", "message": "", "state": 1}',
        ),
    ),
}
