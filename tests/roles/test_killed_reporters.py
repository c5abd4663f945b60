"""A member that is killed between its words and its report reveals all that it reports."""

from types import SimpleNamespace

import pytest

from opfl_chain.protocol.audit_exchange import Answers, shirking_seats
from opfl_chain.protocol.errors import DeliveryMissing
from opfl_chain.protocol.identifiers import ClientIndex
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.roles.member.hearings import Hearing
from opfl_chain.roles.member.proved_audits import ProvedAudits
from opfl_chain.roles.member.store import SCHEMA, MemberStore
from opfl_chain.roles.state import State

SEAT = 1
CLAIMS = {name: SimpleNamespace(client=ClientIndex(index)) for index, name in enumerate("ab")}
ANSWERS = dict.fromkeys("ab", b"\1" * 32)


class KnownWords(ProvedAudits):
    """Finds the same words on whatever it has."""

    def _words(self, round_, claim, delivery):
        return Answers(SEAT, Answer(1, 2, 3, 4), Answer(5, 6, 7, claim.client))


@pytest.fixture
def parts(tmp_path):
    state = State(tmp_path / "state.sqlite", "a member", SCHEMA)
    yield SimpleNamespace(
        store=MemberStore(state),
        messages=SimpleNamespace(seat=lambda round_: SEAT),
        judging=SimpleNamespace(expected=lambda seat: None),
        here={"a"},
    )
    state.close()


def test_what_came_after_the_crash_is_revealed_as_well(parts):
    def delivery(round_, client, expected, answer):
        if client not in parts.here:
            raise DeliveryMissing(f"the answer of {client} is not here")

    parts.contributions = SimpleNamespace(delivery=delivery)
    hearing = Hearing(SimpleNamespace(opening=b"\2" * 32), 0, ("a", "b"), 0, 1)
    audits = KnownWords(parts, None, None)
    audits.report(hearing, CLAIMS, ANSWERS, b"\3" * 32)
    parts.here.add("b")  # killed before it had signed its report, and started again
    report = KnownWords(parts, None, None).report(hearing, CLAIMS, ANSWERS, b"\3" * 32)
    reveal = audits.reveal(hearing)
    assert set(report.rows) == set(reveal.answers) == {0, 1}
    everyone = dict.fromkeys(range(3), report), dict.fromkeys(range(3), reveal)
    assert shirking_seats(*everyone, sealed_to=[SEAT]) == set()
