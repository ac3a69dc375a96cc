"""Make the task of a judge out of what an evaluator is called with: texts, dicts, or the messages of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
    get_buffer_string,
)

from ...graphs.message_text import is_answer, refuse_unseen
from ...state.aspects import Aspect
from ...state.checked import shortened
from ...state.errors import UsageError
from ...state.tasks import CompareTask, ScoreTask, parse_task

_ASKED = "input question query prompt request article document context text messages"
_ANSWERED = "output answer response completion generation prediction result summary text content messages"
_EXPECTED = "reference_output reference_answer answer output expected expected_output ground_truth"
_KEYS = {
    "source": ("inputs", _ASKED.split()),
    "question": ("inputs", _ASKED.split()),
    "candidate": ("outputs", _ANSWERED.split()),
    "reference": ("reference_outputs", _EXPECTED.split()),
}
"""Where a field of the task is by convention: the evaluator's argument, and the names of its keys."""


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
            raise UsageError(
                f"variable_mapping: {strange[0]!r} is no field of this judge's task; map {', '.join(self.fields)}"
            )
        self._made(dict.fromkeys(self.fields, "-"))  # tells criteria that cannot be so before the first call

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
        return self._made({name: self._text(name, given) for name in self.fields})

    def _made(self, texts: Mapping[str, str | None]) -> ScoreTask | CompareTask:
        kind = "score" if self.aspect is not None else "compare"
        fixed = {"aspect": self.aspect} if self.aspect is not None else {"criteria": self.criteria}
        return parse_task({k: v for k, v in {"kind": kind, **texts, **fixed}.items() if v is not None})

    def _text(self, name: str, given: Mapping[str, Any]) -> str | None:
        if name in self.mapping:
            return _as_text(_look_up(self.mapping[name], given), self.mapping[name], name)
        if given.get(name) is not None:
            return _as_text(given[name], name, name)
        if name in ("answer_1", "answer_2"):
            return _one_of_two(given.get("outputs"), name)
        inputs, outputs = given.get("inputs"), given.get("outputs")
        if name == "fact" or (name == "reference" and not given.get("reference_outputs")):
            return _as_text(inputs[name], f"inputs.{name}", name) if _has(inputs, name) else None
        if name == "source" and is_absent(inputs):
            place = "outputs.messages" if _has(outputs, "messages") else "outputs"
            if conversation := _conversation(_messages(outputs), place, name):
                return asked_and_answered(conversation)[0]
        argument, _ = _KEYS[name]
        return _as_text(given.get(argument), argument, name)


def asked_and_answered(
    messages: Sequence[BaseMessage], answers: int = 1, judge: str | None = None
) -> tuple[str, list[str]]:
    """Split a conversation into what came before its last answers, and these.

    Words to and from tools are left out, and what the judge of that name has said.

    Raises:
        UsageError: it has too few answers, or none of them answers anything, or what was asked or answered holds what
            a judge would not see.
    """
    words = {
        f"messages[{place}]": message
        for place, message in enumerate(messages)
        if (isinstance(message, HumanMessage | SystemMessage) or is_answer(message))
        and (judge is None or message.name != judge)
    }
    refuse_unseen(words.items(), "have it put in words, or hand over without it", answers=True)
    said = [*words.values()]
    last = [place for place, message in enumerate(said) if isinstance(message, AIMessage)][-answers:]
    if len(last) < answers:
        wanted = "no answer" if answers == 1 else f"fewer than {answers} answers"
        raise UsageError(f"the conversation has {wanted} to judge: a model's message with text must be in it")
    before = said[: last[0]]
    if all(isinstance(message, SystemMessage) for message in before):
        raise UsageError("nothing is asked in the conversation: a user's message must come before the answer")
    return _told(before), [str(said[place].text) for place in last]


def _told(messages: Sequence[BaseMessage]) -> str:
    """Return a conversation as text: one message alone without the name of who speaks."""
    return str(messages[0].text) if len(messages) == 1 else get_buffer_string(messages)


def _as_text(value: Any, where: str, name: str) -> str:
    """Return a value as the text that a field of the task needs."""
    if conversation := _conversation(value, where, name):
        if name not in ("source", "question", "fact") and len(conversation) > 1:
            return asked_and_answered(conversation)[1][-1]
        value = _told(conversation)
    if isinstance(value, Mapping) and value:
        key = _key(value, where, name)
        return _as_text(value[key], f"{where}.{key}", name)
    if is_absent(value):
        raise UsageError(f"{where} is missing: this judge takes its {name} from there{_hint(name)}")
    if not isinstance(value, str):
        several = name == "candidate" and isinstance(value, list)
        compare = "; to compare two outputs, leave out the aspect" if several else _hint(name)
        raise UsageError(
            f"{where} must be text, a dict with one, or messages, got {shortened(value)}{compare}"
        )
    if not value.strip():
        raise UsageError(f"{where} is empty: there is no {name} to judge")
    return value


def _hint(name: str) -> str:
    path = _EXAMPLES.get(name, "outputs.draft")
    return f'; to take it from elsewhere, set variable_mapping, such as {{"{name}": "{path}"}}'


_EXAMPLES = {
    "source": "inputs.article",
    "question": "inputs.prompt",
    "fact": "inputs.fact",
    "reference": "reference_outputs.answer",
}


def _key(value: Mapping[str, Any], where: str, name: str) -> str:
    """Choose the key of a dict that holds a field of the task: of that name, the only one, or one usual name."""
    if name in value or len(value) == 1:
        return name if name in value else next(iter(value))
    usual = _KEYS.get({"answer_1": "candidate", "answer_2": "candidate"}.get(name, name), ("", []))[1]
    found = [key for key in usual if key in value]
    if len(found) == 1:
        return found[0]
    has = ", ".join(map(str, found or value))
    raise UsageError(
        f"{where} has {'several keys that may be' if found else 'no key that is known for'} the {name}: {has}; say "
        f'which, such as variable_mapping={{"{name}": "{where}.{(found or list(value))[0]}"}}'
    )


def _one_of_two(outputs: Any, name: str) -> str:
    if _has(outputs, "answer_1") and _has(outputs, "answer_2"):
        return _as_text(outputs[name], f"outputs.{name}", name)
    if not isinstance(outputs, list | tuple) or len(outputs) != 2:
        raise UsageError(
            f"outputs must be a list of the two outputs to compare, got {shortened(outputs)}; "
            "to rate one output, name an aspect: create_judge(..., aspect=...)"
        )
    place = int(name[-1]) - 1
    return _as_text(outputs[place], f"outputs.{place}", name)


def is_absent(value: Any) -> bool:
    """Whether an argument of an evaluator holds nothing: LangSmith gives an empty dict for what is not there."""
    return value is None or (isinstance(value, Mapping | list) and not value)


def _has(value: Any, key: str) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and value.get(key) is not None


def _look_up(path: str, given: Mapping[str, Any]) -> Any:
    """Return what a path such as ``outputs.messages.0.content`` leads to."""
    value: Any = given
    for step, key in enumerate(parts := path.split(".")):
        places = isinstance(value, Sequence) and not isinstance(value, str) and key.lstrip("-").isdigit()
        try:
            found = value[int(key) if places else key]
        except (KeyError, IndexError, TypeError):
            found = None
        if found is None:
            there = (
                [str(name) for name in value if value[name] is not None] if isinstance(value, Mapping) else []
            )
            has = f"; there {'is' if len(there) == 1 else 'are'} {', '.join(there)}" if there else ""
            raise UsageError(
                f"{'.'.join(parts[: step + 1])} is missing, and variable_mapping names {path}{has}"
            )
        value = found
    return value


def _conversation(value: Any, where: str, name: str) -> list[BaseMessage]:
    """Return a value that is a message or a list of messages as such; else nothing.

    Raises:
        UsageError: messages that cannot be read, or that hold more than text.
    """
    alone = _is_message(value)
    given = [value] if alone or not isinstance(value, list | tuple) else value
    if not given or not all(_is_message(message) for message in given):
        return []
    # OpenAI's messages that call a tool may have no content.
    whole = [{"content": "", **message} if isinstance(message, Mapping) else message for message in given]
    try:
        messages = convert_to_messages(whole)
    except (ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise UsageError(f"messages that cannot be read: {error}") from error
    path = _EXAMPLES.get(name, where if alone else f"{where}.-1")
    refuse_unseen(
        ((where if alone else f"{where}[{place}]", message) for place, message in enumerate(messages)),
        f'pass the text that is to be judged, or name where it is, such as variable_mapping={{"{name}": "{path}"}}',
    )
    return messages


def _messages(value: Any) -> Any:
    """Return the messages in the state of an agent; anything else as it is."""
    return value["messages"] if _has(value, "messages") else value


def _is_message(value: Any) -> bool:
    if isinstance(value, BaseMessage):
        return True
    if isinstance(value, list | tuple):
        return len(value) == 2 and value[0] in ("user", "human", "assistant", "ai", "system")
    if not isinstance(value, Mapping):
        return False
    calls_tools = "role" in value and ("tool_calls" in value or "function_call" in value)
    return calls_tools or ("content" in value and ("role" in value or "type" in value))
