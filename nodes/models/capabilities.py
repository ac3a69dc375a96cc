"""Say what chat models take, by their clients and names: forms of replies, bounds, limits, marks for a prompt cache.

What a provider takes cannot wholly be known beforehand: it depends on the model, the server and its version, and on
whether the model reasons. So JSON is asked for in the first form that the client has, with all bounds that it may
take, and each refusal (``provider_errors.py``) leads to the next form or to fewer bounds.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from ...state.settings import REPLY_LIMITS
from ..delimiters import section_ends
from .provider_words import WORDS, any_of

SEVERAL, LOGPROBS = "n", "logprobs"
"""Parameters that ask for several replies to one request, and for the likely tokens in each place of a reply."""

CHOICES = "choices"
"""A parameter with the whole numbers one of which a reply in plain text is to be; for models that can be held to it."""

LIMIT, REASONING = "max_tokens", "reasoning"
"""The limit of a reply's length, and why it was raised, with how many times the default it became (``reasoning:2``)."""

ROOMS = (1, 2, 4)
"""So many times the default limit a reply may have, one after the other, where its model spends it on reasoning."""

STRUCTURE, BOUNDS, SYSTEM, CACHE = "response_format", "bounds", "system", "cache_control"
"""The first stands for all that asks for JSON, under whatever name the provider knows it; the others for the bounds of
numbers and texts in a schema, for that role, and for the marks of a prompt cache.

What is to be asked for instead may follow the first and the second: ``response_format:tool``, ``bounds:lists``.
"""

Form = Literal["schema", "tool", "json", "text"]
"""A JSON schema that the provider holds the reply to; a tool that must be called with it; any JSON object; words."""
FORMS: tuple[Form, ...] = get_args(Form)

FORM_WORDS: Mapping[Form, str] = WORDS["forms"]
"""What is asked for, in a warning's words."""

Bounds = Literal["all", "lists", "none"]
"""Which bounds of a schema's fields are sent: all, lists of values (``enum``) alone, or lists of texts alone."""
BOUNDS_KEPT: tuple[Bounds, ...] = get_args(Bounds)

Marks = Literal["cache_control", "cachePoint"]
"""How the end of a repeated beginning is marked: by a field of a block, or by a block behind it."""

Schema = Mapping[str, Any]
Options = dict[str, Any]
Messages = Sequence[BaseMessage]
Asked = Runnable[Any, BaseMessage]
"""What a call is made of: a chat model, with all that is bound to it."""


@cache
def _base_names(kind: type) -> frozenset[str]:
    # Asked several times with every call.
    return frozenset(base.__name__ for base in kind.__mro__)


def is_a(chat: BaseChatModel, name: str) -> bool:
    """Tell whether a chat model has a base class of this name; so no provider's package needs to be imported."""
    return name in _base_names(type(chat))


class _Client(NamedTuple):
    """Say what a client's class takes (``clients`` in ``provider_words.toml``).

    Attributes:
        by_schema: the parameters that ask for JSON by a schema.
        any_json: those that ask for any JSON object.
        bounds: the bounds that a schema may have, as far as is known.
        tool_bounds: those that a tool's may have.
    """

    by_schema: Options | None = None
    any_json: Options | None = None
    bounds: Bounds = "all"
    tool_bounds: Bounds = "all"


_CLIENTS = {name: _Client(**facts) for name, facts in WORDS["clients"].items()}
"""From a class's name to what is known of it; all that derive from it are like it."""


@cache
def _client_of(kind: type) -> _Client:
    return next((facts for name, facts in _CLIENTS.items() if name in _base_names(kind)), _Client())


def _json_options(chat: BaseChatModel, template: Options, schema: Schema) -> Options:
    """Return the parameters that ask for JSON of a template in the table that names the schema."""
    strict = "gpt-oss" in str(getattr(chat, "model_name", ""))
    meant = {"$schema": schema, "$text": json.dumps(schema), "$strict": strict}
    options: Options = _filled(template, {**meant, "$title": schema.get("title", "rating")})
    if not speaks_chat_completions(chat):
        return options
    # In ``extra_body``, since on a ``response_format`` the client acts itself: it parses the reply, and loses one that
    # was cut off. What the caller has put there stays.
    return {"extra_body": {**(getattr(chat, "extra_body", None) or {}), **options}}


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, dict):
        return {name: _filled(inner, values) for name, inner in template.items()}
    return values.get(template, template)


def _tool_choice(chat: Any, title: str) -> str | None:
    """Return the word by which the only tool, of this name, must be called; None where there is none."""
    if is_a(chat, "ChatBedrockConverse"):
        allowed = chat.supports_tool_choice_values or ()
        return next((way for way in ("any", "auto") if way in allowed), None)
    # Mistral's client has no word for a certain tool: with one alone, any is the same.
    return "any" if is_a(chat, "ChatMistralAI") else title


# Forms


def forms_of(chat: BaseChatModel) -> Iterator[Form]:
    """Yield the forms that a client has, strictest first; plain text is the last of all."""
    kind, facts = type(chat), _client_of(type(chat))
    own = kind.with_structured_output is not BaseChatModel.with_structured_output
    if (own or facts.by_schema) and not _is_before_schemas(chat):
        yield "schema"
    if kind.bind_tools is not BaseChatModel.bind_tools:
        yield "tool"
    if facts.any_json:
        yield "json"
    yield "text"


def _is_before_schemas(chat: BaseChatModel) -> bool:
    """Tell whether a model (``gpt-3.5-turbo``, ``gpt-4``, ``gpt-4-turbo``) is older than schemas as reply format."""
    # They know functions.
    name = str(getattr(chat, "model_name", "")) if is_a(chat, "BaseChatOpenAI") else ""
    return name.startswith(("gpt-3", "gpt-4-")) or name == "gpt-4"


def asked_in_form(chat: BaseChatModel, schema: Schema, form: Form, bounds: Bounds = "all") -> Asked:
    """Return the runnable that asks for a reply in a form; its reply is the whole message, however it ended.

    LangChain's ``with_structured_output`` loses a reply that was cut off with some clients, and one in words where a
    tool was wanted with others; it is used for clients alone that are not known here.
    """
    facts, schema = _client_of(type(chat)), with_bounds(schema, bounds)
    if form == "tool":
        choice = _tool_choice(chat, schema["title"])
        tool = with_bounds(schema, facts.tool_bounds)
        return chat.bind_tools([tool], **({} if choice is None else {"tool_choice": choice}))
    if form == "json" and facts.any_json:
        return chat.bind(**_json_options(chat, facts.any_json, schema))
    if form == "schema":
        if facts.by_schema and not _is_before_schemas(chat):
            return chat.bind(**_json_options(chat, facts.by_schema, schema))
        whole: Runnable[Any, Any] = chat.with_structured_output(dict(schema), include_raw=True)
        return whole | itemgetter("raw")
    return chat


def choice_options(chat: BaseChatModel, numbers: Sequence[int]) -> Options:
    """Return what holds a reply to one of some whole numbers and nothing else; empty where there is no such thing.

    Servers of open models take any schema, of which the reply's first token and its probabilities stay the same.
    """
    # OpenAI and most other providers take schemas of objects alone.
    of_server = is_a(chat, "ChatOpenAI") and speaks_chat_completions(chat) and not _is_of_openai(chat)
    by_schema = _client_of(type(chat)).by_schema
    if by_schema is None or not (of_server or is_a(chat, "ChatOllama")):
        return {}
    return _json_options(chat, by_schema, {"type": "integer", "enum": [*numbers]})


def adapted(messages: Messages, schema: Schema | None, form: Form, *, folded: bool) -> list[BaseMessage]:
    """Return the messages as the model takes them.

    Args:
        messages: the conversation.
        schema: of the reply, where it is to be JSON; its fields are described in the last message if the form of the
            request says nothing of them.
        form: in which the reply is asked for.
        folded: whether the system message is put at the head of the user's.
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
    """Return a message with another text, and all that is attached to it."""
    content = [*attached(message), text_block(text)] if isinstance(message.content, list) else text
    return message.model_copy(update={"content": content})


def attached(message: BaseMessage) -> Iterator[dict[str, Any]]:
    """Yield what is attached to a message."""
    blocks = message.content if isinstance(message.content, list) else ()
    return (block for block in blocks if isinstance(block, dict) and block.get("type") != "text")


def described(schema: Schema) -> str:
    """Return in words what a schema asks for.

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

_RANGES = {*WORDS["schemas"]["ranges"].split()}


def bounds_of(chat: BaseChatModel) -> Bounds:
    """Return the bounds that a provider is known to take; where nothing is known, all are tried."""
    return "lists" if _is_of_openai(chat) else _client_of(type(chat)).bounds


def with_bounds(schema: Schema, bounds: Bounds) -> dict[str, Any]:
    """Return a schema with no more bounds of its fields than these; several providers refuse some.

    >>> field = {"type": "integer", "enum": [1, 2], "maximum": 2}
    >>> [with_bounds({"properties": {"score": field}}, kept)["properties"]["score"] for kept in ("lists", "none")]
    [{'type': 'integer', 'enum': [1, 2]}, {'type': 'integer'}]
    """
    dropped = {"all": set[str](), "lists": _RANGES, "none": {*_RANGES, "enum"}}[bounds]
    fields = {name: _without(about, dropped) for name, about in schema["properties"].items()}
    return {**schema, "properties": fields}


def _without(about: Schema, dropped: Collection[str]) -> dict[str, Any]:
    # A list of texts says what may be answered, and is taken everywhere.
    refused = {*dropped} - ({"enum"} if about.get("type") == "string" else set())
    kept = {key: value for key, value in about.items() if key not in refused}
    return {**kept, "items": _without(kept["items"], dropped)} if "items" in kept else kept


def eased_bounds(schema: Schema, sent: Bounds) -> Bounds | None:
    """Return the next bounds to send when these were refused; None where the schema has no others to leave out."""
    refused = with_bounds(schema, sent)
    later = BOUNDS_KEPT[BOUNDS_KEPT.index(sent) + 1 :]
    return next((kept for kept in later if with_bounds(schema, kept) != refused), None)


# Clients and parameters


def speaks_chat_completions(chat: BaseChatModel) -> bool:
    """Tell whether a chat model is a client of OpenAI's chat completions, and not of its newer Responses API."""
    if not is_a(chat, "BaseChatOpenAI"):
        return False
    uses_responses = getattr(chat, "_use_responses_api", None)
    return uses_responses is None or not uses_responses({})


def _is_of_openai(chat: BaseChatModel) -> bool:
    """Tell whether a model is one of OpenAI's own, at its service, at Azure or behind a gateway."""
    if not is_a(chat, "ChatOpenAI"):
        return is_a(chat, "AzureChatOpenAI")
    name, address = str(getattr(chat, "model_name", "")), getattr(chat, "openai_api_base", None)
    named = name.rpartition("/")[2].startswith(_OPENAI_NAMES) and "gpt-oss" not in name
    return named or "api.openai.com" in (address or os.environ.get("OPENAI_BASE_URL") or "api.openai.com")


_OPENAI_NAMES = ("gpt-", "chatgpt-", "o1", "o3", "o4")
_OTHER_NAMES = {"max_tokens": ("max_output_tokens", "num_predict"), "seed": ("random_seed",)}
"""Under which names classes have a parameter where they do not have ours."""


def field_of(parameter: str, names: Iterable[str]) -> str | None:
    """Return the name that a class with these fields has for a common parameter, or None where it has none."""
    known = set(names)
    return next((name for name in (parameter, *_OTHER_NAMES.get(parameter, ())) if name in known), None)


# How long a reply may be where nobody says. The tokens that a model reasons with count into the limit of its reply at
# most providers, so that a limit which is generous for the words of a debate would end before the first of them.


def default_limits() -> str:
    """Return the default limits in words.

    >>> default_limits()
    '2,048 tokens (steps, vote: 1,024)'
    """
    others = sorted(form for form in REPLY_LIMITS if form != "*")
    return f"{REPLY_LIMITS['*']:,} tokens ({', '.join(others)}: {REPLY_LIMITS[others[0]]:,})"


def is_limited_by_default(identity: Mapping[str, Any]) -> bool:
    """Tell whether replies of a model have the default limit: it has none of its own and does not reason.

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
    name, parameters = str(identity["name"]), dict(_inside(identity))
    if name == "offline" or _LIMITS & parameters.keys():
        return False
    switches = [value not in _OFF for name, value in parameters.items() if _SWITCH.search(name)]
    return not (any(switches) if switches else _REASONS.search(name.lower()))


def _inside(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all parameters with their names, at any depth; for an object stands its ``type``, if it has one."""
    for name, value in parameters.items():
        yield str(name), (value.get("type", bool(value)) if isinstance(value, Mapping) else value)
        if isinstance(value, Mapping):
            yield from _inside(value)


_LIMITS = {*WORDS["models"]["limits"].split()}

_SWITCH = re.compile(r"think|reasoning|budget_tokens", re.IGNORECASE)
"""Finds parameters that turn reasoning on or off."""
_OFF = (None, False, 0, "none", "off", "disabled", "false")

_REASONS = any_of(WORDS["models"]["reasons"])


# Marks for a prompt cache. Anthropic writes what stands before a mark into a cache for five minutes, at 1.25 times the
# price, and reads it at a tenth of the price. A request may have four marks. A mark finds what an earlier one wrote if
# that ended with the same block, or with one of the 20 blocks before; so each turn of a discussion is a block of its
# own. What is shorter than a model's least length (1,024 to 4,096 tokens) is neither written nor charged for.


def marks_of(chat: BaseChatModel) -> Marks | None:
    """Return how a chat model's provider wants the end of a repeated beginning marked; None where it has no marks."""
    if is_a(chat, "ChatBedrockConverse"):
        # Other models on Bedrock refuse marks.
        return "cachePoint" if "anthropic.claude" in str(getattr(chat, "model_id", "")) else None
    # OpenRouter passes marks on to Claude, whichever client asks it.
    routed = is_a(chat, "ChatOpenRouter") or "openrouter.ai" in str(getattr(chat, "openai_api_base", ""))
    claude = routed and str(getattr(chat, "model_name", "")).startswith("anthropic/")
    return "cache_control" if claude or is_a(chat, "ChatAnthropic") else None


def with_marks(messages: Messages, prompt: str, ends: Sequence[int], marks: Marks) -> list[BaseMessage]:
    """Return the messages with the user's first one in blocks, and a mark behind each repeated part.

    Args:
        messages: the conversation as it is sent.
        prompt: the user's first message as it was before anything was put around it.
        ends: where in ``prompt`` its repeated parts end.
        marks: how a mark is written.
    """
    sent = list(messages)
    at = next(place for place, message in enumerate(sent) if isinstance(message, HumanMessage))
    text = sent[at].text
    first, *others = (end + text.index(prompt) for end in sorted({*ends}))
    # The first part has been the same from the beginning; what grows from call to call are the turns behind it.
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
