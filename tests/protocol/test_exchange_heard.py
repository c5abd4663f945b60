"""A member that tells its peers different things makes no honest one look guilty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opfl_chain.protocol.exchange import (
    Answers,
    HeardOtherwise,
    Report,
    ReportRow,
    alone,
    decode_revealed,
    encode_revealed,
    standing,
)
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.verdict import FaultReason

SUBJECT = bytes(32)
LIAR = 1


def answers(rank: int) -> Answers:
    return Answers(rank, bytes(32), Answer(1, 2, 2, 0), Answer(3, 4, 12, 0))


def report(rank: int) -> Report:
    row = ReportRow(None, bytes([7]) * 32, answers(rank).commitment)
    return Report(rank, SUBJECT, (row,))


def heard_with(of_liar: Report) -> list[bytes]:
    return [(of_liar if rank == LIAR else report(rank)).encode() for rank in range(3)]


def test_two_reports_put_their_author_under_suspicion_and_not_who_follows_them() -> None:
    false = replace(report(LIAR), rows=(ReportRow(FaultReason.COMMITMENT_MISMATCH),))
    told_zero, told_two = heard_with(report(LIAR)), heard_with(false)
    rows = [Report.decode(body, rank, SUBJECT, 1).rows[0] for rank, body in enumerate(told_two)]
    assert not standing(rows).is_sound
    by_two = encode_revealed(2, told_two, {})  # nothing to reveal, for what it has heard
    with pytest.raises(HeardOtherwise, match="member 2 heard another report of member 1") as error:
        decode_revealed(by_two, 2, told_zero, [0])
    assert error.value.suspects == (LIAR, 2)


def test_who_heard_another_report_of_its_own_is_the_only_suspect() -> None:
    heard = heard_with(report(LIAR))
    other = [*heard[:2], b"another report"]
    with pytest.raises(HeardOtherwise) as error:
        decode_revealed(encode_revealed(2, other, {0: answers(2)}), 2, heard, [0])
    assert error.value.suspects == (2,)


def test_what_is_revealed_is_read() -> None:
    heard = heard_with(report(LIAR))
    revealed = encode_revealed(2, heard, {0: answers(2)})
    assert decode_revealed(revealed, 2, heard, [0]) == {0: answers(2)}


def test_a_finding_that_nobody_shares_is_seen() -> None:
    sound = ReportRow(None, bytes([7]) * 32)
    accusing = ReportRow(FaultReason.COMMITMENT_MISMATCH)
    assert alone([sound] * 3) == ()
    assert alone([sound, sound, accusing]) == (2,)
    assert alone([replace(sound, leaves=bytes(32)), sound, sound]) == (0,)
    assert alone([accusing, accusing, sound]) == ()
