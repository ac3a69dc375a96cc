"""What identifies a model: all that decides what it says, and nothing that is secret or says where it is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel

from ...state.settings import ModelSpec

Identity = Mapping[str, Any]
"""Plain JSON, the same in every process."""


def identity_of_name(spec: ModelSpec) -> Identity:
    """A model that was chosen by name: the name and the parameters that it carries."""
    return spec.model_dump(mode="json", exclude_none=True)


def identity_of_chat(label: str, chat: BaseChatModel) -> Identity:
    """A chat model object of the caller's own: its class, and every plain parameter that may matter to a reply.

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
    r"key|secret|password|credential|auth|(?:^|_)token$|access_token"  # is nobody's business
    r"|url|uri|endpoint|api_base|host|proxy|header|query|project|location|organi[sz]ation|client|http|socket"
    r"|timeout|retries|rate_limit|stream|^(?:name|cache|verbose|callbacks|tags|metadata|profile|labels)$"
    r"|custom_get_token_ids|default_metadata|tiktoken|lc_"
)
"""Names of what makes no difference to what is said."""


def _plain(value: Any) -> Any:
    """As JSON; what is not set, empty, secret or no plain data is left out."""
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
    """Functions and classes by their names, which stay the same; other objects say nothing that lasts."""
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
    """Whether a parameter is set and matters; a zero is as good as any value."""
    return not (value is None or value is False or value in ("", [], {}) or _LEFT_OUT.search(name.lower()))
