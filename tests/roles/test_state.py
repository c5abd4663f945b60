"""A daemon's own state: on disk, owned by one daemon, and shared by its threads."""

import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from opfl_chain.roles.settings import StateForeign
from opfl_chain.roles.state import State

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, value BLOB);"

KILLED = """
import os, signal, sys
from pathlib import Path
from opfl_chain.roles.state import State
state = State(Path(sys.argv[1]), "client A of job 1", sys.argv[2])
state.write("INSERT INTO notes VALUES ('written', x'01')")
with state.transaction():
    state.write("INSERT INTO notes VALUES ('begun', x'02')")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "own" / "state.sqlite"


@pytest.fixture
def state(path):
    state = State(path, "client A of job 1", SCHEMA)
    yield state
    state.close()


def test_kill_keeps_finished_writes_and_drops_unfinished_ones(path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), SCHEMA], check=False)
    assert killed.returncode == -9
    state = State(path, "client A of job 1", SCHEMA)
    assert state.all("SELECT key FROM notes") == [("written",)]
    state.close()


def test_the_state_of_another_is_refused_by_name(path, state):
    with pytest.raises(
        StateForeign, match="belongs to client A of job 1, not to client B of job 1"
    ):
        State(path, "client B of job 1", SCHEMA)


def test_a_transaction_that_fails_leaves_nothing(state):
    with pytest.raises(RuntimeError), state.transaction():
        state.write("INSERT INTO notes VALUES ('a', x'00')")
        raise RuntimeError
    assert state.one("SELECT count(*) FROM notes") == (0,)


def test_threads_share_it_one_at_a_time(state):
    def write(n):
        for i in range(50):
            with state.transaction():
                count = state.one("SELECT count(*) FROM notes")[0]
                state.write("INSERT INTO notes VALUES (?, ?)", f"{n} {i}", bytes([count % 256]))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [value[0] for (value,) in state.all("SELECT value FROM notes ORDER BY rowid")]
    assert values == [n % 256 for n in range(200)]


def test_nobody_else_on_the_machine_can_read_it(path, state):
    state.write("INSERT INTO notes VALUES ('secret', x'00')")
    for file in (path, path.with_name("state.sqlite-wal")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_deleted_data_is_not_left_in_the_file(path):
    state = State(path, "client A of job 1", SCHEMA)
    secret = b"a share that nobody may find" * 400
    state.write("INSERT INTO notes VALUES ('share', ?)", secret)
    state.write("DELETE FROM notes")
    state.close()
    assert secret[:28] not in path.read_bytes()


def test_a_full_disk_is_an_error_that_daemons_wait_for(path, state):
    state.one("PRAGMA max_page_count = 8")
    with pytest.raises(sqlite3.OperationalError):
        state.write("INSERT INTO notes VALUES ('large', zeroblob(1000000))")
    state.write("INSERT INTO notes VALUES ('small', x'00')")
