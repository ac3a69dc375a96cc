"""Ask a chat model for JSON in one of several forms, from the strictest to plain words.

What a provider takes cannot be known beforehand: it depends on the model, the server and its version, and on whether
the model reasons. So the first form that its client has is asked for, and each refusal leads to the next one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

Form = Literal["schema", "tool", "json", "text"]
"""A JSON schema that the provider holds the reply to; a tool that must be called with it; any JSON object; words."""
FORMS: tuple[Form, ...] = get_args(Form)

FORM_WORDS: Mapping[Form, str] = {
    "schema": "JSON by a schema",
    "tool": "the arguments of a tool",
    "json": "a JSON object",
    "text": "text",
}
"""What is asked for, in a warning's words."""

Schema = Mapping[str, Any]


def forms_of(chat: BaseChatModel) -> Iterator[Form]:
    """Yield the forms that a client has, strictest first; plain text is the last of all."""
    kind = type(chat)
    own = kind.with_structured_output is not BaseChatModel.with_structured_output
    tools = kind.bind_tools is not BaseChatModel.bind_tools
    # OpenAI's oldest models know functions, and no schema as reply format.
    if (own and not _is_before_schemas(chat)) or _schema_options(chat, {"title": ""}) is not None:
        yield "schema"
    if tools:
        yield "tool"
    if _json_options(chat) is not None:
        yield "json"
    yield "text"


def asked_in_form(chat: BaseChatModel, schema: Schema, form: Form) -> Runnable[Any, BaseMessage]:
    """Return the runnable that asks for a reply in a form; its reply is the whole message, however it ended.

    LangChain's ``with_structured_output`` loses a reply that was cut off with some clients, and one in words where a
    tool was wanted with others; it is used for clients alone that are not known here.
    """
    if form == "tool":
        return _with_tool(chat, schema)
    options = {"schema": _schema_options(chat, schema), "json": _json_options(chat)}.get(form)
    if options is not None:
        return chat.bind(**options)
    return chat if form == "text" else chat.with_structured_output(dict(schema), include_raw=True) | _raw


Bounds = Literal["all", "lists", "none"]
"""Which bounds of a schema's fields are sent: all, lists of values (``enum``) alone, or lists of texts alone."""
BOUNDS_KEPT: tuple[Bounds, ...] = get_args(Bounds)

_RANGES = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems"),
}


def with_bounds(schema: Schema, bounds: Bounds) -> dict[str, Any]:
    """Return a schema with no more bounds of its fields than these; several providers refuse some.

    >>> field = {"type": "integer", "enum": [1, 2], "maximum": 2}
    >>> [with_bounds({"properties": {"score": field}}, kept)["properties"]["score"] for kept in ("lists", "none")]
    [{'type': 'integer', 'enum': [1, 2]}, {'type': 'integer'}]
    """
    dropped = {"all": set[str](), "lists": _RANGES, "none": {*_RANGES, "enum"}}[bounds]
    return {
        **schema,
        "properties": {name: _without(about, dropped) for name, about in schema["properties"].items()},
    }


def _without(about: Schema, dropped: Collection[str]) -> dict[str, Any]:
    kept = {
        # A list of texts says what may be answered, and is taken everywhere.
        key: value
        for key, value in about.items()
        if key not in dropped or (key == "enum" and about.get("type") == "string")
    }
    return {**kept, "items": _without(kept["items"], dropped)} if "items" in kept else kept


def eased_bounds(schema: Schema, sent: Bounds) -> Bounds | None:
    """Return the next bounds to send when these were refused; None where the schema has no others to leave out."""
    refused = with_bounds(schema, sent)
    later = BOUNDS_KEPT[BOUNDS_KEPT.index(sent) + 1 :]
    return next((kept for kept in later if with_bounds(schema, kept) != refused), None)


def bounds_of(chat: BaseChatModel) -> Bounds:
    """Return the bounds that a provider is known to take; where nothing is known, all are tried."""
    # Anthropic takes no ranges; OpenAI and Gemini take some of numbers, and no lengths of texts.
    known = ("ChatAnthropic", "ChatBedrockConverse", "ChatGoogleGenerativeAI")
    return "lists" if _is_of_openai(chat) or any(is_a(chat, name) for name in known) else "all"


def _is_of_openai(chat: BaseChatModel) -> bool:
    """Tell whether a model is one of OpenAI's own, at its service, at Azure or behind a gateway."""
    if not is_a(chat, "ChatOpenAI"):
        return is_a(chat, "AzureChatOpenAI")
    name, address = str(getattr(chat, "model_name", "")), getattr(chat, "openai_api_base", None)
    named = (
        name.rpartition("/")[2].startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")) and "gpt-oss" not in name
    )
    return named or "api.openai.com" in (address or os.environ.get("OPENAI_BASE_URL") or "api.openai.com")


def adapted(
    messages: Sequence[BaseMessage], schema: Schema | None, form: Form, *, folded: bool
) -> list[BaseMessage]:
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
        sent[:2] = [sent[1].model_copy(update={"content": f"{sent[0].text}\n\n{sent[1].text}"})]
    if schema is not None and form in ("json", "text"):
        sent[-1] = HumanMessage(f"{sent[-1].text}\n\n{described(schema)}")
    return sent


def described(schema: Schema) -> str:
    """Return in words what a schema asks for.

    >>> described({"properties": {"score": {"type": "number", "description": "From 1 to 5."}}})
    'Answer with one JSON object and nothing else. It has these fields, in this order: "score" (number; From 1 to 5.)'
    """
    fields = ", ".join(_described(name, about) for name, about in schema["properties"].items())
    return f"Answer with one JSON object and nothing else. It has these fields, in this order: {fields}"


def _described(name: str, about: Mapping[str, Any]) -> str:
    kind = str(about.get("type", "any"))
    if kind == "string" and "enum" in about:
        kind = " or ".join(map(json.dumps, about["enum"]))
    return f'"{name}" ({"; ".join(filter(None, (kind, about.get("description"))))})'


def _schema_options(chat: BaseChatModel, schema: Schema) -> dict[str, Any] | None:
    """Return what asks for JSON by a schema, in the parameters of the client; None for a client that is not known."""
    # Groq holds a few models strictly to a schema, and refuses to try with others.
    strict = not is_a(chat, "ChatGroq") or "gpt-oss" in str(getattr(chat, "model_name", ""))
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": schema["title"], "schema": schema, "strict": strict},
    }
    if is_a(chat, "BaseChatOpenAI"):
        return None if _is_before_schemas(chat) else _openai_format(chat, wanted)
    aws = {"jsonSchema": {"schema": json.dumps(schema), "name": schema["title"]}}
    by_client: dict[str, dict[str, Any]] = {
        "ChatGoogleGenerativeAI": {"response_mime_type": "application/json", "response_json_schema": schema},
        "ChatAnthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "ChatBedrockConverse": {"output_config": {"textFormat": {"type": "json_schema", "structure": aws}}},
        "ChatOllama": {"format": schema},
        "ChatMistralAI": {"response_format": wanted},
        "ChatGroq": {"response_format": wanted},
    }
    return next((options for name, options in by_client.items() if is_a(chat, name)), None)


def choice_options(chat: BaseChatModel, numbers: Sequence[int]) -> dict[str, Any]:
    """Return what holds a reply to one of some whole numbers and nothing else; empty where there is no such thing.

    Servers of open models take any schema, of which the reply's first token and its probabilities stay the same.
    """
    schema = {"type": "integer", "enum": [*numbers]}
    if is_a(chat, "ChatOllama"):
        return {"format": schema}
    # OpenAI and most other providers take schemas of objects alone.
    if not is_a(chat, "ChatOpenAI") or _is_of_openai(chat):
        return {}
    wanted = {"type": "json_schema", "json_schema": {"name": "rating", "schema": schema, "strict": True}}
    return _openai_format(chat, wanted) if speaks_chat_completions(chat) else {}


def _json_options(chat: BaseChatModel) -> dict[str, Any] | None:
    """Return what asks for any JSON object; None where there is no such thing."""
    wanted = {"type": "json_object"}
    if is_a(chat, "BaseChatOpenAI"):
        return _openai_format(chat, wanted)
    by_client: dict[str, dict[str, Any]] = {
        "ChatGoogleGenerativeAI": {"response_mime_type": "application/json"},
        "ChatOllama": {"format": "json"},
        "ChatMistralAI": {"response_format": wanted},
        "ChatGroq": {"response_format": wanted},
    }
    return next((options for name, options in by_client.items() if is_a(chat, name)), None)


def _openai_format(chat: BaseChatModel, wanted: dict[str, Any]) -> dict[str, Any]:
    if not speaks_chat_completions(chat):
        return {"response_format": wanted}
    # In ``extra_body``, since on a ``response_format`` the client acts itself: it parses the reply, and loses one that
    # was cut off. What the caller has put there stays.
    return {"extra_body": {**(getattr(chat, "extra_body", None) or {}), "response_format": wanted}}


def _with_tool(chat: BaseChatModel, schema: Schema) -> Runnable[Any, BaseMessage]:
    # Mistral has no word for a certain tool: with one alone, any is the same.
    choice = "any" if is_a(chat, "ChatMistralAI") else schema["title"]
    if is_a(chat, "ChatBedrockConverse"):
        allowed = getattr(chat, "supports_tool_choice_values", None) or ()
        choice = next((way for way in ("any", "auto") if way in allowed), None)
    # Gemini's tools know lists of texts alone.
    taken = with_bounds(schema, "none") if is_gemini(chat) else dict(schema)
    return chat.bind_tools([taken], **({} if choice is None else {"tool_choice": choice}))


def _is_before_schemas(chat: BaseChatModel) -> bool:
    """Tell whether a model (``gpt-3.5-turbo``, ``gpt-4``, ``gpt-4-turbo``) is older than schemas as reply format."""
    name = str(getattr(chat, "model_name", "")) if is_a(chat, "BaseChatOpenAI") else ""
    return name.startswith(("gpt-3", "gpt-4-")) or name == "gpt-4"


def is_gemini(chat: BaseChatModel) -> bool:
    """Tell whether a chat model is a client of Gemini."""
    return is_a(chat, "ChatGoogleGenerativeAI")


def is_a(chat: BaseChatModel, name: str) -> bool:
    """Tell whether a chat model has a base class of this name; so no provider's package needs to be imported."""
    return name in _base_names(type(chat))


@cache
def _base_names(kind: type) -> frozenset[str]:
    # Asked several times with every call.
    return frozenset(base.__name__ for base in kind.__mro__)


def speaks_chat_completions(chat: BaseChatModel) -> bool:
    """Tell whether a chat model is a client of OpenAI's chat completions, and not of its newer Responses API."""
    if not is_a(chat, "BaseChatOpenAI"):
        return False
    uses_responses = getattr(chat, "_use_responses_api", None)
    return uses_responses is None or not uses_responses({})


def _raw(result: Any) -> BaseMessage:
    message = result["raw"]
    assert isinstance(message, BaseMessage)
    return message
