"""The metrics of agreement, each declared once, and the leading metric of a dataset.

Tables, headings, options, JSON keys and charts use the declarations in ``METRICS``. Runs, reports
and sweeps all call ``leading_metric``, so they lead with the same metric on the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...state.errors import UsageError
from ...state.tasks import TaskKind
from .alignment import Floats, Ints
from .chance_corrected import accuracies, alphas, kappas

Interval = Literal["Wilson", "Student", "bootstrap", "none"]
"""The method of an interval.

- ``Wilson``: the score interval of a share, on the effective number of rows.
- ``Student``: Student's t over the values of groups.
- ``bootstrap``: Student's t with the standard error of resamples of groups, on Fisher's scale.
- ``none``: no interval, because none reached its coverage in simulations (metrics over systems).
"""

Unit = Literal["rows", "groups", "systems"]
"""The unit of a metric: all rows, the mean of groups, or the mean scores of systems."""


@dataclass(frozen=True)
class Metric:
    """A metric of a judge's agreement with the labels; more is better for all of them.

    Attributes:
        name: its name in options, JSON and ``LeaderboardEntry.measures``.
        kind: the kind of task that it measures: scores, or preferences.
        title: its name in titles and sentences.
        short: its name in narrow columns.
        companion: the metric that must not contradict a claim made with this one; ``None`` if there
            is none.
        unit: whether it is computed over rows, within groups, or over systems.
        interval: the method of its interval.
        formula: for preferences, computes the metric from confusion tables of shape (some, classes,
            classes), NaN if it does not exist; ``None`` for scores, whose correlations are in
            ``correlation``.
        chance: the metric that is tested against chance if this one is not 0 for a judge that
            ignores the items, or has no test; ``None`` if this one is tested.
        is_share: whether it lies between 0 and 1 instead of between -1 and 1.
        spread: how many times the standard error is that of independent groups.
        on_request: whether tables show it only if it is the leading metric, because it is almost
            equal to another one.
    """

    name: str
    kind: TaskKind
    title: str
    short: str
    companion: str | None = None
    unit: Unit = "rows"
    interval: Interval = "bootstrap"
    formula: Callable[[Floats], Floats] | None = None
    chance: str | None = None
    is_share: bool = False
    spread: float = 1.0
    on_request: bool = False

    @property
    def within(self) -> bool:
        """Whether it is a mean over groups of a value within each."""
        return self.unit == "groups"

    @property
    def coefficient(self) -> str:
        """The name of its coefficient over rows, within each group, or over systems."""
        return self.name.removeprefix("group_").removeprefix("system_")

    @property
    def coefficient_title(self) -> str:
        """The title of its coefficient, without the unit.

        >>> METRICS["group_kendall"].coefficient_title, METRICS["pairwise"].coefficient_title
        ("Kendall's tau-b", 'pairwise accuracy')
        """
        return self.title.removesuffix(" within groups").removesuffix(" over systems")

    @property
    def against_chance(self) -> str:
        """The metric that is tested against chance; usually the metric itself."""
        return self.chance or self.name

    def interval_over(self, clusters: str) -> str:
        """Return the name of the interval for tables and JSON.

        Args:
            clusters: the independently drawn units, such as ``groups``.

        >>> METRICS["kappa"].interval_over("groups"), METRICS["accuracy"].interval_over("groups")
        ('bootstrap over groups', 'Wilson')
        """
        alone = self.interval in ("Wilson", "none")
        return self.interval if alone else f"{self.interval} over {clusters}"


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("pearson", "score", "Pearson's r", "r", "group_pearson"),
        Metric("spearman", "score", "Spearman's rho", "rho", "group_spearman"),
        Metric("kendall", "score", "Kendall's tau-b", "tau", "group_kendall"),
        Metric(
            "group_pearson",
            "score",
            "Pearson's r within groups",
            "r within",
            "pearson",
            unit="groups",
            interval="Student",
        ),
        Metric(
            "group_spearman",
            "score",
            "Spearman's rho within groups",
            "rho within",
            "spearman",
            unit="groups",
            interval="Student",
        ),
        Metric(
            "group_kendall",
            "score",
            "Kendall's tau-b within groups",
            "tau within",
            "kendall",
            unit="groups",
            interval="Student",
        ),
        Metric(
            "pairwise",
            "score",
            "pairwise accuracy within groups",
            "pairs within",
            "kendall",
            unit="groups",
            interval="Student",
            chance="group_kendall",
            is_share=True,
            # Groups share fitted thresholds. In simulations with groups of two and 20 to 100 groups,
            # the standard deviation of the mean was up to 1.4 times the error of independent groups.
            spread=1.4,
        ),
        Metric(
            "system_pearson",
            "score",
            "Pearson's r over systems",
            "r systems",
            unit="systems",
            interval="none",
            chance="pearson",
        ),
        Metric(
            "system_spearman",
            "score",
            "Spearman's rho over systems",
            "rho systems",
            unit="systems",
            interval="none",
            chance="spearman",
        ),
        Metric(
            "system_kendall",
            "score",
            "Kendall's tau-b over systems",
            "tau systems",
            unit="systems",
            interval="none",
            chance="kendall",
        ),
        Metric(
            "system_pairwise",
            "score",
            "pairwise accuracy over systems",
            "pairs of systems",
            unit="systems",
            interval="none",
            chance="kendall",
            is_share=True,
        ),
        Metric(
            "system_soft_pairwise",
            "score",
            "soft pairwise accuracy over systems",
            "soft pairs of systems",
            unit="systems",
            interval="none",
            chance="kendall",
            is_share=True,
        ),
        Metric(
            "accuracy",
            "compare",
            "accuracy",
            "accuracy",
            "kappa",
            interval="Wilson",
            formula=accuracies,
            chance="kappa",
            is_share=True,
        ),
        Metric("kappa", "compare", "Cohen's kappa", "kappa", "accuracy", formula=kappas),
        Metric(
            "alpha",
            "compare",
            "Krippendorff's alpha",
            "alpha",
            "accuracy",
            formula=alphas,
            on_request=True,
        ),
    )
}
"""All metrics by name; those within groups are means of each group's value (DEBATE, E.5)."""

DEFAULT: dict[TaskKind, str] = {"score": "spearman", "compare": "accuracy"}
"""The leading metric of data without other information."""

PUBLISHED = {"summeval": "group_spearman", "topical-chat": "group_spearman", "hanna": "spearman"}
"""The leading metric of published score datasets, as in their papers or in papers that use them."""

_FEWEST_GROUPS = 10
_FEWEST_ITEMS = 3


def of_kind(kind: TaskKind, unit: Unit | None = None) -> tuple[str, ...]:
    """Return the names of the metrics of scores, or of preferences.

    Args:
        kind: the kind of task that they measure.
        unit: only those over this unit; ``None`` for all.

    >>> of_kind("compare"), of_kind("score", "rows")
    (('accuracy', 'kappa', 'alpha'), ('pearson', 'spearman', 'kendall'))
    """
    known = (metric for metric in METRICS.values() if metric.kind == kind)
    return tuple(metric.name for metric in known if unit in (None, metric.unit))


def shown_of_kind(kind: TaskKind, leading: str | None = None) -> tuple[str, ...]:
    """Return the names of the metrics of one kind that tables show.

    Args:
        kind: the kind of task that they measure.
        leading: the leading metric, which is always shown.

    >>> shown_of_kind("compare"), shown_of_kind("compare", "alpha")
    (('accuracy', 'kappa'), ('accuracy', 'kappa', 'alpha'))
    """
    return tuple(name for name in of_kind(kind) if name == leading or not METRICS[name].on_request)


def check_metric(metric: str | None, judged: Collection[TaskKind] = ()) -> None:
    """Refuse an unknown metric, or one that does not measure the judged kind of task."""
    if metric not in (None, *METRICS):
        raise UsageError(f"--metric {metric!r} is unknown; metrics are {', '.join(METRICS)}")
    if metric is None or not judged or METRICS[metric].kind in judged:
        return
    measured = _TASKS[METRICS[metric].kind]
    kind = next(iter(judged))
    raise UsageError(
        f"--metric {metric} measures {measured}, and these are {_TASKS[kind]}; "
        f"metrics of {_TASKS[kind]} are {', '.join(of_kind(kind))}"
    )


_TASKS: dict[TaskKind, str] = {"score": "scores", "compare": "comparisons"}


def leading_metric(
    kind: TaskKind, data: str, telling_groups: Iterable[int], telling_pairs: Iterable[int] = ()
) -> str:
    """Return the leading metric of a dataset, which does not depend on the judges.

    Args:
        kind: the kind of the dataset's tasks.
        data: its name.
        telling_groups: for each aspect with labels, the number of groups of three or more items
            that can distinguish judges (``telling_groups``).
        telling_pairs: the same for groups of two or more items.

    >>> leading_metric("score", "mine", [12, 24]), leading_metric("score", "mine", [12, 3])
    ('group_spearman', 'spearman')
    >>> leading_metric("score", "mine", [0], [12])
    'pairwise'
    """
    if kind == "compare":
        return DEFAULT[kind]
    if data in PUBLISHED:
        return PUBLISHED[data]
    # A mean over aspects uses one metric, so the aspect with the fewest groups decides.
    if min(telling_groups, default=0) >= _FEWEST_GROUPS:
        return "group_spearman"
    # In a group of two, a correlation is only -1, 0 or 1.
    return "pairwise" if min(telling_pairs, default=0) >= _FEWEST_GROUPS else DEFAULT[kind]


def telling_groups(items: Ints, groups: Ints, human: Floats, fewest: int = _FEWEST_ITEMS) -> int:
    """Count the groups with enough items and different labels.

    Args:
        items: the number of each row's item; a repeated item (repeats, other judges) counts once.
        groups: the number of each row's group; below 0 if it has none.
        human: the label of each row; NaN if it has none.
        fewest: the number of items that are enough.

    >>> telling_groups(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 2, 3, 4, 4, 4]))
    1
    """
    _, first = np.unique(items, return_index=True)
    first = first[(groups[first] >= 0) & ~np.isnan(human[first])]
    groups = groups[first]
    labels = human[first]
    _, lead, codes, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    # The number of labels in each group that differ from the label of its first item.
    others = np.bincount(codes, labels != labels[lead][codes])
    return int(((sizes >= fewest) & (others > 0)).sum())
