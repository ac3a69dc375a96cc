"""Model names to chat models. The one place that touches a provider's package, and only when it is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from ..state.errors import UsageError
from ..state.settings import ModelSpec
from .offline import DISCLOSURE, OfflineJudge

OFFLINE = ModelSpec(name="offline")
MAX_RETRIES = 6
TIMEOUT_SECONDS = 180.0


class LoadedModel:
    """A chat model ready to be called, and what its provider has turned out not to take.

    A provider that rejects a parameter (reasoning models refuse ``temperature``) is asked again without it,
    and every call from then on leaves it out; ``warnings`` says so.
    """

    def __init__(self, label: str, chat: BaseChatModel) -> None:
        self.label = label
        self.chat = chat
        self.structured = True
        self.warnings: list[str] = [DISCLOSURE] if isinstance(chat, OfflineJudge) else []

    def runnable(self, schema: dict[str, Any] | None) -> Runnable[Any, BaseMessage]:
        """What to invoke for a reply in this schema, or for plain text where there is none."""
        return self.chat if schema is None else _structured(self.chat, schema)

    def takes_structure(self) -> bool:
        """Whether replies can be asked for as JSON."""
        if not self.structured:
            return False
        native = type(self.chat).with_structured_output is not BaseChatModel.with_structured_output
        return native or type(self.chat).bind_tools is not BaseChatModel.bind_tools

    def drop(self, parameter: str) -> bool:
        """Stop sending a parameter; false where it is not one that can be left out."""
        if parameter in STRUCTURE_PARAMETERS and self.structured:
            self.structured = False
            self.warnings.append(f"{self.label} takes no reply schema: replies were asked for as text")
            return True
        if getattr(self.chat, parameter, None) is None:
            return False
        self.chat = self.chat.model_copy(update={parameter: None})
        self.warnings.append(f"{self.label} takes no {parameter}: it was left out")
        return True


STRUCTURE_PARAMETERS = ("response_format", "tools", "tool_choice", "response_schema", "response_json_schema")
DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty")


def load(spec: ModelSpec, loop: object) -> LoadedModel:
    """The model of that name, for calls on this event loop. Reads files the first time: blocking.

    Clients are kept for each loop, since their connections belong to it.

    Raises:
        UsageError: an unknown provider, or a key that is missing; the message says what to do.
    """
    kept = _LOADED.setdefault(loop, {})
    if spec not in kept:
        kept[spec] = LoadedModel(spec.name, _make(spec))
    return kept[spec]


def loaded(spec: ModelSpec, loop: object) -> LoadedModel | None:
    """The same if it has been loaded before. Never blocks."""
    return _LOADED.get(loop, {}).get(spec)


def wrap(chat: BaseChatModel) -> LoadedModel:
    """A chat model object of the caller's own, used as it is."""
    return LoadedModel(_label(chat), chat)


def check(spec: ModelSpec) -> None:
    """Say in one sentence what is missing for this model to be called, if anything.

    Raises:
        UsageError: as ``load``.
    """
    provider, _, name = spec.name.partition(":")
    if spec.name == "offline":
        return
    if provider not in _PROVIDERS or not name:
        raise UsageError(
            f"unknown model {spec.name!r}; a model is `offline`, or one of "
            f"{', '.join(f'`{known}:<name>`' for known in _PROVIDERS)}"
        )
    keys = _KEYS[provider]
    if not any(os.environ.get(key) for key in keys):
        raise UsageError(
            f"{keys[0]} is not set, and the model {spec.name} cannot be called without it; "
            "set it (for a local server any value will do), or choose the model `offline`"
        )


_LOADED: WeakKeyDictionary[object, dict[ModelSpec, LoadedModel]] = WeakKeyDictionary()


def _make(spec: ModelSpec) -> BaseChatModel:
    check(spec)
    provider, _, name = spec.name.partition(":")
    return OfflineJudge() if spec.name == "offline" else _PROVIDERS[provider](spec, name)


def _openai(spec: ModelSpec, name: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    chat: BaseChatModel = ChatOpenAI(
        model=name, max_retries=MAX_RETRIES, timeout=TIMEOUT_SECONDS, **_parameters(spec, "base_url")
    )
    return chat


def _google(spec: ModelSpec, name: str) -> BaseChatModel:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(
        model=name, max_retries=MAX_RETRIES, timeout=TIMEOUT_SECONDS, **_parameters(spec, "base_url")
    )


def _parameters(spec: ModelSpec, *also: str) -> dict[str, Any]:
    names = {"temperature", "top_p", "seed", "max_tokens", *also}
    return spec.model_dump(include=names, exclude_none=True)


_PROVIDERS: dict[str, Callable[[ModelSpec, str], BaseChatModel]] = {
    "openai": _openai,
    "google_genai": _google,
}
_KEYS = {"openai": ("OPENAI_API_KEY",), "google_genai": ("GOOGLE_API_KEY", "GEMINI_API_KEY")}


def _label(chat: BaseChatModel) -> str:
    if isinstance(chat, OfflineJudge):
        return "offline"
    known = chat._get_ls_params()
    name = known.get("ls_model_name") or getattr(chat, "model_name", None) or type(chat).__name__
    provider = known.get("ls_provider")
    return f"{provider}:{name}" if provider else str(name)


def _structured(chat: BaseChatModel, schema: dict[str, Any]) -> Runnable[Any, BaseMessage]:
    """Ask for JSON in the provider's own way, but keep the whole reply: its finish reason, refusal and usage.

    ``with_structured_output`` of the OpenAI client raises where a reply was cut off, and loses it.
    """
    family = {base.__name__ for base in type(chat).__mro__}
    if "BaseChatOpenAI" in family and not getattr(chat, "use_responses_api", False):
        return _openai_structured(chat, schema)
    if "ChatGoogleGenerativeAI" in family:
        return chat.bind(response_mime_type="application/json", response_json_schema=schema)
    return chat.with_structured_output(schema, include_raw=True) | _raw


def _openai_structured(chat: BaseChatModel, schema: dict[str, Any]) -> Runnable[Any, BaseMessage]:
    name = str(getattr(chat, "model_name", ""))
    if name.startswith(("gpt-3", "gpt-4-")) or name == "gpt-4":
        return chat.bind_tools([schema], tool_choice=schema["title"])
    wanted = {"name": schema["title"], "schema": schema, "strict": True}
    body = {**(getattr(chat, "extra_body", None) or {})}
    return chat.bind(extra_body={**body, "response_format": {"type": "json_schema", "json_schema": wanted}})


def _raw(result: Any) -> BaseMessage:
    message = result["raw"]
    assert isinstance(message, BaseMessage)
    return message
