"""Define turns, and how they are gathered in a graph's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypeVar, cast

from typing_extensions import TypedDict

from .usage import NO_USAGE, Usage, total_usage

Score = float | list[float]
"""A score on an aspect's scale, or a pair ``[score_1, score_2]``."""

T = TypeVar("T")
EXAMPLE = '[{"id": "critic:1", "content": "NO ISSUE", "value": true}]'
FIXED = ("agent", "role", "round", "order")
"""What an edit of a turn cannot change: who spoke, and when."""


class Turn(TypedDict):
    """One agent's contribution, as plain JSON.

    ``value`` is what was read from the reply (a score, a pair, ``True`` for "no issue", or ``None`` where the words
    alone count). ``model`` is ``None`` for words that no model wrote. The keys from ``calls`` to ``seconds`` are those
    of :class:`Usage`, over all calls that the turn took, a repaired reply included. Where a comparison was held in both
    orders, ``order`` tells them apart: 1 as in the task, 2 with the answers swapped; values always refer to the task's
    order, the words to the order that the agent was shown. Where an agent was asked several times, ``sample`` counts
    its answers from 1, and what one request for all of them took stands on the first; ``repeat`` counts from 0 where a
    whole protocol was run several times, and ``stage`` is ``cheap`` or ``expensive`` in a cascade. ``name`` is that of
    the person who spoke, where they gave it.

    ``id`` is the agent's name and the number of its turn, such as ``critic:2``, behind ``swapped/`` where the answers
    were swapped, and behind the marks of wrappers. A turn that is put into the state under the id of an earlier one
    takes its place, and has ``edited`` where it says or means something else. ``scale`` holds the lowest and the
    highest number that ``value`` can have.
    """

    id: NotRequired[str]
    round: int
    agent: str
    role: str
    content: str
    value: float | list[float] | bool | str | None
    model: str | None
    calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float
    scale: NotRequired[list[float]]
    edited: NotRequired[bool]
    order: NotRequired[int]
    sample: NotRequired[int]
    repeat: NotRequired[int]
    stage: NotRequired[str]
    name: NotRequired[str]


def turn_without_model(round: int, agent: str, role: str, content: str, value: Any = None) -> Turn:
    """Make a turn that took no call: a relayed message, or what a person said.

    >>> turn_without_model(1, "commander", "commander", "Please review.")["calls"]
    0
    """
    words = {"round": round, "agent": agent, "role": role, "content": content, "value": value, "model": None}
    return cast("Turn", {**words, **NO_USAGE.flat()})


def written_by(turn: Turn, model: str, usage: Usage) -> Turn:
    """Return the turn as one that a model wrote, with the usage of its calls."""
    return cast("Turn", {**turn, "model": model, **usage.flat()})


def usage_of_turns(turns: Iterable[Turn]) -> Usage:
    """Add up the usage of turns."""
    return total_usage(map(Usage.of_fields, turns))


def turn_id(agent: str, number: int, order: int | None = None) -> str:
    """Return the id of an agent's turn: its name and which of its turns it is, from 1.

    >>> turn_id("critic", 2), turn_id("scorer", 1, order=2)
    ('critic:2', 'swapped/scorer:1')
    """
    return f"{'swapped/' if order == 2 else ''}{agent}:{number}"


def append(before: Sequence[T] | None, new: Iterable[T] | None) -> list[T]:
    """Reduce to a list of the entries before, then the new ones; ``None`` empties it. Neither argument is changed.

    >>> append([1], [2, 3]), append([1], None)
    ([1, 2, 3], [])
    """
    return [] if new is None else [*(before or ()), *new]


def merge_turns(before: Sequence[Turn] | None, new: Iterable[Mapping[str, Any]] | None) -> list[Turn]:
    """Reduce to the turns before, then the new ones; a turn with a known id replaces that turn where it stands.

    Such a turn may hold the changed fields alone, ``{"id": "critic:1", "content": "NO ISSUE", "value": True}``: the
    others are kept. ``None`` empties the transcript. Neither argument is changed.

    Raises:
        ValueError: a change of a turn that does not exist, or a value of another type than the turn can have.

    >>> before = turn_without_model(1, "critic", "critic", "Too high.", False)
    >>> [turn["content"] for turn in merge_turns([before], [{"id": "critic:1", "content": "Fine.", "value": True}])]
    ['Fine.']
    """
    if new is None:
        return []
    if not (isinstance(new, list | tuple) and all(isinstance(change, Mapping) for change in new)):
        raise ValueError(f"transcript takes a list of turns, such as {EXAMPLE}, not {new!r}")
    turns = _with_ids(before or ())
    places = {turn["id"]: place for place, turn in enumerate(turns)}
    for change in new:
        place = places.get(str(change.get("id")))
        if place is not None:
            turns[place] = _replaced(turns[place], change)
        else:
            turn = _whole(change, places)
            if "id" not in turn:
                [turn] = _with_ids([turn], turns)
            places[turn["id"]] = len(turns)
            turns.append(turn)
    return turns


def _with_ids(turns: Iterable[Turn], before: Iterable[Turn] = ()) -> list[Turn]:
    """Number the turns that have no id, as those of agents which made their turns themselves."""
    turns = list(turns)
    # A loop and no generator: this is done for every turn, at every step of a graph.
    for turn in turns:
        if "id" not in turn:
            break
    else:
        return turns
    numbers = Counter((turn["agent"], turn.get("order")) for turn in before)
    numbered: list[Turn] = []
    for turn in turns:
        agent, order = speaker = turn["agent"], turn.get("order")
        numbers[speaker] += 1
        numbered.append(turn if "id" in turn else {**turn, "id": turn_id(agent, numbers[speaker], order)})
    return numbered


_WITHOUT_MODEL = {"value": None, "model": None, **NO_USAGE.flat()}


def _whole(change: Mapping[str, Any], known: Iterable[str]) -> Turn:
    missing = [key for key in ("agent", "role", "round", "content") if key not in change]
    if missing:
        raise ValueError(
            f"no turn has the id {change.get('id')!r}; there are {', '.join(known) or 'none yet'}. "
            f"(A new turn has no {', '.join(missing)} either.)"
        )
    return cast("Turn", {**_WITHOUT_MODEL, **change})


def _replaced(turn: Turn, change: Mapping[str, Any]) -> Turn:
    merged = cast("Turn", {**turn, **change})
    fixed = [k for k in change if k in FIXED and change[k] != turn.get(k)]
    if unknown := fixed or [k for k in change if k not in Turn.__annotations__]:
        raise ValueError(
            f"the turn {turn['id']} takes no {', '.join(unknown)}: edit its content or its value"
        )
    if not isinstance(merged["content"], str):
        raise ValueError(f"the content of the turn {turn['id']} is text, not {merged['content']!r}")
    if (merged["content"], merged["value"]) == (turn["content"], turn["value"]):
        return merged
    check_value(merged, turn["value"])
    return {**merged, "edited": True}


def check_value(turn: Turn, before: Any) -> None:
    """Check the value of an edited turn: of the type that the turn had, and on its scale.

    Raises:
        ValueError: names the turn, the value, and what it can be.
    """
    value: Any = turn["value"]
    scale = turn.get("scale")
    kind = _kind_of(value)
    # A reply that could not be read has no value; a person may give the one that it should have had.
    fits = kind == _kind_of(before) or (before is None and (scale is not None or value in ("1", "2", "tie")))
    numbers = value if kind == "pair" else [value] if kind == "number" else []
    if not (fits and all(scale is None or scale[0] <= number <= scale[1] for number in numbers)):
        wanted = _wanted(before, scale)
        raise ValueError(f"the turn {turn['id']} cannot have the value {value!r}: it takes {wanted}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "pair" if len(value) == 2 and all(map(_is_number, value)) else "other"
    return "number" if _is_number(value) else type(value).__name__


def _wanted(before: Any, scale: Sequence[float] | None) -> str:
    named = {
        "number": "a number",
        "pair": "a pair of numbers",
        "bool": "true or false",
        "NoneType": "no value (null)",
    }
    kind = named.get(_kind_of(before), "a text such as " + repr(before))
    return f"{kind} from {scale[0]:g} to {scale[1]:g}" if scale and "number" in kind else kind


def last_turn(transcript: Sequence[Turn], role: str) -> Turn | None:
    """Return the latest turn of a role, or ``None``."""
    return next((turn for turn in reversed(transcript) if turn["role"] == role), None)
