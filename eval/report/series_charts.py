"""Draw charts with lines, columns or bars, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from ..statistics.resampling import Statistic
from .chart_style import INK, MUTED, PEOPLE, look, new_figure, plain
from .labels import HUMANS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INCHES_A_LETTER, LETTERS_A_MARK = 0.08, 6
"""The width of a letter in a legend in inches, and that of the marker in letters."""

WIDE = 20
"""The ratio of the largest to the smallest value from which on an axis is logarithmic."""


def lines(panels: Sequence[Panel], places: Sequence[float], axis: str) -> Figure:
    """Draw panels side by side with lines over the same values of a horizontal axis.

    Args:
        panels: the panels; lines of one name look the same in all of them.
        places: the values on the horizontal axis, in any order.
        axis: the label of the horizontal axis.

    Raises:
        UsageError: matplotlib is not installed.
    """
    shared = len({panel.measure for panel in panels}) == 1
    width = max(4.6, (3.0 if shared else 3.6) * len(panels))
    figure, axes = new_figure(width, 3.6, len(panels), sharey=shared)
    panel_axes = each_of(axes)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    asides = _asides(names, places)
    # The values come in any order, but a line through them has to go from left to right.
    order = sorted(range(len(places)), key=lambda at: places[at])
    for panel, drawn in zip(panels, panel_axes, strict=True):
        _frame(drawn, panel, sorted(set(places)), axis)
        if not shared or drawn is panel_axes[0]:
            drawn.set_ylabel(plain(panel.measure))
        for name, figures in panel.lines.items():
            points = [(places[at], figures[at]) for at in order]
            _line(drawn, names.index(name), points, plain(name), asides[name] if len(names) > 1 else None)
    if len(names) > 1:
        legend(figure, panel_axes[0])
    return figure


@dataclass(frozen=True)
class Panel:
    """Describes one panel of a chart.

    Attributes:
        title: the text above it.
        measure: the label of the vertical axis.
        lines: a statistic for each value on the horizontal axis, or ``None`` if there is none, by the line's name.
    """

    title: str
    measure: str
    lines: Mapping[str, Sequence[Statistic | None]]


def legend(figure: Figure, drawn: Axes) -> None:
    """Draw a panel's legend below all panels, in as many columns as fit."""
    handles, labels = drawn.get_legend_handles_labels()
    most = int(figure.get_figwidth() / (INCHES_A_LETTER * (max(map(len, labels)) + LETTERS_A_MARK)))
    columns = max(1, min(len(labels), most))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def each_of(axes: Any) -> list[Axes]:
    """Return the axes of a figure as a list, whether it has one panel or several."""
    return list(axes.flat) if hasattr(axes, "flat") else [axes]


def _frame(drawn: Axes, panel: Panel, places: Sequence[float], axis: str) -> None:
    drawn.set_title(plain(panel.title))
    drawn.set_xlabel(plain(axis))
    if _by_factors(places):
        drawn.set_xscale("log")
    drawn.set_xticks(list(places), [f"{place:g}" for place in places])
    drawn.set_xticks([], minor=True)  # a logarithmic axis has some of its own
    _say_if_empty(drawn, panel)


def _say_if_empty(drawn: Axes, panel: Panel) -> None:
    statistics = chain.from_iterable(panel.lines.values())
    if not any(statistic is not None and statistic.value is not None for statistic in statistics):
        drawn.text(0.5, 0.5, "no values", transform=drawn.transAxes, color=MUTED, ha="center", va="center")


def _line(
    drawn: Axes,
    number: int,
    points: Sequence[tuple[float, Statistic | None]],
    name: str,
    aside: float | None = None,
) -> None:
    """Draw a line with its interval as a band; one of several, shifted a little, with vertical lines in its place."""
    color, mark = look(number)
    known = [(at, statistic.value) for at, statistic in points if statistic and statistic.value is not None]
    drawn.plot(
        [at + (aside or 0.0) for at, _ in known],
        [value for _, value in known],
        color=color,
        marker=mark,
        label=name,
    )
    places, low, high = _bounds(points)
    if aside is None:
        drawn.fill_between(places, low, high, color=color, alpha=0.13, linewidth=0)
    else:
        # Bands would overlap.
        drawn.vlines([at + aside for at in places], low, high, color=color, alpha=0.55, linewidth=1.2)


def _bounds(points: Sequence[tuple[float, Statistic | None]]) -> tuple[list[float], list[float], list[float]]:
    bounded = [
        (at, statistic.low, statistic.high)
        for at, statistic in points
        if statistic is not None and statistic.low is not None and statistic.high is not None
    ]
    return [at for at, _, _ in bounded], [low for _, low, _ in bounded], [high for _, _, high in bounded]


def _by_factors(places: Sequence[float]) -> bool:
    return min(places) > 0 and max(places) >= WIDE * min(places)


def _asides(names: Sequence[str], places: Sequence[float]) -> dict[str, float]:
    """Return how far each of several lines is shifted, so that their intervals stand side by side."""
    narrowest = min((after - before for before, after in pairwise(sorted(set(places)))), default=1.0)
    # On a logarithmic axis a shift must stay small beside the smallest value, which would else fall below zero.
    if _by_factors(places):
        narrowest = min(narrowest, *places)
    step = min(0.05, 0.3 / len(names)) * narrowest
    return {name: (number - (len(names) - 1) / 2) * step for number, name in enumerate(names)}


WIDTH = 0.8
"""The width of all columns at one label together; labels are 1 apart."""

LETTERS = 36
"""How many letters fit below a panel before its labels are turned."""


def columns(panels: Sequence[Panel], labels: Sequence[str], axis: str) -> Figure:
    """Draw panels side by side with columns at the same labels.

    Args:
        panels: the panels; columns of one name look the same in all of them.
        labels: the labels of the horizontal axis, in order.
        axis: the label of the horizontal axis.

    Raises:
        UsageError: matplotlib is not installed.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    width = min(max(3.4, 1.2 + 0.32 * len(labels) * max(2, len(names))), 9.0)
    shared = len({panel.measure for panel in panels}) == 1
    figure, axes = new_figure(width * len(panels), 3.8, len(panels), sharey=shared)
    panel_axes = each_of(axes)
    for panel, drawn in zip(panels, panel_axes, strict=True):
        _columns_frame(drawn, panel, labels, axis)
        if not shared or drawn is panel_axes[0]:
            drawn.set_ylabel(plain(panel.measure))
        for name, figures in panel.lines.items():
            _series(drawn, names.index(name), len(names), figures, plain(name))
    if len(names) > 1:
        legend(figure, panel_axes[0])
    return figure


def _columns_frame(drawn: Axes, panel: Panel, labels: Sequence[str], axis: str) -> None:
    drawn.set_title(plain(panel.title))
    drawn.set_xlabel(plain(axis))
    crowded = max(map(len, labels)) * len(labels) > LETTERS
    drawn.set_xticks(
        range(len(labels)),
        [plain(label) for label in labels],
        rotation=25 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    drawn.set_xlim(-0.6, len(labels) - 0.4)
    drawn.grid(False, axis="x")
    drawn.axhline(0, color=INK, linewidth=0.8)
    _say_if_empty(drawn, panel)


def _series(drawn: Axes, number: int, several: int, figures: Sequence[Statistic | None], name: str) -> None:
    color, _ = look(number)
    width = WIDTH / several
    left = -WIDTH / 2 + width * (number + 0.5)
    known = [
        (at + left, statistic)
        for at, statistic in enumerate(figures)
        if statistic is not None and statistic.value is not None
    ]
    heights = [statistic.value or 0.0 for _, statistic in known]
    drawn.bar([at for at, _ in known], heights, width=width * 0.92, color=color, label=name)
    for at, statistic in known:
        if statistic.low is not None and statistic.high is not None:
            drawn.plot([at, at], [statistic.low, statistic.high], color=INK, linewidth=1.1)


def bars_figure(
    points: Sequence[str],
    people: Sequence[float],
    judges: Mapping[str, Sequence[float]],
    title: str = "",
    numbers: Mapping[str, int] | None = None,
    reference: str = HUMANS,
) -> Figure:
    """Draw a score distribution: a group of bars for each point of the scale, the labels first, then the judges.

    Args:
        points: names of the scale's points, in order.
        people: share of the labels at each point (0 to 1); empty without labels.
        judges: the same for each judge.
        title: what was judged.
        numbers: the number of each judge's colour, so that it is the same in all charts; default: in order.
        reference: the name of the labels' series.

    Raises:
        ValueError: a series does not have one share for each point.
        UsageError: matplotlib is not installed.
    """
    series = {**({reference: people} if len(people) else {}), **judges}
    for name, shares in series.items():
        if len(shares) != len(points):
            raise ValueError(f"{name}: {len(shares)} shares for {len(points)} points of the scale")
    figure, axes = new_figure(max(4.6, 0.32 * len(points) * max(1, len(series))), 3.4)
    numbers = numbers or {name: number for number, name in enumerate(judges)}
    # Points are 1 apart: a group of bars takes 0.82 of that, from 0.41 to the left of its point.
    width = 0.82 / max(1, len(series))
    for number, (name, shares) in enumerate(series.items()):
        left = -0.41 + width * (number + 0.5)
        axes.bar(
            [place + left for place in range(len(points))],
            [100 * share for share in shares],
            width=width * 0.92,
            color=PEOPLE if name == reference else look(numbers[name])[0],
            label=plain(name, 30),
        )
    axes.set_xticks(range(len(points)), [plain(point, 12) for point in points])
    axes.grid(False, axis="x")
    axes.set_ylabel("% of verdicts")
    if title:
        axes.set_title(plain(title), loc="left")
    figure.legend(frameon=False, fontsize=8, ncols=min(3, len(series)), loc="outside lower center")
    return figure
