"""Write down what a role of the offline judge says: as text, or as the JSON object that a schema asks for."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any


@dataclass(frozen=True, slots=True)
class Response:
    """Hold what an agent says: its prose, and the values that its form asks for.

    Attributes:
        prose: the reasons, the objection, or the whole message.
        values: one score, or one for each answer.
        no_issue: whether a critic declares that there is nothing to object to.
        winner: ``"1"`` or ``"2"`` of a vote.
    """

    prose: str
    values: tuple[float, ...] = ()
    no_issue: bool = False
    winner: str = ""


def as_text(said: Response, form: str) -> str:
    """Write a reply in plain text: prose, then the value on the last line (or two).

    >>> print(as_text(Response("Well put.", values=(4.0,)), "score"))
    Well put.
    Score: 4
    """
    return "\n".join([said.prose, *_last_lines(said, form)])


def _last_lines(said: Response, form: str) -> list[str]:
    if form == "pair":
        return [f"Score of answer {n}: {value:g}" for n, value in enumerate(said.values, start=1)]
    if form == "score":
        return [f"Score: {said.values[0]:g}"]
    if form == "vote":
        return [f"Vote: {said.winner}"]
    if form in ("text", "steps", "critique"):
        return ["NO ISSUE"] if said.no_issue else []
    # A form of another package: the value is written as every reader of scores finds it.
    return _last_lines(said, "score" if len(said.values) == 1 else "pair") if said.values else []


_FIELDS: dict[str, Callable[[Response], Any]] = {
    "reasoning": lambda said: said.prose,
    "feedback": lambda said: said.prose,
    "score": lambda said: said.values[0],
    "score_1": lambda said: said.values[0],
    "score_2": lambda said: said.values[1],
    "no_issue": lambda said: said.no_issue,
    "winner": lambda said: said.winner,
    # Without the number at the start of each line, as a list in JSON has it.
    "steps": lambda said: [line.split(" ", 1)[1] for line in said.prose.splitlines()],
}


def as_json(said: Response, properties: Iterable[str] | Mapping[str, Any], high: float | None = None) -> str:
    """Write a reply as the JSON object that a schema asks for.

    Args:
        said: what the role says.
        properties: names of the object's properties, or name to schema: one whose name means nothing to the offline
            judge is filled in by its type.
        high: the highest score; numbers whose maxima add up to it are parts of the score.

    >>> as_json(Response("Well put.", values=(4.0,)), ["reasoning", "score"])
    '{"reasoning": "Well put.", "score": 4.0}'
    >>> as_json(Response("Well put.", values=(4.5,)), {"grade": {"type": "integer"}, "why": {"type": "string"}})
    '{"grade": 4, "why": "Well put."}'

    Raises:
        ValueError: the schema asks for a property of which neither name nor type says what it is to be.
    """
    schemas = properties if isinstance(properties, Mapping) else {name: {} for name in properties}
    return json.dumps(_object(replace(said, values=_parts(said, schemas, high)), schemas), ensure_ascii=False)


def _parts(said: Response, schemas: Mapping[str, Any], high: float | None) -> tuple[float, ...]:
    """Return the values, each divided into whole parts where the schema asks for parts of each."""
    most = [schema["maximum"] for schema in schemas.values() if "maximum" in schema]
    if (
        not said.values
        or high is None
        or sum(most) != high * len(said.values)
        or len(most) == len(said.values)
    ):
        return said.values
    each = len(most) // len(said.values)
    # Of 63 in six parts, the first three are 11 and the others 10.
    return tuple((value + each - 1 - part) // each for part in range(each) for value in said.values)


def _object(said: Response, schemas: Mapping[str, Any]) -> dict[str, Any]:
    # Two numbers of unknown names in a comparison are those of the first answer and of the second.
    numbers = cycle(said.values)
    return {
        name: _FIELDS[name](said) if name in _FIELDS else _by_type(said, name, schema, numbers)
        for name, schema in schemas.items()
    }


def _by_type(said: Response, name: str, schema: Mapping[str, Any], numbers: Iterator[float]) -> Any:
    """Fill in a property by what its schema says of it."""
    kind = schema.get("type")
    if options := schema.get("enum"):
        return said.winner if said.winner in options else options[0]
    if kind in ("number", "integer") and said.values:
        value = min(max(next(numbers), schema.get("minimum", -math.inf)), schema.get("maximum", math.inf))
        return round(value) if kind == "integer" else value
    if kind == "array":
        return [_by_type(said, name, schema.get("items") or {"type": "string"}, numbers)]
    if kind == "object":
        return _object(said, schema.get("properties") or {})
    if kind == "boolean":
        return said.no_issue
    if kind == "string":
        return said.prose
    raise ValueError(
        f"the offline judge cannot fill in {name!r}: its schema has no type that it knows, nor is it one of "
        f"{', '.join(_FIELDS)}"
    )
