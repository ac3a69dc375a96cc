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
        kind: what a speech did, as an auditor labels it; ``answers``: whether it took up the one before.
    """

    prose: str
    values: tuple[float, ...] = ()
    no_issue: bool = False
    winner: str = ""
    kind: str = ""
    answers: bool = False


def as_text(response: Response, form: str) -> str:
    """Write a reply in plain text: prose, then the value on the last line (or two).

    >>> print(as_text(Response("Well put.", values=(4.0,)), "score"))
    Well put.
    Score: 4
    """
    values, lines = response.values, [response.prose]
    if form == "vote":
        lines.append(f"Vote: {response.winner}")
    elif form == "turn_label":
        lines = [f"Kind: {response.kind}", f"Answers: {'yes' if response.answers else 'no'}"]
    elif form in ("text", "steps", "personas", "critique"):
        lines += ["NO ISSUE"] if response.no_issue else []
    # A form of another package: the value is written as every reader of scores finds it.
    elif form == "score" or (form != "pair" and len(values) == 1):
        lines.append(f"Score: {values[0]:g}")
    else:
        lines += [f"Score of answer {number}: {value:g}" for number, value in enumerate(values, start=1)]
    return "\n".join(lines)


_FIELDS: dict[str, Callable[[Response], Any]] = {
    "reasoning": lambda response: response.prose,
    "feedback": lambda response: response.prose,
    "score": lambda response: response.values[0],
    "score_1": lambda response: response.values[0],
    "score_2": lambda response: response.values[1],
    "no_issue": lambda response: response.no_issue,
    "winner": lambda response: response.winner,
    "kind": lambda response: response.kind,
    "answers": lambda response: response.answers,
    # Without the number at the start of each line, as a list in JSON has it.
    "steps": lambda response: [line.split(" ", 1)[1] for line in response.prose.splitlines()],
}


def as_json(response: Response, properties: Iterable[str], high: float | None = None) -> str:
    """Write a reply as the JSON object that a schema asks for.

    Args:
        response: what the role says.
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
    parts = replace(response, values=_parts(response.values, schemas, high))
    return json.dumps(_object(parts, schemas), ensure_ascii=False)


def _parts(values: tuple[float, ...], schemas: Mapping[str, Any], high: float | None) -> tuple[float, ...]:
    """Return the values, each divided into whole parts where the schema asks for parts of each."""
    most = [schema["maximum"] for schema in schemas.values() if "maximum" in schema]
    if not values or high is None or len(most) == len(values) or sum(most) != high * len(values):
        return values
    number = len(most) // len(values)
    # Of 63 in six parts, the first three are 11 and the others 10.
    return tuple((value + number - 1 - part) // number for part in range(number) for value in values)


def _object(response: Response, schemas: Mapping[str, Any]) -> dict[str, Any]:
    # Two numbers of unknown names in a comparison are those of the first answer and of the second.
    numbers = cycle(response.values)
    return {
        name: _FIELDS[name](response) if name in _FIELDS else _by_type(response, name, schema, numbers)
        for name, schema in schemas.items()
    }


def _by_type(response: Response, name: str, schema: Mapping[str, Any], numbers: Iterator[float]) -> Any:
    """Fill in a property by what its schema says of it."""
    kind = schema.get("type")
    if options := schema.get("enum"):
        return response.winner if response.winner in options else options[0]
    if kind in ("number", "integer") and response.values:
        value = min(max(next(numbers), schema.get("minimum", -math.inf)), schema.get("maximum", math.inf))
        return round(value) if kind == "integer" else value
    if kind == "array":
        return [_by_type(response, name, schema.get("items") or {"type": "string"}, numbers)]
    if kind == "object":
        return _object(response, schema.get("properties") or {})
    if kind == "boolean":
        return response.no_issue
    if kind == "string":
        return response.prose
    raise ValueError(
        f"the offline judge cannot fill in {name!r}: its schema has no type that it knows, nor is it one of "
        f"{', '.join(_FIELDS)}"
    )
