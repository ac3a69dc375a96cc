"""Make a chat model's identity, and the name by which turns and the price list know it.

The identity is all that decides what a model says, and nothing that is secret or says where it is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from ...state.settings import ModelSpec
from ..offline import OfflineJudge
from .model_chains import Chain, chats_in, fallbacks_in, parameters_in

Identity = Mapping[str, Any]
"""Plain JSON, the same in every process."""


def identity_of_name(spec: ModelSpec) -> Identity:
    """Return the identity of a model chosen by name: the name and the parameters that it carries.

    >>> identity_of_name(ModelSpec.parse("ollama:llama3.2?num_ctx=4096&reasoning=false&price_in=0&price_out=0"))
    {'name': 'ollama:llama3.2', 'num_ctx': 4096, 'reasoning': False}
    """
    known = spec.model_dump(mode="json", exclude_none=True, exclude={"key_env", "price_in", "price_out"})
    return {name: value for name, value in known.items() if name not in spec.more or _may_matter(name)}


def identity_of_chain(label: str, chain: Chain) -> Identity:
    """Return the identity of a chat model, with the parameters bound to it, and of its fallbacks."""
    identity = dict(identity_of_chat(label, next(chats_in(chain))))
    if bound := _plain(parameters_in(chain)):
        identity["bound"] = bound
    if others := fallbacks_in(chain):
        identity["fallbacks"] = [identity_of_chain(label_of(next(chats_in(one))), one) for one in others]
    return identity


def identity_of_chat(label: str, chat: BaseChatModel) -> Identity:
    """Return the identity of a chat model object: its class, and every plain parameter that may matter to a reply.

    >>> from langchain_openai import ChatOpenAI
    >>> chat = ChatOpenAI(model="gpt-4o-mini", temperature=0.5, api_key="sk-1", base_url="http://127.0.0.1/v1")
    >>> identity = identity_of_chat("openai:gpt-4o-mini", chat)
    >>> identity["class"], identity["parameters"]
    ('langchain_openai.chat_models.base.ChatOpenAI', {'model': 'gpt-4o-mini', 'model_name': 'gpt-4o-mini', \
'temperature': 0.5})
    """
    kind = type(chat)
    secret = frozenset(chat.lc_secrets)
    fields = {name: getattr(chat, name, None) for name in kind.model_fields if name not in secret}
    named = {name: value for name, value in chat._identifying_params.items() if name not in secret}
    parameters = _plain({**named, **fields})
    return {"name": label, "class": f"{kind.__module__}.{kind.__qualname__}", "parameters": parameters}


_LEFT_OUT = re.compile(
    r"key|secret|password|credential|auth|(?:^|_)token$|access_token"  # secrets; ``max_tokens`` does not match
    r"|url|uri|endpoint|api_base|host|proxy|header|query|project|location|organi[sz]ation|client|http|socket"
    r"|timeout|retries|rate_limit|stream|^(?:name|cache|verbose|callbacks|tags|metadata|profile|labels)$"
    r"|custom_get_token_ids|default_metadata|tiktoken|lc_"
)
"""Matches names of parameters that are left out of an identity: they are secret, or do not change a reply."""


def _plain(value: Any) -> Any:
    """Return a value as plain JSON; what is not set, empty, secret or no plain data is left out."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        kept = {str(_plain(name)): _plain(inner) for name, inner in value.items()}
        return {name: kept[name] for name in sorted(kept) if _tells(name, kept[name])}
    if isinstance(value, list | tuple):
        return [inner for one in value if (inner := _plain(one)) is not None]
    return _scalar(value)


def _scalar(value: Any) -> str | int | float | None:
    """Return a single value as JSON has it: functions and classes by name, None for other objects.

    The text of another object may hold its address in memory, which differs from process to process.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, set | frozenset):
        return ", ".join(sorted(map(str, value)))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return None


def _tells(name: str, value: Any) -> bool:
    """Tell whether a parameter is set and matters to a reply; zero counts as set."""
    # No plain test for truth, which would leave out ``temperature=0``.
    return not (value is None or value is False or value in ("", [], {})) and _may_matter(name)


def _may_matter(name: str) -> bool:
    """Tell whether a parameter of this name may change a reply, and is no secret."""
    return not _LEFT_OUT.search(name.lower())


def label_of(chat: BaseChatModel) -> str:
    """Return the name of a chat model object: its provider's and its own."""
    if isinstance(chat, OfflineJudge):
        return "offline"
    # The names under which LangSmith's traces know provider and model, which every client gives in one form.
    known = chat._get_ls_params()
    name = known.get("ls_model_name") or getattr(chat, "model_name", None) or type(chat).__name__
    provider = known.get("ls_provider")
    return f"{provider}:{name}" if provider else str(name)
