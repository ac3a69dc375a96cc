"""Test charts: colours follow the page, text is text, and names do not overlap."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

import pytest
from jurygraph.eval.analysis.costs import Frontier, Point
from jurygraph.eval.report import chart_style
from jurygraph.eval.report.charts import Panel, frontier_figure, lines
from jurygraph.eval.statistics.resampling import Statistic

from .sample_study import around, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = Panel(
    "fluency", "rho", {"debate": [around(0.25), around(0.75)], "single": [None, Statistic(0.5)]}
)

HOSTILE = "</svg><script>alert(1)</script> $x$ \x00\x1b\u202e\ud800 中"


def drawing(frontier: Frontier | None = None) -> Figure:
    frontier = frontier or study().frontiers[0]
    return frontier_figure(
        frontier, {point.label: number for number, point in enumerate(frontier.points)}
    )


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_can_be_read_on_its_paper(dark: bool) -> None:
    colors = dict(re.findall(r"(--[\w-]+): (#\w{6});", chart_style.theme(dark)))
    paper = colors.pop("--figure-paper")
    colors.pop("--figure-rule")
    assert len(colors) == 11
    assert {
        name: contrast(color, paper)
        for name, color in colors.items()
        if contrast(color, paper) < 4.5
    } == {}


def test_a_themed_drawing_has_variables_for_colours_and_no_styles_of_its_own() -> None:
    drawn = chart_style.themed_svg(drawing(), "Agreement over cost", "debate is best")
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert [element.text for element in root[:2]] == ["Agreement over cost", "debate is best"]
    assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"
    assert not any(
        "style" in element.attrib or "font-family" in element.attrib for element in root.iter()
    )
    used = {element.get(name, "") for element in root.iter() for name in ("fill", "stroke")}
    assert {value for value in used if value.startswith("#")} <= {"#000000"}
    assert "var(--series-1, #0b63a8)" in used
    texts = {element.text for element in root.findall(".//{*}text")}
    assert {"single", "debate", "chateval", "coherence", "model calls per judgement"} <= texts
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_two_drawings_on_a_page_share_no_names() -> None:
    one = chart_style.themed_svg(drawing(), "one", "")
    other = chart_style.themed_svg(lines([PANEL], [0, 1], "rounds"), "other", "")
    names = [re.findall(r' id="([^"]+)"', drawn) for drawn in (one, other)]
    assert all(len(found) == len(set(found)) for found in names)
    assert not set(names[0]) & set(names[1])
    for drawn, found in zip((one, other), names, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn)) <= set(found)


def test_the_same_figure_is_the_same_drawing_and_leaves_no_global_state(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    threads = threading.active_count()
    drawn = [chart_style.themed_svg(drawing(), "one", "") for _ in range(2)]
    assert drawn[0] == drawn[1]
    files = [chart_style.save(drawing(), tmp_path / f"{n}.svg") for n in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert (dict(matplotlib.rcParams), threading.active_count()) == (before, threads)


def test_hostile_names_stay_text() -> None:
    point = Point(HOSTILE, 1.0, around(0.4), True)
    figure = drawing(Frontier(HOSTILE, "spearman", "cost", (point,), (), {}))
    root = ElementTree.fromstring(chart_style.themed_svg(figure, HOSTILE, HOSTILE))
    assert not list(root.findall(".//{*}script"))
    assert any(
        text.startswith("</svg><script>alert(1)")
        for element in root.findall(".//{*}text")
        if (text := element.text)
    )


def frontier(unit: Literal["cost", "calls"], *points: Point) -> Frontier:
    return Frontier("wit", "spearman", unit, points, (), {})


def test_names_do_not_cover_each_other() -> None:
    close = [Point(f"judge {n}", 4 + n / 50, around(0.4 + n / 500)) for n in range(5)]
    figure = drawing(frontier("calls", *close))
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 5
    assert not [(a, b) for a in range(5) for b in range(a) if boxes[a].overlaps(boxes[b])]


def test_prices_that_differ_tenfold_are_on_a_logarithmic_axis() -> None:
    free, cheap, dear = (Point(str(spent), spent, around(0.4)) for spent in (0, 0.001, 0.02))
    assert drawing(frontier("cost", cheap, dear)).axes[0].get_xscale() == "log"
    assert drawing(frontier("cost", free, dear)).axes[0].get_xscale() == "linear"
