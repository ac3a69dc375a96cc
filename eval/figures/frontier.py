"""Agreement over cost: who agrees best with people at which price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .labels import place_labels
from .style import INK, MUTED, PAPER, SERIES, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..study.frontier import Frontier, Point

UNITS = {"cost": "US dollars a judgement", "calls": "model calls a judgement"}
AXES = {
    "spearman": "Spearman's rho",
    "pearson": "Pearson's r",
    "kendall": "Kendall's tau-b",
    "accuracy": "accuracy",
}


def frontier_figure(frontier: Frontier, title: bool = True) -> Figure:
    """Each contender with its interval, the line of those whom nobody beats at their price, ensembles as a curve.

    The horizontal axis is logarithmic where prices differ more than tenfold.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure, axes = new_figure(6.6, 4.3)
    best = frontier.frontier
    if len(best) > 1:
        _pareto(axes, best)
    for number, curve in enumerate(frontier.curves):
        _curve(axes, curve.points, SERIES[(number + 1) % len(SERIES)])
    for point in frontier.points:
        _point(axes, point)
    spent = [point.spent for point in frontier.points] + [p.spent for c in frontier.curves for p in c.points]
    _scale(axes, spent)
    axes.set_xlabel(UNITS[frontier.unit])
    axes.set_ylabel(AXES.get(frontier.measure, frontier.measure))
    if title:
        axes.set_title(plain(frontier.subject), loc="left")
    names = told_apart([point.label for point in frontier.points])
    named = [
        (point.spent, point.agreement.value, plain(name, 40), point.on_frontier)
        for point, name in zip(frontier.points, names, strict=True)
    ]
    named += [
        (last.spent, last.agreement.value, plain(last.label, 28), last.on_frontier)
        for last in (curve.points[-1] for curve in frontier.curves if curve.points)
        if not any(_same(last, point) for point in frontier.points)
    ]
    place_labels(figure, axes, [name for name in named if name[1] is not None])
    return figure


def told_apart(labels: Sequence[str]) -> list[str]:
    """Names without what all of them say: of a sweep's cells only what differs is worth its room.

    >>> told_apart(["debate (n=1,persona=plain)", "debate (n=2,persona=plain)"])
    ['n=1', 'n=2']
    >>> told_apart(["single", "debate (n2)"])
    ['single', 'debate (n2)']
    """
    parts = [(head, tail[:-1].split(",")) for head, _, tail in (label.partition(" (") for label in labels)]
    if (
        len(labels) < 2
        or len({head for head, _ in parts}) > 1
        or not all(label[-1:] == ")" for label in labels)
    ):
        return list(labels)
    shared = set.intersection(*(set(said) for _, said in parts))
    short = [", ".join(word for word in said if word not in shared) for _, said in parts]
    return short if all(short) and len(set(short)) == len(set(labels)) else list(labels)


def _same(one: Point, other: Point) -> bool:
    """An ensemble of all its judges is the contender itself."""
    return (one.spent, one.agreement.value) == (other.spent, other.agreement.value)


def _pareto(axes: Axes, points: Sequence[Point]) -> None:
    axes.plot(
        [point.spent for point in points],
        [_value(point) for point in points],
        color=SERIES[0],
        linewidth=1.6,
        drawstyle="steps-post",
        alpha=0.55,
        zorder=2,
    )


def _curve(axes: Axes, points: Sequence[Point], color: str) -> None:
    axes.plot(
        [point.spent for point in points],
        [_value(point) for point in points],
        color=color,
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        marker=".",
        markersize=5,
        zorder=2,
    )


def _point(axes: Axes, point: Point) -> None:
    found = point.agreement
    if found.value is None:
        return
    color, mark = look(0 if point.on_frontier else 5)
    bars: Any = None
    if found.low is not None and found.high is not None:
        bars = [[max(0.0, found.value - found.low)], [max(0.0, found.high - found.value)]]
    axes.errorbar(
        [point.spent],
        [found.value],
        yerr=bars,
        color=color,
        marker=mark if point.on_frontier else "s",
        markersize=7 if point.on_frontier else 5.5,
        markeredgecolor=PAPER,
        elinewidth=1.2,
        capsize=2.5,
        zorder=3,
    )


def _scale(axes: Axes, spent: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    above = [value for value in spent if value > 0]
    if len(above) == len(spent) and above and max(above) > 10 * min(above):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.tick_params(which="both", colors=MUTED)
    axes.xaxis.label.set_color(INK)


def _value(point: Point) -> float:
    return float("nan") if point.agreement.value is None else point.agreement.value
