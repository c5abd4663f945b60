"""Verdicts of proved audits, recomputed from answers that members signed."""

import json
from dataclasses import replace

import pytest
from opfl_chain.protocol.exchange import ReportRow
from signed_exchange import Exchange
from test_trail_command import opfl_trail

from opfl_chain.protocol.published_answers import ANSWERS, REPORT, encode_round
from opfl_chain.protocol.verdict import FaultReason
from opfl_chain.trail import check_published
from opfl_chain.trail.report import AnswersUnreadable

HONEST, FAULTY, BATCHED, VOID = 0, 4, 2, 3


@pytest.fixture
def check(played, tmp_path):
    def checked(*lines):
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(lines))
        return check_published(played.trail, [path])

    return checked


def line_of(exchange, messages):
    return encode_round(exchange.number, list(messages.values())) + "\n"


def audited_place(exchange):
    return min(exchange.sheets[0])


def member(played, rank):
    return played.rehearsal.members[rank].address


@pytest.mark.parametrize("number", [HONEST, FAULTY])
def test_verdicts_follow_from_signed_answers(played, check, number):
    report = check(Exchange.of(played, number).line())
    assert report.holds, report.first_failure
    assert report.facts["signed answers"] > 8
    assert report.notes == ()


def test_last_line_of_a_round_counts_and_half_a_line_does_not(played, check):
    wrong, right = Exchange.of(played, HONEST), Exchange.of(played, HONEST)
    wrong.subjects[1] = bytes(32)
    assert check(wrong.line(), right.line(), wrong.line()[:100]).holds
    assert not check(right.line(), wrong.line()).holds


def test_batch_whose_clients_are_all_judged_is_checked_in_full(played, check):
    report = check(Exchange.of(played, BATCHED).line())
    assert report.holds, report.first_failure
    assert "round 2 has a relayed batch" in report.notes[0]


def test_batch_with_a_client_that_nothing_names_is_compared_by_numbers(played, check):
    exchange = Exchange.of(played, BATCHED)
    exchange.rows, exchange.sheets = [[], [], []], [{}, {}, {}]
    for fault in (None, None, *[FaultReason.REPLAY_OUTSIDE] * 2):
        exchange.add(True, fault)
    failure = check(exchange.line()).first_failure
    assert "numbers of verdicts" in failure.finding.fact
    assert failure.finding.expected == {"passed": 2, "faults": ["REPLAY_OUTSIDE"] * 2}
    assert failure.finding.found == {"passed": 2, "faults": ["REPLAY_OUTSIDE"] * 3}


@pytest.mark.parametrize("liar", range(3))
def test_a_report_on_other_facts_names_its_member_alone(played, check, liar):
    exchange = Exchange.of(played, HONEST)
    exchange.subjects[liar] = bytes(32)
    failures = check(exchange.line()).failures
    assert {each.finding.who for each in failures} - {None, ""} == {member(played, liar)}


@pytest.mark.parametrize("liar", range(3))
def test_a_second_report_names_its_member_or_the_one_that_heard_the_first(played, check, liar):
    exchange, other = Exchange.of(played, HONEST), Exchange.of(played, HONEST)
    other.rows[liar][0] = replace(other.rows[liar][0], leaves=bytes(32))
    messages = exchange.messages() | {(liar, REPORT): other.messages()[liar, REPORT]}
    (failure,) = check(line_of(exchange, messages)).failures
    assert member(played, liar) in failure.finding.who


@pytest.mark.parametrize("liar", range(3))
def test_one_member_cannot_make_an_unaudited_client_of_a_batch_look_audited(played, check, liar):
    exchange = Exchange.of(played, BATCHED)
    exchange.rows, exchange.sheets = [[], [], []], [{}, {}, {}]
    for audited, fault in ((True, None), (True, FaultReason.REPLAY_OUTSIDE), (False, None)):
        exchange.add(audited, fault)
    exchange.add(True, FaultReason.REPLAY_OUTSIDE)
    exchange.rows[liar][2] = replace(exchange.rows[liar][2], commitment=b"\1" * 32)
    honest = {member(played, rank) for rank in range(3)} - {member(played, liar)}
    failures = check(exchange.line()).failures
    assert not honest & {each.finding.who for each in failures}


def test_round_that_is_not_decided_is_noted(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.number = VOID
    report = check(exchange.line())
    assert report.holds
    assert report.notes == ("round 3 is not decided: its answers are not checked",)


def test_round_that_the_chain_does_not_have(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.number = 77
    failure = check(exchange.line()).first_failure
    assert (failure.finding.fact, failure.finding.round) == (
        "the chain has the round of the answers",
        77,
    )


@pytest.mark.parametrize("stage", [REPORT, ANSWERS])
@pytest.mark.parametrize("byte", [3, -1])
def test_bit_of_a_message_names_its_member(played, check, stage, byte):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    body = bytearray(messages[1, stage].body)
    body[byte] ^= 1
    messages[1, stage] = replace(messages[1, stage], body=bytes(body))
    (failure,) = check(line_of(exchange, messages)).failures
    assert failure.finding.fact == f"signer of the {stage} of member 1"
    assert failure.finding.expected == failure.finding.who == member(played, 1)
    assert failure.finding.found != member(played, 1)


def test_swapped_signatures_name_both(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    first, second = messages[0, ANSWERS], messages[2, ANSWERS]
    messages[0, ANSWERS] = replace(first, signature=second.signature)
    messages[2, ANSWERS] = replace(second, signature=first.signature)
    failures = check(line_of(exchange, messages)).failures
    assert [f.finding.who for f in failures] == [member(played, 0), member(played, 2)]


def test_missing_message_is_named(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    del messages[2, REPORT]
    (failure,) = check(line_of(exchange, messages)).failures
    assert failure.finding.fact == "signer of the report of member 2"
    assert failure.finding.found == "no message"


def test_message_of_another_round_is_named(played, check):
    exchange = Exchange.of(played, HONEST)
    messages = exchange.messages()
    old = messages[0, ANSWERS]
    messages[0, ANSWERS] = exchange.signed(0, ANSWERS, old.body, number=1)
    (failure,) = check(line_of(exchange, messages)).failures
    assert failure.finding.fact == "signer of the answers of member 0"


def test_member_whose_report_is_about_other_facts(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.subjects[2] = b"\x09" * 32
    failures = check(exchange.line()).failures
    assert "same policy, boundary, weights" in failures[0].finding.fact
    assert failures[-1].finding.who == member(played, 2)


def test_reports_on_fewer_contributions_than_the_chain_has(played, check):
    exchange = Exchange.of(played, HONEST)
    for rank in range(3):
        exchange.sheets[rank].pop(len(exchange.rows[rank]) - 1, None)
        exchange.rows[rank].pop()
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == "contributions in the reports"
    assert (failure.finding.expected, failure.finding.found) == (8, 7)


def test_broken_commitment_names_its_member(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.change_answer(1, audited_place(exchange), commit=False)
    failures = check(exchange.line()).failures
    assert "commitment to the answers" in failures[0].finding.fact
    assert failures[0].finding.who == member(played, 1)


def test_holders_that_differ_are_named(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.change_answer(1, audited_place(exchange))
    failures = check(exchange.line()).failures
    assert "members 0 and 1 give one answer on component 1" in failures[0].finding.fact
    assert failures[0].finding.who == f"{member(played, 0)} or {member(played, 1)}"
    assert "verdict that follows" in failures[1].finding.fact


def test_verdict_that_does_not_follow(played, check):
    exchange = Exchange.of(played, HONEST)
    for rank in range(3):
        exchange.rows[rank][0] = ReportRow(FaultReason.NOT_DELIVERED)
        exchange.sheets[rank].pop(0, None)
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == "verdict that follows from the signed answers"
    assert failure.finding.round == HONEST


def test_answers_on_other_contributions_than_the_audited_ones(played, check):
    exchange = Exchange.of(played, HONEST)
    exchange.sheets[0].pop(audited_place(exchange))
    (failure,) = check(exchange.line()).failures
    assert failure.finding.fact == "the messages of a member can be read"
    assert failure.finding.who == member(played, 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1 holds no answers"),
        ("[" * 100_000, "line 1 holds no answers"),
        ('{"round": 1}', "a round and a list of messages"),
        ('{"round": -1, "messages": []}', "the round is -1"),
        ('{"round": true, "messages": []}', "the round is True"),
        ('{"round": 1, "messages": [1]}', "rank, stage, body and signature"),
    ],
)
def test_file_that_holds_no_answers_is_a_typed_error(check, line, reason):
    with pytest.raises(AnswersUnreadable, match=reason):
        check(line + "\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rank": 3}, "ranks 0, 1 and 2"),
        ({"stage": "other"}, "stages are report, answers"),
        ({"body": "00"}, "not hexadecimal with 0x"),
        ({"signature": "0x0g"}, "not hexadecimal"),
        ({"rank": 1}, "two messages of stage report by member 1"),
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
    good.write_text(Exchange.of(played, HONEST).line() + Exchange.of(played, BATCHED).line())
    exchange = Exchange.of(played, HONEST)
    exchange.change_answer(1, audited_place(exchange))
    bad.write_text(exchange.line())
    report = tmp_path / "report.json"
    command = ["verify", *place, "--job", played.job, "--json", report, "--answers", good]
    finished = opfl_trail(*command)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "round 2 has a relayed batch" in finished.stdout
    assert json.loads(report.read_text())["facts"]["signed answers"] > 20
    refused = opfl_trail(*command, "--answers", bad)
    assert refused.returncode == 1
    assert "does not hold: signed answers: members 0 and 1 give one answer" in refused.stdout
