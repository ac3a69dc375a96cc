"""Hold verdicts in columns of numbers, some 200 bytes each, so that millions of them fit into memory.

``VerdictColumns`` takes results in one at a time, while they are read; ``Verdicts`` is what it gives in the end, and
``sample`` sets it beside the labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from math import isnan, nan
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ...state.aggregation import mean_pair
from ...state.transcript import NO_USAGE, USAGE_FIELDS, RoleKind, Turn, Usage
from ...state.verdict import Winner
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
    """Holds a turn with what it does to the verdict, and the score or the pair of scores that was read from it."""

    turn: Turn
    kind: RoleKind
    value: Value | None


def turns_of(result: Result) -> list[ReadTurn]:
    """Return the turns of a result, as all that count what happened in debates look at them."""
    kind_of = kind_of_turns(result)
    return [ReadTurn(turn, kind_of(turn), _value_of(turn)) for turn in result.transcript]


def _value_of(turn: Turn) -> Value | None:
    value = turn["value"]
    if isinstance(value, list):
        return cast("tuple[float, float]", tuple(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def agent_scores(turns: Iterable[ReadTurn]) -> Iterator[tuple[Value | Winner, Usage]]:
    """Yield of each member of a panel, or voter, the last score or vote (mean over both orders) and the usage."""
    last: dict[str, dict[int, Value | Winner]] = {}
    usages: dict[str, Usage] = {}
    for turn, kind, score in turns:
        if kind not in ("panel", "votes"):
            continue
        agent = turn["agent"]
        usages[agent] = usages.get(agent, NO_USAGE) + Usage.of_fields(turn)
        value = cast("Winner", turn["value"]) if isinstance(turn["value"], str) else score
        if value is not None:
            # A later turn of the same order replaces the earlier one; turns come in time.
            last.setdefault(agent, {})[turn.get("order", 1)] = value
    for agent, by_order in last.items():
        values = list(by_order.values())
        pairs = [value for value in values if isinstance(value, tuple)]
        # Pairs of both orders are averaged; of votes the last one counts.
        value = mean_pair(pairs) if len(pairs) == len(values) > 1 else values[-1]
        yield value, usages[agent]


class Codes(dict[Hashable, int]):
    """Codes names in the order in which they first appear."""

    def code(self, name: Hashable) -> int:
        """Return the code of a name, a new one if the name is new; -1 for ``None``."""
        return -1 if name is None else self.setdefault(name, len(self))

    def names(self) -> list[Any]:
        """Return all names, in the order of their codes."""
        return list(self)


class StudyNames:
    """Codes all names that verdicts of a study refer to; each is held once, whatever judges it comes up with.

    Attributes:
        items: (digest of the dataset, id): datasets may have items of the same id.
        groups: by name.
        systems, annotations: whole tuples, of which there are few different ones.
    """

    def __init__(self) -> None:
        self.items, self.groups, self.systems, self.annotations = (Codes() for _ in range(4))
        self._ranks: Ints = np.zeros(0, dtype=np.intp)

    def item_ranks(self) -> Ints:
        """Return the place of each item in the alphabetical order of the ids."""
        names = self.items.names()
        if len(self._ranks) < len(names):
            # Sorting the order of the numbers turns it into the place of each number.
            self._ranks = np.argsort(sorted(range(len(names)), key=lambda number: names[number][1]))
        return self._ranks


class VerdictColumns:
    """Takes in results of one judge on one subject.

    Args:
        names: of the study.
        digest: of the dataset.
    """

    def __init__(self, names: StudyNames, digest: str) -> None:
        self._names, self._digest = names, digest
        self._winners = False
        self._rows = NumberRows(
            **dict.fromkeys(("item", "repeat", "group", "systems", "annotations"), "i"),
            **dict.fromkeys(("path_count", "agent_count"), "i"),
            **{"judged": "d", "human": "d", "scores": "2d", "lengths": "2d", "usage": f"{_USAGE}d"},
        )
        # A row for each entry of their paths, and for each of their agents.
        self._path, self._agents = NumberRows(values="2d"), NumberRows(values=f"{2 + _USAGE}d")

    def add(self, result: Result, judged: Judged | None, turns: Sequence[ReadTurn] = ()) -> int:
        """Take in one result, and return its cluster, as ``Verdicts.clusters`` has it.

        Args:
            result: its path and its agents count only where it has a verdict.
            judged: its verdict; ``None`` where it has none.
            turns: those of its agents.
        """
        names, human = self._names, result.human
        self._winners = self._winners or isinstance(judged, str) or isinstance(human, str)
        path = result.score_by_round if judged is not None else ()
        agents = list(agent_scores(turns))
        item, group = names.items.code((self._digest, result.item)), names.groups.code(result.group)
        systems, annotations = names.systems.code(result.systems), names.annotations.code(result.annotations)
        scores = result.scores or (nan, nan)
        lengths = (*result.lengths, nan)[:2] if len(result.lengths) in (1, 2) else (nan, nan)
        figures = (_code(judged), _code(human), *scores, *lengths, *_usage_numbers(result))
        self._rows.add(item, result.repeat, group, systems, annotations, len(path), len(agents), *figures)
        for value in path:
            self._path.add(*_two(value))
        for last, usage in agents:
            # Infinity tells the code of a vote from the first of two scores.
            two = (_code(last), np.inf) if isinstance(last, str) else _two(last)
            self._agents.add(*two, *_usage_numbers(usage))
        return group if group >= 0 else ~item

    def verdicts(self) -> Verdicts:
        """Return all results by item and repeat, so that no figure depends on which judgement finished first."""
        rows = self._rows.table()
        columns = {name: rows[name] for name in rows.dtype.names or ()}
        for of in ("path", "agent"):
            counts = columns[f"{of}_count"]
            columns[f"{of}_start"] = np.cumsum(counts, dtype=np.int64) - counts
        path, agents = (lines.table()["values"] for lines in (self._path, self._agents))
        unsorted = Verdicts(self._names, self._winners, **columns, path=path, agents=agents)
        return unsorted.take(np.lexsort((unsorted.repeat, self._names.item_ranks()[unsorted.item])))


_USAGE = len(fields(Usage))


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Holds results of one judge on one subject, in columns.

    Attributes:
        names: what the numbers below stand for.
        winners: whether verdicts and labels are winners, as codes, and not scores.
        item, repeat, group, systems, annotations: of each row; a group of -1 is none.
        judged, human: the score, or the winner's code; NaN where there is none.
        scores: the final scores of two answers, (rows, 2); NaN where there are none.
        lengths: in characters, (rows, 2): of the candidate and NaN, or of both answers.
        usage: the fields of the usage, (rows, fields); NaN for an unknown cost.
        path_start, path_count: which lines of ``path`` are the row's: the score after each round, or both answers'
            (a score alone has NaN beside it).
        agent_start, agent_count: which lines of ``agents`` are the row's, one an agent: value (two columns; infinity
            beside a winner's code), usage.
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

    @cached_property
    def keys(self) -> Ints:
        """Codes that are equal where item and repeat are; in all judges of a study."""
        keys: Ints = self.item.astype(np.int64) << 32 | self.repeat
        return keys

    @property
    def labelled(self) -> Booleans:
        """Which rows have a human label."""
        return ~np.isnan(self.human)

    @property
    def clusters(self) -> Ints:
        """The bootstrap cluster of each row, the same in all judges of a study: its group's code, or ~ its item's."""
        return np.where(self.group >= 0, self.group, ~self.item).astype(np.intp)

    @property
    def usage_totals(self) -> UsageTotals:
        """The usage of all rows."""
        # Added up from the first to the last: a sum by pairs has other last digits.
        total = np.cumsum(self.usage, axis=0)[-1] if len(self) else np.zeros(_USAGE)
        *counts, cost, seconds, uncounted = total.tolist()
        cost = None if isnan(cost) else cost
        return UsageTotals(len(self), Usage(*map(int, counts), cost, seconds, int(uncounted)))  # type: ignore[call-arg]

    @property
    def rounds(self) -> int:
        """The most scores that a row has in its path."""
        return int(self.path_count.max(initial=0))

    def after(self, entry: int) -> Floats:
        """Return each row's verdict as of this entry of its path, the last one where it ended earlier.

        Every row must have a path.
        """
        return self.decided(self.path[self.path_start + np.minimum(entry, self.path_count - 1)])

    def decided(self, values: Floats) -> Floats:
        """Return scores as they are, and of pairs the winner's code; values of shape (some, 2)."""
        return winners_by_mean(values) if self.winners else values[:, 0]

    @property
    def by_annotator(self) -> Floats:
        """Each annotator's label of each row, or its code: shape (rows, annotators); NaN where there is none."""
        known, codes = self.names.annotations.names(), np.unique(self.annotations).tolist()
        table = np.full((len(known), max((len(known[code]) for code in codes), default=0)), nan)
        for code in codes:
            for place, label in enumerate(known[code]):
                table[code, place] = _code(label)
        labels: Floats = table[self.annotations]
        return labels

    @property
    def all_labels(self) -> Floats:
        """The same, with the row's own label where those of single annotators are not known."""
        labels = self.by_annotator
        return np.column_stack([np.where(np.isnan(labels).all(axis=1), self.human, nan), labels])

    def as_verdicts(self, values: Floats) -> list[Judged | None]:
        """Return values of ``judged`` or ``human`` as results have them: scores, or winners of their codes."""
        known = [None if isnan(value) else value for value in values.tolist()]
        return known if not self.winners else [None if code is None else WINNERS[int(code)] for code in known]

    def opinions(self) -> Iterator[list[float]]:
        """Yield of each row its agents' last scores, or the codes of their votes; of two scores, the winner's."""
        verdicts = np.where(np.isinf(self.agents[:, 1]), self.agents[:, 0], self.decided(self.agents[:, :2]))
        for start, count in zip(self.agent_start, self.agent_count, strict=True):
            yield verdicts[start : start + count].tolist()


class Side(NamedTuple):
    """Names one of two that are compared on a subject: a judge, or an ensemble of single judges.

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
) -> Sample:
    """Make the sample of rows that have a label.

    Args:
        subject: what was judged; it says how preferences are compared with the labels.
        rows: verdicts with their labels.
        resampling: how intervals are made.
        judged: values to use in place of the final verdicts, such as those after a round.
        labels: labels to use in place of the rows' own: scores, or votes of shape (rows, 3).
    """
    values, grouped = rows.judged if judged is None else judged, bool((rows.group >= 0).any())
    if labels is None and subject.kind == "score":
        labels = rows.human
    elif labels is None:
        labels = count_votes(rows.all_labels if subject.rule.votes == "each" else rows.human[:, None])
    return Sample(subject.kind, values, labels, rows.clusters, grouped, resampling, subject.rule.ties)


_OF_ROWS = Verdicts.__dataclass_fields__.keys() - {"names", "winners", "path", "agents"}


def _code(judged: Judged | None) -> float:
    return nan if judged is None else CODES[judged] if isinstance(judged, str) else judged


def _two(value: Value) -> tuple[float, float]:
    return value if isinstance(value, tuple) else (value, nan)


def _usage_numbers(usage: Usage) -> Iterable[float]:
    return (nan if number is None else number for number in _usage_fields(usage))


_usage_fields = attrgetter(*USAGE_FIELDS, "uncounted")


def close(numbers: Floats, others: Floats, least: float = 1e-12) -> Booleans:
    """Tell which numbers differ by no more than rounding; ``math.isclose`` of columns."""
    apart, size = np.abs(numbers - others), np.maximum(np.abs(numbers), np.abs(others))
    alike: Booleans = (numbers == others) | (apart <= 1e-9 * size) | (apart <= least)
    return alike


def shared_items(sides: Iterable[Verdicts]) -> Ints | None:
    """Return the items with a label that all judges have a verdict on; ``None`` where these are hardly any.

    A judge that has hardly any itself is not compared (``FEWEST_CLUSTERS``): it would leave next to nothing for others.
    """
    judged = [np.unique(rows.item[rows.labelled]) for rows in sides]
    enough = min(FEWEST_CLUSTERS, max(map(len, judged), default=0))
    compared = [items for items in judged if len(items) >= enough]
    shared: Ints = reduce(np.intersect1d, compared) if compared else np.zeros(0, dtype=np.intp)
    return shared if len(shared) >= enough else None


def winners_by_mean(pairs: Floats) -> Floats:
    """Return the code of the answer with the higher score; those that differ by rounding alone are a tie.

    >>> winners_by_mean(np.array([[0.1 + 0.2, 0.3], [7.5, 7.0], [1.0, 2.0]])).tolist()
    [2.0, 0.0, 1.0]
    """
    first, second = pairs[:, 0], pairs[:, 1]
    higher = np.where(first > second, float(CODES["1"]), float(CODES["2"]))
    return np.where(close(first, second, 0.0), float(CODES["tie"]), higher)


def moved(before: Floats, after: Floats, winners: bool) -> Booleans:
    """Tell which verdicts differ by more than rounding."""
    return before != after if winners else ~close(before, after)


def directions(before: Floats, after: Floats, human: Floats, winners: bool) -> NDArray[np.int64]:
    """Return 1 where a change brought a verdict nearer to the human label, -1 where it took it away, else 0."""
    if winners:
        ways = (after == human).astype(np.int64) - (before == human)
    else:
        was, now = np.abs(before - human), np.abs(after - human)
        ways = np.where(close(was, now), 0, np.where(now < was, 1, -1))
    return np.where(np.isnan(human) | (before == after), 0, ways)


def distances(judged: Floats, human: Floats, winners: bool) -> Floats:
    """Return the distance of each score to people's; of a winner 0 where it is right, else 1."""
    return (judged != human).astype(float) if winners else np.abs(judged - human)
