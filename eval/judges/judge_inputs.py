"""Make the task of a judge out of what an evaluator is called with: texts, dicts, or the messages of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from ...state.aspects import Aspect
from ...state.checked import shortened
from ...state.conversations import (
    Entry,
    as_text,
    asked_and_answered,
    is_conversation,
    is_message,
    read_conversation,
)
from ...state.errors import UsageError
from ...state.media import Media
from ...state.tasks import CompareTask, Rubric, ScoreTask, parse_task
from ...state.word_files import words_beside

_FIELDS: dict[str, Any] = words_beside(__file__)
"""Where each field of the task is by convention, and an example of another place."""


@dataclass(frozen=True)
class TaskMaker:
    """Makes the tasks of one judge.

    Attributes:
        aspect: what texts are rated on; ``None`` where two answers are compared.
        criteria: what answers are compared on; ``None`` for the usual criteria.
        mapping: from a field of the task to where it is found, such as ``{"source": "inputs.article"}``.
    """

    aspect: Aspect | None = None
    criteria: Sequence[str] | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if strange := [name for name in self.mapping if name not in self.fields]:
            known = f"map {', '.join(self.fields)}"
            raise UsageError(f"variable_mapping: {strange[0]!r} is not a field of this judge's task; {known}")
        self.made(dict.fromkeys(self.fields, "-"))  # tells criteria that cannot be so before the first call

    @property
    def rubric(self) -> Rubric | None:
        """What this judge was told to judge by, where it was told."""
        return self.aspect or (None if self.criteria is None else tuple(self.criteria))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the task that come from the call, those that it cannot do without first."""
        if self.aspect is not None:
            return "source", "candidate", "fact"
        return "question", "answer_1", "answer_2", "reference"

    def task(self, given: Mapping[str, Any]) -> ScoreTask | CompareTask:
        """Make the task from the arguments of an evaluator.

        Raises:
            UsageError: something is missing, empty, ambiguous, no text or not text alone; names the argument.
        """
        inputs = _TaskInputs(self, given, dict(given.get("media") or {}))
        texts = {name: inputs.text(name) for name in self.fields}
        return self.made({**texts, "media": inputs.media})

    def made(self, texts: Mapping[str, Any]) -> ScoreTask | CompareTask:
        """Make the task of its texts and media."""
        kind = "score" if self.aspect is not None else "compare"
        given = {"kind": kind, **texts, "aspect": self.aspect, "criteria": self.criteria}
        return parse_task({name: value for name, value in given.items() if value is not None})


class _TaskInputs(NamedTuple):
    """Finds the texts of one task in the arguments of an evaluator, and takes up the images and files beside them."""

    maker: TaskMaker
    given: Mapping[str, Any]
    media: Media

    def text(self, name: str) -> str | None:
        """Return the text of a field of the task; ``None`` for one that the task can do without."""
        given, mapping = self.given, self.maker.mapping
        if name in mapping:
            return self._as_text(_look_up(mapping[name], given), mapping[name], name)
        if given.get(name) is not None:
            return self._as_text(given[name], name, name)
        inputs, outputs = given.get("inputs"), given.get("outputs")
        if name in ("answer_1", "answer_2"):
            return self._one_of_two(outputs, name)
        if name == "fact" or (name == "reference" and not given.get("reference_outputs")):
            return self._as_text(inputs[name], f"inputs.{name}", name) if _has(inputs, name) else None
        source_given = "source" in mapping or given.get("source") is not None
        if name in ("source", "candidate") and is_absent(inputs) and not source_given:
            # The state of an agent has its messages beside other keys.
            messages, place = outputs, "outputs"
            if _has(outputs, "messages"):
                messages, place = outputs["messages"], "outputs.messages"
            if conversation := self._conversation(messages, place, name):
                return asked_and_answered(conversation)[name == "candidate"]
        argument = _FIELDS[name]["argument"]
        return self._as_text(given.get(argument), argument, name)

    def _as_text(self, value: Any, where: str, name: str) -> str:
        """Return a value as the text that a field of the task needs."""
        if conversation := self._conversation(value, where, name):
            # Of a conversation the last answer is judged; where tools were called, the way to it is a part of it.
            last = [entry for entry in conversation if entry.answers][-1:]
            whole = len(conversation) == 1 or any(entry.kind != "words" for entry in conversation)
            if not (whole or last or name in ("source", "question", "fact")):
                raise UsageError("the conversation has no answer to judge: no message of a model has text")
            value = as_text(conversation if whole or name in ("source", "question", "fact") else last)
        if isinstance(value, Mapping) and value:
            key = _key(value, where, name)
            return self._as_text(value[key], f"{where}.{key}", name)
        if is_absent(value):
            raise UsageError(f"{where} is missing: this judge takes its {name} from there{_hint(name)}")
        if not isinstance(value, str):
            several = name == "candidate" and isinstance(value, list)
            compare = "; to compare two outputs, leave out the aspect" if several else _hint(name)
            got = f"got {shortened(value)}{compare}"
            raise UsageError(f"{where} must be text, a dict with text, or messages, {got}")
        if not value.strip():
            raise UsageError(f"{where} is empty: there is no {name} to judge")
        return value

    def _one_of_two(self, outputs: Any, name: str) -> str:
        if _has(outputs, "answer_1") and _has(outputs, "answer_2"):
            return self._as_text(outputs[name], f"outputs.{name}", name)
        if not isinstance(outputs, list | tuple) or len(outputs) != 2:
            remedy = "to rate one output, name an aspect: create_judge(..., aspect=...)"
            got = f"got {shortened(outputs)}; {remedy}"
            raise UsageError(f"outputs must be a list of the two outputs to compare, {got}")
        place = int(name[-1]) - 1
        return self._as_text(outputs[place], f"outputs.{place}", name)

    def _conversation(self, value: Any, where: str, name: str) -> list[Entry]:
        """Return what happens in a message or a list of messages; nothing if a value is neither.

        Raises:
            UsageError: messages that cannot be read, or a part that can be neither put in words nor sent along.
        """
        if not is_conversation(value):
            return []
        path = _FIELDS.get(name, {}).get("example", where if is_message(value) else f"{where}.-1")
        hint = f'such as variable_mapping={{"{name}": "{path}"}}'
        remedy = f"pass the text that is to be judged, or name where it is, {hint}"
        return read_conversation(value, where, remedy, self.media)


def _hint(name: str) -> str:
    path = _FIELDS.get(name, {}).get("example", "outputs.draft")
    return f'; to take it from elsewhere, set variable_mapping, such as {{"{name}": "{path}"}}'


def _key(value: Mapping[str, Any], where: str, name: str) -> str:
    """Choose the key of a dict that holds a field of the task: of that name, the only one, or one usual name."""
    if name in value or len(value) == 1:
        return name if name in value else next(iter(value))
    usual = _FIELDS.get("candidate" if name in ("answer_1", "answer_2") else name, {}).get("keys", ())
    fitting: list[str] = [key for key in usual if key in value]
    if len(fitting) == 1:
        return fitting[0]
    has = ", ".join(map(str, fitting or value))
    fault = "several keys that may be" if fitting else "no known key for"
    example = f'variable_mapping={{"{name}": "{where}.{(fitting or list(value))[0]}"}}'
    raise UsageError(f"{where} has {fault} the {name}: {has}; say which, such as {example}")


def is_absent(value: Any) -> bool:
    """Whether an argument of an evaluator holds nothing: LangSmith gives an empty dict for what is not there."""
    return value is None or (isinstance(value, Mapping | list) and not value)


def _has(value: Any, key: str) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and value.get(key) is not None


def _look_up(path: str, given: Mapping[str, Any]) -> Any:
    """Return what a path such as ``outputs.messages.0.content`` leads to."""
    value: Any = given
    for step, key in enumerate(parts := path.split("."), start=1):
        # In a list a key is a place, from the end where it is negative: -1 is the last message.
        places = isinstance(value, Sequence) and not isinstance(value, str) and key.lstrip("-").isdigit()
        try:
            inner = value[int(key) if places else key]
        except (KeyError, IndexError, TypeError):
            inner = None
        if inner is None:
            known = [str(k) for k in value if value[k] is not None] if isinstance(value, Mapping) else []
            has = f"; it has {', '.join(known)}" if known else ""
            raise UsageError(f"{'.'.join(parts[:step])} is missing, but variable_mapping names {path}{has}")
        value = inner
    return value
