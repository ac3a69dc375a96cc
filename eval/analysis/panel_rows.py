"""Collect the rows that several judges judged: of runs, of result rows, or inside one panel's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..results.agreement_rows import RowTable
from ..statistics.alignment import Floats, Ints
from ..statistics.metrics import leading_metric, telling_groups
from ..statistics.resampling import Resampling
from ..statistics.sample import Sample
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TIE_CODE, TiePolicy, count_votes
from .comparison import PairwiseComparator
from .equal_cost import Currency, cost_of, currency_of
from .loading import JudgeAspectData
from .verdict_columns import human_labels, known_systems

Unit = Literal["cost", "calls", "judges"]
"""The unit of a price: US dollars or model calls per item; without either, the number of judges."""


@dataclass(frozen=True)
class PanelRows:
    """The verdicts of several judges on the same labelled rows.

    Attributes:
        subject: the aspect, or ``preference``.
        data: the name of the data.
        kind: whether these are scores or preferences.
        metric: the metric of agreement.
        judges: the labels of the judges.
        values: a column for each judge: scores, or codes of winners.
        human: the human score, or the human votes for 1, 2 and tie, of each row.
        clusters: the cluster of each row.
        has_groups: whether clusters are groups of items.
        rule: how preferences are compared with labels that tie.
        rows: the number of labelled rows with a verdict of at least one judge.
        missing: by judge, the number of these rows without its verdict.
        left_out: by judge, the number of other rows that do not count, by reason.
        prices: the price of a verdict of each judge; ``None`` if unknown.
        unit: the unit of the prices.
        systems: for scores: the code of the system that wrote each text, -1 if unknown.
        repeats: the code of each row's repeat; ``None`` for one repeat.
    """

    subject: str
    data: str
    kind: TaskKind
    metric: str
    judges: tuple[str, ...]
    values: Floats
    human: Floats
    clusters: Ints
    has_groups: bool
    rule: TiePolicy = DEFAULT_TIE_POLICY
    rows: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    prices: tuple[float, ...] | None = None
    unit: Unit = "judges"
    systems: Ints | None = None
    repeats: Ints | None = None

    def counted(self) -> PanelRows:
        """Return the rows with a human vote that counts."""
        if self.kind == "score":
            return self
        votes = self.human.copy()
        if self.rule.ties == "left_out":
            votes[:, TIE_CODE] = 0
        voted = votes.any(axis=1)
        return replace(
            self,
            values=self.values[voted],
            human=self.human[voted],
            clusters=self.clusters[voted],
            systems=None,
            repeats=None,
        )

    def sample(self, verdicts: Floats, resampling: Resampling, rows: Ints | None = None) -> Sample:
        """Return verdicts with the labels of all rows, or of some."""
        human = self.human if rows is None else self.human[rows]
        clusters = self.clusters if rows is None else self.clusters[rows]
        systems, repeats = (
            column if column is None or rows is None else column[rows]
            for column in (self.systems, self.repeats)
        )
        return Sample(
            self.kind,
            verdicts,
            human,
            clusters,
            self.has_groups,
            resampling,
            self.rule.ties,
            systems=systems,
            repeats=repeats,
        )


class NoPanelError(UsageError):
    """The judges are no panel: one alone, without labels, or without common rows."""


def rows_of_runs(
    comparator: PairwiseComparator, strict: bool, without: Sequence[str] = ()
) -> tuple[PanelRows, list[str]]:
    """Collect the rows that all judges of a subject judged, and name the judges left out.

    Args:
        comparator: the subject with its judges. The members inside a single run of a panel are
            judges, too.
        strict: refuse a judge that cannot be a member, instead of leaving it out.
        without: names of members inside a run to leave out.

    Raises:
        NoPanelError: the judges are no panel.
    """
    subject = comparator.subject
    if len(comparator.data) == 1 and agents_of(comparator.data[0]):
        return _rows_of_agents(comparator, comparator.data[0], without), []
    named = f"{subject.data}, {subject.label}" if subject.aspect else subject.data
    if len(comparator.data) < 2:
        raise NoPanelError(
            f"{named}: a panel has at least two judges, and only "
            f"{comparator.data[0].judge.label} judged here"
        )
    if not any(len(data.labelled) for data in comparator.data):
        raise NoPanelError(
            f"{named}: no row has a label, so the errors of the judges are unknown; "
            "add labels to the data"
        )
    members: list[JudgeAspectData] = []
    notes = []
    for data in comparator.data:
        problem = ""
        if not len(data.labelled):
            problem = "it has no verdict on a labelled row"
        elif not data.distances:
            problem = "its scores are not on the scale of the labels"
        if not problem:
            members.append(data)
            continue
        if strict:
            raise NoPanelError(
                f"{named}: {data.judge.label} cannot be a member of the panel, because {problem}; "
                "leave it out with --without"
            )
        notes.append(f"{data.judge.label} is not a member of the panel, because {problem}.")
    if len(members) < 2:
        raise NoPanelError(f"{named}: fewer than two judges can be members of a panel")
    # A judge with more repeats than the others did not fail on them in the others' place.
    repeats = reduce(np.intersect1d, [np.unique(data.labelled.repeat) for data in members])
    labelled = [data.labelled.take(np.isin(data.labelled.repeat, repeats)) for data in members]
    keys = {data.judge.label: rows.keys for data, rows in zip(members, labelled, strict=True)}
    _check_common(named, keys)
    common = reduce(np.intersect1d, keys.values())
    every = len(reduce(np.union1d, keys.values()))
    rows = [of.take(np.isin(of.keys, common)).in_order() for of in labelled]
    currency = currency_of([data.usage for data in members])
    prices = _prices([cost_of(data.usage, currency) for data in members])
    first = rows[0]
    return PanelRows(
        subject=subject.label,
        data=subject.data,
        kind=subject.kind,
        metric=subject.metric,
        judges=tuple(keys),
        values=np.column_stack([of.judged for of in rows]),
        human=human_labels(subject, first),
        clusters=first.clusters,
        has_groups=bool((first.group >= 0).any()),
        rule=subject.rule,
        rows=every,
        missing={name: every - len(of_judge) for name, of_judge in keys.items()},
        left_out={
            data.judge.label: _reasons(data, len(data.labelled) - len(of))
            for data, of in zip(members, labelled, strict=True)
        },
        prices=prices,
        unit="judges" if prices is None else _unit(currency),
        systems=known_systems(first) if subject.kind == "score" else None,
        repeats=np.unique(first.repeat, return_inverse=True)[1],
    ), notes


def _reasons(data: JudgeAspectData, more_repeats: int = 0) -> dict[str, int]:
    counts = {
        "failed": data.failed,
        "without label": len(data.rows) - len(data.labelled),
        "in repeats that another judge does not have": more_repeats,
    }
    return {reason: count for reason, count in counts.items() if count}


def _unit(currency: Currency) -> Unit:
    return "cost" if currency == "cost" else "calls"


def _prices(prices: Sequence[float | None]) -> tuple[float, ...] | None:
    """Return the prices, or ``None`` if one is unknown or nothing was spent, as in a replay."""
    known = tuple(price for price in prices if price)
    return known if len(known) == len(prices) else None


def _check_common(named: str, keys: Mapping[str, NDArray[Any]]) -> None:
    """Check that all judges have a row in common; the error names the judge that has none.

    Raises:
        NoPanelError: the judges have no row in common.
    """
    common = reduce(np.intersect1d, keys.values())
    if len(common):
        return
    # The judge without which most rows are common.
    left = {
        name: len(reduce(np.intersect1d, [own for other, own in keys.items() if other != name]))
        for name in keys
    }
    alone = max(left, key=lambda name: left[name])
    if len(keys) == 2 or not left[alone]:
        raise NoPanelError(
            f"{named}: {', '.join(keys)} have no labelled row in common, so their errors cannot be "
            "compared; a panel needs judges of the same items"
        )
    raise NoPanelError(
        f"{named}: {alone} has no labelled row in common with the other judges; "
        f"without it, {left[alone]:,} rows are common: leave it out with --without"
    )


def agents_of(data: JudgeAspectData) -> tuple[str, ...]:
    """Return the names of the members inside a run of a panel; empty for a single judge."""
    count = int(data.rows.agent_count.max(initial=0))
    names = (f"{data.judge.label}, member {place}" for place in range(1, count + 1))
    return tuple(names) if count > 1 else ()


def _rows_of_agents(
    comparator: PairwiseComparator, data: JudgeAspectData, without: Sequence[str]
) -> PanelRows:
    """Collect the verdicts of the members inside one run of a panel, such as an ensemble.

    Rows with a missing member do not count.
    """
    subject = comparator.subject
    labelled = data.labelled
    if not len(labelled):
        raise NoPanelError(
            f"{subject.data}: no row has a label, so the errors of the members are unknown; "
            "add labels to the data"
        )
    if "decided" in str(data.judge.settings.get("stop", "")):
        # Only the rows on which the members disagreed have all votes.
        raise NoPanelError(
            f"{subject.data}: the members of {data.judge.label} were asked in turn (stop=decided), "
            "so only contested rows have all votes; judge the rows without stop=decided"
        )
    agents = agents_of(data)
    complete = labelled.agent_count == len(agents)
    rows = labelled.take(complete)
    left = [place for place, name in enumerate(agents) if name not in without]
    names = tuple(agents[place] for place in left)
    if len(names) < 2 or not len(rows):
        raise NoPanelError(
            f"{subject.data}: fewer than two members of {data.judge.label} have verdicts on the "
            "same labelled row"
        )
    return PanelRows(
        subject=subject.label,
        data=subject.data,
        kind=subject.kind,
        metric=subject.metric,
        judges=names,
        values=np.array(list(rows.opinions()))[:, left],
        human=human_labels(subject, rows),
        clusters=rows.clusters,
        has_groups=bool((rows.group >= 0).any()),
        rule=subject.rule,
        rows=len(labelled),
        missing=dict.fromkeys(names, int((~complete).sum())),
        left_out=dict.fromkeys(names, _reasons(data)),
        systems=known_systems(rows) if subject.kind == "score" else None,
        repeats=np.unique(rows.repeat, return_inverse=True)[1],
    )


def rows_of_tables(
    tables: Mapping[str, RowTable], subject: str, data: str, rule: TiePolicy, metric: str | None
) -> PanelRows:
    """Collect the rows that all judges of some tables judged.

    Args:
        tables: the rows of one aspect by judge.
        subject: the aspect, or ``preference``.
        data: the name of the data, for messages.
        rule: how preferences are compared with labels.
        metric: the metric of agreement; ``None`` for the usual one.

    Raises:
        NoPanelError: the judges are no panel, or their scores are on another scale.
        DataError: judges have different labels for one item.
    """
    named = data if subject in ("score", "preference") else f"{data}, {subject}"
    if len(tables) < 2:
        raise NoPanelError(
            f"{named}: a panel has at least two judges, and only {', '.join(tables)} judged here"
        )
    for name, table in tables.items():
        if not len(table.rows):
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in table.left_out.items())
            raise NoPanelError(
                f"{named}: {name} has no row with a verdict and a label"
                + (f" ({reasons})" if reasons else "")
                + "; leave it out with --without"
            )
    kinds = {name: table.kind for name, table in tables.items()}
    if len(set(kinds.values())) > 1:
        other = next(name for name, kind in kinds.items() if kind != next(iter(kinds.values())))
        raise NoPanelError(
            f"{named}: {next(iter(kinds))} and {other} cannot form a panel, because one gives "
            "scores and the other one winners"
        )
    keys = {name: table.rows["unit"] for name, table in tables.items()}
    _check_common(named, keys)
    common = reduce(np.intersect1d, keys.values())
    every = len(reduce(np.union1d, keys.values()))
    shared = []
    for table in tables.values():
        own = table.rows[np.isin(table.rows["unit"], common)]
        shared.append(own[np.argsort(own["unit"])])
    first = shared[0]
    for name, own in zip(tables, shared, strict=True):
        differing = np.flatnonzero((own["values"][:, 1:] != first["values"][:, 1:]).any(axis=1))
        if len(differing):
            places = first["place"][differing[0]], own["place"][differing[0]]
            raise DataError(
                f"{named}: lines {places[0]} and {places[1]} have different labels for one item, "
                f"of {next(iter(tables))} and {name}: correct one of them"
            )
    kind = next(iter(kinds.values()))
    votes = first["values"][:, 2:] if rule.votes == "each" else count_votes(first["values"][:, 1:2])
    human = first["values"][:, 1].copy() if kind == "score" else votes
    values = np.column_stack([own["values"][:, 0] for own in shared])
    has_groups = bool(first["grouped"].any())
    clusters = first["cluster"].view(np.intp)
    if kind == "score":
        _check_scale(named, tuple(tables), values, human)
    groups = np.where(first["grouped"], np.unique(clusters, return_inverse=True)[1], -1)
    numbers = np.unique(first["system"], return_inverse=True)[1]
    labels = first["values"][:, 1]
    telling, pairs = (
        [telling_groups(np.arange(len(first)), groups, labels, fewest)] for fewest in (3, 2)
    )
    return PanelRows(
        subject=subject,
        data=data,
        kind=kind,
        metric=metric or leading_metric(kind, data, telling, pairs),
        judges=tuple(tables),
        values=values,
        human=human,
        clusters=clusters,
        has_groups=has_groups,
        rule=rule,
        rows=every,
        missing={name: every - len(of_judge) for name, of_judge in keys.items()},
        left_out={name: dict(table.left_out) for name, table in tables.items()},
        systems=np.where(first["system"] > 0, numbers, -1) if kind == "score" else None,
        repeats=np.unique(first["repeat"], return_inverse=True)[1],
    )


def _check_scale(named: str, judges: Sequence[str], values: Floats, human: Floats) -> None:
    """Refuse a judge whose usual score is outside the range of the labels.

    Its errors, which are scores minus labels, would follow from the scale alone.
    """
    low = float(human.min())
    high = float(human.max())
    for name, scores in zip(judges, values.T, strict=True):
        usual = float(np.median(scores))
        if low < high and not low <= usual <= high:
            raise NoPanelError(
                f"{named}: half of the scores of {name} are beyond {usual:g}, and the labels are from "
                f"{low:g} to {high:g}: bring them to one scale, or leave it out with --without"
            )
