"""Read a conversation in any usual form, and show it as one text: who said what, who called which tool, what came back.

Read are LangChain's messages and their dicts, OpenAI's messages, the items of its Responses API, and the content blocks
of Anthropic, Bedrock and LangChain. Images and files are named in the text and kept beside it; what can neither be put
in words nor be sent along is refused by name: nothing is judged without it.
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
from .word_files import words_beside

_WORDS: dict[str, dict[str, str]] = words_beside(__file__)
_ROLES = {role: speaker for speaker, roles in _WORDS["speakers"].items() for role in roles.split()}
_TEXTS, _REASONING, _CALLS, _RESULTS = (tuple(words.split()) for words in _WORDS["types"].values())
_ARGUMENTS, _OF_CALL, _IDS = (tuple(words.split()) for words in _WORDS["keys"].values())
_MOST_NAMED = 5


Kind = Literal["words", "reasoning", "call", "result"]


class Entry(NamedTuple):
    """Hold one thing that happened in a conversation; a message may hold several.

    Attributes:
        kind: what it is.
        speaker: ``Human``, ``AI``, ``System``, ``Tool``, or the role of a message of LangChain that has another.
        heading: what stands before the text, such as ``AI calls search (call 1)``.
        text: the words, the arguments of the call, or its result.
        name: the name of who speaks, where the message has one.
        message: the place of the message, from 0.
    """

    kind: Kind
    speaker: str
    heading: str
    text: str
    name: str | None
    message: int

    @property
    def answers(self) -> bool:
        """Whether this is what a model says to a person."""
        return self.kind == "words" and self.speaker == "AI" and bool(self.text.strip())

    @property
    def asks(self) -> bool:
        """Whether this is what is said to the model by a person, or by another agent."""
        return self.kind == "words" and self.speaker not in ("AI", "System")


def as_text(entries: Sequence[Entry]) -> str:
    r"""Return a conversation as one text; words that stand alone, without the name of who speaks.

    The further lines of an entry are indented, so that no text in it can pass for the heading of another entry.

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
    lines = [f"{entry.heading}: {'  '.join(entry.text.splitlines(keepends=True))}" for entry in entries]
    return "\n".join(lines)


def asked_and_answered(entries: Sequence[Entry]) -> tuple[str, str]:
    """Split a conversation into what was asked and what is judged, each as one text.

    What is judged is the last answer; where tools were called since a person last spoke, it is all that the agent did
    and said since.

    Raises:
        UsageError: nothing is answered in it, or nothing is asked.
    """
    asked = max((place for place, entry in enumerate(entries) if entry.asks), default=-1)
    turn = entries[asked + 1 :]
    if asked >= 0 and any(entry.kind == "call" for entry in turn):
        return as_text(entries[: asked + 1]), as_text(turn)
    before, (answer,) = before_last_answers(entries)
    return before, answer


def before_last_answers(entries: Sequence[Entry], answers: int = 1) -> tuple[str, list[str]]:
    """Split an agent's conversation into all that came before its last answers, as one text, and these.

    An answer is what a model says and does not follow with the call of a tool, if there is such a one; how a model
    reasoned is left out.

    Raises:
        UsageError: it has too few answers, or nothing is asked before them.
    """
    entries = [entry for entry in entries if entry.kind != "reasoning"]
    pairs = enumerate(pairwise(entries))
    calling = {at for at, (entry, after) in pairs if (after.kind, after.message) == ("call", entry.message)}
    spoken = [place for place, entry in enumerate(entries) if entry.answers]
    final = [place for place in spoken if place not in calling]
    # Whoever hands over in the message of its answer has given none without a call.
    last = (final if len(final) >= answers else spoken)[-answers:]
    if len(last) < answers:
        wanted = "no answer" if answers == 1 else f"fewer than {answers} answers"
        raise UsageError(f"the conversation has {wanted} to judge: it needs a model's message with text")
    if not any(entry.asks for entry in entries[: last[0]]):
        raise UsageError("nothing is asked in the conversation: a user's message must come before the answer")
    return as_text(entries[: last[0]]), [entries[place].text for place in last]


def is_message(value: Any) -> bool:
    """Whether a value is one message, or one item of a conversation, in any of the forms that are read."""
    if isinstance(value, list | tuple):
        return len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES
    if not isinstance(value, Mapping):
        return hasattr(value, "content") and hasattr(value, "additional_kwargs")
    fields = _unwrapped(value)
    if "role" in fields:
        return any(key in fields for key in ("content", "tool_calls", "function_call"))
    return ("content" in fields and "type" in fields) or _is_item(str(fields.get("type")))


def is_conversation(value: Any) -> bool:
    """Whether a value is a message, or a list with one in it or with what lacks but a role."""
    if is_message(value):
        return True
    return isinstance(value, list | tuple) and any(
        is_message(message) or (isinstance(message, Mapping) and "content" in message) for message in value
    )


def read_conversation(
    value: Any, where: str, remedy: str = "put it in words, or leave it out", media: Media | None = None
) -> list[Entry]:
    """Read a message, or a list of messages, as what happened in it, in order.

    Args:
        value: the message or messages.
        where: the name that errors have for the value, such as ``outputs``.
        remedy: what to do about a part that cannot be shown.
        media: takes up images and files, which the text then names; without it they are refused.

    Raises:
        UsageError: a message without a role, the result of a call that nobody made, or a part that is no text, such as
            an image; names each message and what it holds.
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
        named, more = reader.unseen[:_MOST_NAMED], len(reader.unseen) - _MOST_NAMED
        others = f"; and {more} more" if more > 0 else ""
        raise UsageError(f"{'; '.join(named)}{others}. The judge would not see this: {remedy}")
    return reader.entries


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message: LangChain puts them under ``data`` or, serialised, under ``kwargs``."""
    inner = message.get("kwargs") if "lc" in message else message.get("data")
    return {"type": message.get("type"), **inner} if isinstance(inner, Mapping) else message


def _is_item(kind: str) -> bool:
    """Whether a dict of this type is an item of OpenAI's Responses API, which has no role."""
    return kind == "reasoning" or kind.endswith(("_call", "_call_output"))


@dataclass
class _Reader:
    """Read messages one after another; knows the calls so far, to which results belong.

    Attributes:
        media: images and files so far, by name; ``None`` where they are refused.
        entries: what happened.
        unseen: what cannot be shown, each with its place.
        calls: the heading of each call, by id or, where calls have none, by the tool's name.
    """

    media: Media | None = None
    entries: list[Entry] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    calls: dict[tuple[str, str], str] = field(default_factory=dict)
    made: int = 0

    def read(self, message: Any, where: str, place: int) -> None:
        """Add what a message holds."""
        fields = _fields(message, where)
        speaker = fields["role"]
        name = None if speaker == "Tool" else fields.get("name")
        who = f"{speaker} ({_one_line(name)})" if name else speaker
        entries: list[Entry] = []
        for made in filter(None, (self._entry(kind, body, who, where) for kind, body in _parts(fields))):
            entry = Entry(made[0], speaker, *made[1:], name, place)
            if entry.kind == "words" and entries and entries[-1].kind == "words":
                entries[-1] = entry._replace(text=entries[-1].text + entry.text)
            else:
                entries.append(entry)
        # Empty words beside a call are none; a message with nothing in it is one that says nothing.
        filled = [entry for entry in entries if entry.kind != "words" or entry.text.strip()]
        self.entries += filled or entries[:1]

    def _entry(
        self, kind: str, body: Mapping[str, Any], who: str, where: str
    ) -> tuple[Kind, str, str] | None:
        """Return kind, heading and text of a part of a message; nothing if it has none, or cannot be shown."""
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
        """Keep an image or a file and return the name that the text has for it; note why it cannot be shown."""
        medium, fault = _medium(kind), ""
        if medium is not None and self.media is not None:
            part = dict(body) if "type" in body else {kind: dict(body)}
            fault = media_fault(part) or (f"more than {MOST_MEDIA} of them" * (len(self.media) >= MOST_MEDIA))
            if not fault:
                known = next((name for name, other in self.media.items() if other == part), None)
                name = known or f"[{medium.split()[-1]} {len(self.media) + 1}]"
                self.media[name] = part
                return name
        self.unseen.append(f"{where} {medium or 'a part that is not text'} ({kind}){fault and f': {fault}'}")
        return None

    def _call(self, kind: str, called: Mapping[str, Any], who: str) -> tuple[str, str]:
        """Return the heading and the arguments of a call."""
        inside = (called.get(key) for key in ("function", "custom"))
        inner = next((body for body in inside if isinstance(body, Mapping)), called)
        given = _first(inner, _ARGUMENTS)
        if "name" not in inner:
            # A provider's own tool, such as a search: all of it is shown, since its keys are the provider's.
            given = {key: value for key, value in inner.items() if key not in ("type", "id", "status")}
        tool = _one_line(inner.get("name") or kind)
        self.made += 1
        self.calls["id", str(_first(called, _IDS))] = self.calls["name", tool] = f"{tool} (call {self.made})"
        return f"{who} calls {self.calls['name', tool]}", _json(given)

    def _result(self, result: Mapping[str, Any], where: str) -> tuple[str, str]:
        """Return the heading and the text of a result, which must be that of a call made before."""
        id = _first(result, _OF_CALL)
        key = ("name", _one_line(result.get("name"))) if id is None else ("id", str(id))
        if key not in self.calls:
            named = f"the id {id!r}" if id is not None else "no id"
            problem = f"is the result of a tool call that no earlier message makes (it has {named})"
            remedy = "add the message that makes the call, or leave out the result"
            raise UsageError(f"{where} {problem}: {remedy}")
        failed = result.get("is_error") or result.get("status") == "error"
        content = result["content"] if "content" in result else result.get("output")
        heading = f"Result of {self.calls[key]}{', an error' if failed else ''}"
        return heading, "\n".join(self._texts(content, where))

    def _texts(self, content: Any, where: str) -> Iterator[str]:
        """Yield the texts in the content of a result; what is no text is noted."""
        for block in content if isinstance(content, list | tuple) else [content]:
            kind, body = _typed(block)
            if kind in _TEXTS and isinstance(body.get("text"), str):
                yield body["text"]
            elif kind == "json" or not isinstance(block, Mapping) or kind.endswith(("_result", "_error")):
                yield _json(body.get("json", block))
            elif _medium(kind) or "type" in block:
                yield from filter(None, [self._named(kind, body, f"{where} is a tool's result and holds")])
            else:
                yield _json(block)


def _fields(message: Any, where: str) -> dict[str, Any]:
    """Return the fields of a message, with the speaker under ``role``.

    Raises:
        UsageError: it has no role, or one that is not known.
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
        return {"role": "Tool" if kind.endswith("_output") else "AI", "content": [message], "item": True}
    role = fields.get("role") or fields.get("type")
    if role is None:
        raise UsageError(f"{where} has no role: say who speaks, such as {{'role': 'user', 'content': ...}}")
    # LangChain has a class of messages that may have any role, such as ``narrator``.
    speaker = _ROLES.get(str(role)) or (_one_line(role) if is_object and "role" in fields else "")
    if not speaker:
        known_by = "is a message of the type" if is_object else "has the unknown role"
        raise UsageError(f"{where} {known_by} {shortened(role)}: use user, assistant, system or tool")
    return {**fields, "role": speaker}


def _parts(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the type and the content of each part of a message: the blocks of its content, and what stands beside."""
    thoughts = [{"thinking": fields[key]} for key in ("reasoning_content", "reasoning") if fields.get(key)]
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
    yield from ((key, {}) for key in ("audio", "images") if fields.get(key))
    for key in ("tool_calls", "invalid_tool_calls", "function_call"):
        given = fields.get(key) or []
        for called in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(called, Mapping):
                yield key, {}
            # Anthropic's content repeats the calls of which LangChain's message has a list.
            elif (id := _first(called, _IDS)) is None or str(id) not in in_content:
                yield "tool_call", called


def _typed(block: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a content block, and what it holds; Bedrock's have none, and one key that says it."""
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
    """Return the words of a model's reasoning; nothing where a provider keeps them to itself."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(_thought, value)))
    if not isinstance(value, Mapping):
        return ""
    keys = ("thinking", "reasoning", "text", "summary", "content")
    return next(filter(None, (_thought(value.get(key)) for key in keys)), "")


def _medium(kind: str) -> str | None:
    """Return what a part of this type is, where it is no text; the search in files is a tool."""
    kind = kind.removeprefix("file_search")
    return next((named for word, named in _WORDS["media"].items() if word in kind.casefold()), None)


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _json(value: Any) -> str:
    """Return a value as JSON; a text that holds JSON is written the same way, any other stays as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _one_line(name: Any) -> str:
    return " ".join(str(name).split())
