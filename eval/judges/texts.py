"""Convert any value for a judge to one text.

Text stays as it is, messages become a conversation, and other values become JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import BaseModel

from ...state.checked import shortened
from ...state.conversations import Entry, as_text, is_conversation, is_message, read_conversation
from ...state.errors import UsageError
from ...state.media import Media

MESSAGES = "messages"
"""The key of the conversation in the state of an agent."""


def text_of(value: Any, where: str, media: Media, remedy: str = "") -> str:
    """Return a value as one text without leaving anything out.

    A dict with one key is shown as the value of that key. A dict with messages and other keys, such
    as the state of an agent, is shown as the conversation, followed by the other keys as JSON.

    Args:
        value: a text, a message, a list of messages, or any JSON value; also pydantic models and
            dataclasses.
        where: the name of the value in errors, such as ``outputs``.
        media: receives the images and files in messages, which the text then names.
        remedy: advice for a part that cannot be shown; ``{where}`` in it is another place.

    Raises:
        UsageError: the value is missing or empty, or has a part that cannot be shown; the message
            names the part.

    >>> text_of({"answer": "It rained."}, "outputs", {})
    'It rained.'
    >>> print(text_of({"answer": "It rained.", "sources": [1, 2]}, "outputs", {}))
    {
      "answer": "It rained.",
      "sources": [
        1,
        2
      ]
    }
    """
    if is_absent(value):
        raise UsageError(f"{where} is missing")
    if isinstance(value, str):
        if not value.strip():
            raise UsageError(f"{where} is empty")
        return value
    if is_conversation(value := _plain_messages(value)):
        return as_text(_read(value, where, media, remedy))
    if isinstance(value, Mapping):
        if len(value) == 1:
            [(key, inner)] = value.items()
            return text_of(inner, f"{where}.{key}", media, remedy)
        if is_conversation(messages := value.get(MESSAGES)):
            others = {key: inner for key, inner in value.items() if key != MESSAGES}
            talk = text_of(messages, f"{where}.{MESSAGES}", media, remedy)
            return f"{talk}\n\n{_indented(others, where, media, remedy)}"
    return _indented(value, where, media, remedy)


_LEAVE_OUT = "put it in words, or leave it out"


def _read(value: Any, where: str, media: Media, remedy: str) -> list[Entry]:
    last = where if is_message(value) else f"{where}.-1"
    return read_conversation(value, where, remedy.replace("{where}", last) or _LEAVE_OUT, media)


def is_absent(value: Any) -> bool:
    """Whether an argument of an evaluator is empty.

    LangSmith passes an empty dict for a missing value.
    """
    return value is None or (isinstance(value, Mapping | list) and not value)


def _plain_messages(value: Any) -> Any:
    """Convert objects of other packages to plain data, except LangChain's messages."""
    if isinstance(value, list | tuple):
        return [_plain_messages(entry) for entry in value]
    if is_message(value) and not isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value


def _indented(value: Any, where: str, media: Media, remedy: str) -> str:
    return json.dumps(_json(value, where, media, remedy), indent=2, ensure_ascii=False)


def _json(value: Any, where: str, media: Media, remedy: str) -> Any:
    """Return a value as plain JSON; conversations in it become lists of lines with speakers."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where} is {value}, which is no number in JSON")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    value = _plain_messages(value)
    if is_conversation(value):
        return [f"{entry.heading}: {entry.text}" for entry in _read(value, where, media, remedy)]
    if isinstance(value, Mapping):
        return {
            str(key): _json(inner, f"{where}.{key}", media, remedy) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _json(inner, f"{where}[{place}]", media, remedy) for place, inner in enumerate(value)
        ]
    kind = type(value).__name__
    raise UsageError(
        f"{where} is an object of the type {kind}, which a judge cannot be shown: {shortened(value)}"
    )
