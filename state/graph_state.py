"""Define the output and the state that all protocols' graphs have, and the reducers of the state.

Everything in the state is plain JSON: checkpointers warn about pydantic objects and may refuse them.
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
"""What an edit of a turn cannot change: who spoke, and when."""
_NEEDED = ("agent", "role", "round", "content")
"""What a new turn has."""


def as_json(_before: Any, new: Any) -> Any:
    """Reduce to the new value, with a pydantic object turned into plain JSON."""
    return new.model_dump(mode="json") if isinstance(new, BaseModel) else new


def merge(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Reduce to a dict of both arguments' entries, the new ones winning; ``None`` empties it.

    >>> merge({"a": 1}, {"b": 2}), merge({"a": 1}, None)
    ({'a': 1, 'b': 2}, {})
    """
    return {} if new is None else {**(before or {}), **new}


def latest(before: int | None, new: int | None) -> int:
    """Reduce to the higher number, since several agents of a round may count it at once; ``None`` begins anew at 0.

    >>> latest(1, 2), latest(2, 1), latest(3, None)
    (2, 2, 0)
    """
    return 0 if new is None else max(before or 0, new)


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

    >>> from jurygraph.state.transcript import turn_without_model
    >>> before = turn_without_model(1, "critic", "critic", "Too high.", False)
    >>> [turn["content"] for turn in merge_turns([before], [{"id": "critic:1", "content": "Fine.", "value": True}])]
    ['Fine.']
    """
    if new is None:
        return []
    # A dict first: this is asked at every node, and what else is a mapping takes long to find out.
    if not (isinstance(new, list | tuple) and all(isinstance(change, (dict, Mapping)) for change in new)):
        raise ValueError(f"transcript takes a list of turns, such as {EXAMPLE}, not {new!r}")
    turns: list[Turn] = []
    for turn in before or ():
        turns.append(turn if "id" in turn else _numbered(turn, turns))
    # By id, so that an edit takes the place of its turn and no other turn moves.
    places = {turn["id"]: place for place, turn in enumerate(turns)}
    for change in new:
        place = places.get(str(change.get("id")))
        if place is not None:
            turns[place] = _replaced(turns[place], change)
        else:
            if missing := [key for key in _NEEDED if key not in change]:
                lacks = f"(For a new turn, {', '.join(missing)} would be missing.)"
                known = ", ".join(places) or "none yet"
                raise ValueError(f"no turn has the id {change.get('id')!r}; the ids are {known}. {lacks}")
            turn = cast("Turn", {"value": None, **NO_CALLS, **change})
            turn = turn if "id" in turn else _numbered(turn, turns)
            places[turn["id"]] = len(turns)
            turns.append(turn)
    return turns


def _numbered(turn: Turn, before: Iterable[Turn]) -> Turn:
    """Give an id to a turn that has none, as that of an agent which made it itself."""
    agent, order = turn["agent"], turn.get("order")
    earlier = sum((other["agent"], other.get("order")) == (agent, order) for other in before)
    return {**turn, "id": turn_id(agent, earlier + 1, order)}


def _replaced(turn: Turn, change: Mapping[str, Any]) -> Turn:
    """Return a turn with what an edit changes: its words, or its value by one of the same type and on its scale."""
    merged = cast("Turn", {**turn, **change})
    fixed = [k for k in change if k in FIXED and change[k] != turn.get(k)]
    if unknown := fixed or [k for k in change if k not in Turn.__annotations__]:
        named = f"{', '.join(unknown)} of the turn {turn['id']}"
        raise ValueError(f"{named} cannot be edited: edit its content or value")
    if not isinstance(merged["content"], str):
        raise ValueError(f"the content of the turn {turn['id']} must be text, got {merged['content']!r}")
    before, value, scale = turn["value"], merged["value"], merged.get("scale")
    # An edit that says and means the same is none.
    if (merged["content"], value) == (turn["content"], before):
        return merged
    kind = _kind_of(value)
    # A reply that could not be read has no value; a person may give the one that it should have had.
    fits = kind == _kind_of(before) or (before is None and (scale is not None or value in ("1", "2", "tie")))
    numbers: Any = value if kind == "pair" else [value] if kind == "number" else []
    if not (fits and all(scale is None or scale[0] <= number <= scale[1] for number in numbers)):
        wanted = _wanted(before, scale)
        raise ValueError(f"the turn {turn['id']} cannot have the value {value!r}: it takes {wanted}")
    return {**merged, "edited": True}


def _kind_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "pair" if [*map(_kind_of, value)] == ["number"] * 2 else "other"
    # The type itself, since True is an ``int`` to ``isinstance``.
    return "number" if type(value) in (int, float) else type(value).__name__


def _wanted(before: Any, scale: Sequence[float] | None) -> str:
    named = {"number": "a number", "pair": "a pair of numbers", "bool": "true or false"}
    named["NoneType"] = "no value (null)"
    kind = named.get(_kind_of(before), "a text such as " + repr(before))
    return f"{kind} from {scale[0]:g} to {scale[1]:g}" if scale and "number" in kind else kind


@cache
def _verdict_schema() -> dict[str, Any]:
    # LangGraph evaluates the annotations below for each graph that is built; making this schema takes milliseconds.
    return Verdict.model_json_schema()


class JudgeOutput(TypedDict):
    """The output of every protocol.

    It is narrow on purpose: a sub-graph that returned a key with a reducer which its parent shares would double the
    parent's history.
    """

    verdict: Annotated[dict[str, Any], WithJsonSchema(_verdict_schema())]
    transcript: Annotated[list[Turn], Field(description="Every agent's turns, in order.")]


class GraphState(TypedDict):
    """What the state of every graph that judges has; that of a wrapper gathers the turns of its judges as they end."""

    task: Annotated[dict[str, Any], as_json]
    transcript: Annotated[list[Turn], merge_turns]
    scores: list[Score]
    round: Annotated[int, latest]
    verdict: NotRequired[dict[str, Any] | None]


class JudgeState(GraphState):
    """The state of a protocol's graph while it judges.

    The transcript is what counts: ``scores`` (the score or pair after each round) and ``round`` follow from it, and are
    brought up to date before every node and behind it, so that an edited turn counts. ``orders`` are the orders
    in which the answers are shown: ``[1]`` as in the task, ``[1, 2]`` where a comparison is held in both. ``settings``
    are those that the run's context set: a thread that is resumed without a context goes on with them. ``details``
    holds what only this protocol has. ``prepare`` sets all keys; ``conclude`` makes ``verdict`` of the others.
    """

    settings: NotRequired[dict[str, Any]]
    orders: list[int]
    warnings: Annotated[list[str], append]
    details: Annotated[dict[str, Any], merge]


class AgentState(JudgeState):
    """What an agent sees that is asked side by side with others: its name, and the state in its order of the answers.

    ``order`` is set where there are two.
    """

    agent: str
    order: NotRequired[int]


_REDUCERS: Mapping[str, Callable[[Any, Any], Any]] = {
    key: metadata[-1]
    for key, hint in get_type_hints(JudgeState, include_extras=True).items()
    if (metadata := getattr(hint, "__metadata__", ()))
}


def updated(state: StateT, update: Mapping[str, Any]) -> StateT:
    """Return the state as LangGraph makes it of the update of one node.

    >>> updated({"round": 1, "details": {"a": 1}}, {"round": 2, "details": {"b": 2}})
    {'round': 2, 'details': {'a': 1, 'b': 2}}
    """
    reduced = {k: _REDUCERS[k](state.get(k), new) if k in _REDUCERS else new for k, new in update.items()}
    return cast("StateT", {**state, **reduced})
