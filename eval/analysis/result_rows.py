"""Read from a result and its turns the values that an analysis looks at: verdicts, scores of agents, directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isclose
from sys import intern
from typing import Literal, NamedTuple, cast

from ...state.aggregation import mean_pair, winner_by_mean
from ...state.transcript import NO_USAGE, RoleKind, Turn, Usage
from ...state.verdict import Winner
from ..results.results import Result
from ..results.turn_kinds import kind_of_turns
from ..statistics.alignment import grouped

Value = float | tuple[float, float]
"""A score, or the scores of two answers."""

Judged = float | Winner
"""A verdict or a human label: a score, or a winner."""


def verdict_of(result: Result) -> Judged | None:
    """Return the score or the winner of a result; ``None`` where it has no verdict."""
    if result.status != "ok":
        return None
    return result.winner if result.score is None else result.score


def value_of(turn: Turn) -> Value | None:
    """Return the score, or the pair of scores, that was read from a turn; None where there is none."""
    value = turn["value"]
    if isinstance(value, list):
        return cast("tuple[float, float]", tuple(value))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def scalar(value: Value) -> float:
    """Return a score as it is, and of two scores the first less the second."""
    return value[0] - value[1] if isinstance(value, tuple) else value


def judged_by(value: Value) -> Judged:
    """Return a score as it is, and of two scores the winner."""
    return winner_by_mean(value) if isinstance(value, tuple) else value


def direction(before: Judged, after: Judged, human: Judged | None) -> Literal[-1, 0, 1]:
    """Return 1 where a change brought a verdict nearer to the human label, -1 where it took it away, else 0.

    >>> direction(2.0, 3.0, 4.5), direction(4.0, 5.0, 4.5), direction("1", "2", "1"), direction("tie", "2", "1")
    (1, 0, -1, 0)
    """
    if human is None or before == after:
        return 0
    if isinstance(human, str) or isinstance(before, str) or isinstance(after, str):
        return cast("Literal[-1, 0, 1]", (after == human) - (before == human))
    was, now = abs(before - human), abs(after - human)
    return 0 if close(was, now) else 1 if now < was else -1


def close(value: float, other: float) -> bool:
    """Tell whether two numbers differ by no more than rounding."""
    return isclose(value, other, rel_tol=1e-9, abs_tol=1e-12)


class Said(NamedTuple):
    """Holds a turn with what it does to the verdict, and the score or the pair of scores that was read from it."""

    turn: Turn
    kind: RoleKind
    value: Value | None


def turns_of(result: Result) -> list[Said]:
    """Return the turns of a result, as all that count what happened in debates look at them."""
    kind_of = kind_of_turns(result)
    return [Said(turn, kind_of(turn), value_of(turn)) for turn in result.transcript]


def discussions(turns: Iterable[Said]) -> list[list[Said]]:
    """Split turns into their discussions: one for each order of the answers, repeat and stage."""
    by_place = grouped(
        ((said.turn.get("order", 1), said.turn.get("repeat", 0), said.turn.get("stage", "")), said)
        for said in turns
    )
    return list(by_place.values())


def agent_scores(result: Result) -> Iterator[tuple[str, Value | Winner, Usage]]:
    """Yield each member of a panel, or voter, with its last score or vote (mean over both orders) and its usage."""
    last: dict[str, dict[int, Value | Winner]] = {}
    usages: dict[str, Usage] = {}
    for turn, kind, score in turns_of(result):
        if kind not in ("panel", "votes"):
            continue
        agent = intern(turn["agent"])
        usages[agent] = usages.get(agent, NO_USAGE) + Usage.of_fields(turn)
        value = cast("Winner", turn["value"]) if isinstance(turn["value"], str) else score
        if value is not None:
            # A later turn of the same order replaces the earlier one; turns come in time.
            last.setdefault(agent, {})[turn.get("order", 1)] = value
    yield from ((agent, _over_orders(values), usages[agent]) for agent, values in last.items())


def _over_orders(values: dict[int, Value | Winner]) -> Value | Winner:
    in_order = list(values.values())
    pairs = [value for value in in_order if isinstance(value, tuple)]
    if len(pairs) == len(in_order) > 1:
        return mean_pair(pairs)
    return in_order[-1]
