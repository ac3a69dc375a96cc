"""Convert a prompt of another library, with places such as ``{inputs}``, to an aspect.

The texts are never part of the instruction: each place becomes a reference to the fenced text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

from ...state.aspects import Aspect, OtherText
from ...state.checked import shortened
from ...state.errors import UsageError
from .judge_inputs import ARGUMENTS, PEER_NAMES
from .texts import text_of

_REFERENCES = {
    "outputs": "the candidate",
    "reference_outputs": "the reference",
    "context": "the context",
    "attachments": "the attached images and files",
}
"""The reference that replaces each text in the instruction; ``inputs`` depend on the rated text."""

_NEEDS: dict[str, OtherText] = {
    "inputs": "source",
    "reference_outputs": "reference",
    "context": "context",
}


class PeerPrompt(NamedTuple):
    """The aspect that a prompt states, and the arguments and further variables that it names."""

    aspect: Aspect
    named: frozenset[str]
    variables: tuple[str, ...]


def read_prompt(prompt: str, name: str, system: str | None = None, **scale: Any) -> PeerPrompt:
    """Return the aspect and the variables of a prompt.

    Args:
        prompt: the prompt, with places such as ``{inputs}`` and ``{outputs}``; ``{{`` is a literal
            brace.
        name: the name of the score.
        system: text to put before the prompt.
        **scale: ``low``, ``high``, ``choices`` and ``examples`` of the aspect.

    Raises:
        UsageError: the prompt is not a text, names no text to judge, or has an unclosed brace.

    >>> asked = read_prompt("Is {outputs} faithful to {context}?", "faithfulness", choices=(0, 1))
    >>> asked.aspect.criteria, sorted(asked.named), asked.aspect.needs
    ('Is the candidate faithful to the context?', ['context', 'outputs'], ('context',))
    """
    if not isinstance(prompt, str):
        raise UsageError(
            f"prompt must be a text with places such as {{inputs}} and {{outputs}}, got {shortened(prompt)}"
        )
    whole = prompt if system is None else f"{system}\n\n{prompt}"
    parts = _parts(whole)
    places = dict.fromkeys(place for _, place in parts if place is not None)
    if wrong := [place for place in places if not place.isidentifier()]:
        raise UsageError(
            f"prompt: {{{wrong[0]}}} is not a place for a text: "
            "a place is a name, such as {inputs}; "
            "write a brace that is part of the text as {{ or }}"
        )
    named = frozenset(place for place in places if place in ARGUMENTS)
    variables = tuple(place for place in places if place not in ARGUMENTS)
    if not named & {"inputs", "outputs", "context"}:
        raise UsageError("prompt names no text to judge: it needs {outputs}, {inputs} or {context}")
    rated = next(place for place in ("outputs", "context", "inputs") if place in named)
    references = {**_REFERENCES, "inputs": "the source", rated: "the candidate"}
    references |= {place: f'"{place}" in the context' for place in variables}
    words = "".join(
        f"{text}{references[place] if place is not None else ''}" for text, place in parts
    )
    needs = tuple(_NEEDS[place] for place in places if place in _NEEDS and place != rated)
    aspect = Aspect(name=name, criteria=words, needs=needs, **scale)
    return PeerPrompt(aspect, named, variables)


_DOUBLE = re.compile(r"\{\{\s*(?P<place>[A-Za-z_]\w*)\s*\}\}")
"""A place in the templates of MLflow, promptfoo and mustache: {{ outputs }}."""


def _parts(prompt: str) -> list[tuple[str, str | None]]:
    """Return the texts of a prompt, each with the name of the place that follows it.

    Raises:
        UsageError: a brace is not closed.
    """
    try:
        parts = [(text, place) for text, place, _, _ in Formatter().parse(prompt)]
        problem = ""
    except ValueError as error:
        parts = []
        problem = str(error)
    single = {PEER_NAMES.get(place, place) for _, place in parts if place is not None}
    doubles = [*_DOUBLE.finditer(prompt)]
    if not single & {*ARGUMENTS} and any(
        _our_name(found["place"]) in ARGUMENTS for found in doubles
    ):
        # In such a template, a single brace is part of the text.
        ends = [0, *(found.end() for found in doubles)]
        parts = [
            (prompt[end : found.start()], found["place"])
            for end, found in zip(ends, doubles, strict=False)
        ]
        parts.append((prompt[ends[-1] :], None))
    elif problem:
        raise UsageError(
            f"prompt: {problem}; write a brace that is part of the text as {{{{ or }}}}"
        )
    # A prompt that uses two names for one text means two different texts.
    means = [_our_name(place) for place in {place for _, place in parts if place is not None}]
    names = {name: argument for name, argument in PEER_NAMES.items() if means.count(argument) == 1}
    return [(text, place if place is None else names.get(place, place)) for text, place in parts]


def _our_name(place: str) -> str:
    return PEER_NAMES.get(place, place)


def scale_of(
    low: float | None, high: float | None, choices: Sequence[float] | None, continuous: bool
) -> dict[str, Any]:
    """Return the scale of a prompt's judge: choices, a range, or by default 0 and 1 (pass or fail).

    Raises:
        UsageError: two of these are given, half a range, or choices that are not numbers.
    """
    ranged = low is not None or high is not None
    if sum((bool(choices), continuous, ranged)) > 1:
        raise UsageError("give one of choices, continuous=True, and low with high")
    if ranged:
        if low is None or high is None:
            raise UsageError("low and high are the two ends of a scale: give both")
        return {"low": low, "high": high}
    if continuous:
        return {"low": 0, "high": 1}
    if choices is not None and (isinstance(choices, str) or len(set(choices)) < 2):
        raise UsageError(f"choices must be a list of at least two scores, got {shortened(choices)}")
    if words := [choice for choice in choices or () if isinstance(choice, str)]:
        raise UsageError(
            f"choices: {words[0]!r} is not a score; "
            f"give each a score, such as choices={{{words[0]!r}: 1, ...}}"
        )
    return {"choices": tuple(choices or (0, 1))}


def named_choices(choices: Mapping[str, float]) -> str:
    """Add the meaning of each allowed score to a prompt.

    >>> named_choices({"correct": 1, "partial": 0.5, "incorrect": 0})
    'The score 1 stands for "correct", 0.5 for "partial", 0 for "incorrect".'
    """
    words = ", ".join(f'{score:g} for "{name}"' for name, score in choices.items())
    return (
        f"The score {words}.".replace(" for ", " stands for ", 1)
        .replace("{", "{{")
        .replace("}", "}}")
    )


_EXAMPLE_KEYS = {"inputs", "outputs", "score", "reasoning"}


def read_examples(few_shot: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Convert examples of other libraries to those of an aspect.

    Their keys are ``inputs``, ``outputs``, ``score`` and ``reasoning``.

    Raises:
        UsageError: an example has no outputs or no score, or has another key.
    """
    examples = []
    for place, example in enumerate(few_shot):
        where = f"few_shot[{place}]"
        if not isinstance(example, Mapping) or not {"outputs", "score"} <= example.keys():
            raise UsageError(f"{where} needs outputs and score, got {shortened(example)}")
        if unknown := sorted(map(str, example.keys() - _EXAMPLE_KEYS)):
            known = ", ".join(sorted(_EXAMPLE_KEYS))
            raise UsageError(f"{where} has the unknown key {unknown[0]!r}; an example has {known}")
        made: dict[str, Any] = {"candidate": text_of(example["outputs"], f"{where}.outputs", {})}
        if example.get("inputs") is not None:
            made["source"] = text_of(example["inputs"], f"{where}.inputs", {})
        made |= {"score": float(example["score"]), "reasoning": example.get("reasoning")}
        examples.append(made)
    return tuple(examples)
