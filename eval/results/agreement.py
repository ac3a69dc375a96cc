"""The agreement of a judge with humans by aspect: correlations of scores, accuracy and kappa.

``agreement_rows`` decides which rows count, and why others do not. The statistics are in
``statistics/``. Every result is frozen and contains its intervals and their settings.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...state.errors import DataError
from ..datasets.label_reader import NO_CODES, LabelCodes
from ..datasets.reading import Columns, ReadingNotice
from ..statistics.alignment import Floats
from ..statistics.metrics import METRICS, Unit, of_kind
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import GroupedCorrelation, Sample
from ..statistics.tie_policy import (
    DEFAULT_TIE_POLICY,
    TIE_CODE,
    TiePolicy,
    Ties,
    Votes,
    count_votes,
)
from ..tables.grid import Column, figure, text_column
from .agreement_columns import ResultColumns
from .agreement_rows import HUMAN_TIE, AspectRows, RowTable

__all__ = ["Agreement", "Resampling", "Statistic", "Ties", "Votes", "agreement"]

STANDARD = Resampling()
"""The default for intervals: 1000 resamples, 95 %, seed 0."""
ROWS = Column("rows", about="rows with a verdict and a label")


class Range(NamedTuple):
    """The lowest and the highest given score."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:.3g} to {self.greatest:.3g}"


@dataclass(frozen=True)
class ScoreAgreement:
    """The agreement on scores: over all rows, and within groups (the candidates of one source).

    A correlation does not depend on the scales. ``judged`` and ``human`` are the ranges of scores
    of either side.

    Attributes:
        n: the number of rows that count: those with a score by the judge and by humans.
        left_out: the number of other rows, by reason.
        groups: the number of groups; 0 if rows have none.
        over_rows: Pearson's, Spearman's and Kendall's correlation over all rows; the interval is
            from drawing groups with replacement (or items, if rows have no group).
        per_group: the mean of each within groups, and of pairwise accuracy; empty if no row has a
            group.
        over_systems: metrics of the mean scores of systems, without an interval; empty if rows
            name fewer than two systems.
        judged, human: the lowest and highest score of either side; ``None`` without rows.
        units: the number of groups or items that were drawn from; with fewer than two there is no
            interval.
        effective: the number of independent ones that they are worth for correlations over rows
            (``Sample.effective``).
        variation: the part of them that counts because most labels or most verdicts are the same; 1
            if they are not (``Sample.variation``).
        repeats: the number of repeats among the rows, which are drawn together.
        resampling: the settings of the intervals.
    """

    n: Annotated[int, ROWS]
    left_out: Mapping[str, int]
    groups: int
    over_rows: Mapping[str, Statistic]
    per_group: Mapping[str, GroupedCorrelation]
    over_systems: Mapping[str, Statistic] = field(default_factory=dict)
    judged: Annotated[Range | None, text_column("range", of=str)] = None
    human: Annotated[Range | None, text_column("human range", of=str)] = None
    units: int = 0
    effective: float = 0.0
    variation: float = 1.0
    repeats: int = 1
    resampling: Resampling = STANDARD

    @property
    def intervals(self) -> dict[str, str]:
        """The methods of the intervals of ``over_rows``, ``per_group`` and ``over_systems``."""
        clusters = _clusters(self.groups)
        return {
            key: METRICS[of_kind("score", unit)[0]].interval_over(clusters)
            for unit, key in UNIT_KEYS.items()
        }

    def figures(self) -> dict[str, float | None]:
        """Return each value by its name, such as ``over_rows.pearson``."""
        over = {f"over_rows.{name}": statistic.value for name, statistic in self.over_rows.items()}
        over |= {f"per_group.{name}": mean.value for name, mean in self.per_group.items()}
        return over | {f"over_systems.{name}": of.value for name, of in self.over_systems.items()}


@dataclass(frozen=True)
class PreferenceAgreement:
    """The agreement on preferences.

    Attributes:
        n: the number of rows that count, or of votes if each vote counts.
        left_out: the number of other rows (or votes), by reason.
        measures: each metric of preferences by its name, such as ``accuracy`` and ``kappa``.
        ties: the number of the judge's ties.
        human_ties: the number of human ties; they are among ``left_out`` if they do not count.
        ties_as: the meaning of a human tie: its own ``class``, ``left_out``, or ``half`` right for
            any verdict.
        votes: whether the human ``majority`` counts, or ``each`` vote.
        groups: the number of groups; 0 if rows have none.
        units: the number of groups or items that the intervals draw from; with fewer than two there
            is no interval.
        effective: the number of equal ones that they are worth (``Sample.effective``).
        repeats: the number of repeats among the rows, which are drawn together.
        resampling: the settings of the intervals.
    """

    n: Annotated[int, ROWS]
    left_out: Mapping[str, int]
    measures: Mapping[str, Statistic]
    ties: Annotated[int, Column("ties")]
    """verdicts that are a tie"""
    human_ties: Annotated[int, Column("human ties")] = 0
    ties_as: Ties = "class"
    votes: Votes = "majority"
    groups: int = 0
    units: int = 0
    effective: float = 0.0
    repeats: int = 1
    resampling: Resampling = STANDARD

    @property
    def intervals(self) -> dict[str, str]:
        """The method of each metric's interval."""
        clusters = _clusters(self.groups)
        return {name: METRICS[name].interval_over(clusters) for name in self.measures}

    def figures(self) -> dict[str, float | None]:
        """Return each value by its name."""
        return {name: statistic.value for name, statistic in self.measures.items()}

    @property
    def accuracy(self) -> Statistic:
        """The share of rows in which judge and humans agree."""
        return self.measures["accuracy"]

    @property
    def kappa(self) -> Statistic:
        """Cohen's kappa; it has no value if chance agreement is certain."""
        return self.measures["kappa"]


UNIT_KEYS: dict[Unit, str] = {
    "rows": "over_rows",
    "groups": "per_group",
    "systems": "over_systems",
}
"""The attribute of ``ScoreAgreement`` with the metrics over each unit, also its key in JSON."""


def figure_name(metric: str) -> str:
    """Return the name of a metric in ``Agreement.figures``.

    >>> figure_name("group_kendall"), figure_name("kappa")
    ('per_group.kendall', 'kappa')
    """
    declared = METRICS[metric]
    if declared.kind == "compare":
        return metric
    return f"{UNIT_KEYS[declared.unit]}.{declared.coefficient}"


Agreement = ScoreAgreement | PreferenceAgreement


def _clusters(groups: int) -> str:
    """Return the name of the units that intervals draw from."""
    return "groups" if groups else "items"


def _listed(values: Iterable[float | None]) -> str:
    return ", ".join(figure(value, Column("")) for value in values)


class Spread(NamedTuple):
    """A value in each of several repeats, with mean and standard deviation.

    Attributes:
        mean: the mean over the repeats in which the value exists; ``None`` if it exists in none.
        sd: the standard deviation between repeats (n - 1); ``None`` with fewer than two.
        values: the value of each repeat.
    """

    mean: Annotated[float | None, Column("mean")]
    sd: Annotated[float | None, Column("sd", about="sample standard deviation")]
    values: Annotated[tuple[float | None, ...], text_column("each repeat", of=_listed)]


@dataclass(frozen=True)
class RepeatedAgreement:
    """The variation of agreement between repeats (ChatEval, table 1: mean, standard deviation).

    Attributes:
        repeats: the number of repeats.
        n: the number of rows that count in each.
        figures: the spread of each value by its name, such as ``over_rows.spearman`` or
            ``accuracy``.
    """

    repeats: int
    n: tuple[int, ...]
    figures: Mapping[str, Spread]


def agreement(  # noqa: PLR0913
    rows: Iterable[Mapping[str, Any]],
    resampling: Resampling | None = None,
    *,
    ties: Ties = "class",
    votes: Votes = "majority",
    label_codes: LabelCodes = NO_CODES,
    skip_unreadable: bool = False,
    columns: Columns | None = None,
) -> dict[str, Agreement]:
    """Measure the agreement of result rows with humans by aspect (``preference`` for comparisons).

    Args:
        rows: as in ``results.jsonl``: ``score`` or ``winner``, ``human`` (a value, or a list of
            annotators' values), and ``item``, ``group``, ``aspect``, ``status``, ``repeat``,
            ``annotations`` if any.
        resampling: the settings of intervals: over groups, or over items if there are no groups.
        ties: the meaning of a human tie in comparisons: its own ``class`` (ChatEval, section 3.4),
            ``left_out``, or ``half`` right for any verdict. A judge's tie against a human winner is
            always wrong.
        votes: whether the human ``majority`` counts in comparisons, or ``each`` annotator's vote
            (MT-Bench's rule).
        label_codes: the meanings of the values of human labels, such as ``{"0": "1", "1": "2"}``
            for winners counted from 0.
        skip_unreadable: leave out rows with an unreadable value, and count them under ``left_out``.
        columns: the columns of fields that have other names in the rows, such as ``{"human":
            "gold"}``; the labels of several annotators are ``{"human": "first+second"}``.

    Raises:
        DataError: an unreadable value, or a missing column; two rows of the same item that differ,
            or scores and winners in one aspect.

    >>> rows = [{"aspect": "wit", "score": s, "human": h} for s, h in [(1, 2), (2, 3), (4, 5)]]
    >>> agreement(rows)["wit"].over_rows["spearman"].value
    1.0
    """
    collected = RowsByAspect(label_codes=label_codes, skip_unreadable=skip_unreadable)
    read = ResultColumns("rows", columns or {}, label_codes)
    for number, row in read.renamed(enumerate(map(dict, rows), start=1)):
        collected.add(row, number)
    for notice in (collected.annotated(), read.notice(in_python=True)):
        if notice:
            warnings.warn(notice, ReadingNotice, stacklevel=2)
    return collected.agreement(resampling, TiePolicy(ties, votes))


class RowsByAspect:
    """Collects result rows one at a time, and stores a few numbers of each that counts.

    Args:
        called: the name for a row's position in messages.
        label_codes: the meanings of the values of human labels.
        skip_unreadable: whether a row with an unreadable value is left out and counted; otherwise
            it is an error.
    """

    def __init__(
        self, called: str = "row", label_codes: LabelCodes = NO_CODES, skip_unreadable: bool = False
    ) -> None:
        self._called = called
        self._aspects: defaultdict[str | None, AspectRows] = defaultdict(
            partial(AspectRows, label_codes, skip_unreadable)
        )
        self._rows = 0

    def add(
        self, row: Mapping[str, Any], place: int | None = None, *, left_out: str | None = None
    ) -> None:
        """Add a row as in ``results.jsonl``.

        Args:
            row: its fields.
            place: its position, for messages; by default the number of rows so far.
            left_out: the reason why it does not count, if known before its values are read.

        Raises:
            DataError: a winner if other rows of the same aspect have scores, or vice versa.
        """
        self._rows += 1
        # An empty field, as in a CSV file, is not an aspect.
        rows = self._aspects[str(row.get("aspect") or "") or None]
        if left_out:
            rows.leave_out(row, left_out)
        else:
            rows.add(row, place or self._rows, self._called)

    def agreement(
        self, resampling: Resampling | None = None, rule: TiePolicy = DEFAULT_TIE_POLICY
    ) -> dict[str, Agreement]:
        """Measure the agreement of the rows so far: scores by aspect in order, then preferences.

        Comparisons of one aspect, or without aspects, are under ``preference``; those of several
        under their aspects.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat that differ.
        """
        resampling = resampling or STANDARD
        return {name: _agreement(table, resampling, rule) for name, table in self.tables().items()}

    def annotated(self) -> str:
        """Return a notice about merged rows of single annotators; empty if there are none."""
        counts = [table.annotated for table in self.tables().values()]
        rows, items = (sum(numbers) for numbers in zip(*counts, strict=True)) if counts else (0, 0)
        if not items:
            return ""
        return f"{rows:,} rows are {items:,} items with several annotators each: the items count, not the rows"

    def over_repeats(
        self, rule: TiePolicy = DEFAULT_TIE_POLICY, skip_one_score: bool = False
    ) -> dict[str, RepeatedAgreement]:
        """Measure the variation between repeats, for each aspect that has several.

        Args:
            rule: the policy for comparing preferences with labels.
            skip_one_score: leave out groups in which the judge gives all items one score, as in the
                papers' tables.

        >>> collected = RowsByAspect()
        >>> for item, repeat in [(item, repeat) for item in range(5) for repeat in range(2)]:
        ...     collected.add({"item": item, "repeat": repeat, "score": item * (-1) ** repeat, "human": item})
        >>> collected.over_repeats()["score"].figures["over_rows.spearman"]
        Spread(mean=0.0, sd=1.4142135623730951, values=(1.0, -1.0))
        """
        spreads = {}
        for name, table in self.tables().items():
            repeats = table.rows["repeat"]
            if len(numbers := np.unique(repeats)) < 2:
                continue
            # Only the values are used, so draw no resamples for intervals.
            without = Resampling(resamples=0)
            by_repeat = [table._replace(rows=table.rows[repeats == number]) for number in numbers]
            agreements = [
                _agreement(of_repeat, without, rule, skip_one_score) for of_repeat in by_repeat
            ]
            figures = [agreement.figures() for agreement in agreements]
            # A value may exist in some repeats only, so collect the names from all of them.
            names = dict.fromkeys(chain(*figures))
            by_name = {figure: spread_of([of.get(figure) for of in figures]) for figure in names}
            rows = tuple(agreement.n for agreement in agreements)
            spreads[name] = RepeatedAgreement(len(agreements), rows, by_name)
        return spreads

    def tables(self) -> dict[str, RowTable]:
        """Return the rows so far by aspect: ``score`` without one, ``preference`` for comparisons.

        Raises:
            DataError: as for ``agreement``.
        """
        tables = {aspect: rows.table(self._called) for aspect, rows in self._aspects.items()}
        compared = [aspect for aspect, table in tables.items() if table.kind == "compare"]
        names = {aspect: aspect or "preference" for aspect in compared}
        # The name does not depend on whether the data name the aspect of their comparisons.
        if len(compared) == 1:
            names = {compared[0]: "preference"}
        scored = {
            aspect or "score": table for aspect, table in tables.items() if aspect not in names
        }
        if clash := scored.keys() & names.values():
            raise DataError(
                f"scores and comparisons are both called {min(clash)!r}: rename the aspect of one of them"
            )
        return scored | {name: tables[aspect] for aspect, name in names.items()}


def _agreement(
    table: RowTable, resampling: Resampling, rule: TiePolicy, skip_one_score: bool = False
) -> Agreement:
    rows = table.rows
    values = table.rows["values"]
    judged, human, *_ = values.T.copy()
    if table.kind == "compare":
        # One row per comparison, one column per preference: its number of votes, or 1 for the
        # majority's.
        human = values[:, 2:] if rule.votes == "each" else count_votes(human[:, None])
    groups = rows["cluster"][rows["grouped"]]
    grouped = len(groups) > 0
    sample = Sample(
        table.kind,
        judged,
        human,
        rows["cluster"].view(np.intp),
        grouped,
        resampling,
        rule.ties,
        skip_one_score,
        np.where(rows["system"] > 0, np.unique(rows["system"], return_inverse=True)[1], -1),
        np.unique(rows["repeat"], return_inverse=True)[1],
    )
    return agreement_of(sample, table.left_out, groups, rows["repeat"], rule.votes)


def agreement_of(
    sample: Sample,
    left_out: Mapping[str, int],
    groups: NDArray[Any],
    repeats: NDArray[Any],
    votes: Votes,
) -> Agreement:
    """Return the agreement of a sample, with the numbers of groups and repeats of its rows.

    ``groups`` and ``repeats`` can have any numbering.
    """
    about: dict[str, Any] = {
        "n": sample.counted,
        "groups": len(np.unique(groups)),
        "units": sample.count,
    }
    first = of_kind(sample.kind, "rows")[0]
    about |= {"repeats": max(1, len(np.unique(repeats))), "resampling": sample.resampling}
    about["effective"] = sample.effective(first)
    if sample.kind == "score":
        within = of_kind("score", "groups") if sample.grouped else ()
        systems = of_kind("score", "systems") if "systems" in sample.units else ()
        return ScoreAgreement(
            left_out=left_out,
            over_rows=sample.statistics(of_kind("score", "rows")),
            per_group={METRICS[name].coefficient: sample.within_groups(name) for name in within},
            over_systems={METRICS[name].coefficient: sample.statistic(name) for name in systems},
            variation=sample.variation(),
            judged=_range(sample.judged),
            human=_range(sample.human),
            **about,
        )
    ties_left_out = (
        {HUMAN_TIE: sample.human_ties} if sample.ties == "left_out" and sample.human_ties else {}
    )
    return PreferenceAgreement(
        left_out={**left_out, **ties_left_out},
        measures=sample.statistics(of_kind("compare")),
        ties=int(sample.human[sample.judged == TIE_CODE].sum()),
        human_ties=sample.human_ties,
        ties_as=sample.ties,
        votes=votes,
        **about,
    )


def spread_of(values: Sequence[float | None]) -> Spread:
    """Return the mean and sample standard deviation over the repeats that have a value.

    >>> spread_of([0.5, 0.7, None])
    Spread(mean=0.6, sd=0.14142135623730948, values=(0.5, 0.7, None))
    """
    known = [value for value in values if value is not None]
    return Spread(
        fmean(known) if known else None, stdev(known) if len(known) > 1 else None, tuple(values)
    )


def _range(scores: Floats) -> Range | None:
    return Range(float(scores.min()), float(scores.max())) if len(scores) else None
