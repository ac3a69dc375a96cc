"""Mark the beginning of a prompt that an item's later calls repeat, for providers that cache only what is marked.

Anthropic writes what stands before a mark into a cache for five minutes, at 1.25 times the price, and reads it at a
tenth of the price. A request may have four marks. A mark finds what an earlier one wrote if that ended with the same
block, or with one of the 20 blocks before; so each turn of a discussion is a block of its own. What is shorter than a
model's least length (1,024 to 4,096 tokens) is neither written nor charged for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from ..delimiters import section_ends
from .reply_forms import is_a

Marks = Literal["cache_control", "cachePoint"]
"""How a mark is written: as a field of a block, or as a block behind it."""


def marks_of(chat: BaseChatModel) -> Marks | None:
    """Return how a chat model's provider wants the end of a repeated beginning marked; None where it has no marks."""
    if is_a(chat, "ChatAnthropic"):
        return "cache_control"
    if is_a(chat, "ChatBedrockConverse"):
        # Other models on Bedrock refuse marks.
        return "cachePoint" if "anthropic.claude" in str(getattr(chat, "model_id", "")) else None
    # OpenRouter passes marks on to Claude, whichever client asks it.
    routed = is_a(chat, "ChatOpenRouter") or "openrouter.ai" in str(getattr(chat, "openai_api_base", ""))
    return (
        "cache_control" if routed and str(getattr(chat, "model_name", "")).startswith("anthropic/") else None
    )


def with_marks(
    messages: Sequence[BaseMessage], prompt: str, ends: Sequence[int], marks: Marks
) -> list[BaseMessage]:
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
    cuts = sorted({0, first, *others, *grown, len(text)})
    content = [
        block
        for start, end in pairwise(cuts)
        for block in _block(text[start:end], marks if end in (first, *others) else None)
    ]
    sent[at] = sent[at].model_copy(update={"content": content})
    return sent


def _block(text: str, marks: Marks | None) -> list[dict[str, Any]]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if marks == "cache_control":
        return [{**block, "cache_control": {"type": "ephemeral"}}]
    return [block, {"cachePoint": {"type": "default"}}] if marks else [block]
