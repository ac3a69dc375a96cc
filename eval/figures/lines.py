"""Lines over a numeric axis with bands for their intervals: how agreement changes as a setting grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..statistics.statistic import Statistic
from .style import MUTED, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INCHES_A_LETTER, LETTERS_A_MARK = 0.08, 6
"""What a name takes in a legend, and its mark beside it."""

WIDE = 20
"""Places on an axis whose largest is so many times the smallest stand apart by factors, not by differences."""


@dataclass(frozen=True)
class Panel:
    """One drawing of several beside each other.

    Attributes:
        title: above it.
        measure: what is read off the vertical axis.
        lines: by name, a figure for each place on the horizontal axis; ``None`` where there is none.
    """

    title: str
    measure: str
    lines: Mapping[str, Sequence[Statistic | None]]


def lines(panels: Sequence[Panel], places: Sequence[float], axis: str) -> Figure:
    """Panels with lines over the same places.

    Args:
        panels: beside each other; lines of one name look the same in all of them.
        places: on the horizontal axis, in any order.
        axis: what they are places on.

    Raises:
        UsageError: matplotlib is not installed.
    """
    shared = len({panel.measure for panel in panels}) == 1
    width = max(4.6, (3.0 if shared else 3.6) * len(panels))
    figure, axes = new_figure(width, 3.6, len(panels), sharey=shared)
    each = each_of(axes)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    asides = _asides(names, places)
    order = sorted(range(len(places)), key=lambda at: places[at])
    for panel, drawn in zip(panels, each, strict=True):
        _frame(drawn, panel, sorted(set(places)), axis)
        if not shared or drawn is each[0]:
            drawn.set_ylabel(plain(panel.measure))
        for name, figures in panel.lines.items():
            points = [(places[at], figures[at]) for at in order]
            if len(names) == 1:
                _line(drawn, 0, points, plain(name))
            else:
                _line_among_others(drawn, names.index(name), points, plain(name), asides[name])
    if len(names) > 1:
        legend(figure, each[0])
    return figure


def legend(figure: Figure, drawn: Axes) -> None:
    """The names of what a panel shows, below all panels, in as many columns as there is room for."""
    handles, labels = drawn.get_legend_handles_labels()
    most = int(figure.get_figwidth() / (INCHES_A_LETTER * (max(map(len, labels)) + LETTERS_A_MARK)))
    columns = max(1, min(len(labels), most))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def each_of(axes: Any) -> list[Axes]:
    """The panels of a figure, be it one or several."""
    return list(axes.flat) if hasattr(axes, "flat") else [axes]


def _frame(drawn: Axes, panel: Panel, places: Sequence[float], axis: str) -> None:
    drawn.set_title(plain(panel.title))
    drawn.set_xlabel(plain(axis))
    if _by_factors(places):
        drawn.set_xscale("log")
    drawn.set_xticks(list(places), [f"{place:g}" for place in places])
    drawn.set_xticks([], minor=True)
    if not any(
        figure is not None and figure.value is not None for line in panel.lines.values() for figure in line
    ):
        drawn.text(0.5, 0.5, "no figures", transform=drawn.transAxes, color=MUTED, ha="center", va="center")


def _line(drawn: Axes, number: int, points: Sequence[tuple[float, Statistic | None]], name: str) -> None:
    """The line alone, with its interval as a band."""
    color, mark = look(number)
    there = [(at, found.value) for at, found in points if found is not None and found.value is not None]
    drawn.plot([at for at, _ in there], [value for _, value in there], color=color, marker=mark, label=name)
    places, low, high = _bounds(points)
    drawn.fill_between(places, low, high, color=color, alpha=0.13, linewidth=0)


def _line_among_others(
    drawn: Axes, number: int, points: Sequence[tuple[float, Statistic | None]], name: str, aside: float
) -> None:
    """The line with an interval at each place, a little aside, since bands on bands tell nothing."""
    color, mark = look(number)
    there = [
        (at + aside, found.value) for at, found in points if found is not None and found.value is not None
    ]
    drawn.plot([at for at, _ in there], [value for _, value in there], color=color, marker=mark, label=name)
    places, low, high = _bounds(points)
    drawn.vlines([at + aside for at in places], low, high, color=color, alpha=0.55, linewidth=1.2)


def _bounds(points: Sequence[tuple[float, Statistic | None]]) -> tuple[list[float], list[float], list[float]]:
    bounded = [
        (at, found.low, found.high)
        for at, found in points
        if found is not None and found.low is not None and found.high is not None
    ]
    return [at for at, _, _ in bounded], [low for _, low, _ in bounded], [high for _, _, high in bounded]


def _by_factors(places: Sequence[float]) -> bool:
    return min(places) > 0 and max(places) >= WIDE * min(places)


def _asides(names: Sequence[str], places: Sequence[float]) -> dict[str, float]:
    """How far each of several lines is moved aside, so that their intervals stand beside each other."""
    narrowest = min((after - before for before, after in pairwise(sorted(set(places)))), default=1.0)
    if _by_factors(places):
        narrowest = min(narrowest, *places)
    step = min(0.05, 0.3 / len(names)) * narrowest
    return {name: (number - (len(names) - 1) / 2) * step for number, name in enumerate(names)}
