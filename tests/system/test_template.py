"""Copies of a process that has loaded a program: each with its own arguments, log and end."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from opfl_chain.system.child import ChildFailed
from opfl_chain.system.template import Template

PROGRAM = """\
import atexit, ctypes, os, sys, time
from concurrent.futures import ThreadPoolExecutor

LOADED_BY = os.getpid()
PREPARED_BY = None
LIBRARY = ctypes.CDLL(None)

def prepare():
    global PREPARED_BY
    PREPARED_BY = os.getpid()

def main():
    if sys.argv[1] == "prepared":
        print(PREPARED_BY)
    print(LOADED_BY, os.getpid(), os.environ["COLOUR"], *sys.argv[1:], flush=True)
    if sys.argv[1] == "fail":
        sys.exit("failed")
    if sys.argv[1] == "stuck":
        # A library whose exit handler waits for a lock that a thread of the template held.
        LIBRARY.__cxa_atexit(LIBRARY.pause, None, None)
        atexit.register(print, "said goodbye")
        ThreadPoolExecutor().submit(print, "a thread ended")
    while sys.argv[1] == "stay":
        time.sleep(0.01)
"""

STARTER = """\
import sys, time
from pathlib import Path
from opfl_chain.system.template import Template

folder = Path(sys.argv[1])
template = Template("copied:main", [], folder / "template.log", {"COLOUR": "red"})
print(template.start(["stay"], folder / "copy.log").pid, flush=True)
time.sleep(3600)
"""


def is_running(pid):
    """Zombies do not run, whoever has to collect them."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(condition):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The program is where new processes find it."""
    (tmp_path / "copied.py").write_text(PROGRAM)
    before = os.environ.get("PYTHONPATH")
    folders = [str(tmp_path), *filter(None, [before])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    return tmp_path


@pytest.fixture
def template(path):
    with Template("copied:main", ["json"], path / "template.log", {"COLOUR": "red"}) as template:
        yield template


def test_copies_have_loaded_the_program_once_and_differ_in_arguments_and_log(path, template):
    copies = [template.start([name, "there"], path / f"{name}.log") for name in ("a", "b")]
    for copy in copies:
        wait_until(lambda copy=copy: not copy.alive)
    said = [copy.log.read_text().split() for copy in copies]
    assert said[0][0] == said[1][0], "loaded once"
    assert [int(words[1]) for words in said] == [copy.pid for copy in copies]
    assert [words[2:] for words in said] == [["red", "a", "there"], ["red", "b", "there"]]


def test_function_is_called_once_before_there_are_copies(path):
    with Template("copied:main", ["copied:prepare"], path / "log", {"COLOUR": "red"}) as template:
        copy = template.start(["prepared"], path / "copy.log")
        wait_until(lambda: not copy.alive)
    prepared_by, loaded_by, own, *_ = copy.log.read_text().split()
    assert prepared_by == loaded_by != own


def test_copy_runs_until_it_is_closed(path, template):
    copy = template.start(["stay"], path / "copy.log")
    wait_until(lambda: "stay" in copy.log.read_text())
    assert copy.alive and is_running(copy.pid)
    copy.close()
    assert not copy.alive and not is_running(copy.pid)
    copy.close()


def test_copy_that_fails_says_so_in_its_log_and_harms_no_other(path, template):
    copy = template.start(["fail"], path / "copy.log")
    wait_until(lambda: not copy.alive)
    assert copy.log.read_text().endswith("failed\n")
    assert template.start(["again"], path / "again.log").pid != copy.pid


def test_exit_handler_of_a_library_keeps_no_copy(path, template):
    copy = template.start(["stuck"], path / "copy.log")
    wait_until(lambda: not copy.alive)
    assert copy.log.read_text().splitlines()[1:] == ["a thread ended", "said goodbye"]


def test_starter_may_have_many_files_open(path, template):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        with ExitStack() as files:
            for _ in range(1100):
                files.enter_context(Path(os.devnull).open())
            copy = template.start(["stay"], path / "copy.log")
            assert copy.alive
            copy.close()
            assert not copy.alive
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_killed_copy_is_not_alive(path, template):
    copy = template.start(["stay"], path / "copy.log")
    os.kill(copy.pid, signal.SIGKILL)
    wait_until(lambda: not copy.alive)


def test_copies_end_with_their_template(path):
    with Template("copied:main", [], path / "log", {"COLOUR": "red"}) as template:
        copy = template.start(["stay"], path / "copy.log")
    assert not is_running(copy.pid)


@pytest.mark.parametrize("victim", ["starter", "template"])
def test_no_copy_outlives_a_starter_or_template_that_is_killed(path, victim):
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, path], stdout=subprocess.PIPE, text=True
    )
    with starter:
        pid = int(starter.stdout.readline())
        wait_until(lambda: (path / "copy.log").read_text().endswith("stay\n"))
        parent = int((path / "copy.log").read_text().split()[0]) if victim == "template" else None
        os.kill(parent or starter.pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid))
        starter.kill()


def test_program_that_cannot_be_loaded_is_reported_with_its_log(path):
    with (
        Template("nowhere:main", [], path / "template.log", {}) as template,
        pytest.raises(ChildFailed, match="No module named 'nowhere'"),
    ):
        template.start(["x"], path / "copy.log")
