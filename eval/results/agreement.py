"""Measure how well a judge agrees with people, by aspect: correlations of scores, accuracy and kappa of preferences.

Which rows count, and why others do not, is settled while they are collected (``agreement_rows``); the statistics
themselves are in ``statistics/``. Every result is frozen and carries its intervals and how they were made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...state.errors import DataError
from ..statistics.alignment import Floats
from ..statistics.correlation import STATISTICS
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import GroupedCorrelation, Sample
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TIE_CODE, TiePolicy, Ties, Votes, count_votes
from ..tables.grid import Column, figure, text_column
from .agreement_rows import HUMAN_TIE, AspectRows, RowTable

__all__ = ["Agreement", "Resampling", "Statistic", "Ties", "Votes", "agreement"]

STANDARD = Resampling()
"""The default for intervals: 1000 resamples, 95 %, seed 0."""
ROWS = Column("rows", about="rows with a verdict and a label")


class Range(NamedTuple):
    """Holds the least and the greatest score that was given."""

    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.least:.3g} to {self.greatest:.3g}"


@dataclass(frozen=True)
class ScoreAgreement:
    """Holds the agreement on scores: over all rows, and within groups (the candidates of one source).

    A correlation stays the same on different scales; ``judged`` and ``human`` say which scores either side gave.

    Attributes:
        n: rows that count: those with a score by the judge and by people.
        left_out: rows that do not, by reason.
        groups: how many there are; 0 where rows have none.
        over_rows: Pearson's, Spearman's and Kendall's correlation over all rows; the interval is of groups drawn with
            replacement (of items, where a row has no group).
        per_group: the mean of each within groups; empty where no row has a group.
        judged, human: least and greatest score of either side; ``None`` without rows.
        units: how many groups or items were drawn from; with fewer than two there is no interval.
        repeats: how many repeats of the same things the rows are of. They are drawn together.
        resampling: how the intervals were made.
    """

    n: Annotated[int, ROWS]
    left_out: Mapping[str, int]
    groups: int
    over_rows: Mapping[str, Statistic]
    per_group: Mapping[str, GroupedCorrelation]
    judged: Annotated[Range | None, text_column("range", of=str)] = None
    human: Annotated[Range | None, text_column("human range", of=str)] = None
    units: int = 0
    repeats: int = 1
    resampling: Resampling = STANDARD

    def figures(self) -> dict[str, float | None]:
        """Return each figure by its name, as ``over_rows.pearson``."""
        over = {f"over_rows.{name}": statistic.value for name, statistic in self.over_rows.items()}
        return over | {f"per_group.{name}": mean.value for name, mean in self.per_group.items()}


@dataclass(frozen=True)
class PreferenceAgreement:
    """Holds the agreement on preferences.

    Attributes:
        n: what counts: rows, or votes where each vote does.
        left_out: rows (or votes) that do not, by reason.
        accuracy: the share of them in which judge and people agree.
        kappa: Cohen's kappa; it has no value where chance agreement is certain.
        ties: how often the judge says tie.
        human_ties: how often people do; these are among ``left_out`` where they do not count.
        ties_as: what a human tie is: a ``class`` of its own, ``left_out``, or ``half`` right whatever the judge says.
        votes: whether people's ``majority`` counts, or ``each`` vote.
        groups: how many there are; 0 where rows have none.
        units: how many groups or items the intervals draw from; with fewer than two there is no interval.
        repeats: how many repeats of the same things the rows are of. They are drawn together.
        resampling: how the intervals were made.
    """

    n: Annotated[int, ROWS]
    left_out: Mapping[str, int]
    accuracy: Annotated[Statistic, Column("accuracy", best="high")]
    kappa: Annotated[Statistic, Column("kappa", best="high")]
    """Cohen's kappa"""
    ties: Annotated[int, Column("ties")]
    """verdicts that are a tie"""
    human_ties: Annotated[int, Column("human ties")] = 0
    ties_as: Ties = "class"
    votes: Votes = "majority"
    groups: int = 0
    units: int = 0
    repeats: int = 1
    resampling: Resampling = STANDARD

    def figures(self) -> dict[str, float | None]:
        """Return each figure by its name."""
        return {"accuracy": self.accuracy.value, "kappa": self.kappa.value}


Agreement = ScoreAgreement | PreferenceAgreement


def _listed(values: Iterable[float | None]) -> str:
    return ", ".join(figure(value, Column("")) for value in values)


class Spread(NamedTuple):
    """Holds a figure of each of several repeats, their mean and their standard deviation.

    Attributes:
        mean: over the repeats in which it exists; ``None`` where it does in none.
        sd: the standard deviation between them (n - 1); ``None`` with fewer than two.
        values: one for each repeat.
    """

    mean: Annotated[float | None, Column("mean")]
    sd: Annotated[float | None, Column("sd", about="sample standard deviation")]
    values: Annotated[tuple[float | None, ...], text_column("each repeat", of=_listed)]


@dataclass(frozen=True)
class RepeatedAgreement:
    """Holds how agreement varies between repeats of the same thing (ChatEval, table 1: mean, standard deviation).

    Attributes:
        repeats: how many there are.
        n: rows that count in each.
        figures: the spread of each figure by its name, as ``over_rows.spearman`` or ``accuracy``.
    """

    repeats: int
    n: tuple[int, ...]
    figures: Mapping[str, Spread]


def agreement(
    rows: Iterable[Mapping[str, Any]],
    resampling: Resampling | None = None,
    *,
    ties: Ties = "class",
    votes: Votes = "majority",
) -> dict[str, Agreement]:
    """Measure how well result rows agree with people, by aspect; comparisons are under ``preference``.

    Args:
        rows: as in ``results.jsonl``: ``score`` or ``winner``, ``human`` (a value, or a list of annotators' values),
            and ``item``, ``group``, ``aspect``, ``status``, ``repeat``, ``annotations`` if any.
        resampling: how intervals are made: over groups, or over items where there are no groups.
        ties: what a human tie is, in comparisons: a ``class`` of its own (ChatEval, section 3.4), ``left_out``, or
            ``half`` right whatever the judge says. A judge's tie against a human winner is wrong in any case.
        votes: whether people's ``majority`` counts in comparisons, or ``each`` annotator's vote (MT-Bench's rule).

    Raises:
        DataError: two rows of the same thing that differ, or scores and winners in one aspect.

    >>> rows = [{"aspect": "wit", "score": s, "human": h} for s, h in [(1, 2), (2, 3), (4, 5)]]
    >>> agreement(rows)["wit"].over_rows["spearman"].value
    1.0
    """
    collected = RowsByAspect()
    for row in rows:
        collected.add(row)
    return collected.agreement(resampling, TiePolicy(ties, votes))


class RowsByAspect:
    """Collects result rows one at a time; of each that counts it keeps a few numbers.

    Args:
        called: what a row's place is called in messages.
    """

    def __init__(self, called: str = "row") -> None:
        self._called = called
        self._aspects: defaultdict[str | None, AspectRows] = defaultdict(AspectRows)
        self._rows = 0

    def add(self, row: Mapping[str, Any], place: int | None = None, *, left_out: str | None = None) -> None:
        """Take in a row as in ``results.jsonl``.

        Args:
            row: its fields.
            place: where it stands, for messages; by default the number of rows so far.
            left_out: why it does not count, if that is settled before its values are read.

        Raises:
            DataError: a winner where other rows of the same aspect have scores, or the other way round.
        """
        self._rows += 1
        # An empty field, as a CSV file has it, is no aspect.
        rows = self._aspects[str(row.get("aspect") or "") or None]
        if left_out:
            rows.leave_out(row, left_out)
        else:
            rows.add(row, place or self._rows, self._called)

    def agreement(
        self, resampling: Resampling | None = None, rule: TiePolicy = DEFAULT_TIE_POLICY
    ) -> dict[str, Agreement]:
        """Measure the agreement of the rows so far: scores by aspect in the order of appearance, then preferences.

        Comparisons of a single aspect, or of none, are under ``preference``; those of several under their aspects.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat that differ.
        """
        resampling = resampling or STANDARD
        return {name: _agreement(table, resampling, rule) for name, table in self._tables().items()}

    def over_repeats(self, rule: TiePolicy = DEFAULT_TIE_POLICY) -> dict[str, RepeatedAgreement]:
        """Measure how the figures vary between repeats, for each aspect that has several.

        >>> collected = RowsByAspect()
        >>> for item, repeat in [(item, repeat) for item in range(5) for repeat in range(2)]:
        ...     collected.add({"item": item, "repeat": repeat, "score": item * (-1) ** repeat, "human": item})
        >>> collected.over_repeats()["score"].figures["over_rows.spearman"]
        Spread(mean=0.0, sd=1.4142135623730951, values=(1.0, -1.0))
        """
        spreads = {}
        for name, table in self._tables().items():
            repeats = table.rows["repeat"]
            if len(numbers := np.unique(repeats)) < 2:
                continue
            # Only the values are read, so no resamples are drawn for the intervals.
            without = Resampling(resamples=0)
            by_repeat = [table._replace(rows=table.rows[repeats == number]) for number in numbers]
            agreements = [_agreement(of_repeat, without, rule) for of_repeat in by_repeat]
            figures = [agreement.figures() for agreement in agreements]
            # A figure may exist in some repeats only: its name is taken from any of them.
            names = dict.fromkeys(chain(*figures))
            by_name = {figure: spread_of([of.get(figure) for of in figures]) for figure in names}
            rows = tuple(agreement.n for agreement in agreements)
            spreads[name] = RepeatedAgreement(len(agreements), rows, by_name)
        return spreads

    def _tables(self) -> dict[str, RowTable]:
        """Name each aspect's table: scores without one ``score``, comparisons of a single one ``preference``."""
        tables = {aspect: rows.table(self._called) for aspect, rows in self._aspects.items()}
        compared = [aspect for aspect, table in tables.items() if table.kind == "compare"]
        names = {aspect: aspect or "preference" for aspect in compared}
        # The name is the same whether or not the data name the aspect of their comparisons.
        if len(compared) == 1:
            names = {compared[0]: "preference"}
        scored = {aspect or "score": table for aspect, table in tables.items() if aspect not in names}
        if clash := scored.keys() & names.values():
            remedy = "rename the aspect of one of them"
            raise DataError(f"scores and comparisons are both called {min(clash)!r}: {remedy}")
        return scored | {name: tables[aspect] for aspect, name in names.items()}


def _agreement(table: RowTable, resampling: Resampling, rule: TiePolicy) -> Agreement:
    rows, values = table.rows, table.rows["values"]
    judged, human, *_ = values.T.copy()
    if table.kind == "compare":
        # A row for each comparison, a column for each preference: how many voted for it, or 1 for the majority's.
        human = values[:, 2:] if rule.votes == "each" else count_votes(human[:, None])
    groups = rows["cluster"][rows["grouped"]]
    sample = Sample(table.kind, judged, human, rows["cluster"], len(groups) > 0, resampling, rule.ties)
    return agreement_of(sample, table.left_out, groups, rows["repeat"], rule.votes)


def agreement_of(
    sample: Sample, left_out: Mapping[str, int], groups: NDArray[Any], repeats: NDArray[Any], votes: Votes
) -> Agreement:
    """Return the agreement of a sample, with what is known of its rows: the groups of those that have one, the repeats.

    Both are numbered in any way.
    """
    about: dict[str, Any] = {"n": sample.counted, "groups": len(np.unique(groups)), "units": sample.count}
    about |= {"repeats": max(1, len(np.unique(repeats))), "resampling": sample.resampling}
    if sample.kind == "score":
        return ScoreAgreement(
            left_out=left_out,
            over_rows=sample.statistics(STATISTICS),
            per_group={name: sample.within_groups(name) for name in STATISTICS} if sample.grouped else {},
            judged=_range(sample.judged),
            human=_range(sample.human),
            **about,
        )
    ties_left_out = {HUMAN_TIE: sample.human_ties} if sample.ties == "left_out" and sample.human_ties else {}
    return PreferenceAgreement(
        left_out={**left_out, **ties_left_out},
        accuracy=sample.statistic("accuracy"),
        kappa=sample.statistic("kappa"),
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
    return Spread(fmean(known) if known else None, stdev(known) if len(known) > 1 else None, tuple(values))


def _range(scores: Floats) -> Range | None:
    return Range(float(scores.min()), float(scores.max())) if len(scores) else None
