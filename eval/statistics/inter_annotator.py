"""Who agrees with whom: a protocol's agents among themselves, a judge with itself when asked again, and with people.

All three are Krippendorff's alpha (see ``reliability``) of results, by protocol and aspect. Scores are compared by
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
_OF_A_SIDE = re.compile(r"_([12])_(\d+)$")


class RaterGroup(NamedTuple):
    """Whose agreement it is."""

    protocol: str
    aspect: str | None
    role: str = ""


@dataclass(frozen=True)
class AgreementWithPeople:
    """Annotators among themselves, and the same with the judge as one more rater, on the same items.

    A judge that fits in leaves alpha as it is or raises it; one that does not lowers it. Where people gave no single
    annotations, their mean is the one human rater and ``people`` is ``None``.
    """

    people: Reliability | None
    with_judge: Reliability


def between_agents(
    results: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, Reliability]:
    """How far agents of one role agree: referees, jurors, advocates' defences as scored one by one.

    The word of an agent is the last that it gave: the mean of its values in the last round in which it gave any (of
    several samples, or of both orders of the answers). Of a pair of scores that is whom they favour. Where each defence
    was scored by itself (``aggregate=best``), either side of an item is a unit, and the advocates of a side its raters.

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
    sheets = _RatingTables()
    for at, row in enumerate(map(fields_of, results)):
        about = _about(row)
        if row.get("status") == "failed":
            sheets.leave_out(about, FAILED)
            continue
        for (role, part), values in _by_role(row.get("transcript") or ()).items():
            sheets.add(about._replace(role=role), (part, at), resampling_unit(row), values)
    return sheets.alphas(level, resampling, at_least=2)


def between_repeats(
    rows: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, Reliability]:
    """How far a protocol agrees with itself when it judges the same items again.

    Args:
        rows: as in ``results.jsonl``, several a protocol, aspect and item that differ in ``repeat``.

    Returns:
        by protocol and aspect.

    >>> rows = [{"item": item, "protocol": "single", "status": "ok", "winner": winner, "repeat": repeat}
    ...     for item, winners in {"a": "11", "b": "22", "c": "12"}.items() for repeat, winner in enumerate(winners)]
    >>> round(between_repeats(rows)[RaterGroup("single", None)].alpha.value, 3)
    0.444
    """
    sheets = _RatingTables()
    for row in map(fields_of, rows):
        about, value = _about(row), _verdict(row)
        if (reason := why_unjudged(row, value)) or value is None:
            sheets.leave_out(about, reason or UNJUDGED)
        elif row.get("item") is None:
            raise UsageError("a row names no item: without one, repeats cannot be told from other items")
        else:
            sheets.add(about, row["item"], resampling_unit(row), [value])
    return sheets.alphas(level, resampling)


def with_people(
    rows: Iterable[Any], level: Level | None = None, resampling: Resampling | None = None
) -> dict[RaterGroup, AgreementWithPeople]:
    """How far a judge agrees with people, as one more rater beside the annotators.

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
    for at, row in enumerate(map(fields_of, rows)):
        about, value = _about(row), _verdict(row)
        given = list(row.get("annotations") or ())
        words = given or [human for human in [row.get("human")] if human is not None]
        if value is None or not words:
            for sheets in (people, everybody):
                sheets.leave_out(about, why_unjudged(row, value) or UNLABELLED)
            continue
        people.add(about, at, resampling_unit(row), given)
        everybody.add(about, at, resampling_unit(row), [*words, value])
    alone = people.alphas(level, resampling, at_least=2)
    return {
        about: AgreementWithPeople(alone.get(about), found)
        for about, found in everybody.alphas(level, resampling).items()
    }


@dataclass
class _RatingTable:
    """The values of each unit, with what it is drawn with."""

    units: dict[Hashable, list[Value]] = field(default_factory=dict)
    groups: dict[Hashable, Hashable] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)


class _RatingTables:
    """Values of units, gathered for each set of raters."""

    def __init__(self) -> None:
        self._sheets: dict[RaterGroup, _RatingTable] = {}
        self._left_out: dict[RaterGroup, dict[str, int]] = {}

    def add(self, about: RaterGroup, unit: Hashable, group: Hashable, values: Sequence[Value]) -> None:
        sheet = self._sheets.setdefault(about, _RatingTable())
        sheet.units.setdefault(unit, []).extend(values)
        sheet.groups[unit] = group

    def leave_out(self, about: RaterGroup, reason: str) -> None:
        """A row that has nothing to say, whatever the role."""
        reasons = self._left_out.setdefault(about._replace(role=""), {})
        reasons[reason] = reasons.get(reason, 0) + 1

    def alphas(
        self, level: Level | None, resampling: Resampling | None, at_least: int = 0
    ) -> dict[RaterGroup, Reliability]:
        """Alpha of each sheet in which some unit has so many values."""
        found = {}
        for about in dict.fromkeys([*self._sheets, *self._left_out]):
            sheet = self._sheets.get(about, _RatingTable())
            if max((len(values) for values in sheet.units.values()), default=0) >= at_least:
                found[about] = self._alpha(about, sheet, level, resampling)
        return found

    def _alpha(
        self, about: RaterGroup, sheet: _RatingTable, level: Level | None, resampling: Resampling | None
    ) -> Reliability:
        texts = any(isinstance(value, str) for values in sheet.units.values() for value in values)
        found = krippendorff_alpha(
            sheet.units.values(),
            level or ("nominal" if texts else "interval"),
            [sheet.groups[unit] for unit in sheet.units],
            resampling,
        )
        rows_left_out = self._left_out.get(about._replace(role=""), {})
        return replace(found, left_out={**found.left_out, **rows_left_out})


def _about(row: Mapping[str, Any]) -> RaterGroup:
    return RaterGroup(row.get("protocol") or "", row.get("aspect"))


def _verdict(row: Mapping[str, Any]) -> Value | None:
    if row.get("status") == "failed":
        return None
    found: Value | None = row["winner"] if row.get("winner") is not None else row.get("score")
    return found


def _by_role(transcript: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Value]]:
    """The last word of each agent, by role; and by side of the case, where agents of a role speak for one each."""
    last: dict[tuple[str, str], tuple[int, list[Any]]] = {}
    for turn in transcript:
        value = turn["value"]
        if not isinstance(value, float | int | str | Sequence) or isinstance(value, bool):
            continue
        who = (turn["role"], turn["agent"])
        latest, values = last.get(who, (-1, []))
        if turn["round"] > latest:
            last[who] = (turn["round"], [value])
        elif turn["round"] == latest:
            values.append(value)
    found: dict[tuple[str, str], list[Value]] = {}
    for (role, agent), (_, values) in last.items():
        side = _OF_A_SIDE.search(agent)
        word = _word(values)
        part = side[1] if side and not isinstance(word, str) else ""
        found.setdefault((role, part), []).append(word)
    return found


def _word(values: Sequence[Any]) -> Value:
    """What an agent said in all: a score, or whom it favours. Votes that contradict each other favour nobody."""
    if isinstance(values[0], str):
        return values[0] if len(set(values)) == 1 else "tie"
    if isinstance(values[0], Sequence):
        return winner_of(fsum(side) for side in zip(*values, strict=True))
    return fsum(values) / len(values)
