"""Types for the facts about a provider: one `Provider` record for each, in a file of its own.

To add a provider, write a file with a record next to this one and add the record to `PROVIDERS` in
`__init__.py`. All values are typed, so that mypy reports a wrong one on its line. LangChain and the
providers' packages are not imported here: a client is recognized by its class name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatResult

Options = dict[str, Any]
"""Parameters of a request."""

Bounds = Literal["all", "lists", "none"]
"""The bounds of a schema's fields to send: all, only lists of values (``enum``), only lists of
texts."""

Marks = Literal["cache_control", "cachePoint"]
"""How to mark the end of a repeated beginning: by a field of a block, or by a block after it."""

Ending = Literal["complete", "cut_off", "refused", "filtered", "failed"]
"""How a reply ended. ``failed``: the provider stopped it, and a new call may succeed."""

Refusal = Literal[
    "unsupported",  # a parameter, or its value, is not accepted
    "limit",  # the limit of a reply's length is too high
    "not_built",  # the server cannot produce this form of reply
    "unexplained",  # no reason is given
    "form_parameter",  # names a parameter that asks for JSON
    "form",  # mentions JSON schemas, tools or JSON modes
    "no_form",  # another cause, whatever else the message mentions
    "bound",  # a bound of a field in a schema is not accepted
    "too_much",  # a schema is too complex for the decoder
    "no_system",  # the role of the system message is not accepted
    "cache",  # marks for a prompt cache are not accepted
]
"""The subject of a provider's refusal."""

ErrorKind = Literal["spent", "too_many", "misformed"]
"""The meaning of an error code: quota used up, too many requests, or wrong output format."""

Parameter = Literal["response_format", "max_tokens"]
"""A parameter of ours that a provider calls by another name."""


@dataclass(frozen=True)
class JsonSchema:
    """A request for a reply that follows a JSON schema.

    Attributes:
        schema: the JSON schema.
        model: the model's name as its client sends it.
    """

    schema: Mapping[str, Any]
    model: str

    @property
    def title(self) -> str:
        """The name of the schema."""
        return str(self.schema.get("title", "rating"))


def chat_completions_schema(asked: JsonSchema, strict: bool = True) -> Options:
    """Return the parameter of OpenAI's chat completions API, which other providers accept as well.

    >>> chat_completions_schema(JsonSchema({"title": "vote"}, "any"))["response_format"]["json_schema"]
    {'name': 'vote', 'schema': {'title': 'vote'}, 'strict': True}
    """
    named = {"name": asked.title, "schema": asked.schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


CHAT_COMPLETIONS_OBJECT: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
"""The parameter of the same API that asks for any JSON object."""


def _tool_by_name(_chat: Any, title: str) -> str | None:
    return title


def _no_marks(_chat: BaseChatModel) -> Marks | None:
    return None


def _never(_name: str) -> bool:
    return False


SendBody = Callable[[Options], Awaitable[Options]]
"""A function that takes the body of a request and returns the body of the response."""

AskThrough = Callable[..., Awaitable["ChatResult"]]
"""A function ``(chat, send, messages, stop, **options)`` that requests through ``send``.

The chat model builds the body and reads the response; ``send`` is a `SendBody`.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Client:
    """The capabilities of a LangChain chat model class and of every class derived from it.

    Attributes:
        class_name: the name of the class.
        json_schema: returns the parameters that ask for JSON by a schema; None if there are none.
        json_object: the parameters that ask for any JSON object; None if there are none.
        bounds: the bounds that a schema may have, as far as documented.
        tool_bounds: the bounds that the schema of a tool may have.
        any_schema: whether a schema may describe a value that is not an object.
        without_schemas: returns whether a model of this name is too old for schemas.
        tool_choice: returns the value that forces a call of the only tool, from the chat model and
            the tool's name.
        async_client: the attribute path to the async client of the provider's package, which can be
            copied.
        proxy: the field with the address of a proxy.
        arguments: arguments that the class is always created with.
        retries: the value of ``max_retries`` that means a single attempt.
        names_deployments: whether a model's name is chosen by the owner of a deployment.
        empty_if_unread: whether the client returns empty messages for a response that it cannot
            read.
        ask_through: makes a request through another connection, for batches; None if not needed.
    """

    class_name: str
    json_schema: Callable[[JsonSchema], Options] | None = None
    json_object: Mapping[str, Any] | None = None
    bounds: Bounds = "all"
    tool_bounds: Bounds = "all"
    any_schema: bool = False
    without_schemas: Callable[[str], bool] = _never
    tool_choice: Callable[[Any, str], str | None] = _tool_by_name
    async_client: str = ""
    proxy: str = ""
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    retries: int = 0
    names_deployments: bool = False
    empty_if_unread: bool = False
    ask_through: AskThrough | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Provider:
    """The facts about a provider.

    Attributes:
        title: its name in messages.
        names: the names before the colon of a model's name; LangChain's names.
        clients: its LangChain classes.
        package: the Python package with these classes.
        extra: the extra of this package that installs it.
        key_variables: environment variables with a key, one of which must be set before a model is
            created.
        address_variables: other environment variables that its client reads.
        variable_prefix: how its environment variables begin, if not with its name.
        price_list: its name in the price list (genai-prices), if different.
        telemetry: maps its names to those of OpenTelemetry's conventions, if different.
        finish_reasons: its words for how a reply ended, in lower case with ``_`` between words.
        refusals: patterns of its messages; in lower case, with ``response_schema`` for
            ``responseSchema``.
        error_codes: its codes for errors that share a status with other errors.
        statuses: the HTTP status of an error code, for errors in a batch or in a response with
            status 200.
        parameters: its names for parameters of ours.
        reasoning_models: a pattern of the names of models that reason by default.
        model_prefix: a pattern of its prefix of model names.
        cache_marks: returns how to mark a chat model's prompt cache; None without marks.
        batch_client: the class whose requests can be sent in batches; empty if there are no
            batches.
    """

    title: str
    names: tuple[str, ...] = ()
    clients: tuple[Client, ...] = ()
    package: str = ""
    extra: str = ""
    key_variables: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()
    variable_prefix: str = ""
    price_list: str = ""
    telemetry: Mapping[str, str] = field(default_factory=dict)
    finish_reasons: Mapping[Ending, tuple[str, ...]] = field(default_factory=dict)
    refusals: Mapping[Refusal, tuple[str, ...]] = field(default_factory=dict)
    error_codes: Mapping[ErrorKind, tuple[str, ...]] = field(default_factory=dict)
    statuses: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    parameters: Mapping[Parameter, tuple[str, ...]] = field(default_factory=dict)
    reasoning_models: str = ""
    model_prefix: str = ""
    cache_marks: Callable[[BaseChatModel], Marks | None] = _no_marks
    batch_client: str = ""


@cache
def class_names(kind: type[Any]) -> Sequence[str]:
    """Return the names of a class and of its base classes, the class itself first."""
    # Called several times for every call.
    return tuple(base.__name__ for base in kind.__mro__)


def is_a(chat: BaseChatModel, name: str) -> bool:
    """Return whether a chat model has a class or base class of this name, without importing it."""
    return name in class_names(type(chat))


def request_body(payload: Mapping[str, Any]) -> Options:
    """Return the body of a request as a copy, since it may also go to another server."""
    # ``extra_body`` is not a field of the API: like the client, merge it into the body.
    body = {key: value for key, value in payload.items() if key != "extra_body"}
    return body | (payload.get("extra_body") or {})
