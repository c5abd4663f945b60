from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chain_crashing import TABLE, record_move
from chain_support import CRASHING, create_counter
from following import Follower

from opfl_chain.chain.contracts.compiler import Artifact
from opfl_chain.chain.contracts.contract import Log
from opfl_chain.chain.devnet import Anvil
from opfl_chain.chain.errors import ChainMismatch, HandlerOverreached, ReorgTooDeep
from opfl_chain.chain.follow.cursor import EventCursor, Step
from opfl_chain.chain.follow.sources import HeadWatcher
from opfl_chain.chain.rpc import Request, Rpc
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.mpc.local import free_addresses
from opfl_chain.transport.addresses import split_address


class World:
    """A counter on a chain that mines on demand, and cursors that record its moves."""

    def __init__(self, chain: Anvil, counter: Any, folder: Path) -> None:
        self.chain = chain
        self.counter = counter
        self.folder = folder
        self.sender = TransactionSender(chain.rpc, chain.accounts[0], folder)
        self._moves = 0
        chain.mine(3)  # so that a reorganisation of a few blocks spares the counter itself

    def move(self, *amounts: int) -> None:
        """Send all moves in one new block."""
        for amount in amounts:
            self._moves += 1
            call = self.counter.move(1, amount, b"", value=0)
            self.sender.submit(call.with_gas(100_000), f"move {self._moves}")
        self.chain.mine()

    def cursor(self, database: str = "state.sqlite", **options: Any) -> EventCursor:
        defaults: dict[str, Any] = {
            "rpc": self.chain.rpc,
            "handler": record_move,
            "schema": TABLE,
            "tables": ("moves",),
        }
        return EventCursor(
            database=self.folder / database,
            name="moves",
            addresses=[self.counter.address],
            **{**defaults, **options},
        )

    def recorded(self, database: str = "state.sqlite") -> list[int]:
        db = sqlite3.connect(self.folder / database)
        rows = db.execute("SELECT amount FROM moves ORDER BY rowid").fetchall()
        db.close()
        return [amount for (amount,) in rows]


@pytest.fixture
def world(
    manual: Anvil, bindings: ModuleType, counter_artifact: Artifact, tmp_path: Path
) -> Iterator[World]:
    world = World(manual, create_counter(manual, bindings, counter_artifact, tmp_path), tmp_path)
    yield world
    world.sender.close()


def test_events_are_handled_once_and_in_order(world: World) -> None:
    world.move(1, 2)
    with world.cursor() as cursor:
        step = cursor.catch_up()
        assert step == Step(world.chain.rpc.block_number(), world.chain.rpc.block_number(), 2)
        assert cursor.catch_up().handled == 0
        world.move(3)
        cursor.catch_up()
        assert world.recorded() == [1, 2, 3]
    world.move(4)
    with world.cursor() as cursor:
        cursor.catch_up()
    assert world.recorded() == [1, 2, 3, 4]


def test_only_the_wanted_events_are_handled(world: World, bindings: ModuleType) -> None:
    world.move(1)
    world.sender.submit(world.counter.clear(), "clear")
    world.chain.mine()
    seen: list[Log] = []
    with world.cursor(
        handler=lambda db, log: seen.append(log), topics=[bindings.events.Cleared.TOPIC]
    ) as cursor:
        cursor.catch_up()
    assert [log.topics for log in seen] == [(bindings.events.Cleared.TOPIC,)]


def test_a_reorganisation_is_undone_and_the_new_chain_handled(world: World) -> None:
    world.move(1)
    with world.cursor() as cursor:
        world.move(2)
        world.move(3)
        cursor.catch_up()
        assert world.recorded() == [1, 2, 3]
        ancestor = world.chain.rpc.block_number() - 2
        world.chain.reorg(2)
        step = cursor.step()
        assert (step.rewound_to, step.caught_up) == (ancestor, False)
        assert world.recorded() == [1]
        cursor.catch_up()
        assert world.recorded() == [1]
        world.move(4)  # the sender first brings back what was dropped
        world.sender.submit(world.counter.move(1, 5, b"", value=0), "last")
        world.chain.mine()
        cursor.catch_up()
    with world.cursor("fresh.sqlite") as fresh:
        fresh.catch_up()
    assert world.recorded() == world.recorded("fresh.sqlite")


def test_a_reorganisation_while_the_cursor_was_away_is_noticed(world: World) -> None:
    world.move(1)
    world.move(2)
    with world.cursor() as cursor:
        cursor.catch_up()
    world.chain.reorg(1)
    world.chain.mine(4)
    with world.cursor() as cursor:
        assert cursor.step().rewound_to is not None
        cursor.catch_up()
    assert world.recorded() == [1]


class MeddlingRpc(Rpc):
    """Reorganises the chain right after the logs of some range were read."""

    def __init__(self, chain: Anvil) -> None:
        super().__init__(chain.rpc_url)
        self.chain = chain
        self.armed = True

    def batch(self, calls: Any) -> list[Any]:
        answers = super().batch(calls)
        if self.armed and any(method == "eth_getLogs" for method, _ in calls):
            self.armed = False
            self.chain.reorg(1)
        return answers


def test_a_reorganisation_between_two_questions_is_noticed(world: World) -> None:
    world.move(1)
    world.move(2)
    with MeddlingRpc(world.chain) as rpc, world.cursor(rpc=rpc) as cursor:
        step = cursor.step()
        assert step.disturbed
        assert world.recorded() == []
        cursor.catch_up()
        assert world.recorded() == [1]


def test_a_reorganisation_below_the_window_is_an_error(world: World) -> None:
    with world.cursor(window=2) as cursor:
        cursor.catch_up()
        for amount in range(4):
            world.move(amount)
            cursor.catch_up()
        world.chain.reorg(3)
        with pytest.raises(ReorgTooDeep, match="larger `window`"):
            cursor.step()
        assert world.recorded() == [0, 1, 2, 3]  # nothing is touched


def test_the_whole_window_can_be_undone(world: World) -> None:
    with world.cursor(window=3) as cursor:
        cursor.catch_up()
        for amount in range(5):
            world.move(amount)
            cursor.catch_up()
        world.chain.reorg(3)
        cursor.catch_up()
        assert world.recorded() == [0, 1]


def test_confirmations_delay_the_handler(world: World) -> None:
    world.move(1)
    with world.cursor(confirmations=2) as cursor:
        cursor.catch_up()
        assert world.recorded() == []
        world.chain.mine()
        cursor.catch_up()
        assert world.recorded() == []
        world.chain.mine()
        cursor.catch_up()
        assert world.recorded() == [1]


def test_a_cursor_starts_where_it_is_told(world: World) -> None:
    world.move(1)
    start = world.chain.rpc.block_number() + 1
    with world.cursor(start_block=start + 1) as cursor:
        assert cursor.catch_up().caught_up  # the block does not exist yet
        world.move(2)
        world.move(3)
        cursor.catch_up()
        assert world.recorded() == [3]


def test_a_long_way_is_caught_up_in_bounded_ranges(world: World) -> None:
    for amount in range(5):
        world.move(amount)
        world.chain.mine(60)
    steps: list[Step] = []
    with world.cursor(window=16, max_range=50) as cursor:
        while not (step := cursor.step()).caught_up:
            steps.append(step)
        positions = [-1, *(step.position for step in steps)]
        assert all(0 < b - a <= 50 for a, b in pairwise(positions))
        assert world.recorded() == [0, 1, 2, 3, 4]
    world.move(5)
    with world.cursor("late.sqlite", window=16, max_range=50) as cursor:
        cursor.catch_up()
        world.chain.reorg(10)  # the recent blocks are known one by one all the same
        assert cursor.step().rewound_to is not None
        assert world.recorded("late.sqlite") == [0, 1, 2, 3, 4]


class RefusingRpc(Rpc):
    """A provider that limits ranges: forwards only allowed requests to the real node."""

    def __init__(self, chain: Anvil, limit: int) -> None:
        super().__init__(chain.rpc_url)
        self.limit = limit
        self.refusals = 0

    def batch(self, calls: Any) -> list[Any]:
        def passed(call: Request) -> Request:
            if call[0] != "eth_getLogs":
                return call
            span = call[1][0]
            if int(span["toBlock"], 16) - int(span["fromBlock"], 16) < self.limit:
                return call
            self.refusals += 1
            beyond = {**span, "fromBlock": hex(10**6), "toBlock": hex(10**6)}
            return ("eth_getLogs", (beyond,))  # Anvil refuses this with its own words

        return super().batch([passed(call) for call in calls])


def test_a_range_that_the_node_refuses_is_halved(world: World) -> None:
    for amount in range(3):
        world.move(amount)
        world.chain.mine(30)
    with RefusingRpc(world.chain, limit=7) as rpc, world.cursor(rpc=rpc) as cursor:
        cursor.catch_up()
        assert rpc.refusals > 0
    assert world.recorded() == [0, 1, 2]


def test_an_error_of_the_handler_leaves_everything_as_it_was(world: World) -> None:
    world.move(1, 2)

    def handle(db: sqlite3.Connection, log: Log) -> None:
        record_move(db, log)
        if len(db.execute("SELECT * FROM moves").fetchall()) == 2:
            raise RuntimeError("no more")

    with world.cursor(handler=handle) as cursor:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no more"):
                cursor.catch_up()
        assert world.recorded() == []
    with world.cursor() as cursor:
        cursor.catch_up()
    assert world.recorded() == [1, 2]


def test_a_handler_cannot_leave_its_tables(world: World) -> None:
    world.move(1)
    with (
        world.cursor(handler=lambda db, log: db.execute("DELETE FROM cursors")) as cursor,
        pytest.raises(HandlerOverreached, match="delete from cursors"),
    ):
        cursor.catch_up()


def test_a_database_of_another_chain_is_refused(world: World) -> None:
    with world.cursor() as cursor:
        cursor.catch_up()
    time.sleep(1.1)  # a genesis block is told by its time alone, which counts in seconds
    with (
        Anvil(accounts=1, block_time=None) as other,
        pytest.raises(ChainMismatch, match="fresh database"),
    ):
        world.cursor(rpc=other.rpc)


@pytest.mark.parametrize("fatal_event", [1, 3, 4])
def test_a_cursor_that_is_killed_in_a_handler_counts_nothing_twice(
    world: World, fatal_event: int
) -> None:
    world.move(1, 2)
    world.move(3, 4)
    database = world.folder / "state.sqlite"
    arguments = [world.chain.rpc_url, database, world.counter.address, str(fatal_event)]
    killed = subprocess.run([sys.executable, CRASHING, "cursor", *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert world.recorded() == []
    with world.cursor() as cursor:
        cursor.catch_up()
    assert world.recorded() == [1, 2, 3, 4]


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> float:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "waited in vain"
        time.sleep(0.005)
    return time.monotonic() - started


def test_a_running_cursor_survives_a_node_that_hangs(world: World) -> None:
    with (
        Rpc(world.chain.rpc_url, timeout=2, retries=1) as impatient,
        world.cursor(rpc=impatient) as cursor,
    ):
        follower = Follower(cursor)
        follower.start()
        world.move(1)
        wait_until(lambda: world.recorded() == [1])
        os.kill(world.chain.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(world.chain.pid, signal.SIGCONT)
        world.move(2)
        wait_until(lambda: world.recorded() == [1, 2])
        follower.stop()


def test_a_running_cursor_survives_a_node_that_is_restarted(
    bindings: ModuleType, counter_artifact: Artifact, tmp_path: Path
) -> None:
    state = tmp_path / "chain.json"
    port = split_address(*free_addresses(1))[1]
    with Anvil(mining="manual", accounts=3, state=state, port=port) as chain:
        counter = create_counter(chain, bindings, counter_artifact, tmp_path)
        world = World(chain, counter, tmp_path)
        cursor = world.cursor(rpc=Rpc(chain.rpc_url, retries=1))
        follower = Follower(cursor)
        follower.start()
        world.move(1)
        wait_until(lambda: world.recorded() == [1])
        world.sender.close()
    time.sleep(0.3)
    assert follower.alive
    with Anvil(mining="manual", accounts=3, state=state, port=port) as chain:
        again = World(chain, bindings.Counter(chain.rpc, counter.address), tmp_path)
        again._moves = 1
        again.move(2)
        wait_until(lambda: again.recorded() == [1, 2])
        again.sender.close()
        follower.stop()
        cursor.close()


def test_new_heads_wake_a_cursor_that_polls_rarely(world: World) -> None:
    steps: list[Step] = []
    with (
        world.cursor() as cursor,
        HeadWatcher(
            world.chain.ws_url, (follower := Follower(cursor, steps.append, poll_seconds=3600)).wake
        ),
    ):
        follower.start()
        wait_until(lambda: bool(steps) and steps[-1].caught_up)

        def woken() -> bool:
            world.move(1)  # not only once: the watcher may not be connected yet
            time.sleep(0.3)
            return bool(world.recorded())

        wait_until(woken)
        follower.stop()


def test_a_head_watcher_without_a_node_is_no_error() -> None:
    with HeadWatcher("ws://127.0.0.1:1", lambda: None):
        time.sleep(0.3)
    with pytest.raises(ValueError, match="not a websocket URL"):
        HeadWatcher("http://127.0.0.1:1", lambda: None)


@pytest.mark.parametrize("seed", range(4))
def test_tables_always_equal_those_of_a_fresh_cursor(world: World, seed: int) -> None:
    """Moves, reorganisations and restarts in random order."""
    dice = random.Random(seed)
    world.chain.mine(3)
    cursor = world.cursor()
    for _ in range(25):
        match dice.randrange(5):
            case 0 | 1:
                world.move(*(dice.randrange(1000) for _ in range(dice.randrange(1, 4))))
            case 2:
                world.chain.reorg(dice.randrange(1, 6))
            case 3:
                cursor.step()
            case 4:
                cursor.close()
                cursor = world.cursor()
    cursor.catch_up()
    cursor.close()
    with world.cursor("fresh.sqlite") as fresh:
        fresh.catch_up()
    assert world.recorded() == world.recorded("fresh.sqlite")
