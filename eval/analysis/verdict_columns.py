"""Store verdicts in columns of numbers, about 200 bytes each, so that millions fit into memory.

``VerdictColumns`` collects results one at a time while they are read. ``Verdicts`` is the final
table, and ``sample`` combines it with the labels.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from math import isnan, nan
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...state.aggregation import mean_pair
from ...state.panels import without_missing
from ...state.transcript import NO_USAGE, USAGE_FIELDS, RoleKind, Turn, Usage
from ...state.verdict import Winner
from ..results.agreement_rows import cluster_digest
from ..results.evaluation import UsageTotals
from ..results.results import NumberRows, Result, kind_of_turns
from ..statistics.alignment import Floats, Ints
from ..statistics.resampling import FEWEST_CLUSTERS, Resampling
from ..statistics.sample import Sample
from ..statistics.tie_policy import CODES, WINNERS, count_votes
from .judges import Subject

Booleans = NDArray[np.bool_]

Value = float | tuple[float, float]
"""A score, or the scores of two answers."""

Judged = float | Winner
"""A verdict or a human label: a score, or a winner."""


class ReadTurn(NamedTuple):
    """A turn with its effect on the verdict, and the score or pair of scores read from it."""

    turn: Turn
    kind: RoleKind
    value: Value | None


def turns_of(result: Result) -> list[ReadTurn]:
    """Return the turns of a result, in the form for counting events in debates."""
    kind_of = kind_of_turns(result)
    return [
        ReadTurn(turn, kind_of(turn), _value_of(turn))
        for turn in without_missing(result.transcript)
    ]


def _value_of(turn: Turn) -> Value | None:
    value = turn["value"]
    if isinstance(value, list):
        return cast("tuple[float, float]", tuple(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def agent_scores(turns: Iterable[ReadTurn]) -> Iterator[tuple[Value | Winner, Usage]]:
    """Yield the last score or vote of each panel member or voter, with the usage.

    A score is the mean over both orders.
    """
    last: dict[str, dict[int, Value | Winner]] = {}
    usages: dict[str, Usage] = {}
    for turn, kind, score in turns:
        if kind not in ("panel", "votes"):
            continue
        agent = turn["agent"]
        usages[agent] = usages.get(agent, NO_USAGE) + Usage.of_fields(turn)
        value = cast("Winner", turn["value"]) if isinstance(turn["value"], str) else score
        if value is not None:
            # A later turn of the same order replaces the earlier one; turns are in chronological
            # order.
            last.setdefault(agent, {})[turn.get("order", 1)] = value
    for agent, by_order in last.items():
        values = list(by_order.values())
        pairs = [value for value in values if isinstance(value, tuple)]
        # Pairs of both orders are averaged. For votes, the last one counts.
        value = mean_pair(pairs) if len(pairs) == len(values) > 1 else values[-1]
        yield value, usages[agent]


class Codes(dict[Hashable, int]):
    """Codes for names, in the order in which they first appear."""

    def code(self, name: Hashable) -> int:
        """Return the code of a name, with a new code for a new name; -1 for ``None``."""
        return -1 if name is None else self.setdefault(name, len(self))

    def names(self) -> list[Any]:
        """Return all names, in the order of their codes."""
        return list(self)


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts numbers in names by value: rater 2 before rater 10."""
    parts = re.split(r"(\d+)", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


class StudyNames:
    """Codes for all names in the verdicts of a study, each stored once for all judges.

    Attributes:
        items: (digest of the dataset, id), because datasets may have items with the same id.
        groups: by name.
        systems: whole tuples, because there are few different ones.
        annotations: pairs of an item's labels by annotator and the annotators' names.
    """

    def __init__(self) -> None:
        self.items, self.groups, self.systems, self.annotations = (Codes() for _ in range(4))
        self._ranks: Ints = np.zeros(0, dtype=np.intp)
        self._digests: tuple[Ints, Ints] = (self._ranks, self._ranks)

    def cluster_digests(self) -> tuple[Ints, Ints]:
        """Return the digests of groups and items by code, as clusters for resampling."""
        if len(self._digests[0]) < len(self.groups) or len(self._digests[1]) < len(self.items):
            of_groups = [cluster_digest(group) for group in self.groups]
            of_items = [cluster_digest(item=item) for _, item in self.items.names()]
            self._digests = (
                np.array(of_groups, dtype=np.uint64).view(np.intp),
                np.array(of_items, dtype=np.uint64).view(np.intp),
            )
        return self._digests

    def item_ranks(self) -> Ints:
        """Return the place of each item in the alphabetical order of the ids."""
        names = self.items.names()
        if len(self._ranks) < len(names):
            # The argsort of an order is the place of each number.
            self._ranks = np.argsort(sorted(range(len(names)), key=lambda number: names[number][1]))
        return self._ranks


class VerdictColumns:
    """Collects the results of one judge on one subject.

    Args:
        names: the names of the study.
        digest: the digest of the dataset.
    """

    def __init__(self, names: StudyNames, digest: str) -> None:
        self._names = names
        self._digest = digest
        self._winners = False
        self._rows = NumberRows(
            **dict.fromkeys(("item", "repeat", "group", "systems", "annotations"), "i"),
            **dict.fromkeys(("path_count", "agent_count"), "i"),
            **{"judged": "d", "human": "d", "scores": "2d", "lengths": "2d", "usage": f"{_USAGE}d"},
        )
        # A row for each entry of the paths, and for each of the agents.
        self._path = NumberRows(values="2d")
        self._agents = NumberRows(values=f"{2 + _USAGE}d")

    def add(self, result: Result, judged: Judged | None, turns: Sequence[ReadTurn] = ()) -> int:
        """Add one result, and return a number for its cluster, which resampled rows share.

        Args:
            result: its path and its agents count only if it has a verdict.
            judged: its verdict, or ``None``.
            turns: the turns of its agents.
        """
        names = self._names
        human = result.human
        self._winners = self._winners or isinstance(judged, str) or isinstance(human, str)
        path = result.score_by_round if judged is not None else ()
        agents = list(agent_scores(turns))
        item = names.items.code((self._digest, result.item))
        group = names.groups.code(result.group)
        systems = names.systems.code(result.systems)
        annotations = names.annotations.code((result.annotations, result.annotators))
        scores = result.scores or (nan, nan)
        lengths = (*result.lengths, nan)[:2] if len(result.lengths) in (1, 2) else (nan, nan)
        figures = (_code(judged), _code(human), *scores, *lengths, *_usage_numbers(result))
        self._rows.add(
            item, result.repeat, group, systems, annotations, len(path), len(agents), *figures
        )
        for value in path:
            self._path.add(*_two(value))
        for last, usage in agents:
            # Infinity distinguishes the code of a vote from the first of two scores.
            two = (_code(last), np.inf) if isinstance(last, str) else _two(last)
            self._agents.add(*two, *_usage_numbers(usage))
        return group if group >= 0 else ~item

    def verdicts(self) -> Verdicts:
        """Return all results by item and repeat."""
        rows = self._rows.table()
        columns = {name: rows[name] for name in rows.dtype.names or ()}
        for of in ("path", "agent"):
            counts = columns[f"{of}_count"]
            columns[f"{of}_start"] = np.cumsum(counts, dtype=np.int64) - counts
        path, agents = (lines.table()["values"] for lines in (self._path, self._agents))
        return Verdicts(self._names, self._winners, **columns, path=path, agents=agents).in_order()


_USAGE = len(fields(Usage))


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The results of one judge on one subject, in columns.

    Attributes:
        names: the names for the numbers below.
        winners: whether verdicts and labels are codes of winners instead of scores. item, repeat,
            group, systems, annotations: for each row; a group of -1 means no group.
        judged, human: the score, or the winner's code; NaN if missing.
        scores: the final scores of two answers, (rows, 2); NaN if missing.
        lengths: in characters, (rows, 2): of the candidate and NaN, or of both answers.
        usage: the fields of the usage, (rows, fields); NaN for an unknown cost.
        path_start, path_count: the row's lines of ``path``: the score after each round, or both
            answers' scores (a single score has NaN as second value).
        agent_start, agent_count: the row's lines of ``agents``, one for each agent: value (two
            columns; infinity with a winner's code), usage.
    """

    names: StudyNames
    winners: bool
    item: NDArray[Any]
    repeat: NDArray[Any]
    group: NDArray[Any]
    systems: NDArray[Any]
    annotations: NDArray[Any]
    judged: Floats
    human: Floats
    scores: Floats
    lengths: Floats
    usage: Floats
    path_start: Ints
    path_count: NDArray[Any]
    agent_start: Ints
    agent_count: NDArray[Any]
    path: Floats = field(repr=False)
    agents: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.item)

    def take(self, rows: NDArray[Any]) -> Verdicts:
        """Return some rows, by their places or by a mask."""
        if rows.dtype == np.bool_ and rows.all():
            return self
        return replace(self, **{name: getattr(self, name)[rows] for name in _OF_ROWS})

    def in_order(self) -> Verdicts:
        """Return the rows by item and repeat, so that the order of reading has no effect."""
        ranks = self.names.item_ranks()[self.item]
        order = np.lexsort((self.repeat, ranks))
        return self if (order == np.arange(len(order))).all() else self.take(order)

    @cached_property
    def keys(self) -> Ints:
        """Codes that are equal for equal item and repeat, in all judges of a study."""
        keys: Ints = self.item.astype(np.int64) << 32 | self.repeat
        return keys

    @property
    def labelled(self) -> Booleans:
        """A mask of the rows with a human label."""
        return ~np.isnan(self.human)

    @property
    def clusters(self) -> Ints:
        """The digest of each row's cluster for resampling: its group, or else its item."""
        of_groups, of_items = self.names.cluster_digests()
        clusters: Ints = of_items[self.item]
        grouped = self.group >= 0
        clusters[grouped] = of_groups[self.group[grouped]]
        return clusters

    @property
    def usage_totals(self) -> UsageTotals:
        """The usage of all rows."""
        # Added up from the first to the last, because a pairwise sum has other last digits.
        total = np.cumsum(self.usage, axis=0)[-1] if len(self) else np.zeros(_USAGE)
        *counts, cost, seconds, uncounted = total.tolist()
        cost = None if isnan(cost) else cost
        return UsageTotals(len(self), Usage(*map(int, counts), cost, seconds, int(uncounted)))  # type: ignore[call-arg]

    @property
    def rounds(self) -> int:
        """The maximum number of scores in the path of a row."""
        return int(self.path_count.max(initial=0))

    def after(self, entry: int) -> Floats:
        """Return each row's verdict as of this entry of its path, or the last one if it ended.

        Every row must have a path.
        """
        return self.decided(self.path[self.path_start + np.minimum(entry, self.path_count - 1)])

    def decided(self, values: Floats) -> Floats:
        """Return scores unchanged, and the winner's code for pairs; values of shape (some, 2)."""
        return winners_by_mean(values) if self.winners else values[:, 0]

    @cached_property
    def annotators(self) -> tuple[str, ...]:
        """The annotators of these rows by name, or ``annotator 1`` for the first unnamed label.

        Their order does not depend on which judgement finished first.
        """
        unnamed, names = self._places_and_names
        return (*(f"annotator {place}" for place in range(1, unnamed + 1)), *names)

    @cached_property
    def _places_and_names(self) -> tuple[int, list[str]]:
        known = self.names.annotations.names()
        names: set[str] = set()
        places = 0
        for code in np.unique(self.annotations).tolist():
            labels, annotators = known[code]
            names.update(annotators)
            places = max(places, 0 if annotators else len(labels))
        return places, sorted(names, key=_natural)

    @property
    def by_annotator(self) -> Floats:
        """Each annotator's label or code for each row: shape (rows, annotators), NaN if missing."""
        known = self.names.annotations.names()
        codes = np.unique(self.annotations).tolist()
        unnamed, names = self._places_and_names
        columns = {name: column for column, name in enumerate(names, start=unnamed)}
        # Only the rows' own labels have a line, because names of many annotators would make the
        # table of all labels large.
        table = np.full((len(codes), len(self.annotators)), nan)
        for line, code in enumerate(codes):
            labels, annotators = known[code]
            for place, label in enumerate(labels):
                table[line, columns[annotators[place]] if annotators else place] = _code(label)
        labels_of_rows: Floats = table[np.searchsorted(codes, self.annotations)]
        return labels_of_rows

    @property
    def all_labels(self) -> Floats:
        """The same, with the row's own label if those of single annotators are unknown."""
        labels = self.by_annotator
        return np.column_stack([np.where(np.isnan(labels).all(axis=1), self.human, nan), labels])

    def as_verdicts(self, values: Floats) -> list[Judged | None]:
        """Return values of ``judged`` or ``human`` in the form of results: scores, or winners."""
        known = [None if isnan(value) else value for value in values.tolist()]
        return (
            known
            if not self.winners
            else [None if code is None else WINNERS[int(code)] for code in known]
        )

    def opinions(self) -> Iterator[list[float]]:
        """Yield the last score or vote of each row's agents; for two scores, the winner's code.

        A vote is a code.
        """
        verdicts = np.where(
            np.isinf(self.agents[:, 1]), self.agents[:, 0], self.decided(self.agents[:, :2])
        )
        for start, count in zip(self.agent_start, self.agent_count, strict=True):
            yield verdicts[start : start + count].tolist()


class Side(NamedTuple):
    """One side of a comparison on a subject: a judge, or an ensemble of single judges.

    Attributes:
        label: its name.
        rows: its verdicts, by item and repeat.
        distances: whether its scores and the labels are on one scale.
    """

    label: str
    rows: Verdicts
    distances: bool


def sample(
    subject: Subject,
    rows: Verdicts,
    resampling: Resampling,
    judged: Floats | None = None,
    labels: Floats | None = None,
    skip_one_score: bool = False,
) -> Sample:
    """Make the sample of the rows with a label.

    Args:
        subject: the judged subject, which determines how preferences are compared with the labels.
        rows: verdicts with their labels.
        resampling: how intervals are computed.
        judged: values that replace the final verdicts, such as those after a round.
        labels: labels that replace the rows' own: scores, or votes of shape (rows, 3).
        skip_one_score: leave out the groups in which the judge gives every item one score, as the
            papers' tables do.
    """
    values = rows.judged if judged is None else judged
    grouped = bool((rows.group >= 0).any())
    labels = human_labels(subject, rows) if labels is None else labels
    return Sample(
        subject.kind,
        values,
        labels,
        rows.clusters,
        grouped,
        resampling,
        subject.rule.ties,
        skip_one_score,
        known_systems(rows) if subject.kind == "score" else None,
        np.unique(rows.repeat, return_inverse=True)[1],
    )


def known_systems(rows: Verdicts) -> Ints:
    """Return the code of the system that wrote each row's text, or -1 if it is unknown."""
    # Numbers of the tuples of systems; an empty tuple is an unknown system.
    unknown = [place for place, names in enumerate(rows.names.systems.names()) if not names]
    return np.where(np.isin(rows.systems, unknown), -1, rows.systems)


def human_labels(subject: Subject, rows: Verdicts) -> Floats:
    """Return the labels of rows: scores, or the votes for 1, 2 and tie of shape (rows, 3)."""
    if subject.kind == "score":
        return rows.human
    return count_votes(rows.all_labels if subject.rule.votes == "each" else rows.human[:, None])


_OF_ROWS = Verdicts.__dataclass_fields__.keys() - {"names", "winners", "path", "agents"}


def _code(judged: Judged | None) -> float:
    return nan if judged is None else CODES[judged] if isinstance(judged, str) else judged


def _two(value: Value) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, nan)


def _usage_numbers(usage: Usage) -> Iterable[float]:
    return (nan if number is None else number for number in _usage_fields(usage))


_usage_fields = attrgetter(*USAGE_FIELDS, "uncounted")


def close(numbers: Floats, others: Floats, least: float = 1e-12) -> Booleans:
    """Return a mask of the numbers that differ only by rounding: ``math.isclose`` for columns."""
    apart = np.abs(numbers - others)
    size = np.maximum(np.abs(numbers), np.abs(others))
    alike: Booleans = (numbers == others) | (apart <= 1e-9 * size) | (apart <= least)
    return alike


def shared_items(sides: Iterable[Verdicts]) -> Ints | None:
    """Return the labelled items with a verdict of every judge; ``None`` if there are hardly any.

    A judge with hardly any verdicts is not compared (``FEWEST_CLUSTERS``), because it would leave
    next to nothing for the others.
    """
    judged = [np.unique(rows.item[rows.labelled]) for rows in sides]
    enough = min(FEWEST_CLUSTERS, max(map(len, judged), default=0))
    compared = [items for items in judged if len(items) >= enough]
    shared: Ints = reduce(np.intersect1d, compared) if compared else np.zeros(0, dtype=np.intp)
    return shared if len(shared) >= enough else None


def winners_by_mean(pairs: Floats) -> Floats:
    """Return the code of the answer with the higher score; a difference by rounding is a tie.

    >>> winners_by_mean(np.array([[0.1 + 0.2, 0.3], [7.5, 7.0], [1.0, 2.0]])).tolist()
    [2.0, 0.0, 1.0]
    """
    first = pairs[:, 0]
    second = pairs[:, 1]
    higher = np.where(first > second, float(CODES["1"]), float(CODES["2"]))
    return np.where(close(first, second, 0.0), float(CODES["tie"]), higher)


def moved(before: Floats, after: Floats, winners: bool) -> Booleans:
    """Return a mask of the verdicts that differ by more than rounding."""
    return before != after if winners else ~close(before, after)


def directions(before: Floats, after: Floats, human: Floats, winners: bool) -> NDArray[np.int64]:
    """Return 1 if a change moved a verdict nearer to the human label, -1 if farther, else 0."""
    if winners:
        ways = (after == human).astype(np.int64) - (before == human)
    else:
        was = np.abs(before - human)
        now = np.abs(after - human)
        ways = np.where(close(was, now), 0, np.where(now < was, 1, -1))
    return np.where(np.isnan(human) | (before == after), 0, ways)


def distances(judged: Floats, human: Floats, winners: bool) -> Floats:
    """Return the distance of each score to the humans'; for a winner, 0 if it is right, else 1."""
    return (judged != human).astype(float) if winners else np.abs(judged - human)
