"""Tell from a chat model's message how its reply ended: complete, cut off, refused, filtered, or broken off by a fault.

Every provider says it with a word of its own, in a place of its own: ``finish_reason`` (OpenAI, Gemini, Mistral, Groq,
DeepSeek), ``stop_reason`` (Anthropic), ``stopReason`` (Bedrock), ``done_reason`` (Ollama), ``status`` with
``incomplete_details`` (OpenAI's Responses API).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from langchain_core.messages import BaseMessage

How = Literal["complete", "cut_off", "refused", "filtered", "failed"]


@dataclass(frozen=True)
class Ending:
    """Say how a reply ended, and in one sentence why a reply that is not complete is not, with the remedy if any.

    ``failed``: the provider broke it off for a reason of its own, and the same call may succeed later.
    """

    how: How
    problem: str = ""


def ending_of(message: BaseMessage, text: str, *, reasoned: bool) -> Ending:
    """Return how a reply ended.

    A word that is not known here is not taken for complete where the text looks as if it broke off.

    Args:
        message: the message, with all that the provider said of it.
        text: what counts of its words: no reasoning.
        reasoned: whether the model is known to have reasoned before it answered.
    """
    metadata = message.response_metadata
    if refusal_of(message):
        return Ending("refused", _SENTENCES["refused"])
    if word := _blocked_prompt(metadata):
        return Ending("filtered", f"The provider's filter refused the prompt ({word}).")
    words = list(_words(metadata))
    told = {how: word for word in words if (how := _how(word)) is not None}
    worst = next((how for how in _WORST_FIRST if how in told), None)
    if worst is None:
        return _unknown(words, text)
    said = told[worst]
    return Ending(worst, _problem(worst, said, reasoned=reasoned and not text.strip()))


def refusal_of(message: BaseMessage) -> str:
    """Return the words of a refusal that a provider sends in a place of its own, else nothing."""
    said = message.additional_kwargs.get("refusal")
    blocks = message.content if isinstance(message.content, list) else []
    refused = (block.get("refusal") for block in blocks if isinstance(block, dict))
    return str(said or next(filter(None, refused), "") or "")


_WORST_FIRST: tuple[How, ...] = ("filtered", "refused", "failed", "cut_off", "complete")

_WORDS: Mapping[How, str] = {
    "complete": "stop end_turn stop_sequence eos eos_token end finish finished complete completed normal"
    " tool_use tool_calls tool_call function_call finish_reason_stop",
    "cut_off": "length max_tokens max_output_tokens max_length model_length token_limit limit error_limit"
    " time_limit model_context_window_exceeded context_length_exceeded incomplete not_finished pause_turn"
    " finish_reason_max_tokens malformed_model_output malformed_function_call malformed_tool_use"
    " unexpected_tool_call other",
    "refused": "refusal",
    "filtered": "content_filter content_filtered guardrail_intervened guardrails safety recitation blocklist"
    " prohibited_content spii image_safety language sensitive input_sensitive output_sensitive error_toxic"
    " model_armor",
    "failed": "error network_error insufficient_system_resource abort aborted timeout cancelled canceled"
    " user_cancel failed in_progress queued overloaded",
}
"""The words of providers and of the servers that speak as they do, in one spelling."""
_KNOWN: Mapping[str, How] = {word: how for how, words in _WORDS.items() for word in words.split()}

_PLACES = ("finish_reason", "stop_reason", "stopReason", "done_reason", "completion_reason")


def _words(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that the provider says of the ending."""
    for place in _PLACES:
        if isinstance(word := metadata.get(place), str) and word:
            yield word
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping) and isinstance(reason := details.get("reason"), str):
        yield reason
    # Other APIs than the Responses one have their status of HTTP, or none, under this name.
    if isinstance(status := metadata.get("status"), str) and not status.isdecimal():
        yield status


@lru_cache(maxsize=256)
def _how(word: str) -> How | None:
    """Return what a word means; of a word that is not known, what the known one inside of it means, if that is bad.

    A streamed reply has the words of all its parts in a row: ``MAX_TOKENSMAX_TOKENS``.
    """
    spelled = _spelled(word)
    inside = (
        how for known, how in _KNOWN.items() if how != "complete" and len(known) > 5 and known in spelled
    )
    return _KNOWN.get(spelled) or next(inside, None)


def _spelled(word: str) -> str:
    """Return a word in one spelling: Bedrock and others write words together, Cohere and Gemini in capitals."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word.strip())
    return re.sub(r"[^a-z]+", "_", snake.lower()).strip("_")


def _blocked_prompt(metadata: Mapping[str, Any]) -> str:
    """Return why Gemini refused the prompt, in which case its response has no candidate at all; else nothing."""
    feedback = metadata.get("prompt_feedback")
    reason = feedback.get("block_reason") if isinstance(feedback, Mapping) else None
    return str(getattr(reason, "name", reason)) if reason else ""


def _problem(how: How, word: str, *, reasoned: bool) -> str:
    if how != "cut_off":
        return _SENTENCES[how].format(word=word)
    if "context" in word.lower():
        return "The reply was cut off, since the model's context is full: take shorter texts or a larger context."
    if reasoned:
        return (
            "The model spent all its tokens on reasoning and did not come to its answer: "
            "raise max_tokens (a setting, or ?max_tokens= behind the model's name), or lower the reasoning effort."
        )
    if re.search(r"length|max|limit|incomplete", word, re.IGNORECASE):
        return (
            "The reply was cut off by the length limit: raise max_tokens (a setting, or ?max_tokens= behind the "
            "model's name), or have the model say less."
        )
    return f"The provider ended the reply too early ({word})."


_SENTENCES = {
    "complete": "",
    "refused": "The reply is a refusal.",
    "filtered": "The provider's filter withheld the reply ({word}).",
    "failed": "the provider broke the reply off ({word})",
}


def _unknown(words: list[str], text: str) -> Ending:
    """Judge by its look a reply of which the provider says nothing, or a word that is not known."""
    if not words:
        return Ending("cut_off", "The reply breaks off.") if _is_open(text) else Ending("complete")
    if _is_open(text) or _stops_midway(text):
        return Ending("cut_off", f"The reply breaks off (the provider says {words[0]!r} of it).")
    return Ending("complete")


def _is_open(text: str) -> bool:
    """Tell whether a text ends inside of a JSON object or a code fence, or with a sign that something follows."""
    text = text.strip()
    if text.startswith(("{", "```")) and text.count("{") > text.count("}"):
        return True
    return text.endswith((",", ";", "(", "[", " -")) or text.count("```") % 2 == 1


def _stops_midway(text: str) -> bool:
    """Tell whether the last line is longer than a label or title and has no end."""
    last = text.strip().rpartition("\n")[2].strip()
    return len(last.split()) > 6 and last[-1:].isalpha()
