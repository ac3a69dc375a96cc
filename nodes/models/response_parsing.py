"""Read replies from the messages of a chat model: text, fields, how they ended, usage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ...state.usage import Usage
from . import prices
from .call import Reply

# Providers name the same endings differently; all names are compared in lower case.
CUT_OFF = {"length", "max_tokens", "model_length"}
BLOCKED = {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal"}


def replies(messages: Sequence[BaseMessage], label: str, seconds: float) -> Reply:
    """Read all messages of one request; the first is returned with the usage, the others are attached to it."""
    first, *others = (_reply(message, label, seconds) for message in messages)
    return replace(first, others=tuple(reply.without_usage() for reply in others)) if others else first


def is_empty(message: BaseMessage) -> bool:
    """Return whether a message has no text, no arguments and no reason for that."""
    # Gemini's client makes such a message of any JSON without a reply in it, an error page of a proxy among them.
    about = message.response_metadata or getattr(message, "usage_metadata", None)
    return not (about or message.text or _arguments(message))


def _reply(message: BaseMessage, label: str, seconds: float) -> Reply:
    finish = str(message.response_metadata.get("finish_reason") or "").lower()
    refusal = message.additional_kwargs.get("refusal")
    return Reply(
        # OpenAI sends a refusal beside an empty text; a reply by function call has no text either.
        text=replace_surrogates(str(refusal or message.text) or _arguments(message)),
        fields=replace_surrogates(_fields(message)),
        cut_off=finish in CUT_OFF,
        refused=bool(refusal) or finish in BLOCKED or _prompt_blocked(message),
        usage=_usage(message, label, seconds),
        tokens=_tokens(message),
    )


def _usage(message: BaseMessage, label: str, seconds: float) -> Usage:
    """Read what the request took; where the provider does not say, its cost is unknown."""
    said = getattr(message, "usage_metadata", None) or {}
    cached = (said.get("input_token_details") or {}).get("cache_read") or 0
    tokens = (said.get("input_tokens", 0), cached, said.get("output_tokens", 0))
    return Usage(
        calls=1,
        input_tokens=tokens[0],
        cached_input_tokens=tokens[1],
        output_tokens=tokens[2],
        reasoning_tokens=(said.get("output_token_details") or {}).get("reasoning") or 0,
        cost_usd=prices.cost_usd(label, *tokens) if said or label == "offline" else None,
        seconds=seconds,
    )


def _tokens(message: BaseMessage) -> Sequence[Mapping[str, Any]] | None:
    logprobs = message.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return tokens if isinstance(tokens, list) and tokens else None


def _prompt_blocked(message: BaseMessage) -> bool:
    """Return whether Gemini refused the prompt, in which case its response has no candidate at all."""
    feedback = message.response_metadata.get("prompt_feedback") or {}
    return isinstance(feedback, dict) and bool(feedback.get("block_reason"))


def _arguments(message: BaseMessage) -> str:
    """Return the arguments of a reply by function call as JSON text, unreadable ones as they came."""
    if not isinstance(message, AIMessage):
        return ""
    broken = [str(call["args"]) for call in message.invalid_tool_calls]
    return "\n".join([*(json.dumps(call["args"]) for call in message.tool_calls), *broken])


# A reply such as ``Here it is: ```json {"score": 4} ``` ``, with up to 200 characters before the fence.
_FENCED = re.compile(r"[^{}`]{0,200}```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)


def _fields(message: BaseMessage) -> dict[str, Any] | None:
    """Return the JSON object of a structured reply, also from a code fence; None if there is none."""
    if isinstance(message, AIMessage) and message.tool_calls:
        return dict(message.tool_calls[0]["args"])
    text = str(message.text).strip()
    fenced = _FENCED.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text) if fenced or text.startswith("{") else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def replace_surrogates(value: Any) -> Any:
    """Return JSON with the replacement character in place of each half of a surrogate pair.

    Models write such halves, and neither files nor databases take them.

    >>> replace_surrogates({"said": ["fine", chr(0xD83D)]}) == {"said": ["fine", chr(0xFFFD)]}
    True
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(str(name)): replace_surrogates(held) for name, held in value.items()}
    return [replace_surrogates(held) for held in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, where two halves side by side become the character that they stand for.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
