"""A member receives and opens nothing in an audit but shares, public facts and one bit."""

import json
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest
from eavesdropped import EavesdroppedCommittee
from judged_round import MODEL, STEP, Client, judge, rules

from opfl_chain.circuits.boolean import BooleanCircuit
from opfl_chain.mpc.replay.compiler import compile_program
from opfl_chain.mpc.replay.programs import replay_program
from opfl_chain.mpc.session.executable import MpcOptions
from opfl_chain.mpc.session.runtime import Runtime
from opfl_chain.protocol.commitments import Scheme

TELLING = 1 << 18
"""Smaller words may occur by accident, such as the length of a message."""
REVEALING = {"a2p", "b2p", "v2p", "a2v", "b2v", "s2p", "s2v", "reveal", "reveal_to"}
"""SPU's names of operations that reveal a secret to one member or to all."""


@dataclass
class Overheard:
    link: list
    messages: list
    opened: list
    operations: set
    replayed: np.ndarray
    clients: list


@pytest.fixture(scope="module", params=list(Scheme), ids=lambda scheme: scheme.value)
def overheard(request):
    """An honest contribution and a cheat, audited."""
    scheme = request.param
    clients = [Client(0, scheme), Client(1, scheme, gradient=2 * STEP.gradient)]
    profiled = MpcOptions(runtime={"enable_hal_profile": True})
    replay = compile_program(replay_program(MODEL, 1, 64.0, 2), profiled)
    common = replace(rules(scheme), replays=lambda count: replay)
    opened, results = [], []
    with pytest.MonkeyPatch.context() as patch, closing(EavesdroppedCommittee()) as committee:
        open_, run = BooleanCircuit.open, Runtime.run

        def keeping_open(circuit, shared):
            opened.append(open_(circuit, shared))
            return opened[-1]

        def keeping_run(runtime, executable, inputs):
            results.append((runtime.rank, run(runtime, executable, inputs)))
            return results[-1][1]

        patch.setattr(BooleanCircuit, "open", keeping_open)
        patch.setattr(Runtime, "run", keeping_run)
        patch.setattr(Runtime, "open_all", None)  # nothing else is opened
        claims = [client.claim for client in clients]

        def member(session):
            delivered = {client.index: client.deliveries[session.rank] for client in clients}
            return judge(session, common, STEP.weights, claims, delivered)

        verdicts = [judgement.verdict for judgement in committee.each(member)]
        assert all(verdict.passed == {0} for verdict in verdicts)
        shares = {rank: result.outputs["gradient"] for rank, result in results}
        replayed = shares[0].components[0] + shares[0].components[1] + shares[1].components[1]
        return Overheard(
            [committee.link_bytes(rank) for rank in range(3)],
            [committee.messages(rank) for rank in range(3)],
            opened,
            {cost.name for _, result in results for cost in result.statistics.operations},
            replayed[0].view(np.int64),
            clients,
        )


def found_in(data, words):
    """Return the words that occur in the data at any offset, in either byte order."""
    words = np.asarray(words).view(np.int64)
    chosen = words[np.abs(words) >= TELLING].view(np.uint64)
    wanted = np.unique(np.concatenate([chosen, chosen.byteswap()]))
    low_bits = np.uint64(0xFFFFFF)
    is_candidate = np.zeros(1 << 24, bool)
    is_candidate[wanted & low_bits] = True
    candidates = []
    for at in range(8):
        view = np.frombuffer(data, "<u8", (len(data) - at) // 8, at)
        candidates.append(view[is_candidate[view & low_bits]])
    return np.intersect1d(np.concatenate(candidates), wanted)


@pytest.mark.parametrize("rank", range(3))
def test_no_secret_is_among_what_a_member_receives(overheard, rank):
    received = overheard.link[rank] + b"".join(overheard.messages[rank])
    assert len(received) > 1_000_000
    gradient, replayed = STEP.gradient, overheard.replayed
    secrets = {
        "gradient": gradient,
        "replay": replayed,
        "sum": gradient + replayed,
        "input": STEP.training_input,
        "missing gradient component": missing(overheard.clients[0], rank, "gradient"),
        "missing input component": missing(overheard.clients[0], rank, "input"),
    }
    found = found_in(
        received, np.concatenate([np.asarray(w).view("<i8") for w in secrets.values()])
    )
    assert not found.size, {name: np.isin(found, words).sum() for name, words in secrets.items()}


def missing(client, rank, subject):
    """Return the component that the member does not hold."""
    delivery = client.deliveries[(rank + 1) % 3]
    package = delivery.gradient if subject == "gradient" else delivery.training_input.package
    return package.held[1].words(package.count)


def test_the_search_finds_what_is_there():
    words = np.arange(TELLING, TELLING + 5)
    for data in (words.tobytes(), b"x" + words.byteswap().tobytes()):
        assert set(words) <= {*found_in(data, words), *found_in(data, words).byteswap()}


def test_one_bit_of_each_contribution_is_opened(overheard):
    assert len(overheard.opened) == 3  # once by each member
    for bits in overheard.opened:
        assert bits.tolist() == [0, 1]  # whether there is a fault


def test_spu_reveals_nothing(overheard):
    assert {"mul_aa", "msb_a2b"} <= overheard.operations  # operations of this level are listed
    assert not REVEALING & overheard.operations


@pytest.mark.parametrize("rank", range(3))
def test_all_other_messages_are_uniform(overheard, rank):
    """Chi-square over the bytes of what is neither an agreement nor a finding nor the verdict."""
    shares = []
    for message in overheard.messages[rank]:
        try:
            assert set(json.loads(message)) == {"name", "code", "public"}
        except ValueError:
            shares.append(message)
    assert [len(message) for message in shares[:2]] == [2 * 32] * 2, "findings of both peers"
    opened = 8 * 2
    assert [len(message) for message in shares[-1:]] == [opened]
    masked = b"".join(shares[2:-1])
    counts = np.bincount(np.frombuffer(masked, np.uint8), minlength=256)
    expected = len(masked) / 256
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert len(masked) > 1_000_000
    assert 120 < statistic < 420, statistic  # 255 degrees of freedom; beyond is below 1e-9
