"""Read replies from the messages of a chat model: text, fields, how they ended, usage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ...state.usage import Usage
from ..replies.json_fields import whole_object
from ..replies.reasoning import without_reasoning
from . import prices
from .call import Reply
from .provider_errors import ResponseError
from .reply_endings import ending_of, refusal_of


def replies(messages: Sequence[BaseMessage], label: str, seconds: float, tool: str | None = None) -> Reply:
    """Read all messages of one request; the first is returned with the usage, the others are attached to it.

    Args:
        messages: the replies to the request.
        label: the name of the model.
        seconds: how long the request took.
        tool: the tool that was offered to answer with; calls of any other one are no reply.

    Raises:
        ResponseError: the provider broke a reply off for a reason of its own.
    """
    first, *others = (_reply(message, label, seconds, tool) for message in messages)
    return replace(first, others=tuple(reply.without_usage() for reply in others)) if others else first


def is_empty(message: BaseMessage) -> bool:
    """Return whether a message has no text, no arguments and no reason for that."""
    # Gemini's client makes such a message of any JSON without a reply in it, an error page of a proxy among them.
    about = message.response_metadata or getattr(message, "usage_metadata", None)
    return not (about or message.text or _called(message))


def _reply(message: BaseMessage, label: str, seconds: float, tool: str | None) -> Reply:
    usage, words, arguments = _usage(message, label, seconds), _words(message), _arguments(message, tool)
    answer = without_reasoning(words)
    reasoned = usage.reasoning_tokens > 0 or answer != words or _has_reasoning(message)
    ending = ending_of(message, answer or arguments, reasoned=reasoned)
    if ending.how == "failed":
        raise ResponseError(ending.problem, 200)
    return Reply(
        # OpenAI sends a refusal beside an empty text; a reply by function call has no text either. Reasoning stays in
        # the text: only who knows the prompt can tell the model's own tags from quoted ones.
        text=replace_surrogates(refusal_of(message) or words or arguments),
        fields=replace_surrogates(_fields(message, words, tool)),
        cut_off=ending.how == "cut_off",
        refused=ending.how in ("refused", "filtered"),
        usage=usage,
        tokens=_tokens(message),
        filtered=ending.how == "filtered",
        problem=ending.problem or _strange_call(message, words or arguments),
        reasoned=reasoned,
    )


def _words(message: BaseMessage) -> str:
    """Return the text of a message; reasoning in blocks of its own, and what was said on the way, do not count."""
    final = [block.get("text") or "" for block in _blocks(message) if block.get("phase") == "final_answer"]
    return "".join(final) or str(message.text)


_REASONING = {"thinking", "redacted_thinking", "reasoning", "reasoning_content"}


def _has_reasoning(message: BaseMessage) -> bool:
    """Tell whether a message has reasoning apart from its text."""
    # Servers of open models say ``reasoning`` or ``reasoning_content`` beside the text, others use blocks.
    beside = _REASONING & {name for name, value in message.additional_kwargs.items() if value}
    return bool(beside) or any(block.get("type") in _REASONING for block in _blocks(message))


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    content = message.content if isinstance(message.content, list) else []
    return [block for block in content if isinstance(block, dict)]


def _usage(message: BaseMessage, label: str, seconds: float) -> Usage:
    """Read what the request took; where the provider does not say, or says what cannot be, its cost is unknown."""
    said = getattr(message, "usage_metadata", None) or {}
    details = said.get("input_token_details") or {}
    # Under a service tier of OpenAI's, the name has the tier in front.
    held = next((number for name, number in details.items() if name.endswith("cache_read")), None)
    sent, cached, written = map(token_count, (said.get("input_tokens"), held, said.get("output_tokens")))
    # Claude's clients tell apart how long a prompt is kept, and leave the plain count at zero then.
    kept = sum(token_count(details.get(name)) or 0 for name in _WRITTEN_TO_CACHE)
    # No prompt is empty: clients make a zero of what the provider left out. The same goes for words that took no token.
    known = (
        bool(sent)
        and written is not None
        and (written > 0 or not message.text)
        and (cached or 0) + kept <= (sent or 0)
    )
    # What is cached may be left out; what is said of it and cannot be makes the cost unknown.
    known = known and (cached is not None or held is None)
    tokens = (sent or 0, cached or 0, written or 0) if known else (sent or 0, 0, written or 0)
    return Usage(
        calls=1,
        input_tokens=tokens[0],
        cached_input_tokens=tokens[1],
        output_tokens=tokens[2],
        reasoning_tokens=token_count((said.get("output_token_details") or {}).get("reasoning")) or 0,
        cost_usd=prices.cost_usd(label, *tokens, kept) if known or label in prices.FREE else None,
        seconds=seconds,
    )


_WRITTEN_TO_CACHE = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")

MOST_TOKENS = 10**9
"""More tokens than any request has; a larger number is a mistake of the provider's."""


def token_count(value: object) -> int | None:
    """Return a number of tokens; None for what is none: text, fractions, negative and endless numbers.

    >>> token_count(12), token_count(12.0), token_count("12"), token_count(-1), token_count(1e30), token_count(None)
    (12, 12, 12, None, None, None)
    """
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def _tokens(message: BaseMessage) -> Sequence[Mapping[str, Any]] | None:
    logprobs = message.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return tokens if isinstance(tokens, list) and tokens else None


def _called(message: BaseMessage) -> list[tuple[str, str]]:
    """Return name and arguments of each function call, as JSON text, unreadable ones as they came."""
    if not isinstance(message, AIMessage):
        return []
    broken = [(str(call["name"]), str(call["args"])) for call in message.invalid_tool_calls]
    return [*((call["name"], json.dumps(call["args"])) for call in message.tool_calls), *broken]


def _arguments(message: BaseMessage, tool: str | None) -> str:
    return "\n".join(arguments for name, arguments in _called(message) if name == tool)


def _strange_call(message: BaseMessage, text: str) -> str:
    """Return what is wrong with a reply that says nothing and calls a tool that was not offered, else nothing."""
    called = () if text else _called(message)
    return next(
        (
            f"The reply calls a tool that was not offered: {name}({arguments[:300]})."
            for name, arguments in called
        ),
        "",
    )


def _fields(message: BaseMessage, text: str, tool: str | None) -> dict[str, Any] | None:
    """Return the arguments of the tool that was offered, or the JSON object that a reply is; else None.

    An object among other words is a statement like any other, and left to the readers, which know the texts.
    """
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = next((dict(call["args"]) for call in calls if call["name"] == tool), None)
    return whole_object(text) if called is None else called


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
