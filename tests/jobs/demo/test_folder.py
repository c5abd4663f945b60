"""Output folder of a demo."""

import pytest

from opfl_chain.jobs.demo.demo import FolderTaken, fresh_folder


def test_the_last_demo_is_moved_aside_and_the_one_before_it_goes(tmp_path):
    for number in range(3):
        (fresh_folder(tmp_path / "demo") / "report.html").write_text(str(number))
    assert (tmp_path / "demo" / "report.html").read_text() == "2"
    assert (tmp_path / "demo-before" / "report.html").read_text() == "1"
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_of_others_is_moved(tmp_path):
    (tmp_path / "thesis.tex").write_text("everything")
    with pytest.raises(FolderTaken, match="--out"):
        fresh_folder(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "everything"


def test_nothing_of_others_is_in_the_way(tmp_path):
    fresh_folder(tmp_path / "demo")
    (tmp_path / "demo-before").mkdir()
    with pytest.raises(FolderTaken, match="demo-before"):
        fresh_folder(tmp_path / "demo")
    assert (tmp_path / "demo-before").is_dir()
