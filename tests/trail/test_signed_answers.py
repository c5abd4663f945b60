"""Verdicts of proved audits, recomputed from words that members signed."""

import json
from dataclasses import replace

import pytest
from played_job import FAULTY, HONEST, LAST, SPLIT, WITHHELD
from signed_exchange import ACCEPTED, Exchange
from test_trail_command import opfl_trail

from opfl_chain.protocol.audit_exchange import Report
from opfl_chain.protocol.echo import Slot
from opfl_chain.protocol.sealing import derived_key, file_complaint
from opfl_chain.trail import check_published
from opfl_chain.trail.report import AnswersUnreadable

VERDICT = "whether the client passed, as follows from the signed words"
OUTCOME = "outcome of the audit, as follows from the signed words"
DECIDED = [HONEST, FAULTY, WITHHELD, LAST]


@pytest.fixture
def check(played, tmp_path):
    def checked(*lines):
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(lines))
        return check_published(played.trail, [path])

    return checked


def audited(exchange):
    return min(exchange.words[0])


def member(played, number):
    return played.player.roster[number].address


def client(played, index):
    return played.player.clients[index].address


def acquitted(exchange):
    """The session in which client 2 answered after the round, and passed."""
    late = Exchange(exchange.played, FAULTY, attempt=1)
    late.add(2, accepted=True)
    return late


# --- what follows


@pytest.mark.parametrize("number", DECIDED)
def test_verdicts_and_outcomes_follow_from_signed_words(played, check, number):
    exchange = Exchange.of(played, number)
    lines = [exchange.line()] + [acquitted(exchange).line()] * (number == FAULTY)
    report = check(*lines)
    assert report.holds, report.first_failure
    assert report.facts["signed answers"] > 8
    assert report.notes == ()


def test_last_line_of_a_session_counts_and_half_a_line_does_not(played, check):
    wrong, right = Exchange.of(played, HONEST), Exchange.of(played, HONEST)
    for seat in range(3):
        wrong.rows[seat], wrong.words[seat] = {}, {}
    assert check(wrong.line(), right.line(), wrong.line()[:100]).holds
    assert not check(right.line(), wrong.line()).holds


def test_client_that_passed_though_its_audit_did_not(played, check):
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    exchange.add(index, accepted=False)
    (failure,) = check(exchange.line()).failures
    assert (failure.finding.fact, failure.finding.round) == (VERDICT, HONEST)
    assert failure.finding.who == client(played, index)
    assert (failure.finding.expected, failure.finding.found) == (False, True)


def test_client_that_did_not_pass_though_its_audit_did(played, check):
    exchange = Exchange.of(played, LAST)
    exchange.add(1, accepted=True)
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == VERDICT
    assert failure.finding.who == client(played, 1)


def test_client_that_passed_without_an_answer(played, check):
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    for seat in range(3):
        exchange.rows[seat].pop(index)
        exchange.words[seat].pop(index)
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == "an audited client that gave no answer passed"
    assert failure.finding.who == client(played, index)


def test_answer_of_a_client_that_is_not_on_the_roll(played, check):
    exchange = Exchange.of(played, LAST)
    exchange.add(7, accepted=True)
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == "client 7, of an answer, is on the roll"


def test_charge_for_no_answer_of_a_client_that_answered(played, check):
    exchange = Exchange.of(played, FAULTY)
    exchange.add(4, accepted=False)
    late = acquitted(exchange)
    (failure,) = check(exchange.line(), late.line()).failures
    assert (failure.finding.fact, failure.finding.who) == (OUTCOME, client(played, 4))
    assert (failure.finding.expected, failure.finding.found) == ("OUTSIDE", "UNANSWERED")


def test_charge_of_a_client_whose_late_answer_passed(played, check):
    exchange, late = Exchange.of(played, FAULTY), acquitted(Exchange.of(played, FAULTY))
    late.add(4, accepted=True)
    (failure,) = check(exchange.line(), late.line()).failures
    assert (failure.finding.expected, failure.finding.found) == ("PASSED", "UNANSWERED")


def test_acquittal_of_a_client_whose_answer_is_outside(played, check):
    exchange, late = Exchange.of(played, FAULTY), acquitted(Exchange.of(played, FAULTY))
    late.add(2, accepted=False)
    (failure,) = check(exchange.line(), late.line()).failures
    assert (failure.finding.fact, failure.finding.who) == (OUTCOME, client(played, 2))


def test_outcome_whose_session_is_not_published_is_noted(played, check):
    report = check(Exchange.of(played, FAULTY).line())
    assert report.holds
    assert report.notes == (
        f"round {FAULTY}: the words that led to the outcome passed of {client(played, 2)} are not"
        " published",
    )


# --- members that lie


@pytest.mark.parametrize("away", range(3))
def test_member_that_was_away_changes_nothing_if_a_standby_said_its_words(played, check, away):
    exchange = Exchange.of(played, HONEST)
    exchange.confirm(away)
    messages = {key: each for key, each in exchange.messages().items() if key[0] != away}
    report = check(exchange.line(messages))
    assert report.holds, report.first_failure
    assert report.notes == ()


@pytest.mark.parametrize("away", range(3))
def test_client_that_passed_on_a_word_that_nobody_confirmed(played, check, away):
    """The other member may have forged it."""
    exchange = Exchange.of(played, HONEST)
    messages = {key: each for key, each in exchange.messages().items() if key[0] != away}
    failures = check(exchange.line(messages)).failures
    assert {failure.finding.fact for failure in failures} == {VERDICT}
    assert all((each.finding.expected, each.finding.found) == (False, True) for each in failures)
    assert len(failures) == len(exchange.words[away])


@pytest.mark.parametrize("liar", range(3))
def test_report_on_other_facts_does_not_count_and_names_its_member(played, check, liar):
    exchange = Exchange.of(played, HONEST)
    exchange.subjects[liar] = bytes(32)
    exchange.confirm(liar)
    report = check(exchange.line())
    assert report.holds, report.first_failure
    (note,) = report.notes
    assert f"a message of {member(played, liar)} does not count" in note


def test_message_that_cannot_be_read_does_not_count_and_names_its_member(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.confirm(1)
    messages = exchange.messages()
    messages[1, Slot.REVEAL] = exchange.signed(1, Slot.REVEAL, b"nothing")
    report = check(exchange.line(messages))
    assert report.holds, report.first_failure
    (note,) = report.notes
    assert f"a message of {member(played, 1)} does not count" in note


def test_broken_commitment_names_its_member(played, check):
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    exchange.change_words(1, index, commit=False)
    exchange.confirm(1)
    report = check(exchange.line())
    assert report.holds, report.first_failure
    assert report.notes == (
        f"round {HONEST}: {member(played, 1)} lied about client {index}, and has not paid for it",
    )


def test_lie_that_was_paid_for(played, check):
    """Member 2 paid for a falsehood in this round."""
    exchange = Exchange.of(played, FAULTY)
    exchange.change_words(2, 1, commit=False)
    exchange.confirm(2)
    notes = check(exchange.line(), acquitted(exchange).line()).notes
    lie = f"round {FAULTY}: {member(played, 2)} lied about client 1, and paid for it"
    assert lie in notes


def test_rejection_that_one_member_alone_confirms_decides_nothing(played, check):
    """The charge of client 1 would not follow without the words of the second holder."""
    exchange = Exchange.of(played, FAULTY)
    exchange.confirm(2)
    del exchange.judged[1]
    messages = {key: each for key, each in exchange.messages().items() if key[0] != 2}
    report = check(exchange.line(messages), acquitted(exchange).line())
    assert report.holds
    assert any(client(played, 1) in note and "not published" in note for note in report.notes)


def test_holders_that_differ_leave_the_audit_undecided(played, check):
    """The client passed on chain, which does not follow; both suspects are named."""
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    exchange.change_words(1, index)
    report = check(exchange.line())
    assert [failure.finding.fact for failure in report.failures] == [VERDICT]
    (note,) = report.notes
    assert f"{member(played, 0)} or {member(played, 1)} lied about component 1" in note


def test_standby_settles_holders_that_differ_and_names_the_liar(played, check):
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    exchange.change_words(1, index)
    exchange.judged = {index: {1: ACCEPTED[1]}}
    report = check(exchange.line())
    assert report.holds, report.first_failure
    assert report.notes == (
        f"round {HONEST}: {member(played, 1)} lied about client {index}, and has not paid for it",
    )


def test_referee_that_has_a_seat(played, check):
    exchange = Exchange.of(played, LAST)
    exchange.judged = {1: {1: ACCEPTED[1]}}
    messages = exchange.messages()
    body = messages.pop(("referee", Slot.REFEREE)).body
    messages["referee", Slot.REFEREE] = exchange.signed(3, Slot.REFEREE, body)
    (failure,) = check(exchange.line(messages)).failures
    assert failure.finding.fact == "the referee is a standby that has staked"
    assert failure.finding.who == member(played, 3)


def test_report_of_a_standby_without_a_seat(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    messages[2, Slot.REPORT] = exchange.signed(3, Slot.REPORT, messages[2, Slot.REPORT].body)
    (failure,) = check(exchange.line(messages)).failures
    assert failure.finding.fact == "who reports has a seat in the round"
    assert failure.finding.who == member(played, 3)


def complaint_of(seat):
    return file_complaint(derived_key(b"\x01" * 32), seat, derived_key(b"\x02" * 32).public, SOME)


SOME = b"\x03" * 32


def test_complaint_about_a_client_that_passed_is_a_lie_and_changes_nothing(played, check):
    exchange = Exchange.of(played, HONEST)
    index = audited(exchange)
    exchange.rows[2][index] = complaint_of(2)
    exchange.confirm(2)
    report = check(exchange.line())
    assert report.holds, report.first_failure
    (note,) = report.notes
    assert f"complains of the answer of client {index}" in note


def test_complaint_may_explain_why_a_client_did_not_pass(played, check):
    exchange = Exchange.of(played, LAST)
    exchange.add(1, accepted=True)
    assert not check(exchange.line()).holds
    exchange.rows[1][1] = complaint_of(1)
    report = check(exchange.line())
    assert report.holds, report.first_failure
    assert "complains of the answer of client 1" in report.notes[-1]


def test_member_that_said_two_things_in_one_slot_has_no_word_there(played, check):
    """Member 0 paid for it in the last round. What it said in other slots counted."""
    exchange = Exchange.of(played, LAST)
    messages = exchange.messages()
    del messages[0, Slot.REPORT]
    assert not check(exchange.line(messages)).holds
    exchange.confirm(0)
    messages = exchange.messages()
    del messages[0, Slot.REPORT]
    report = check(exchange.line(messages))
    assert report.holds, report.first_failure
    assert report.notes == ()


# --- what is not bound


def test_round_that_is_not_decided_is_noted(played, check):
    exchange = Exchange(played, SPLIT)
    report = check(exchange.line())
    assert report.holds
    assert report.notes == (f"round {SPLIT} is not decided: its answers are not checked",)


def test_round_without_a_report_is_noted(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = {key: each for key, each in exchange.messages().items() if key[1] == Slot.REVEAL}
    report = check(exchange.line(messages))
    assert report.holds
    assert report.notes == (
        f"round {HONEST}: no report is published, so its verdict is not recomputed",
    )


def test_round_that_the_chain_does_not_have(played, check):
    line = Exchange.of(played, HONEST).line().replace('"round": 0', '"round": 77')
    failure = check(line).first_failure
    assert (failure.finding.fact, failure.finding.round) == (
        "the chain has the round of the answers",
        77,
    )


def test_answers_of_another_opening_are_not_of_this_round(played, check):
    content = json.loads(Exchange.of(played, HONEST).line())
    content["opening"] = "0x" + "11" * 32
    failures = check(json.dumps(content) + "\n").failures
    assert failures[0].finding.fact == "opening of the answers"


@pytest.mark.parametrize("slot", [Slot.REPORT, Slot.REVEAL])
@pytest.mark.parametrize("byte", [3, -1])
def test_bit_of_a_message_names_its_member(played, check, slot, byte):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    body = bytearray(messages[1, slot].body)
    body[byte] ^= 1
    messages[1, slot] = replace(messages[1, slot], body=bytes(body))
    (failure,) = check(exchange.line(messages)).failures
    assert failure.finding.fact == f"signer of the message in slot {int(slot)} of number 1"
    assert failure.finding.expected == failure.finding.who == member(played, 1)
    assert failure.finding.found != member(played, 1)


def test_swapped_signatures_name_both(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    first, second = messages[0, Slot.REVEAL], messages[2, Slot.REVEAL]
    messages[0, Slot.REVEAL] = replace(first, signature=second.signature)
    messages[2, Slot.REVEAL] = replace(second, signature=first.signature)
    failures = check(exchange.line(messages)).failures
    assert [f.finding.who for f in failures] == [member(played, 0), member(played, 2)]


def test_author_that_is_not_on_the_roster(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    messages[0, Slot.REPORT] = replace(messages[0, Slot.REPORT], number=200)
    failure = check(exchange.line(messages)).first_failure
    assert failure.finding.fact == f"signer of the message in slot {int(Slot.REPORT)} of number 200"


def test_message_of_another_round_is_named(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    old = messages[0, Slot.REVEAL]
    messages[0, Slot.REVEAL] = exchange.signed(0, Slot.REVEAL, old.body, round_=1)
    (failure,) = check(exchange.line(messages)).failures
    assert failure.finding.who == member(played, 0)


def test_report_in_the_name_of_another_seat_does_not_count(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.confirm(1)
    messages = exchange.messages()
    false = Report(0, exchange.subjects[1], exchange.rows[0]).encode()
    messages[1, Slot.REPORT] = exchange.signed(1, Slot.REPORT, false)
    report = check(exchange.line(messages))
    assert report.holds
    assert f"a message of {member(played, 1)} does not count" in report.notes[0]


# --- files


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1 holds no answers"),
        ("[" * 100_000, "line 1 holds no answers"),
        ('{"round": 1}', "an object with round, opening and a list of messages"),
        ('{"round": -1, "opening": "0x", "messages": []}', "the opening has 0 bytes"),
        (f'{{"round": true, "opening": "0x{"00" * 32}", "messages": []}}', "round is True"),
        (f'{{"round": 1, "opening": "0x{"00" * 32}", "messages": [1]}}', "number, slot, body"),
    ],
)
def test_file_that_holds_no_answers_is_a_typed_error(check, line, reason):
    with pytest.raises(AnswersUnreadable, match=reason):
        check(line + "\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"number": 256}, "number is 256"),
        ({"slot": -1}, "slot is -1"),
        ({"body": "00"}, "not hexadecimal with 0x"),
        ({"signature": "0x0g"}, "not hexadecimal"),
        ({"number": 1}, "two messages in slot 7 by member 1"),
    ],
)
def test_message_that_is_malformed_is_a_typed_error(played, check, change, reason):
    content = json.loads(Exchange.of(played, HONEST).line())
    content["messages"][0].update(change)
    with pytest.raises(AnswersUnreadable, match=reason):
        check(json.dumps(content) + "\n")


def test_command_recomputes_answers(played, tmp_path):
    place = ["--rpc-url", played.chain.rpc_url, "--deployment", played.deployment]
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(Exchange.of(played, HONEST).line() + Exchange.of(played, WITHHELD).line())
    exchange = Exchange.of(played, HONEST)
    exchange.change_words(1, audited(exchange))
    bad.write_text(exchange.line())
    report = tmp_path / "report.json"
    command = ["verify", *place, "--job", played.job, "--json", report, "--answers", good]
    finished = opfl_trail(*command)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert json.loads(report.read_text())["facts"]["signed answers"] > 20
    refused = opfl_trail(*command, "--answers", bad)
    assert refused.returncode == 1
    assert f"does not hold: signed answers: {VERDICT}" in refused.stdout
