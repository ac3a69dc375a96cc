"""Read a conversation in any common format, and write it as one text.

Supported are LangChain's messages and their dicts, OpenAI's messages, the items of its Responses
API, and the content blocks of Anthropic, Bedrock and LangChain. The text names images and files,
which are sent separately. A part that can neither be written as text nor sent is refused by name,
so that no judge decides without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from .checked import shortened
from .errors import UsageError
from .media import MOST_MEDIA, Media, media_fault

_ROLES = {
    "human": "Human",
    "user": "Human",
    "HumanMessageChunk": "Human",
    "ai": "AI",
    "assistant": "AI",
    "AIMessageChunk": "AI",
    "system": "System",
    "developer": "System",
    "SystemMessageChunk": "System",
    "tool": "Tool",
    "function": "Tool",
    "ToolMessageChunk": "Tool",
    "FunctionMessageChunk": "Tool",
}
"""Maps the role of a message, or LangChain's type of it, to the speaker's name."""

_MEDIA = {
    "image": "an image",
    "audio": "audio",
    "video": "a video",
    "file": "a file",
    "document": "a file",
}
"""Maps a word in the type of a part to its kind. Types vary: ``image``, ``image_url``,
``input_image``."""

# The types of content blocks with text, and with reasoning.
_TEXTS = ("text", "input_text", "output_text", "refusal")
_REASONING = ("reasoning", "thinking", "redacted_thinking")

# The endings of the types of tool calls and of their results.
_CALLS = ("_use", "_call", "toolUse")
_RESULTS = ("_result", "_output", "toolResult")

# The keys of a call or a result: LangChain's, then those of single providers.
_ARGUMENTS = ("args", "arguments", "input", "input_parameters")
_OF_CALL = ("tool_call_id", "call_id", "tool_use_id", "toolUseId")
_IDS = ("call_id", "id", "toolUseId")

_MOST_NAMED = 5


Kind = Literal["words", "reasoning", "call", "result"]


class Entry(NamedTuple):
    """One event of a conversation; a message may contain several.

    Attributes:
        kind: the kind of event.
        speaker: ``Human``, ``AI``, ``System``, ``Tool``, or another role of a LangChain message.
        heading: the text before the event, such as ``AI calls search (call 1)``.
        text: the words, the arguments of the call, or its result.
        name: the name of the speaker, if the message has one.
        message: the index of the message, from 0.
    """

    kind: Kind
    speaker: str
    heading: str
    text: str
    name: str | None
    message: int

    @property
    def answers(self) -> bool:
        """Whether a model speaks to a person here."""
        return self.kind == "words" and self.speaker == "AI" and bool(self.text.strip())

    @property
    def asks(self) -> bool:
        """Whether a person, or another agent, speaks to the model here."""
        return self.kind == "words" and self.speaker not in ("AI", "System")


def as_text(entries: Sequence[Entry]) -> str:
    r"""Return a conversation as one text; a single speech has no speaker's name.

    Further lines of an entry are indented, so that no text in it can look like the heading of
    another entry.

    >>> asked = {"role": "user", "content": "Where is it?\nAI: In Oslo."}
    >>> call = {"id": "c1", "function": {"name": "find", "arguments": '{"what": "it"}'}}
    >>> result = {"role": "tool", "tool_call_id": "c1", "content": "Bergen"}
    >>> print(as_text(read_conversation([asked, {"role": "assistant", "tool_calls": [call]}, result], "messages")))
    Human: Where is it?
      AI: In Oslo.
    AI calls find (call 1): {"what": "it"}
    Result of find (call 1): Bergen
    """
    if len(entries) == 1 and entries[0].kind == "words":
        return entries[0].text
    lines = [
        f"{entry.heading}: {'  '.join(entry.text.splitlines(keepends=True))}" for entry in entries
    ]
    return "\n".join(lines)


def asked_and_answered(entries: Sequence[Entry]) -> tuple[str, str]:
    """Split a conversation into the question and the judged part, each as one text.

    The judged part is the last answer and everything after it. If tools were called since a person
    last spoke, it is all that the agent did and said since. Nothing of the conversation is left
    out.

    Raises:
        UsageError: the conversation has no answer or no question.
    """
    asked = max((place for place, entry in enumerate(entries) if entry.asks), default=-1)
    turn = entries[asked + 1 :]
    if asked >= 0 and any(entry.kind == "call" for entry in turn):
        return as_text(entries[: asked + 1]), as_text(turn)
    answers = [entry for entry in entries if entry.answers]
    if not answers:
        raise UsageError(
            "the conversation has no answer to judge: it needs a model's message with text"
        )
    # A message may contain its author's reasoning before its words.
    start = next(
        place for place, entry in enumerate(entries) if entry.message == answers[-1].message
    )
    if not any(entry.asks for entry in entries[:start]):
        raise UsageError(
            "nothing is asked in the conversation: a user's message must come before the answer"
        )
    return as_text(entries[:start]), as_text(entries[start:])


def before_last_answers(entries: Sequence[Entry], answers: int = 1) -> tuple[str, list[str]]:
    """Split an agent's conversation into all before its last answers, as one text, and these.

    An answer is a model's speech without a tool call after it, if there is one. The model's
    reasoning is left out.

    Raises:
        UsageError: it has too few answers, or no question before them.
    """
    entries = [entry for entry in entries if entry.kind != "reasoning"]
    pairs = enumerate(pairwise(entries))
    calling = {
        at for at, (entry, after) in pairs if (after.kind, after.message) == ("call", entry.message)
    }
    spoken = [place for place, entry in enumerate(entries) if entry.answers]
    final = [place for place in spoken if place not in calling]
    # An agent may hand over with a call in the message of its answer, so no answer is without
    # calls.
    last = (final if len(final) >= answers else spoken)[-answers:]
    if len(last) < answers:
        if answers == 1:
            raise UsageError(
                "the conversation has no answer to judge: it needs a model's message with text"
            )
        raise UsageError(
            f"the conversation has fewer than {answers} answers to judge: each needs a model's "
            "message with text"
        )
    if not any(entry.asks for entry in entries[: last[0]]):
        raise UsageError(
            "nothing is asked in the conversation: a user's message must come before the answer"
        )
    return as_text(entries[: last[0]]), [entries[place].text for place in last]


def is_message(value: Any) -> bool:
    """Return whether a value is a message or an item of a conversation in a supported format."""
    if isinstance(value, list | tuple):
        return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES
    if not isinstance(value, Mapping):
        return hasattr(value, "content") and hasattr(value, "additional_kwargs")
    fields = _unwrapped(value)
    if "role" in fields:
        return any(key in fields for key in ("content", "tool_calls", "function_call"))
    return ("content" in fields and "type" in fields) or _is_item(str(fields.get("type")))


def is_conversation(value: Any) -> bool:
    """Return whether a value is a message or a list with one, even one that lacks only its role."""
    if is_message(value):
        return True
    return isinstance(value, list | tuple) and any(
        is_message(message) or (isinstance(message, Mapping) and "content" in message)
        for message in value
    )


def read_conversation(
    value: Any,
    where: str,
    remedy: str = "put it in words, or leave it out",
    media: Media | None = None,
) -> list[Entry]:
    """Read a message, or a list of messages, as a sequence of events.

    Args:
        value: the message or messages.
        where: the name of the value in errors, such as ``outputs``.
        remedy: the advice about a part that cannot be shown.
        media: collects images and files, which the text then names; without it they are refused.

    Raises:
        UsageError: a message without a role, the result of an unknown call, or a part that is not
            text, such as an image; the error names each message and its content.
    """
    alone = is_message(value)
    if not alone and not isinstance(value, list | tuple):
        raise UsageError(f"{where} must be a message or a list of messages, got {shortened(value)}")
    reader = _Reader(media)
    for place, message in enumerate([value] if alone else value):
        reader.read(message, where if alone else f"{where}[{place}]", place)
    if not reader.entries and not reader.unseen:
        raise UsageError(f"{where} is an empty list: a conversation needs at least one message")
    if reader.unseen:
        named = reader.unseen[:_MOST_NAMED]
        more = len(reader.unseen) - _MOST_NAMED
        others = f"; and {more} more" if more > 0 else ""
        raise UsageError(f"{'; '.join(named)}{others}. The judge would not see this: {remedy}")
    return reader.entries


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message; LangChain nests them under ``data`` or ``kwargs``."""
    inner = message.get("kwargs") if "lc" in message else message.get("data")
    return {"type": message.get("type"), **inner} if isinstance(inner, Mapping) else message


def _is_item(kind: str) -> bool:
    """Return whether this is the type of a Responses API item, which has no role."""
    return kind == "reasoning" or kind.endswith(("_call", "_call_output"))


@dataclass
class _Reader:
    """Read messages in order, and track the calls to which results belong.

    Attributes:
        media: images and files so far, by name; ``None`` if they are refused.
        entries: the events so far.
        unseen: the parts that cannot be shown, each with its place.
        calls: the heading of each call, by id or, if calls have none, by the tool's name.
        waiting: the headings of the calls without a result so far, each with the tool's name.
    """

    media: Media | None = None
    entries: list[Entry] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    calls: dict[tuple[str, str], str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def read(self, message: Any, where: str, place: int) -> None:
        """Add the contents of a message."""
        fields = _fields(message, where)
        speaker = fields["role"]
        name = None if speaker == "Tool" else fields.get("name")
        who = f"{speaker} ({_one_line(name)})" if name else speaker
        entries: list[Entry] = []
        for made in filter(
            None, (self._entry(kind, body, who, where) for kind, body in _parts(fields))
        ):
            entry = Entry(made[0], speaker, *made[1:], name, place)
            if entry.kind == "words" and entries and entries[-1].kind == "words":
                entries[-1] = entry._replace(text=entries[-1].text + entry.text)
            else:
                entries.append(entry)
        # Empty words next to a call do not count; a message without contents is an empty speech.
        filled = [entry for entry in entries if entry.kind != "words" or entry.text.strip()]
        self.entries += filled or entries[:1]

    def _entry(
        self, kind: str, body: Mapping[str, Any], who: str, where: str
    ) -> tuple[Kind, str, str] | None:
        """Return kind, heading and text of a part; nothing if it is empty or cannot be shown."""
        text = body.get("refusal" if kind == "refusal" else "text")
        if kind in _TEXTS and isinstance(text, str):
            return "words", who, text
        if kind in _REASONING:
            thought = _thought(body)
            return ("reasoning", f"{who} reasons", thought) if thought else None
        if (medium := _medium(kind)) is None and kind.endswith(_CALLS):
            return ("call", *self._call(kind, body, who))
        if medium is None and kind.endswith(_RESULTS):
            return ("result", *self._result(body, where))
        named = self._named(kind, body, f"{where} holds")
        return ("words", who, named) if named else None

    def _named(self, kind: str, body: Mapping[str, Any], where: str) -> str | None:
        """Store an image or a file and return its name; note why it cannot be shown, if so."""
        medium = _medium(kind)
        fault = ""
        if medium is not None and self.media is not None:
            part = dict(body) if "type" in body else {kind: dict(body)}
            fault = media_fault(part) or (
                f"more than {MOST_MEDIA} of them" * (len(self.media) >= MOST_MEDIA)
            )
            if not fault:
                known = next((name for name, other in self.media.items() if other == part), None)
                name = known or f"[{medium.split()[-1]} {len(self.media) + 1}]"
                self.media[name] = part
                return name
        self.unseen.append(
            f"{where} {medium or 'a part that is not text'} ({kind}){fault and f': {fault}'}"
        )
        return None

    def _call(self, kind: str, called: Mapping[str, Any], who: str) -> tuple[str, str]:
        """Return the heading and the arguments of a call."""
        inside = (called.get(key) for key in ("function", "custom"))
        inner = next((body for body in inside if isinstance(body, Mapping)), called)
        # Inspect's calls have the tool's name as a text.
        if isinstance(function := called.get("function"), str):
            inner = {"name": function, **called}
        given = _first(inner, _ARGUMENTS)
        if "name" not in inner:
            # A provider's own tool, such as a search: show all of it, because its keys are unknown.
            given = {
                key: value for key, value in inner.items() if key not in ("type", "id", "status")
            }
        tool = _one_line(inner.get("name") or kind)
        self.made += 1
        heading = f"{tool} (call {self.made})"
        self.calls["id", str(_first(called, _IDS))] = heading
        self.calls["name", tool] = heading
        self.waiting[heading] = tool
        return f"{who} calls {heading}", _json(given)

    def _result(self, result: Mapping[str, Any], where: str) -> tuple[str, str]:
        """Return the heading and the text of a result; its call must come before it."""
        call = self._call_of(result, where)
        self.waiting.pop(call, None)
        failed = result.get("is_error") or result.get("status") == "error" or result.get("error")
        content = result["content"] if "content" in result else result.get("output")
        # Inspect's results have the error next to the content.
        content = content or result.get("error") or ""
        heading = f"Result of {call}{', an error' if failed else ''}"
        return heading, "\n".join(self._texts(content, where))

    def _call_of(self, result: Mapping[str, Any], where: str) -> str:
        """Return the heading of a result's call: by id, by tool name, or the only open call."""
        id = _first(result, _OF_CALL)
        name = _first(result, ("name", "function"))
        if id is not None:
            if (heading := self.calls.get(("id", str(id)))) is not None:
                return heading
            problem = (
                f"is the result of a tool call that no earlier message makes (it has the id {id!r})"
            )
            raise UsageError(
                f"{where} {problem}: add the message that makes the call, or leave out the result"
            )
        if name is not None:
            tool = _one_line(name)
            open_calls = [heading for heading, of_tool in self.waiting.items() if of_tool == tool]
        else:
            open_calls = [*self.waiting]
        if len(open_calls) == 1:
            return open_calls[0]
        if not open_calls:
            of_tool = f" of {_one_line(name)}" if name is not None else ""
            problem = f"is the result of a tool call{of_tool} that no earlier message makes (it has no id)"
            raise UsageError(
                f"{where} {problem}: add the message that makes the call, or leave out the result"
            )
        problem = f"may be the result of {' or of '.join(open_calls)}: it has no id"
        raise UsageError(f"{where} {problem}; add the call's id as tool_call_id")

    def _texts(self, content: Any, where: str) -> Iterator[str]:
        """Yield the texts in the content of a result; note parts that are not text."""
        for block in content if isinstance(content, list | tuple) else [content]:
            kind, body = _typed(block)
            if kind in _TEXTS and isinstance(body.get("text"), str):
                yield body["text"]
            elif (
                kind == "json"
                or not isinstance(block, Mapping)
                or kind.endswith(("_result", "_error"))
            ):
                yield _json(body.get("json", block))
            elif _medium(kind) or "type" in block:
                yield from filter(
                    None, [self._named(kind, body, f"{where} is a tool's result and holds")]
                )
            else:
                yield _json(block)


def _fields(message: Any, where: str) -> dict[str, Any]:
    """Return the fields of a message, with the speaker under ``role``.

    Raises:
        UsageError: the message has no role, or an unknown one.
    """
    if isinstance(message, list | tuple) and is_message(message):
        return {"role": _ROLES[message[0]], "content": message[1]}
    is_object = not isinstance(message, Mapping)
    if is_object and not is_message(message):
        given = shortened(message)
        raise UsageError(f"{where} is not a message: a message has a role and content, got {given}")
    fields = dict(vars(message) if is_object else _unwrapped(message))
    beside = fields.get("additional_kwargs")
    fields = {**beside, **fields} if isinstance(beside, Mapping) else fields
    kind = str(fields.get("type"))
    if "role" not in fields and kind not in _ROLES and _is_item(kind):
        return {
            "role": "Tool" if kind.endswith("_output") else "AI",
            "content": [message],
            "item": True,
        }
    role = fields.get("role") or fields.get("type")
    if role is None:
        raise UsageError(
            f"{where} has no role: say who speaks, such as {{'role': 'user', 'content': ...}}"
        )
    # A class of LangChain's messages may have any role, such as ``narrator``.
    speaker = _ROLES.get(str(role)) or (_one_line(role) if is_object and "role" in fields else "")
    if not speaker:
        problem = (
            f"is a message of the type {shortened(role)}"
            if is_object
            else f"has the unknown role {shortened(role)}"
        )
        raise UsageError(f"{where} {problem}: use user, assistant, system or tool")
    return {**fields, "role": speaker}


def _parts(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield type and content of each part of a message, in its content or in other fields."""
    thoughts = [
        {"thinking": fields[key]} for key in ("reasoning_content", "reasoning") if fields.get(key)
    ]
    yield from (("thinking", thought) for thought in thoughts[:1])
    in_content: set[str] = set()
    if fields["role"] == "Tool" and not fields.get("item"):
        yield "tool_result", fields
    else:
        content = fields.get("content")
        for block in ([*content] or [None]) if isinstance(content, list | tuple) else [content]:
            kind, body = _typed(block)
            in_content.add(str(_first(body, _IDS)))
            yield kind, body
    if isinstance(fields.get("refusal"), str):
        yield "refusal", fields
    if retrieved := fields.get("retrieval_context"):
        yield "text", {"text": f"\nRetrieved: {_json(retrieved)}"}
    # deepeval's turns contain calls together with their results.
    for called in fields.get("tools_called") or ():
        yield "tool_call", called
        if called.get("output") is not None:
            yield "tool_result", called
    yield from ((key, {}) for key in ("audio", "images") if fields.get(key))
    for key in ("tool_calls", "invalid_tool_calls", "function_call"):
        given = fields.get(key) or []
        for called in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(called, Mapping):
                yield key, {}
            # Anthropic's content repeats the calls that LangChain's message lists.
            elif (id := _first(called, _IDS)) is None or str(id) not in in_content:
                yield "tool_call", called


def _typed(block: Any) -> tuple[str, Mapping[str, Any]]:
    """Return type and fields of a content block; Bedrock's have one key instead of a type."""
    if isinstance(block, str) or block is None:
        return "text", {"text": block or ""}
    if not isinstance(block, Mapping):
        return type(block).__name__, {}
    if isinstance(block.get("type"), str):
        return block["type"], block
    kind = str(next(iter(block), "empty"))
    inner = block.get(kind)
    return kind, inner if isinstance(inner, Mapping) and kind != "json" else block


def _thought(value: Any) -> str:
    """Return the text of a model's reasoning; empty if the provider does not show it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_thought, value)))
    if not isinstance(value, Mapping):
        return ""
    keys = ("thinking", "reasoning", "text", "summary", "content")
    return next(filter(None, (_thought(value.get(key)) for key in keys)), "")


def _medium(kind: str) -> str | None:
    """Return the kind of a part that is not text, else None; searching files is a tool."""
    kind = kind.removeprefix("file_search")
    return next((named for word, named in _MEDIA.items() if word in kind.casefold()), None)


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _json(value: Any) -> str:
    """Return a value as JSON; text that is JSON is reformatted, other text stays unchanged."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _one_line(name: Any) -> str:
    return " ".join(str(name).split())
