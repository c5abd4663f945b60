"""When a job on one machine may skip blocks, as far as attestations are concerned."""

from types import SimpleNamespace

import pytest

from opfl_chain.localnet.localnet import Localnet

DEADLINE = 100
ALL = {"a", "b", "c"}


def may_skip(attested, head=50, verdict=b"v", cheats=(None, None, None)):
    """Asked of what the chain says alone."""
    round_ = SimpleNamespace(id=1, verdict_hash=verdict, schedule=SimpleNamespace(attest=DEADLINE))
    seen = SimpleNamespace(
        plan=SimpleNamespace(members=cheats),
        addresses={"member-0": "a", "member-1": "b", "member-2": "c", "client-0": "d"},
        view=SimpleNamespace(
            rounds=lambda: [round_], attestations=lambda _: dict.fromkeys(attested)
        ),
        devnet=SimpleNamespace(rpc=SimpleNamespace(block_number=lambda: head)),
    )
    return Localnet.has_attested_all(seen)


@pytest.mark.parametrize("member", sorted(ALL))
def test_an_honest_member_is_waited_for_until_its_deadline(member):
    assert not may_skip(ALL - {member})
    assert not may_skip(ALL - {member}, head=DEADLINE - 1)
    assert may_skip(ALL - {member}, head=DEADLINE)


def test_nobody_is_waited_for_who_has_attested_or_cheats():
    assert may_skip(ALL)
    assert may_skip({"a", "b"}, cheats=(None, None, "withhold-verdict"))
    assert not may_skip({"a", "c"}, cheats=(None, None, "withhold-verdict"))


def test_a_round_that_is_not_decided_goes_its_way():
    assert may_skip({"a"}, verdict=None)
