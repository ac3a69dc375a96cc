"""The output and the state of all protocols' graphs, and the reducers of the state.

Everything in the state is plain JSON, because checkpointers warn about pydantic objects and may
refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NotRequired, TypeVar, cast, get_type_hints

from pydantic import BaseModel, Field, WithJsonSchema
from typing_extensions import TypedDict

from .transcript import NO_CALLS, Score, Turn, turn_id
from .verdict import Verdict

T = TypeVar("T")
StateT = TypeVar("StateT", bound=Mapping[str, Any])
EXAMPLE = '[{"id": "critic:1", "content": "NO ISSUE", "value": true}]'
FIXED = ("agent", "role", "round", "order")
"""The fields of a turn that an edit cannot change."""
_NEEDED = ("agent", "role", "round", "content")
"""The required fields of a new turn."""


def as_json(_before: Any, new: Any) -> Any:
    """Return the new value, with a pydantic object converted to plain JSON."""
    return new.model_dump(mode="json") if isinstance(new, BaseModel) else new


def merge(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Merge the entries of both arguments, with priority for the new ones; ``None`` clears them.

    >>> merge({"a": 1}, {"b": 2}), merge({"a": 1}, None)
    ({'a': 1, 'b': 2}, {})
    """
    return {} if new is None else {**(before or {}), **new}


def latest(before: int | None, new: int | None) -> int:
    """Return the higher number, because several agents may set it at once; ``None`` resets it.

    >>> latest(1, 2), latest(2, 1), latest(3, None)
    (2, 2, 0)
    """
    return 0 if new is None else max(before or 0, new)


def append(before: Sequence[T] | None, new: Iterable[T] | None) -> list[T]:
    """Append the new entries to those before; ``None`` clears the list. No argument is changed.

    >>> append([1], [2, 3]), append([1], None)
    ([1, 2, 3], [])
    """
    return [] if new is None else [*(before or ()), *new]


def merge_turns(
    before: Sequence[Turn] | None, new: Iterable[Mapping[str, Any]] | None
) -> list[Turn]:
    """Append new turns to those before; a turn with a known id replaces that turn in place.

    A replacing turn may contain only the changed fields: ``{"id": "critic:1", "content": "NO
    ISSUE", "value": True}``. The other fields stay. ``None`` clears the transcript. No argument is
    changed.

    Raises:
        ValueError: a change of a turn that does not exist, or a value of the wrong type.

    >>> from jurygraph.state.transcript import turn_without_model
    >>> before = turn_without_model(1, "critic", "critic", "Too high.", False)
    >>> [turn["content"] for turn in merge_turns([before], [{"id": "critic:1", "content": "Fine.", "value": True}])]
    ['Fine.']
    """
    if new is None:
        return []
    # Test for ``dict`` first: this runs at every node, and the test for other mappings is slow.
    if not (
        isinstance(new, list | tuple) and all(isinstance(change, (dict, Mapping)) for change in new)
    ):
        raise ValueError(f"transcript takes a list of turns, such as {EXAMPLE}, not {new!r}")
    turns: list[Turn] = []
    for turn in before or ():
        turns.append(turn if "id" in turn else _numbered(turn, turns))
    # Look turns up by id, so that an edit replaces its turn and no other turn moves.
    places = {turn["id"]: place for place, turn in enumerate(turns)}
    for change in new:
        place = places.get(str(change.get("id")))
        if place is not None:
            turns[place] = _replaced(turns[place], change)
        else:
            if missing := [key for key in _NEEDED if key not in change]:
                known = ", ".join(places) or "none yet"
                raise ValueError(
                    f"no turn has the id {change.get('id')!r}; "
                    f"the ids are {known}. (For a new turn, {', '.join(missing)} "
                    "would be missing.)"
                )
            turn = cast("Turn", {"value": None, **NO_CALLS, **change})
            turn = turn if "id" in turn else _numbered(turn, turns)
            places[turn["id"]] = len(turns)
            turns.append(turn)
    return turns


def _numbered(turn: Turn, before: Iterable[Turn]) -> Turn:
    """Add an id to a turn that has none, such as one that an agent made itself."""
    agent = turn["agent"]
    order = turn.get("order")
    earlier = sum((other["agent"], other.get("order")) == (agent, order) for other in before)
    return {**turn, "id": turn_id(agent, earlier + 1, order)}


def _replaced(turn: Turn, change: Mapping[str, Any]) -> Turn:
    """Apply an edit to a turn: new content, or a value of the same type on its scale."""
    merged = cast("Turn", {**turn, **change})
    fixed = [k for k in change if k in FIXED and change[k] != turn.get(k)]
    if unknown := fixed or [k for k in change if k not in Turn.__annotations__]:
        raise ValueError(
            f"{', '.join(unknown)} of the turn {turn['id']} cannot be edited: edit its content or value"
        )
    if not isinstance(merged["content"], str):
        raise ValueError(
            f"the content of the turn {turn['id']} must be text, got {merged['content']!r}"
        )
    before = turn["value"]
    value = merged["value"]
    scale = merged.get("scale")
    # An edit with the same content and value changes nothing.
    if (merged["content"], value) == (turn["content"], before):
        return merged
    kind = _kind_of(value)
    # An unreadable reply has no value. A human may add the value.
    fits = kind == _kind_of(before) or (
        before is None and (scale is not None or value in ("1", "2", "tie"))
    )
    numbers: Any = value if kind == "pair" else [value] if kind == "number" else []
    if not (fits and all(scale is None or scale[0] <= number <= scale[1] for number in numbers)):
        wanted = _wanted(before, scale)
        raise ValueError(
            f"the turn {turn['id']} cannot have the value {value!r}: it takes {wanted}"
        )
    if value is not None:
        # A human has voted for a member whose call failed.
        merged = cast(
            "Turn", {key: kept for key, kept in merged.items() if key not in ("problem", "fault")}
        )
    return {**merged, "edited": True}


def _kind_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "pair" if [*map(_kind_of, value)] == ["number"] * 2 else "other"
    # Compare the type itself, because ``isinstance(True, int)`` is true.
    return "number" if type(value) in (int, float) else type(value).__name__


def _wanted(before: Any, scale: Sequence[float] | None) -> str:
    named = {"number": "a number", "pair": "a pair of numbers", "bool": "true or false"}
    named["NoneType"] = "no value (null)"
    kind = named.get(_kind_of(before), "a text such as " + repr(before))
    return f"{kind} from {scale[0]:g} to {scale[1]:g}" if scale and "number" in kind else kind


@cache
def _verdict_schema() -> dict[str, Any]:
    # LangGraph evaluates the annotations below for each graph. Making this schema takes
    # milliseconds.
    return Verdict.model_json_schema()


class Outcome(TypedDict):
    """A verdict and its turns: the part of a judge's output that wrappers need."""

    verdict: Annotated[dict[str, Any], WithJsonSchema(_verdict_schema())]
    transcript: Annotated[list[Turn], Field(description="Every agent's turns, in order.")]


class JudgeOutput(Outcome):
    """The output of every protocol and wrapper; ``scores`` and ``round`` are those of the verdict.

    It is intentionally small: if a sub-graph returned a key whose reducer its parent shares, the
    parent's history would be doubled. None of these keys is in the input, so a judge only returns
    its own results.
    """

    scores: Annotated[
        list[Score], Field(description="The score, or the pair of scores, after each round.")
    ]
    round: Annotated[int, Field(description="The last round, from 1.")]


def outcome_of(output: Mapping[str, Any]) -> JudgeOutput:
    """Return a judge's output with scores and round from its verdict, which others may leave out.

    The verdict itself is checked where it is used.
    """
    verdict = output["verdict"]
    scores = verdict.get("score_by_round") or []
    rounds = verdict.get("rounds") or 0
    return JudgeOutput(
        verdict=verdict, transcript=output["transcript"], scores=scores, round=rounds
    )


class GraphState(TypedDict):
    """The state of every judging graph; a wrapper's state collects the turns of its judges."""

    task: Annotated[dict[str, Any], as_json]
    transcript: Annotated[list[Turn], merge_turns]
    scores: list[Score]
    round: Annotated[int, latest]
    verdict: NotRequired[dict[str, Any] | None]


class JudgeState(GraphState):
    """The state of a protocol's graph while it judges.

    The transcript is decisive: ``scores`` (the score or pair after each round) and ``round`` are
    computed from it before and after every node, so that an edited turn counts. ``orders`` are the
    orders in which the answers are shown: ``[1]`` as in the task, ``[1, 2]`` for a comparison in
    both orders. ``settings`` are those of the run's context, with which a thread is resumed.
    ``details`` has the protocol's own data. ``prepare`` sets all keys, and ``conclude`` makes
    ``verdict`` from the others.
    """

    settings: NotRequired[dict[str, Any]]
    orders: list[int]
    warnings: Annotated[list[str], append]
    details: Annotated[dict[str, Any], merge]


class AgentState(JudgeState):
    """The state for one of several parallel agents: its name, and the state in its answer order.

    ``order`` is set if there are two orders.
    """

    agent: str
    order: NotRequired[int]


_REDUCERS: Mapping[str, Callable[[Any, Any], Any]] = {
    key: metadata[-1]
    for key, hint in get_type_hints(JudgeState, include_extras=True).items()
    if (metadata := getattr(hint, "__metadata__", ()))
}


def updated(state: StateT, update: Mapping[str, Any]) -> StateT:
    """Return the state after one node's update, as LangGraph computes it.

    >>> updated({"round": 1, "details": {"a": 1}}, {"round": 2, "details": {"b": 2}})
    {'round': 2, 'details': {'a': 1, 'b': 2}}
    """
    reduced = {
        k: _REDUCERS[k](state.get(k), new) if k in _REDUCERS else new for k, new in update.items()
    }
    return cast("StateT", {**state, **reduced})
