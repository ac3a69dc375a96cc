"""Who says what: role -> function, and the forms in which a reply is written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ..fences import Section
from .call import Call, View
from .debaters import commander, critic, scorer, tie_breaker
from .panel import advocate, aggregator, judge, juror, planner, referee, summarizer
from .wording import Said

Role: TypeAlias = Callable[[View], Said]

ROLES: dict[str, Role] = {
    "scorer": scorer,
    "critic": critic,
    "tie_breaker": tie_breaker,
    "commander": commander,
    "referee": referee,
    "judge": judge,
    "juror": juror,
    "advocate": advocate,
    "aggregator": aggregator,
    "summarizer": summarizer,
    "planner": planner,
}
"""To add a role, write a function that turns what it sees into what it says, and name it here."""


def speak(metadata: Mapping[str, Any], sections: Iterable[Section]) -> tuple[Said, str]:
    """What the role of a call says, and in which form.

    Raises:
        ValueError: no role, one that the offline judge does not play, or no fenced text to be judged.
    """
    call = Call.from_metadata(metadata)
    if call.role not in ROLES:
        raise ValueError(f"the offline judge does not play {call.role!r}; it plays {', '.join(ROLES)}")
    return ROLES[call.role](View(call, sections)), call.form


def as_text(said: Said, form: str) -> str:
    """A reply in plain text: prose, then the value on the last line (or two).

    >>> print(as_text(Said("Well put.", values=(4.0,)), "score"))
    Well put.
    Score: 4
    """
    return "\n".join([said.prose, *_last_lines(said, form)])


def _last_lines(said: Said, form: str) -> list[str]:
    if form == "pair":
        return [f"Score of answer {n}: {value:g}" for n, value in enumerate(said.values, start=1)]
    if form == "score":
        return [f"Score: {said.values[0]:g}"]
    if form == "vote":
        return [f"Vote: {said.winner}"]
    return ["NO ISSUE"] if form == "critique" and said.no_issue else []


_FIELDS: dict[str, Callable[[Said], Any]] = {
    "reasoning": lambda said: said.prose,
    "feedback": lambda said: said.prose,
    "score": lambda said: said.values[0],
    "score_1": lambda said: said.values[0],
    "score_2": lambda said: said.values[1],
    "no_issue": lambda said: said.no_issue,
    "winner": lambda said: said.winner,
    "steps": lambda said: [line.split(" ", 1)[1] for line in said.prose.splitlines()],
}


def as_json(said: Said, properties: Iterable[str]) -> str:
    """A reply as the JSON object that a schema asks for.

    >>> as_json(Said("Well put.", values=(4.0,)), ["reasoning", "score"])
    '{"reasoning": "Well put.", "score": 4.0}'

    Raises:
        ValueError: the schema asks for a property that the offline judge does not know.
    """
    wanted = list(properties)
    if unknown := [name for name in wanted if name not in _FIELDS]:
        raise ValueError(
            f"the offline judge cannot fill in {', '.join(unknown)}; it knows {', '.join(_FIELDS)}"
        )
    return json.dumps({name: _FIELDS[name](said) for name in wanted}, ensure_ascii=False)
