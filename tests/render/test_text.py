"""Numbers in words and Markdown tables."""

import pytest

from opfl_chain.protocol.economics import ETHER
from opfl_chain.render.text import (
    bytes_in_words,
    count_or_blank,
    ether,
    gas_in_words,
    markdown_table,
    percent,
    replace_section,
    rounded_ether,
)


@pytest.mark.parametrize(
    ("wei", "exact", "rounded"),
    [
        (0, "0 ETH", "0"),
        (1, "0.000000000000000001 ETH", "1e-18"),
        (ETHER // 4, "0.25 ETH", "0.25"),
        (-10 * ETHER, "-10 ETH", "-10"),
        (1234 * ETHER + ETHER // 3, "1,234.333333333333333333 ETH", "1,234"),
    ],
)
def test_ether_is_exact_in_sentences_and_rounded_in_columns(wei, exact, rounded):
    assert ether(wei) == exact
    assert rounded_ether(wei) == rounded


def test_sizes_are_megabytes_until_they_are_gigabytes():
    assert bytes_in_words(98_765_432) == "98.8 MB"
    assert bytes_in_words(493_824, 2) == "0.49 MB"
    assert bytes_in_words(1_250_000_000) == "1.25 GB"


def test_missing_and_zero_are_blank():
    assert percent(None) == count_or_blank(0) == ""
    assert percent(0.0) == "0.0"
    assert count_or_blank(3) == "3"


def test_small_gas_has_a_tenth():
    assert gas_in_words(112_752) == "112,752"
    assert gas_in_words(7.46) == "7.5"


def test_a_table_aligns_marked_columns_to_the_right():
    rows = [["commit", "1.13"]]
    assert markdown_table(["phase", ">seconds"], rows).splitlines() == [
        "| phase | seconds |",
        "| --- | --: |",
        "| commit | 1.13 |",
    ]
    assert markdown_table(["phase", ">seconds"], rows, tight=True).splitlines()[1] == "|---|--:|"


def test_a_section_is_replaced_between_its_marks_only(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin load -->\nold\n<!-- end load -->\nafter\n")
    replace_section(page, "load", "new")
    assert page.read_text() == "before\n<!-- begin load -->\nnew\n<!-- end load -->\nafter\n"
    with pytest.raises(OSError, match="must contain <!-- begin gas -->"):
        replace_section(page, "gas", "new")
