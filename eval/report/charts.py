"""Draw the charts of a study with captions and descriptions, and panels of lines or columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis import Study
from ..analysis.costs import Frontier, Point
from ..statistics.resampling import Statistic
from ..statistics.significance import LEVEL
from .chart_style import INK, MUTED, PAPER, PEOPLE, look, new_figure, plain
from .labels import MEASURES, labels_of, reference_of
from .ranked_dataset import RankedDataset, ranked_datasets
from .study_tables import shares_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A chart with its texts.

    Attributes:
        figure: the matplotlib figure.
        title: the subject of the chart.
        description: the content of the chart in words, for screen readers.
        caption: the text below it.
    """

    figure: Figure
    title: str
    description: str
    caption: str


def pictures(study: Study) -> Iterator[Picture]:
    """Make all charts of a study.

    Raises:
        UsageError: matplotlib is not installed.
    """
    return chain(forests(study), frontiers(study), rounds(study), distributions(study))


def numbers_of(study: Study) -> dict[str, int]:
    """Number the judges, so that each has one colour, mark and place in all charts of a study."""
    labels = study.order or [judge.label for judge in study.judges]
    return {label: number for number, label in enumerate(labels)}


COLUMN_INCHES = 3.35
"""The width of a column of a two-column paper."""
_SMALL = 7.5
"""The font size of a chart that is one column wide, in points."""


def forests(study: Study) -> Iterator[Picture]:
    """Draw a forest plot of judges and the human ceiling by aspect, for each labelled dataset."""
    for dataset in ranked_datasets(study):
        judges = [judge.label for judge in dataset.best_first]
        panels = {
            name: {
                judge: entries[judge].measures.get(dataset.measure)
                for judge in judges
                if judge in entries
            }
            for name, entries in dataset.columns.items()
        }
        known = {
            name: figures
            for name, figures in panels.items()
            if any(figure and figure.value is not None for figure in figures.values())
        }
        if not known or not dataset.has_labels:
            continue
        of_subject = {
            subject.aspect or subject.label: subject.label for subject in dataset.subjects
        }
        ceilings = {name: _ceiling(study, of_subject[name]) for name in known if name in of_subject}
        in_words = "; ".join(
            f"{name}: {', '.join(f'{judge} {_written(figure)}' for judge, figure in figures.items() if figure)}"
            for name, figures in known.items()
        )
        title = f"{MEASURES[dataset.measure]} with {labels_of(dataset.subjects[0])}, {dataset.name}"
        about = f"{title}. Lines: {100 * study.resampling.confidence:.4g} % confidence intervals."
        if any(value is not None for value in ceilings.values()):
            about += " Dashed: human ceiling, the reliability of the mean label (Spearman-Brown)."
        figure = forest_figure(known, ceilings, MEASURES[dataset.measure], numbers_of(study))
        yield Picture(figure, title, f"{in_words}.", about)


def _ceiling(study: Study, subject: str) -> float | None:
    """Return the reliability of a subject's mean label; ``None`` if single labels are unknown."""
    of_subject = (of.reliability for of in study.annotators if of.subject.label == subject)
    return next(of_subject, None)


def forest_figure(
    panels: Mapping[str, Mapping[str, Statistic | None]],
    ceilings: Mapping[str, float | None],
    axis: str,
    numbers: Mapping[str, int],
) -> Figure:
    """Draw a panel for each aspect, with a line for each judge's figure and interval.

    The chart is one column wide.

    Args:
        panels: by aspect, the figures by judge, the best judge first.
        ceilings: by aspect, the reliability of the mean label, drawn as a dashed line; or ``None``.
        axis: the name of the metric.
        numbers: the number of each judge's colour and mark (``look``).
    """
    sizes = [len(figures) + 0.6 for figures in panels.values()]
    height = 0.19 * sum(sizes) + 0.26 * len(panels) + 0.5
    figure, all_axes = new_figure(
        COLUMN_INCHES, height, rows=len(panels), sharex=True, gridspec_kw={"height_ratios": sizes}
    )
    for axes, (name, figures) in zip(all_axes, panels.items(), strict=True):
        ceiling = ceilings.get(name)
        axes.axvline(0, color=MUTED, linewidth=0.7, zorder=1)
        if ceiling is not None:
            axes.axvline(ceiling, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2)
        for place, (judge, known) in enumerate(figures.items()):
            if known is None or known.value is None:
                continue
            color, mark = look(numbers[judge])
            if known.low is not None and known.high is not None:
                axes.hlines(place, known.low, known.high, color=color, linewidth=1.3, zorder=3)
            axes.plot(known.value, place, marker=mark, markersize=5, color=color, zorder=4)
        axes.set_yticks(range(len(figures)), [plain(judge, 24) for judge in figures])
        axes.set_ylim(len(figures) - 0.3, -0.7)
        axes.grid(False, axis="y")
        axes.tick_params(labelsize=_SMALL, length=2)
        axes.tick_params(axis="y", length=0)
        if len(panels) > 1:
            axes.set_title(plain(name), loc="left", fontsize=_SMALL + 0.5, pad=2)
    all_axes[-1].set_xlabel(plain(axis), fontsize=_SMALL + 0.5)
    return figure


PER_JUDGEMENT = {"cost": "US dollars per judgement", "calls": "model calls per judgement"}
MANY = 10
"""Up to this many points, each gets a label even if it overlaps another."""


def frontiers(study: Study) -> Iterator[Picture]:
    """Make a chart of agreement over cost for each subject."""
    for frontier in study.frontiers:
        if not frontier.points:
            continue
        title = f"{MEASURES[frontier.measure]} over {PER_JUDGEMENT[frontier.currency]}, {frontier.subject}"
        placed = ((point.label, *point.place) for point in frontier.points)
        points = "; ".join(
            f"{label} {agreement:.3f} at {spent:.4g}" for label, spent, agreement in placed
        )
        best = ", ".join(point.label for point in frontier.frontier)
        curves = " Dashed: ensembles of 1, 2, 3, ... single judges." if frontier.curves else ""
        crowded = " Names that do not fit are left out." if len(frontier.points) > MANY else ""
        left = "".join(
            f" {label} is not drawn: {reason}." for label, reason in frontier.left_out.items()
        )
        described = f"{points}. On the Pareto frontier: {best}."
        marks = "Filled marks: no cheaper judge scored higher here (may be chance)."
        path = significant_path(study, frontier)
        marks += (
            " Line: each step up is significant (Holm-adjusted p < 0.05)." if len(path) > 1 else ""
        )
        caption = f"{title}. {marks}{curves}{crowded}{left}"
        yield Picture(frontier_figure(frontier, numbers_of(study), path), title, described, caption)


def significant_path(study: Study, frontier: Frontier) -> tuple[Point, ...]:
    """Return the judges that agree significantly better than each cheaper one before them.

    The judges are on the frontier, the cheapest first. A step that may be chance is left out.
    Ensembles of some samples are left out as well: they are parts of other judges, and no test
    compares them.
    """
    path: list[Point] = []
    for point in (point for point in frontier.points if point.on_frontier):
        if not path or _is_better(study, frontier, point.label, path[-1].label):
            path.append(point)
    return tuple(path)


def _is_better(study: Study, frontier: Frontier, label: str, other: str) -> bool:
    """Whether a judge agrees significantly better than another one on the frontier's subject."""
    for first, second, sign in ((label, other, 1), (other, label, -1)):
        pair = study.comparison.of_pair(frontier.subject, first, second)
        apart = pair.differences.get(frontier.measure) if pair else None
        if apart is not None:
            is_ahead = sign * (apart.difference.value or 0.0) > 0
            return is_ahead and apart.adjusted is not None and apart.adjusted < LEVEL
    return False


def frontier_figure(
    frontier: Frontier, numbers: Mapping[str, int], path: Sequence[Point] = ()
) -> Figure:
    """Draw agreement over cost: judges with intervals, significant steps and ensembles as lines.

    Marks of judges on the frontier are filled, the others are hollow. The horizontal axis is
    logarithmic if costs differ more than tenfold.

    Args:
        frontier: the judges, ensembles and costs.
        numbers: the number of each judge's colour and mark (``look``).
        path: the points to join with a line.
    """
    figure, (axes,) = new_figure(6.6, 4.3)
    from matplotlib.ticker import FuncFormatter, NullFormatter

    # The line is level up to the next point: for any cost in between, the cheaper judge is the best
    # available.
    level = {"color": MUTED, "linewidth": 1.6, "alpha": 0.55, "drawstyle": "steps-post"}
    dashed = {"linestyle": (0, (4, 2)), "marker": ".", "markersize": 5, "linewidth": 1.2}
    curves = frontier.curves
    paths: list[tuple[Sequence[Point], dict[str, Any]]] = [(path, level)] if len(path) > 1 else []
    paths += [(points, dashed | {"color": (MUTED, INK)[n % 2]}) for n, points in enumerate(curves)]
    for points, style in paths:
        places = [point.place for point in points]
        axes.plot([spent for spent, _ in places], [value for _, value in places], zorder=2, **style)
    for point in frontier.points:
        (spent, value), low, high = point.place, point.agreement.low, point.agreement.high
        # A resampled interval need not contain its value, and matplotlib refuses bars of negative
        # length.
        bars = (
            low is not None
            and high is not None
            and [[max(0.0, value - low)], [max(0.0, high - value)]]
        )
        color, mark = look(numbers[point.label])
        face = color if point.on_frontier else PAPER
        style = {
            "marker": mark,
            "markersize": 7,
            "markerfacecolor": face,
            "color": color,
            "elinewidth": 1.2,
        }
        axes.errorbar(spent, value, bars or None, capsize=2.5, zorder=3, **style)
    prices = [point.spent for points in (frontier.points, *curves) for point in points]
    if prices and min(prices) > 0 and max(prices) > 10 * min(prices):
        axes.set_xscale("log")
        # Plain numbers, because matplotlib would write powers such as 10⁻³.
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(which="both", colors=MUTED)
    else:
        axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.set(xlabel=PER_JUDGEMENT[frontier.currency], ylabel=MEASURES[frontier.measure])
    axes.set_title(plain(frontier.subject), loc="left")
    short = distinguishing_names([point.label for point in frontier.points])
    named = [(point, plain(name)) for point, name in zip(frontier.points, short, strict=True)]
    # A curve is named only at its last point, unless that is also a judge: an ensemble of all its
    # judges is that judge.
    judged = {point.place for point in frontier.points}
    ends = [points[-1] for points in curves]
    named += [(end, plain(end.label, 28)) for end in ends if end.place not in judged]
    _place_labels(figure, axes, named)
    return figure


def distinguishing_names(labels: Sequence[str]) -> list[str]:
    """Shorten names to their differences, such as the settings of a sweep's cells.

    >>> distinguishing_names(["debate (n=1,persona=plain)", "debate (n=2,persona=plain)"])
    ['n=1', 'n=2']
    >>> distinguishing_names(["single", "debate (n2)"])
    ['single', 'debate (n2)']
    """
    parts = [label.partition(" (") for label in labels]
    if len({head for head, _, _ in parts}) != 1 or not all(label.endswith(")") for label in labels):
        return list(labels)
    settings = [tail[:-1].split(",") for _, _, tail in parts]
    shared = set.intersection(*map(set, settings))
    short = [", ".join(word for word in words if word not in shared) for words in settings]
    # If a name would become empty or two names equal, all names stay whole.
    return short if all(short) and len(set(short)) == len(set(labels)) else list(labels)


# Possible places of a label as offsets in points with the alignment, the best first: at the
# corners, next to the point, then further and further above and below.
_CORNERS = [
    (x, y, "left" if x > 0 else "right", "bottom" if y > 0 else "top")
    for y in (5, -5, 17, -17, 30, -30)
    for x in (7, -7)
]
_AROUND = (*_CORNERS[:4], (9, 0, "left", "center"), (-9, 0, "right", "center"), *_CORNERS[4:])


def _place_labels(figure: Figure, axes: Axes, named: Sequence[tuple[Point, str]]) -> None:
    """Place the labels of points after everything else is drawn and the scales are set.

    Each label takes the first free place around its point inside the axes; if none is free, the
    first place. With more than ``MANY`` points, a label without a free place is left out, unless
    its point is on the frontier.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    # The layout moves the axes when it is drawn. Positions on the canvas are valid only after that.
    figure.draw_without_rendering()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    points = [axes.transData.transform(point.place) for point, _ in named]
    taken: list[Any] = []
    # The frontier's labels choose first.
    for point, name in sorted(named, key=lambda label: not label[0].on_frontier):
        color, weight = (INK, "bold") if point.on_frontier else (MUTED, "normal")
        label: Any = axes.annotate(
            name, point.place, xytext=(0, 0), textcoords="offset points", fontsize=9
        )
        label.set(color=color, fontweight=weight)

        def box_at(place: tuple[float, float, str, str], label: Any = label) -> Any:
            label.xyann, (across, along) = place[:2], place[2:]
            label.set(ha=across, va=along)
            return label.get_window_extent(renderer).padded(1.5)

        for place in _AROUND:
            box = box_at(place)
            inside = all(frame.contains(*corner) for corner in (box.min, box.max))
            if (
                inside
                and not any(map(box.overlaps, taken))
                and not any(box.contains(*at) for at in points)
            ):
                taken.append(box)
                break
        else:
            if point.on_frontier or len(named) <= MANY:
                taken.append(box_at(_AROUND[0]))
            else:
                label.remove()


def rounds(study: Study) -> Iterator[Picture]:
    """Make a chart of agreement by round for each subject with debates of several rounds."""
    numbers = numbers_of(study)
    for subject in study.subjects:
        # A debate with a single round has no development to draw.
        debated = [
            of for of in study.diagnoses if of.subject == subject.label and len(of.rounds) > 1
        ]
        if not debated:
            continue
        debated.sort(key=lambda diagnosis: numbers[diagnosis.judge])
        stages = {of.judge: {stage.round: stage.agreement for stage in of.rounds} for of in debated}
        last = max(map(max, stages.values()))
        series = {
            judge: [of.get(round) for round in range(last + 1)] for judge, of in stages.items()
        }
        texts = "; ".join(
            f"{judge}: {', '.join(map(_written, of.values()))}" for judge, of in stages.items()
        )
        panel = Panel(subject.label, MEASURES[debated[0].measure], series)
        title = f"Agreement by round, {subject.label}"
        caption = f"{title}, if every debate had ended there. Vertical lines are intervals."
        figure = lines([panel], range(last + 1), "rounds of debate (0: the first verdict)", numbers)
        yield Picture(figure, title, f"From the first verdict on: {texts}.", caption)


def _written(agreement: Statistic) -> str:
    return "none" if agreement.value is None else f"{agreement.value:.3f}"


MOST_BARS = 4
"""The maximum number of judges in a chart of distributions.

Each judge adds a bar to every group.
"""


def distributions(study: Study) -> Iterator[Picture]:
    """Draw how often humans and the best judges gave each score, in a chart for each subject."""
    numbers = numbers_of(study)
    for subject in study.subjects:
        human, by_judge = shares_of(study, subject)
        # All or none: a single missing bar would look like a share of 0.
        whole = {
            name: shares
            for name, shares in {reference_of(subject): human, **by_judge}.items()
            if shares and all(share.value is not None for share in shares.values())
        }
        best_first = RankedDataset(study, (subject,)).best_first
        judges = [judge.label for judge in best_first if judge.label in whole]
        if not judges:
            continue
        people = [name for name in whole if name not in by_judge]
        in_words = []
        bars = {}
        for name in (*people, *sorted(judges[:MOST_BARS], key=numbers.__getitem__)):
            shares = ", ".join(
                f"{point} {(of.value or 0) / 100:.0%}" for point, of in whole[name].items()
            )
            in_words.append(f"{name}: {shares}")
            # Without intervals, because they would hide small bars.
            bars[name] = [Statistic(share.value) for share in whole[name].values()]
        title = f"Score distribution, {subject.label}"
        left_out = len(judges) > MOST_BARS
        some = (
            f" Of {len(judges)} judges, the {MOST_BARS} with the best agreement."
            if left_out
            else ""
        )
        panel = Panel(subject.label, "% of verdicts", bars)
        points = list(whole[judges[0]])
        figure = columns([panel], points, "", numbers)
        yield Picture(figure, title, f"{'; '.join(in_words)}.", f"{title}.{some}")


INCHES_A_LETTER = 0.08
LETTERS_A_MARK = 6
"""The width of a letter in a legend in inches, and that of the marker in letters."""
WIDE = 20
"""The ratio of the largest to the smallest value from which on an axis is logarithmic."""
GROUP = 0.82
"""The total width of the columns at one label; labels are 1 apart."""
LETTERS = 36
"""The number of letters that fit below a panel before its labels are turned."""


class Panel(NamedTuple):
    """One panel of a chart.

    Attributes:
        title: the text above it.
        measure: the label of the vertical axis.
        lines: by the line's name, a statistic for each value on the horizontal axis, or ``None``.
    """

    title: str
    measure: str
    lines: Mapping[str, Sequence[Statistic | None]]


Numbers = Mapping[str, int] | None
"""The number of each name's colour and mark (``look``), in order by default.

Other names are humans.
"""


def lines(
    panels: Sequence[Panel], places: Sequence[float], axis: str, numbers: Numbers = None
) -> Figure:
    """Draw panels side by side, with lines over the same values of a horizontal axis.

    Args:
        panels: the panels; lines with the same name look the same in all of them.
        places: the values on the horizontal axis, in any order.
        axis: the label of the horizontal axis.
        numbers: the number of each name's colour and mark.

    Raises:
        UsageError: matplotlib is not installed.
    """
    names = _names(panels)
    ticks = sorted(set(places))
    by_factors = ticks[0] > 0 and ticks[-1] >= WIDE * ticks[0]
    narrowest = min((after - before for before, after in pairwise(ticks)), default=1.0)
    # Lines are shifted a little, so that their intervals do not overlap. On a logarithmic axis the
    # shift must be small compared with the smallest value, or a point would fall below zero.
    step = min(0.05, 0.3 / len(names)) * (min(narrowest, ticks[0]) if by_factors else narrowest)

    def draw(axes: Axes, panel: Panel) -> None:
        if by_factors:
            axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{place:g}" for place in ticks])
        axes.set_xticks([], minor=True)  # a logarithmic axis has some of its own
        for name, figures in panel.lines.items():
            aside = (names.index(name) - (len(names) - 1) / 2) * step
            # The values come in any order, but a line through them must go from left to right.
            order = sorted(zip(places, figures, strict=True), key=lambda point: point[0])
            color, mark = _look(name, names, numbers)
            xs, ys = _values_and_intervals(
                axes, [(at + aside, known) for at, known in order], color
            )
            axes.plot(xs, ys, color=color, marker=mark, label=plain(name))

    shared = len({panel.measure for panel in panels}) == 1
    return _drawn(panels, axis, max(4.6, (3.0 if shared else 3.6) * len(panels)), draw)


def columns(
    panels: Sequence[Panel], labels: Sequence[str], axis: str, numbers: Numbers = None
) -> Figure:
    """Draw panels side by side, with columns at the same labels in the given order.

    Everything else is as in ``lines``.
    """
    names = _names(panels)
    crowded = max(map(len, labels)) * len(labels) > LETTERS
    width = GROUP / len(names)

    def draw(axes: Axes, panel: Panel) -> None:
        turned: Any = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axes.set_xticks(range(len(labels)), [plain(label) for label in labels], **turned)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.grid(False, axis="x")
        axes.axhline(0, color=INK, linewidth=0.8)
        for name, figures in panel.lines.items():
            left = width * (names.index(name) + 0.5) - GROUP / 2
            points = [(at + left, known) for at, known in enumerate(figures)]
            xs, ys = _values_and_intervals(axes, points, INK)
            axes.bar(
                xs, ys, width=width * 0.92, color=_look(name, names, numbers)[0], label=plain(name)
            )

    of_panel = min(max(3.4, 1.2 + 0.32 * len(labels) * max(2, len(names))), 9.0)
    return _drawn(panels, axis, of_panel * len(panels), draw)


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _look(name: str, names: Sequence[str], numbers: Numbers) -> tuple[str, str]:
    number = names.index(name) if numbers is None else numbers.get(name)
    return (PEOPLE, "o") if number is None else look(number)


def _values_and_intervals(
    axes: Axes, points: Sequence[tuple[float, Statistic | None]], color: str
) -> tuple[list[float], list[float]]:
    """Draw the intervals of points, and return the places and values of points with an interval."""
    values = [(at, known.value) for at, known in points if known and known.value is not None]
    for at, known in points:
        if known and known.low is not None and known.high is not None:
            axes.vlines(at, known.low, known.high, color=color, alpha=0.75, linewidth=1.1, zorder=3)
    return [at for at, _ in values], [value for _, value in values]


def _drawn(
    panels: Sequence[Panel], axis: str, width: float, draw: Callable[[Axes, Panel], None]
) -> Figure:
    shared = len({panel.measure for panel in panels}) == 1
    figure, all_axes = new_figure(width, 3.7, len(panels), sharey=shared)
    for number, (panel, axes) in enumerate(zip(panels, all_axes, strict=True)):
        axes.set_title(plain(panel.title), loc="left")
        axes.set_xlabel(plain(axis))
        if number == 0 or not shared:
            axes.set_ylabel(plain(panel.measure))
        draw(axes, panel)
        if not any(
            known and known.value is not None for line in panel.lines.values() for known in line
        ):
            axes.text(
                0.5,
                0.5,
                "no values",
                transform=axes.transAxes,
                color=MUTED,
                ha="center",
                va="center",
            )
    handles, names = all_axes[0].get_legend_handles_labels()
    if names:
        most = int(
            figure.get_figwidth() / (INCHES_A_LETTER * (max(map(len, names)) + LETTERS_A_MARK))
        )
        fitting = max(1, min(len(names), most))
        figure.legend(handles, names, loc="outside lower center", ncols=fitting, frameon=False)
    return figure
