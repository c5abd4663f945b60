"""Charts are well-formed, and show what they are given."""

import itertools
from xml.etree import ElementTree

from opfl_chain.render.svg import HEIGHT, Line, bar_chart, line_chart


def parsed(svg):
    return ElementTree.fromstring(svg)


def test_labels_at_one_height_are_moved_apart():
    lines = [Line(name, [(0, 10), (4, 0)]) for name in ("<a>", "b", "c")]
    chart = parsed(line_chart(lines, across=4, up=12, unit=" %", below="round"))
    heights = {text.text: float(text.get("y")) for text in chart.iter("text") if text.get("class")}
    assert set(heights) == {"<a>", "b", "c"}
    ordered = sorted(heights.values())
    assert ordered[-1] < HEIGHT - 25  # the axis has its own labels
    assert all(b - a >= 15 for a, b in itertools.pairwise(ordered))


def test_higher_values_are_higher():
    chart = parsed(
        line_chart([Line("x", [(0, 0), (1, 50), (2, 100)])], across=2, up=100, unit="", below="")
    )
    points = chart.find("polyline").get("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] - heights[1] == heights[1] - heights[2]


def test_bars_are_as_long_as_their_values():
    chart = parsed(bar_chart({"a": 2.0, "b": 1.0, "none": 0.0}, {"a": "2", "b": "1", "none": "0"}))
    a, b, none = (float(bar.get("width")) for bar in chart.iter("rect"))
    assert abs(a - 2 * b) < 0.2
    assert none < 2
