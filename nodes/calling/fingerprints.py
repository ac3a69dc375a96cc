"""When two calls are the same, so that one reply can stand for both."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config

from .calls import Call

SIZE = 16
"""Bytes: with a billion calls the chance of any two colliding is below 1e-20."""


def fingerprint(call: Call) -> bytes:
    """What identifies a call, as 16 bytes.

    Model and parameters, messages and schema; and whose voice it is: the agent's index within its role, the number
    of the sample and of the repeat. Two advocates who were told the same are two voices, not one paid once; but
    the first scorer of two protocols is the same agent.
    """
    about = call.metadata
    parts = (
        call.model.identity,
        [_message(message) for message in call.messages],
        call.schema,
        call.parameters,
        str(about.get("agent", "")).removeprefix(str(about.get("role", ""))),
        about.get("sample", 0),
        _repeat(),
        about if call.model.plays_roles else None,
    )
    return blake2b(_canonical(parts), digest_size=SIZE).digest()


def _message(message: BaseMessage) -> tuple[str, Any]:
    return message.type, message.content


def _repeat() -> int:
    """Which of several independent verdicts this is: those who repeat a judge mark all that happens inside."""
    config = var_child_runnable_config.get() or {}
    return int((config.get("metadata") or {}).get("repeat", 0))


def _canonical(parts: Any) -> bytes:
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_plain)


def _plain(value: Any) -> Any:
    """Mappings and sequences of other kinds as plain ones; whatever else, as it is written."""
    if hasattr(value, "items"):
        return dict(value.items())
    return list(value) if isinstance(value, frozenset | set | range) else str(value)
