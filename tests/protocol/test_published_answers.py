"""Files of signed messages: what later lines of a round do to earlier ones."""

from __future__ import annotations

import pytest

from opfl_chain.protocol.errors import AnswersInvalid
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.published_answers import PublishedMessage, decode_rounds, encode_round
from opfl_chain.protocol.statements import MemberMessage

OPENING, REOPENED = b"\1" * 32, b"\2" * 32


def message(number: int, slot: int) -> PublishedMessage:
    return PublishedMessage(number, slot, b"body %d" % slot, bytes(65))


def lines(*sessions: tuple[int, bytes, list[PublishedMessage]]) -> str:
    return "".join(encode_round(*session) + "\n" for session in sessions)


def test_later_sessions_of_a_round_add_messages() -> None:
    first, later = [message(0, 7), message(1, 7)], [message(0, 263)]
    found = decode_rounds(lines((4, OPENING, first), (5, OPENING, first), (4, OPENING, later)))
    assert sorted(found) == [4, 5]
    assert sorted(found[4].messages) == [(0, 7), (0, 263), (1, 7)]
    assert found[4].opening == OPENING


def test_another_opening_replaces_what_was_said_in_the_one_before() -> None:
    found = decode_rounds(lines((4, OPENING, [message(0, 7)]), (4, REOPENED, [message(2, 7)])))
    assert (found[4].opening, list(found[4].messages)) == (REOPENED, [(2, 7)])


def test_a_line_without_an_end_is_ignored() -> None:
    text = lines((4, OPENING, [message(0, 7)]), (5, OPENING, [message(0, 7)]))
    assert list(decode_rounds(text[:-1])) == [4]


def test_a_message_is_signed_for_its_slot_and_opening() -> None:
    statement = message(3, 13).statement(9, 4, OPENING)
    assert statement == MemberMessage(9, 4, OPENING, 13, keccak256(b"body 13"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", "a line is an object with round, opening"),
        (encode_round(4, OPENING[1:], []), "the opening has 31 bytes"),
        (encode_round(2**32, OPENING, []), "round is 4294967296"),
        (encode_round(4, OPENING, [message(0, 7)] * 2), "two messages in slot 7 by member 0"),
        (encode_round(4, OPENING, [message(256, 7)]), "number is 256"),
        (encode_round(4, OPENING, [message(0, 2**32)]), "slot is 4294967296"),
        (encode_round(4, OPENING, [message(0, 7)]).replace("0x0", "0xg"), "not hexadecimal"),
    ],
)
def test_a_malformed_line_is_refused_by_its_number(line: str, reason: str) -> None:
    good = encode_round(4, OPENING, [])
    with pytest.raises(AnswersInvalid, match=f"line 2 holds no answers: .*{reason}"):
        decode_rounds(f"{good}\n{line}\n")
