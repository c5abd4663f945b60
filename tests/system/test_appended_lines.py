"""Lines that are appended durably."""

import pytest

from opfl_chain.system.files import append_line


def test_lines_follow_each_other(tmp_path):
    path = tmp_path / "folder" / "lines"
    for line in ("one", "two"):
        append_line(path, line)
    assert path.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("left", ["thr", "x" * 200_000])
def test_part_of_a_line_that_a_crash_left_is_removed(tmp_path, left):
    path = tmp_path / "lines"
    path.write_text("one\n" + left)
    append_line(path, "two")
    assert path.read_text() == "one\ntwo\n"


def test_file_that_holds_only_a_part_of_a_line(tmp_path):
    path = tmp_path / "lines"
    path.write_text("on")
    append_line(path, "one")
    assert path.read_text() == "one\n"
