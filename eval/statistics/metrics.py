"""Declare the metrics of agreement once, and choose which of them leads on which data.

Tables, headings, options and charts take names and titles from here; ``leading_metric`` is what a run, a report and a
sweep over the same data all ask, so that none of them leads with another figure than the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from ...state.errors import UsageError
from ...state.tasks import TaskKind
from .alignment import Floats, Ints


@dataclass(frozen=True)
class Metric:
    """Declares one metric of a judge's agreement with the labels; more is better for all of them.

    Attributes:
        name: its name in options, JSON and ``LeaderboardEntry.measures``.
        kind: what it measures: scores, or preferences.
        title: its name in titles and sentences.
        short: its name in narrow columns.
        companion: the metric that must not contradict a claim made with this one; ``None`` where there is none.
    """

    name: str
    kind: TaskKind
    title: str
    short: str
    companion: str | None = None

    @property
    def within(self) -> bool:
        """Whether it is a mean over groups of what is measured within each."""
        return self.name.startswith("group_")

    @property
    def coefficient(self) -> str:
        """The name of the coefficient that it takes over rows, or within each group."""
        return self.name.removeprefix("group_")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("pearson", "score", "Pearson's r", "r", "group_pearson"),
        Metric("spearman", "score", "Spearman's rho", "rho", "group_spearman"),
        Metric("kendall", "score", "Kendall's tau-b", "tau", "group_kendall"),
        Metric("group_pearson", "score", "Pearson's r within groups", "r within", "pearson"),
        Metric("group_spearman", "score", "Spearman's rho within groups", "rho within", "spearman"),
        Metric("group_kendall", "score", "Kendall's tau-b within groups", "tau within", "kendall"),
        Metric("accuracy", "compare", "accuracy", "accuracy", "kappa"),
        Metric("kappa", "compare", "Cohen's kappa", "kappa", "accuracy"),
    )
}
"""All metrics by name. Those within groups are means over groups of the correlation within each (DEBATE, E.5)."""

DEFAULT: dict[TaskKind, str] = {"score": "spearman", "compare": "accuracy"}
"""The metric that leads where nothing is known of the data."""

PUBLISHED = {"summeval": "group_spearman", "topical-chat": "group_spearman", "hanna": "spearman"}
"""The metric that leads on a published dataset of scores, as its authors or the papers that use it have it."""

_FEWEST_GROUPS, _FEWEST_ITEMS = 10, 3


def of_kind(kind: TaskKind) -> tuple[str, ...]:
    """Return the names of the metrics of scores, or of preferences."""
    return tuple(metric.name for metric in METRICS.values() if metric.kind == kind)


def check_metric(metric: str | None, judged: Collection[TaskKind] = ()) -> None:
    """Refuse a metric that does not exist, or that measures nothing of what was, or is to be, judged."""
    if metric not in (None, *METRICS):
        raise UsageError(f"--metric {metric!r} is unknown; metrics are {', '.join(METRICS)}")
    if metric is None or not judged or METRICS[metric].kind in judged:
        return
    measured, kind = _TASKS[METRICS[metric].kind], next(iter(judged))
    known = f"metrics of {_TASKS[kind]} are {', '.join(of_kind(kind))}"
    raise UsageError(f"--metric {metric} measures {measured}, and these are {_TASKS[kind]}; {known}")


_TASKS: dict[TaskKind, str] = {"score": "scores", "compare": "comparisons"}


def leading_metric(kind: TaskKind, data: str, telling_groups: Iterable[int]) -> str:
    """Return the metric that leads on a dataset: it belongs to the data, whatever judges are measured on it.

    Args:
        kind: of the dataset's tasks.
        data: its name.
        telling_groups: of each aspect that has labels, how many groups can tell judges apart (``telling_groups``).

    >>> leading_metric("score", "mine", [12, 24]), leading_metric("score", "mine", [12, 3])
    ('group_spearman', 'spearman')
    """
    if kind == "compare":
        return DEFAULT[kind]
    if data in PUBLISHED:
        return PUBLISHED[data]
    # A mean over aspects is of one metric, so the aspect with the fewest groups decides.
    return "group_spearman" if min(telling_groups, default=0) >= _FEWEST_GROUPS else DEFAULT[kind]


def telling_groups(items: Ints, groups: Ints, human: Floats) -> int:
    """Count the groups with at least three items whose labels are not all the same.

    Args:
        items: the number of each row's item; an item that comes up again (repeats, other judges) counts once.
        groups: the number of each row's group; below 0 where it has none.
        human: the label of each row; NaN where it has none.

    >>> telling_groups(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 2, 3, 4, 4, 4]))
    1
    """
    _, first = np.unique(items, return_index=True)
    first = first[(groups[first] >= 0) & ~np.isnan(human[first])]
    groups, labels = groups[first], human[first]
    _, lead, codes, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    # Of each group, how many labels are not that of its first item.
    others = np.bincount(codes, labels != labels[lead][codes])
    return int(((sizes >= _FEWEST_ITEMS) & (others > 0)).sum())
