"""Draw charts of agreement over cost and of agreement by round, with labels that do not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..statistics.metrics import METRICS
from .chart_style import INK, MUTED, PAPER, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..analysis.costs import Frontier, Point
    from ..analysis.diagnostics import Round


UNITS = {"cost": "US dollars per judgement", "calls": "model calls per judgement"}
AXES = {name: metric.title for name, metric in METRICS.items()}


def frontier_figure(
    frontier: Frontier, numbers: Mapping[str, int] | None = None, title: bool = True
) -> Figure:
    """Draw agreement over cost: each judge with its interval, the Pareto frontier as a line, ensembles as curves.

    Marks of judges on the frontier are filled, those of others hollow. The horizontal axis is logarithmic if costs
    differ more than tenfold.

    Args:
        frontier: the judges, with what they cost and how well they agree.
        numbers: the number of each judge's colour and mark, so that they are the same in all charts; default: in order.
        title: whether the chart has a title.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure, axes = new_figure(6.6, 4.3)
    best = frontier.frontier
    if len(best) > 1:
        # Level up to the next point: for any cost in between, the cheaper judge is the best there is.
        _line(axes, best, color=MUTED, linewidth=1.6, alpha=0.55, drawstyle="steps-post")
    for number, curve in enumerate(frontier.curves):
        dashed: Any = {"linestyle": (0, (4, 2)), "marker": ".", "markersize": 5}
        _line(axes, curve.points, color=(MUTED, INK)[number % 2], linewidth=1.2, **dashed)
    numbers = numbers or {point.label: number for number, point in enumerate(frontier.points)}
    for point in frontier.points:
        _point(axes, point, numbers[point.label])
    spent = [point.spent for point in frontier.points] + [p.spent for c in frontier.curves for p in c.points]
    _scale(axes, spent)
    axes.set_xlabel(UNITS[frontier.unit])
    axes.set_ylabel(AXES.get(frontier.measure, frontier.measure))
    if title:
        axes.set_title(plain(frontier.subject), loc="left")
    names = distinguishing_names([point.label for point in frontier.points])
    named = [
        (point.spent, point.agreement.value, plain(name, 40), point.on_frontier)
        for point, name in zip(frontier.points, names, strict=True)
    ]
    # A curve is named at its last point only, unless a judge's name stands there already.
    named += [
        (last.spent, last.agreement.value, plain(last.label, 28), last.on_frontier)
        for last in (curve.points[-1] for curve in frontier.curves if curve.points)
        if not any(_same(last, point) for point in frontier.points)
    ]
    place_labels(figure, axes, [name for name in named if name[1] is not None])
    return figure


def distinguishing_names(labels: Sequence[str]) -> list[str]:
    """Shorten names to what differs between them, such as the settings of a sweep's cells.

    >>> distinguishing_names(["debate (n=1,persona=plain)", "debate (n=2,persona=plain)"])
    ['n=1', 'n=2']
    >>> distinguishing_names(["single", "debate (n2)"])
    ['single', 'debate (n2)']
    """
    parts = [(head, tail[:-1].split(",")) for head, _, tail in (label.partition(" (") for label in labels)]
    if (
        len(labels) < 2
        or len({head for head, _ in parts}) > 1
        or not all(label[-1:] == ")" for label in labels)
    ):
        return list(labels)
    # If some name would be empty or two names the same without what is shared, all are kept whole.
    shared = set.intersection(*(set(settings) for _, settings in parts))
    short = [", ".join(word for word in settings if word not in shared) for _, settings in parts]
    return short if all(short) and len(set(short)) == len(set(labels)) else list(labels)


def _same(point: Point, other: Point) -> bool:
    """Tell whether an ensemble is the same point as a judge: an ensemble of all its judges is that judge."""
    return (point.spent, point.agreement.value) == (other.spent, other.agreement.value)


def _line(axes: Axes, points: Sequence[Point], **style: Any) -> None:
    axes.plot([point.spent for point in points], [_value(point) for point in points], zorder=2, **style)


def _point(axes: Axes, point: Point, number: int) -> None:
    agreement = point.agreement
    if agreement.value is None:
        return
    color, mark = look(number)
    bars: Any = None
    if agreement.low is not None and agreement.high is not None:
        # A resampled interval need not contain its value, and matplotlib refuses bars of negative length.
        bars = [[max(0.0, agreement.value - agreement.low)], [max(0.0, agreement.high - agreement.value)]]
    axes.errorbar(
        [point.spent],
        [agreement.value],
        yerr=bars,
        color=color,
        marker=mark,
        markersize=7,
        markerfacecolor=color if point.on_frontier else PAPER,
        elinewidth=1.2,
        capsize=2.5,
        zorder=3,
    )


def _scale(axes: Axes, spent: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    above = [value for value in spent if value > 0]
    if len(above) == len(spent) and above and max(above) > 10 * min(above):
        axes.set_xscale("log")
        # Plain numbers, where matplotlib would write powers such as 10⁻³.
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.tick_params(which="both", colors=MUTED)
    axes.xaxis.label.set_color(INK)


def _value(point: Point) -> float:
    return float("nan") if point.agreement.value is None else point.agreement.value


_SIZE = 9

MANY = 10
"""Up to this many points, each gets a label even if it overlaps another."""
# Where a label may stand, as an offset in points with its alignment, the best place first: at the corners, beside the
# point, then further and further above and below.
_CORNERS = tuple(
    tuple(
        (x, y * up, "left" if x > 0 else "right", "bottom" if up > 0 else "top")
        for up in (1, -1)
        for x in (7, -7)
    )
    for y in (5, 17, 30)
)
_AROUND = (*_CORNERS[0], (9, 0, "left", "center"), (-9, 0, "right", "center"), *_CORNERS[1], *_CORNERS[2])


def place_labels(figure: Figure, axes: Axes, named: Sequence[tuple[float, float | None, str, bool]]) -> None:
    """Write labels beside points.

    Each label takes the first free place around its point that is inside the axes; if there is none, the first. With
    more than ``MANY`` points, a label without a free place is left out, unless it is of the frontier.

    Args:
        figure: the figure of the axes.
        axes: the axes, with everything else drawn and the scales set.
        named: for each point its coordinates, its label, and whether it is on the frontier.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    # The layout moves the axes when it is drawn: only then do positions on the canvas hold.
    figure.draw_without_rendering()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    points = [axes.transData.transform((x, y)) for x, y, _, _ in named if y is not None]
    taken: list[Any] = []
    # The frontier's labels choose first.
    for x, y, name, counts in sorted(named, key=lambda label: not label[3]):
        # A generator: each label is drawn when it is tried, and taken away again before the next.
        tried = _tries(axes, (x, y), name, counts)
        fitting = None
        for label in tried:
            box = label.get_window_extent(renderer).padded(1.5)
            inside = all(frame.contains(*corner) for corner in (box.min, box.max))
            hidden = any(map(box.overlaps, taken)) or any(box.contains(*at) for at in points)
            if inside and not hidden:
                fitting = label
                break
            label.remove()
        if fitting is None and not counts and len(named) > MANY:
            continue
        if fitting is None:
            fitting = next(_tries(axes, (x, y), name, counts))
        taken.append(fitting.get_window_extent(renderer).padded(1.5))


def _tries(axes: Axes, at: tuple[float, float | None], name: str, counts: bool) -> Iterator[Any]:
    for right, up, horizontal, vertical in _AROUND:
        yield axes.annotate(
            name,
            at,
            xytext=(right, up),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=_SIZE,
            color=INK if counts else MUTED,
            fontweight="bold" if counts else "normal",
        )


def rounds_figure(
    debates: Mapping[str, Sequence[Round]],
    measure: str,
    title: str = "",
    numbers: Mapping[str, int] | None = None,
) -> Figure:
    """Draw agreement by round, a line with intervals for each judge; round 0 is the first verdict.

    Args:
        debates: the rounds of each judge, by its name.
        measure: the measure of agreement.
        title: what was judged.
        numbers: the number of each judge's colour and mark, as for ``frontier_figure``.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure, axes = new_figure(5.6, 3.4)
    numbers = numbers or {name: number for number, name in enumerate(debates)}
    aside = 0.035  # of a round: lines are shifted a little, so that their intervals do not hide each other
    for number, (name, rounds) in enumerate(debates.items()):
        color, mark = look(numbers[name])
        shift = aside * (number - (len(debates) - 1) / 2)
        points = [
            (stage.round + shift, stage.agreement) for stage in rounds if stage.agreement.value is not None
        ]
        axes.plot(
            [place for place, _ in points],
            [agreement.value for _, agreement in points],
            color=color,
            marker=mark,
            markersize=5.5,
            linewidth=1.6,
            label=plain(name, 30),
        )
        for place, agreement in points:
            if agreement.low is not None and agreement.high is not None:
                axes.vlines(place, agreement.low, agreement.high, color=color, linewidth=1.1, alpha=0.5)
    last = max((stage.round for rounds in debates.values() for stage in rounds), default=0)
    axes.set_xticks(range(last + 1))
    axes.set_xlabel("rounds of debate (0: the first verdict)")
    axes.set_ylabel(AXES.get(measure, measure))
    if title:
        axes.set_title(plain(title), loc="left")
    if len(debates) > 1:
        axes.legend(frameon=False, fontsize=9)
    return figure
