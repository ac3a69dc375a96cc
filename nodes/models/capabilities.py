"""Know the reply formats, schema bounds, length limits and cache marks of chat models.

This cannot be fully known in advance: it depends on the model, the server and its version, and on
whether the model reasons. So the first request for JSON uses the strictest form of the client with
all bounds. Each refusal (``provider_errors.py``) leads to the next form or to fewer bounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from ...state.settings import REPLY_LIMITS
from ..common.delimiters import section_ends
from .providers import (
    PROVIDERS,
    REASONING_MODELS,
    Bounds,
    JsonSchema,
    Marks,
    Options,
    client_of,
    is_of_openai,
    is_on_compatible_server,
    speaks_chat_completions,
)

SEVERAL = "n"
LOGPROBS = "logprobs"
"""Parameters that request several replies, or the likely tokens at each position of a reply."""

CHOICES = "choices"
"""A parameter with the whole numbers that a plain-text reply may consist of, for models that can be
restricted to them."""

TOOLS = "tools"
"""A parameter with the tools that the model may call before its answer, as OpenAI describes them;
every client converts them."""

LIMIT = "max_tokens"
REASONING = "reasoning"
"""The reply length limit was raised; followed by the reason and the multiple of the default
(``reasoning:2``)."""

ROOMS = (1, 2, 4)
"""Multiples of the default limit to try in turn if a model spends the limit on reasoning."""

STRUCTURE = "response_format"
BOUNDS = "bounds"
SYSTEM = "system"
CACHE = "cache_control"
"""Names for the features that a provider may refuse: parameters that ask for JSON, under any of
their names, bounds of numbers and texts in a schema, the system role, marks for a prompt cache.

The first two may be followed by the alternative: ``response_format:tool``, ``bounds:lists``.
"""

Form = Literal["schema", "tool", "json", "text"]
"""A JSON schema that the provider enforces; a required tool call with it; any JSON object; plain
text."""
FORMS: tuple[Form, ...] = get_args(Form)

FORM_WORDS: Mapping[Form, str] = {
    "schema": "JSON by a schema",
    "tool": "the arguments of a tool",
    "json": "a JSON object",
    "text": "text",
}
"""The forms as a warning names them."""

BOUNDS_KEPT: tuple[Bounds, ...] = get_args(Bounds)

Schema = Mapping[str, Any]
Messages = Sequence[BaseMessage]
Asked = Runnable[Any, BaseMessage]
"""A chat model with everything that is bound to it."""


def _json_options(chat: BaseChatModel, options: Mapping[str, Any]) -> Options:
    """Return the parameters that ask for JSON as they are bound to a chat model."""
    own = deepcopy({**options})
    if not speaks_chat_completions(chat):
        return own
    # In ``extra_body``, because the client parses the reply to a ``response_format`` and loses a
    # reply that was cut off. The caller's own entries stay.
    return {"extra_body": {**(getattr(chat, "extra_body", None) or {}), **own}}


def _by_schema(chat: BaseChatModel, schema: Schema) -> Options | None:
    """Return the parameters that ask for JSON by a schema, or None if the client has none."""
    client = client_of(type(chat))
    if client.json_schema is None:
        return None
    return _json_options(chat, client.json_schema(JsonSchema(schema, _model_name(chat))))


def _model_name(chat: BaseChatModel) -> str:
    return str(getattr(chat, "model_name", ""))


# Forms


def forms_of(chat: BaseChatModel) -> Iterator[Form]:
    """Yield the forms that a client has, strictest first; plain text comes last."""
    kind = type(chat)
    client = client_of(type(chat))
    own = kind.with_structured_output is not BaseChatModel.with_structured_output
    if (own or client.json_schema) and not client.without_schemas(_model_name(chat)):
        yield "schema"
    if kind.bind_tools is not BaseChatModel.bind_tools:
        yield "tool"
    if client.json_object:
        yield "json"
    yield "text"


def calls_tools(chat: BaseChatModel) -> bool:
    """Return whether a client can offer tools, and its model is not known to refuse them."""
    can_offer = type(chat).bind_tools is not BaseChatModel.bind_tools
    return can_offer and (chat.profile or {}).get("tool_calling") is not False


def asked_in_form(chat: BaseChatModel, schema: Schema, form: Form, bounds: Bounds = "all") -> Asked:
    """Return the runnable that asks for a reply in a form and returns the whole message.

    LangChain's ``with_structured_output`` loses replies that were cut off with some clients, and
    text replies to tool requests with others. It is used only for clients unknown to this package.
    """
    client = client_of(type(chat))
    schema = with_bounds(schema, bounds)
    if form == "tool":
        choice = client.tool_choice(chat, schema["title"])
        tool = with_bounds(schema, client.tool_bounds)
        return chat.bind_tools([tool], **({} if choice is None else {"tool_choice": choice}))
    if form == "json" and client.json_object:
        return chat.bind(**_json_options(chat, client.json_object))
    if form == "schema":
        options = _by_schema(chat, schema)
        if options is not None and not client.without_schemas(_model_name(chat)):
            return chat.bind(**options)
        whole: Runnable[Any, Any] = chat.with_structured_output(dict(schema), include_raw=True)
        return whole | itemgetter("raw")
    return chat


def choice_options(chat: BaseChatModel, numbers: Sequence[int]) -> Options:
    """Return the parameters that restrict a reply to given whole numbers; empty if unsupported.

    Servers of open models accept any schema and keep the probabilities of the first token.
    """
    # Most providers accept only schemas of objects.
    if not (is_on_compatible_server(chat) or client_of(type(chat)).any_schema):
        return {}
    return _by_schema(chat, {"type": "integer", "enum": [*numbers]}) or {}


def adapted(
    messages: Messages, schema: Schema | None, form: Form, *, folded: bool
) -> list[BaseMessage]:
    """Return the messages as the model takes them.

    Args:
        messages: the conversation.
        schema: the schema of a JSON reply; the last message describes its fields if the form of the
            request does not contain them.
        form: the form of the reply.
        folded: whether to put the system message at the start of the user's message.
    """
    sent = list(messages)
    if folded and len(sent) > 1 and isinstance(sent[0], SystemMessage):
        sent[:2] = [with_text(sent[1], f"{sent[0].text}\n\n{sent[1].text}")]
    if schema is not None and form in ("json", "text"):
        sent[-1] = with_text(sent[-1], f"{sent[-1].text}\n\n{described(schema)}")
    return sent


def text_block(text: str) -> dict[str, Any]:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def with_text(message: BaseMessage, text: str) -> BaseMessage:
    """Return a message with another text and the same attachments."""
    content = [*attached(message), text_block(text)] if isinstance(message.content, list) else text
    return message.model_copy(update={"content": content})


def attached(message: BaseMessage) -> Iterator[dict[str, Any]]:
    """Yield the attachments of a message."""
    blocks = message.content if isinstance(message.content, list) else ()
    return (block for block in blocks if isinstance(block, dict) and block.get("type") != "text")


def described(schema: Schema) -> str:
    """Return a description of a schema for the prompt.

    >>> described({"properties": {"score": {"type": "number", "description": "From 1 to 5."}}})
    'Answer with one JSON object and nothing else. It has these fields, in this order: "score" (number; From 1 to 5.)'
    """
    fields = []
    for name, about in schema["properties"].items():
        kind = str(about.get("type", "any"))
        if kind == "string" and "enum" in about:
            kind = " or ".join(map(json.dumps, about["enum"]))
        fields.append(f'"{name}" ({"; ".join(filter(None, (kind, about.get("description"))))})')
    return f"Answer with one JSON object and nothing else. It has these fields, in this order: {', '.join(fields)}"


# Bounds

_RANGES = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
    }
)
"""Bounds of the numbers, texts and lists in a schema."""


def bounds_of(chat: BaseChatModel) -> Bounds:
    """Return the bounds that a provider accepts; all if nothing is known."""
    # On other servers, clients of the same class take more.
    return "lists" if is_of_openai(chat) else client_of(type(chat)).bounds


def with_bounds(schema: Schema, bounds: Bounds) -> dict[str, Any]:
    """Return a schema with at most these bounds of its fields; several providers refuse some.

    >>> field = {"type": "integer", "enum": [1, 2], "maximum": 2}
    >>> [with_bounds({"properties": {"score": field}}, kept)["properties"]["score"] for kept in ("lists", "none")]
    [{'type': 'integer', 'enum': [1, 2]}, {'type': 'integer'}]
    """
    dropped = {"all": set[str](), "lists": _RANGES, "none": {*_RANGES, "enum"}}[bounds]
    fields = {name: _without(about, dropped) for name, about in schema["properties"].items()}
    return {**schema, "properties": fields}


def _without(about: Schema, dropped: Collection[str]) -> dict[str, Any]:
    # A list of texts limits the answers and is accepted everywhere.
    refused = {*dropped} - ({"enum"} if about.get("type") == "string" else set())
    kept = {key: value for key, value in about.items() if key not in refused}
    return {**kept, "items": _without(kept["items"], dropped)} if "items" in kept else kept


def eased_bounds(schema: Schema, sent: Bounds) -> Bounds | None:
    """Return the bounds to send after these were refused; None if none are left to remove."""
    refused = with_bounds(schema, sent)
    later = BOUNDS_KEPT[BOUNDS_KEPT.index(sent) + 1 :]
    return next((kept for kept in later if with_bounds(schema, kept) != refused), None)


# Parameters


_OTHER_NAMES = {"max_tokens": ("max_output_tokens", "num_predict"), "seed": ("random_seed",)}
"""The parameter names of classes that do not use ours."""


def field_of(parameter: str, names: Iterable[str]) -> str | None:
    """Return a class's name of a common parameter, or None if these fields do not include it."""
    known = set(names)
    return next(
        (name for name in (parameter, *_OTHER_NAMES.get(parameter, ())) if name in known), None
    )


# The default length of a reply. Most providers count reasoning tokens into the limit, so a limit
# that is generous for the text of a debate could end the reply before its first word.


def default_limits() -> str:
    """Return the default limits in words.

    >>> default_limits()
    '2,048 tokens (steps, vote: 1,024)'
    """
    others = sorted(form for form in REPLY_LIMITS if form != "*")
    return f"{REPLY_LIMITS['*']:,} tokens ({', '.join(others)}: {REPLY_LIMITS[others[0]]:,})"


def is_limited_by_default(identity: Mapping[str, Any]) -> bool:
    """Return whether the default limit applies: no limit is set and the model does not reason.

    Args:
        identity: its name and parameters.

    >>> is_limited_by_default({"name": "openai:gpt-4o-mini", "temperature": 0})
    True
    >>> is_limited_by_default({"name": "openai:gpt-4o-mini", "max_tokens": 500})
    False
    >>> is_limited_by_default({"name": "openai:gpt-5-mini"}), is_limited_by_default({"name": "ollama:qwen3:8b"})
    (False, False)
    >>> is_limited_by_default({"name": "google_genai:gemini-2.5-flash", "thinking_budget": 0})
    True
    """
    name = str(identity["name"])
    parameters = dict(_inside(identity))
    if name == "offline" or _LIMITS & parameters.keys():
        return False
    switches = [value not in _OFF for name, value in parameters.items() if _SWITCH.search(name)]
    return not (any(switches) if switches else _REASONS.search(name.lower()))


def _inside(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all parameters with their names, at any depth.

    An object with a ``type`` is represented by it.
    """
    for name, value in parameters.items():
        yield str(name), (value.get("type", bool(value)) if isinstance(value, Mapping) else value)
        if isinstance(value, Mapping):
            yield from _inside(value)


_LIMITS = frozenset(
    {
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "num_predict",
        "maxTokens",
        "maxOutputTokens",
        "max_tokens_to_sample",
        "max_length",
    }
)
"""The names of classes and servers for a limit of a reply's length."""

_SWITCH = re.compile(r"think|reasoning|budget_tokens", re.IGNORECASE)
"""Finds parameters that turn reasoning on or off."""
_OFF = (None, False, 0, "none", "off", "disabled", "false")

_REASONS = re.compile(
    rf"""
      {REASONING_MODELS}
    | think   # kimi-thinking, qwen3-...-thinking
    | reason  # phi-4-reasoning
    """,
    re.VERBOSE,
)
"""Matches names of models that reason by default; other models are recognized by their replies."""


# Marks for a prompt cache. Anthropic caches the text before a mark for five minutes, at 1.25 times
# the price, and reads it at a tenth of the price. A request may have four marks. A mark finds an
# earlier entry if that ended with the same block, or with one of the 20 blocks before; so each turn
# of a discussion is a block of its own. Text below a model's minimum length (1,024 to 4,096 tokens)
# is neither cached nor charged for.


def marks_of(chat: BaseChatModel) -> Marks | None:
    """Return how to mark the end of a repeated beginning; None if the model has no marks."""
    return next(filter(None, (provider.cache_marks(chat) for provider in PROVIDERS)), None)


def with_marks(
    messages: Messages, prompt: str, ends: Sequence[int], marks: Marks
) -> list[BaseMessage]:
    """Return the messages with the user's first one in blocks and a mark after each repeated part.

    Args:
        messages: the conversation to send.
        prompt: the user's first message before anything was added around it.
        ends: the ends of the repeated parts in ``prompt``.
        marks: the format of a mark.
    """
    sent = list(messages)
    at = next(place for place, message in enumerate(sent) if isinstance(message, HumanMessage))
    text = sent[at].text
    first, *others = (end + text.index(prompt) for end in sorted({*ends}))
    # The first part never changes. The turns after it grow from call to call.
    grown = {end for end in section_ends(text) if others and first < end < others[-1]}
    content: list[str | dict[str, Any]] = [*attached(sent[at])]
    for start, end in pairwise(sorted({0, first, *others, *grown, len(text)})):
        block = text_block(text[start:end])
        content.append(block)
        if end in (first, *others) and marks == "cache_control":
            block["cache_control"] = {"type": "ephemeral"}
        elif end in (first, *others):
            content.append({"cachePoint": {"type": "default"}})
    sent[at] = sent[at].model_copy(update={"content": content})
    return sent
