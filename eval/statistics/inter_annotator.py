"""Measure inter-annotator agreement: between a protocol's agents, of a judge with itself asked again, and with people.

All three are Krippendorff's alpha (see ``chance_corrected``) of results, by protocol and aspect. Scores are compared by
amount (level ``interval``) and verdicts of comparisons as categories (``nominal``), unless another level is asked for.
Results are taken one at a time; of each no more than its raters' values is kept.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, NamedTuple

from ...state.errors import UsageError
from ...state.verdict import winner_of
from .alignment import FAILED, UNJUDGED, UNLABELLED, fields_of, resampling_unit, why_unjudged
from .chance_corrected import Level, Reliability, krippendorff_alpha
from .resampling import Resampling

Value = float | str
_SIDE_OF_AGENT = re.compile(r"_([12])_(\d+)$")
"""Matches the name of an agent that argues for one answer: ``advocate_1_2`` is the second advocate of answer 1."""


class RaterGroup(NamedTuple):
    """Names whose agreement is measured: a protocol on an aspect, or the agents of one role in it."""

    protocol: str
    aspect: str | None
    role: str = ""


@dataclass(frozen=True)
class AgreementWithPeople:
    """Compares alpha between annotators with alpha when the judge is one more rater, on the same items.

    A judge that fits in leaves alpha as it is or raises it; one that does not lowers it. Where people gave no single
    annotations, their mean is the one human rater and ``people`` is ``None``.
    """

    people: Reliability | None
    with_judge: Reliability


def between_agents(
    results: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, Reliability]:
    """Measure how far agents of one role agree: referees, jurors, or advocates, whose defences are scored one by one.

    What counts of an agent is its last opinion: the mean of its values in the last round in which it gave any (of
    several samples, or of both orders of the answers). Of a pair of scores that is the answer which they favour. Where
    each defence was scored by itself (``aggregate=best``), either side of an item is a unit, and the advocates of a
    side its raters.

    Args:
        results: results, or mappings with ``transcript``; failed ones are left out and counted.
        level: for all; by default ``interval`` for scores, ``nominal`` for verdicts.
        resampling: how intervals are made; drawn are groups.

    Returns:
        by protocol, aspect and role; a role that never has more than one agent with a value is not there.

    >>> turn = {"role": "referee", "round": 1}
    >>> rows = [{"item": str(a), "protocol": "chateval", "status": "ok", "score": a,
    ...     "transcript": [{**turn, "agent": "referee_1", "value": a}, {**turn, "agent": "referee_2", "value": b}]}
    ...     for a, b in [(1.0, 2.0), (4.0, 4.0), (5.0, 3.0)]]
    >>> round(between_agents(rows)[RaterGroup("chateval", None, "referee")].alpha.value, 3)
    0.615
    """
    tables = _RatingTables()
    for number, row in enumerate(map(fields_of, results)):
        raters = _raters_of(row)
        if row.get("status") == "failed":
            tables.leave_out(raters, FAILED)
            continue
        for (role, part), values in _opinions_by_role(row.get("transcript") or ()).items():
            # The row's number and not its item: each repeat of an item is a discussion of its own.
            tables.add(raters._replace(role=role), (part, number), resampling_unit(row), values)
    return tables.alphas(level, resampling, at_least=2)


def between_repeats(
    rows: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, Reliability]:
    """Measure how far a protocol agrees with itself when it judges the same items again.

    Args:
        rows: as in ``results.jsonl``, several a protocol, aspect and item that differ in ``repeat``.

    Returns:
        by protocol and aspect.

    >>> rows = [{"item": item, "protocol": "single", "status": "ok", "winner": winner, "repeat": repeat}
    ...     for item, winners in {"a": "11", "b": "22", "c": "12"}.items() for repeat, winner in enumerate(winners)]
    >>> round(between_repeats(rows)[RaterGroup("single", None)].alpha.value, 3)
    0.444
    """
    tables = _RatingTables()
    for row in map(fields_of, rows):
        raters, value = _raters_of(row), _verdict(row)
        # A reason and a missing value come together; asking for both tells the type checker so.
        if (reason := why_unjudged(row, value)) or value is None:
            tables.leave_out(raters, reason or UNJUDGED)
        elif row.get("item") is None:
            raise UsageError("a row names no item: without one, repeats cannot be told from other items")
        else:
            # The item is the unit and its repeats the raters, so repeats add values to one unit.
            tables.add(raters, row["item"], resampling_unit(row), [value])
    return tables.alphas(level, resampling)


def with_people(
    rows: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, AgreementWithPeople]:
    """Measure how far a judge agrees with people, as one more rater beside the annotators.

    Args:
        rows: as in ``results.jsonl``: ``score`` or ``winner``, and ``annotations`` (else ``human``). Each repeat of an
            item is a unit of its own.

    Returns:
        by protocol and aspect.

    >>> rows = [{"item": item, "protocol": "single", "status": "ok", "score": score, "annotations": given}
    ...     for item, score, given in [("a", 1, [1, 2]), ("b", 4, [4, 4]), ("c", 5, [5, 3])]]
    >>> found = with_people(rows)[RaterGroup("single", None)]
    >>> round(found.people.alpha.value, 3), round(found.with_judge.alpha.value, 3)
    (0.615, 0.773)
    """
    people, everybody = _RatingTables(), _RatingTables()
    for number, row in enumerate(map(fields_of, rows)):
        raters, value = _raters_of(row), _verdict(row)
        given = list(row.get("annotations") or ())
        labels = given or [human for human in [row.get("human")] if human is not None]
        if value is None or not labels:
            for tables in (people, everybody):
                tables.leave_out(raters, why_unjudged(row, value) or UNLABELLED)
            continue
        people.add(raters, number, resampling_unit(row), given)
        everybody.add(raters, number, resampling_unit(row), [*labels, value])
    alone = people.alphas(level, resampling, at_least=2)
    return {
        raters: AgreementWithPeople(alone.get(raters), with_judge)
        for raters, with_judge in everybody.alphas(level, resampling).items()
    }


@dataclass
class _RatingTable:
    """Holds the values of each unit, and the group that it is drawn with."""

    values: dict[Hashable, list[Value]] = field(default_factory=dict)
    groups: dict[Hashable, Hashable] = field(default_factory=dict)


class _RatingTables:
    """Collects the values of units, one table for each group of raters."""

    def __init__(self) -> None:
        self._tables: dict[RaterGroup, _RatingTable] = {}
        self._left_out: dict[RaterGroup, dict[str, int]] = {}

    def add(self, raters: RaterGroup, unit: Hashable, group: Hashable, values: Sequence[Value]) -> None:
        table = self._tables.setdefault(raters, _RatingTable())
        table.values.setdefault(unit, []).extend(values)
        table.groups[unit] = group

    def leave_out(self, raters: RaterGroup, reason: str) -> None:
        """Count a row without a value under no role: which of its roles would have given one is not known."""
        reasons = self._left_out.setdefault(raters._replace(role=""), {})
        reasons[reason] = reasons.get(reason, 0) + 1

    def alphas(
        self, level: Level | None, resampling: Resampling | None, at_least: int = 0
    ) -> dict[RaterGroup, Reliability]:
        """Compute alpha of each table in which some unit has at least so many values."""
        alphas = {}
        for raters in dict.fromkeys([*self._tables, *self._left_out]):
            table = self._tables.get(raters, _RatingTable())
            if max((len(values) for values in table.values.values()), default=0) >= at_least:
                alphas[raters] = self._alpha(raters, table, level, resampling)
        return alphas

    def _alpha(
        self, raters: RaterGroup, table: _RatingTable, level: Level | None, resampling: Resampling | None
    ) -> Reliability:
        # One winner among the values is enough: a table has either scores or winners.
        texts = any(isinstance(value, str) for values in table.values.values() for value in values)
        alpha = krippendorff_alpha(
            table.values.values(),
            level or ("nominal" if texts else "interval"),
            [table.groups[unit] for unit in table.values],
            resampling,
        )
        rows_left_out = self._left_out.get(raters._replace(role=""), {})
        return replace(alpha, left_out={**alpha.left_out, **rows_left_out})


def _raters_of(row: Mapping[str, Any]) -> RaterGroup:
    return RaterGroup(row.get("protocol") or "", row.get("aspect"))


def _verdict(row: Mapping[str, Any]) -> Value | None:
    if row.get("status") == "failed":
        return None
    verdict: Value | None = row["winner"] if row.get("winner") is not None else row.get("score")
    return verdict


def _opinions_by_role(transcript: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Value]]:
    """Collect the last opinion of each agent by role, and by side where agents of a role argue for one answer each."""
    last: dict[tuple[str, str], tuple[int, list[Any]]] = {}
    for turn in transcript:
        value = turn["value"]
        # A Critic says True or False, which Python counts among the ints; it is no opinion on the score.
        if not isinstance(value, float | int | str | Sequence) or isinstance(value, bool):
            continue
        agent_key = (turn["role"], turn["agent"])
        last_round, values = last.get(agent_key, (-1, []))
        if turn["round"] > last_round:
            last[agent_key] = (turn["round"], [value])
        elif turn["round"] == last_round:
            values.append(value)
    opinions: dict[tuple[str, str], list[Value]] = {}
    for (role, agent), (_, values) in last.items():
        side = _SIDE_OF_AGENT.search(agent)
        opinion = _opinion(values)
        # A vote names an answer itself: only scores of one side's defences must be kept apart by side.
        part = side[1] if side and not isinstance(opinion, str) else ""
        opinions.setdefault((role, part), []).append(opinion)
    return opinions


def _opinion(values: Sequence[Any]) -> Value:
    """Sum up what an agent said: a score, or the answer it favours; votes that contradict each other are a tie."""
    if isinstance(values[0], str):
        return values[0] if len(set(values)) == 1 else "tie"
    if isinstance(values[0], Sequence):
        return winner_of(fsum(side) for side in zip(*values, strict=True))
    return fsum(values) / len(values)
