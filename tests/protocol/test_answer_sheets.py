"""Answers of members as they are sent."""

import pytest

from opfl_chain.protocol.errors import ShareError
from opfl_chain.protocol.exchange import Answers, decode_answers, decode_sheet, encode_answers
from opfl_chain.protocol.proof.folding import Answer

ANSWERS = Answers(1, bytes(range(32)), Answer(1, 2, 3, 4), Answer(5, 6, 7, 8))


def test_answers_survive_the_wire():
    assert decode_answers(encode_answers(1, {3: ANSWERS}), 1, [3]) == {3: ANSWERS}


def test_word_that_is_not_canonical_is_a_typed_error():
    """Else the message of one member would end the daemons of both others."""
    body = encode_answers(1, {3: ANSWERS})
    with pytest.raises(ShareError, match=r"answer\[3\] is 0xf+, it must be below"):
        decode_answers(body[:-16] + b"\xff" * 16, 1, [3])


def test_answers_of_another_member_are_refused():
    with pytest.raises(ShareError, match="not those of member 2"):
        decode_answers(encode_answers(1, {3: ANSWERS}), 2, [3])


@pytest.mark.parametrize("places", [[3, 4], [3]])
def test_two_answers_on_one_contribution_are_refused(places):
    once = encode_answers(1, {3: ANSWERS})
    row = once[10:]
    twice = encode_answers(1, {3: ANSWERS, 4: ANSWERS})[:10] + row + row
    with pytest.raises(ShareError, match=r"twice|not those of member"):
        decode_answers(twice, 1, places)
    with pytest.raises(ShareError, match="member 1 answers twice on one contribution"):
        decode_sheet(twice, 1, 2)


@pytest.mark.parametrize("places", [[], [4], [3, 4]])
def test_answers_on_other_contributions_are_refused(places):
    with pytest.raises(ShareError, match="answers"):
        decode_answers(encode_answers(1, {3: ANSWERS}), 1, places)
