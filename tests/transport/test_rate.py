from __future__ import annotations

import pytest

from opfl_chain.transport import limits as rate
from opfl_chain.transport.limits import RateLimiter, sender_of


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_so_many_a_second() -> None:
    clock = Clock()
    limiter = RateLimiter(per_second=4, burst=3, clock=clock)
    assert [limiter.take("a") for _ in range(4)] == [0, 0, 0, 0.25]
    clock.now += 0.125
    assert limiter.take("a") == 0.125
    clock.now += 0.125
    assert limiter.take("a") == 0
    clock.now += 3600
    assert [limiter.take("a") for _ in range(4)] == [0, 0, 0, 0.25]


def test_one_sender_does_not_use_up_what_is_anothers() -> None:
    limiter = RateLimiter(per_second=1, burst=1, clock=Clock())
    assert limiter.take("a") == 0
    assert limiter.take("a") > 0
    assert limiter.take("b") == 0


def test_only_so_many_senders_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "_MOST_ADDRESSES", 2)
    limiter = RateLimiter(per_second=1, burst=1, clock=Clock())
    for sender in "abc":
        assert limiter.take(sender) == 0
    assert limiter.take("c") > 0
    assert limiter.take("a") == 0


@pytest.mark.parametrize(
    ("address", "sender"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
    ],
)
def test_a_subscriber_with_many_addresses_is_one_sender(address: str, sender: str) -> None:
    assert sender_of(address) == sender
