"""Read a response from a chat model's messages: text, fields, ending, usage and model.

Providers report the end of a reply in different words and places: ``finish_reason`` (OpenAI,
Gemini, Mistral, Groq, DeepSeek), ``stop_reason`` (Anthropic), ``stopReason`` (Bedrock),
``done_reason`` (Ollama), ``status`` with ``incomplete_details`` (OpenAI's Responses API).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ...state.redaction import redact
from ...state.transcript import Usage
from ..replies.json_fields import whole_object
from ..replies.own_words import without_reasoning
from . import prices
from .call import Reply, UnreadResponseError
from .capabilities import Messages
from .model_chains import WRITER
from .provider_errors import ResponseError
from .providers import FINISH_REASONS, MODEL_PREFIXES, Ending


def read_response(
    messages: Messages,
    label: str,
    seconds: float,
    tool: str | None = None,
    asked_name: str | None = None,
    with_tools: bool = False,
) -> Reply:
    """Read the messages of one request into a reply with the usage; attach the others to it.

    Args:
        messages: the replies to the request.
        label: the name of the model that was asked; a fallback may have written the reply.
        seconds: how long the request took.
        tool: the tool that was offered for the answer; calls of other tools are ignored.
        asked_name: the requested name of the model; None if it does not identify the model.
        with_tools: whether the model was offered tools to call before its answer.

    Raises:
        ResponseError: the provider reports that there is no reply.
        UnreadResponseError: the response could not be read; the error contains it, so that a run
            can save it.
    """
    writer = messages[0].response_metadata.pop(WRITER, label)
    known: dict[str, Any] = {} if writer == label else {"model": writer}
    metadata = messages[0].response_metadata
    # The names under which LangChain's clients store it.
    served = metadata.get("model_name") or metadata.get("model") or metadata.get("model_id")
    is_other = isinstance(served, str) and asked_name and is_another(asked_name, served)
    facts = {
        "served": served if is_other else "",
        "system_fingerprint": metadata.get("system_fingerprint"),
    }
    known |= {
        name: _shown(words) for name, words in facts.items() if isinstance(words, str) and words
    }
    try:
        others = tuple(
            _reply(message, writer, seconds, tool).without_usage() for message in messages[1:]
        )
        if with_tools:
            known["tool_calls"] = tuple(replace_surrogates(_calls_of_tools(messages[0])))
        return _reply(messages[0], writer, seconds, tool, others=others, **known)
    except ResponseError:
        raise
    except Exception as error:
        problem = f"{label}: the response came, but could not be read: {redact(repr(error))}"
        raise UnreadResponseError(problem, messages, seconds, tool, with_tools) from error


def is_empty(message: BaseMessage) -> bool:
    """Return whether a message has no text, no arguments and no reason for their absence."""
    # Gemini's client returns such a message for any JSON without a reply, such as an error page of
    # a proxy. LangChain adds its own name for the provider to each.
    about = message.response_metadata.keys() - {"model_provider"} or getattr(
        message, "usage_metadata", None
    )
    return not (about or message.text or _called(message))


def _reply(
    message: BaseMessage, label: str, seconds: float, tool: str | None, **further: Any
) -> Reply:
    usage = _usage(message, label, seconds)
    called = _called(message)
    content = message.content
    blocks = (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
    # Only the final answer counts, not reasoning or comments in other blocks.
    final = [block.get("text") or "" for block in blocks if block.get("phase") == "final_answer"]
    words = "".join(final) or str(message.text)
    arguments = "\n".join(text for name, text in called if name == tool)
    answer = without_reasoning(words)
    # Servers of open models put reasoning in ``reasoning`` or ``reasoning_content``, other
    # providers in blocks.
    beside = _REASONING & {name for name, value in message.additional_kwargs.items() if value}
    apart = beside or any(block.get("type") in _REASONING for block in blocks)
    reasoned = usage.reasoning_tokens > 0 or answer != words or bool(apart)
    how, problem = ending_of(message.response_metadata, answer or arguments, reasoned=reasoned)
    # OpenAI sends a refusal with an empty text. A reply by function call has no text either.
    refusals = [place.get("refusal") for place in (message.additional_kwargs, *blocks)]
    if refusal := next((str(stated) for stated in refusals if stated), ""):
        how = "refused"
        problem = REFUSED
    if how == "failed":
        raise ResponseError(problem, 200)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    given = next((dict(call["args"]) for call in calls if call["name"] == tool), None)
    # Readers handle an object among other words, because they know which texts may be quoted.
    fields = whole_object(words) if given is None else given
    logprobs = message.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not problem and called and not (words or arguments or further.get("tool_calls")):
        problem = (
            f"The reply calls a tool that was not offered: {called[0][0]}({called[0][1][:300]})."
        )
    return Reply(
        # Reasoning stays in the text: only the prompt shows which tags the model quoted.
        text=replace_surrogates(refusal or words or arguments),
        fields=replace_surrogates(fields),
        cut_off=how == "cut_off",
        refused=how in ("refused", "filtered"),
        usage=usage,
        tokens=tokens if isinstance(tokens, list) and tokens else None,
        filtered=how == "filtered",
        problem=problem,
        reasoned=reasoned,
        **further,
    )


def _called(message: BaseMessage) -> list[tuple[str, str]]:
    """Return the function calls as (name, JSON arguments); unreadable arguments stay unchanged."""
    if not isinstance(message, AIMessage):
        return []
    broken = [(str(call["name"]), str(call["args"])) for call in message.invalid_tool_calls]
    return [*((call["name"], json.dumps(call["args"])) for call in message.tool_calls), *broken]


def _calls_of_tools(message: BaseMessage) -> list[dict[str, Any]]:
    """Return the calls of offered tools as plain JSON."""
    if not isinstance(message, AIMessage):
        return []
    calls = [{"name": call["name"], "args": dict(call["args"])} for call in message.tool_calls]
    broken = [
        {"name": str(call["name"]), "invalid": str(call["args"])}
        for call in message.invalid_tool_calls
    ]
    return [*calls, *broken]


_REASONING = {"thinking", "redacted_thinking", "reasoning", "reasoning_content"}


def replace_surrogates(value: Any) -> Any:
    """Return JSON with the replacement character for each half of a surrogate pair.

    Models write such halves, but files and databases refuse them.

    >>> replace_surrogates({"said": ["fine", chr(0xD83D)]}) == {"said": ["fine", chr(0xFFFD)]}
    True
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            # In UTF-16, two adjacent halves become one character.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {
            replace_surrogates(str(name)): replace_surrogates(inner)
            for name, inner in value.items()
        }
    return [replace_surrogates(inner) for inner in value] if isinstance(value, list) else value


# Usage


def _usage(message: BaseMessage, label: str, seconds: float) -> Usage:
    """Return the usage of a request; impossible or missing counts make the cost unknown."""
    counts = getattr(message, "usage_metadata", None) or {}
    details = counts.get("input_token_details") or {}
    # OpenAI puts a service tier before the name. A missing count of cached tokens means zero; an
    # impossible count makes the cost unknown.
    from_cache = next((details[name] for name in details if name.endswith("cache_read")), None)
    cached = 0 if from_cache is None else token_count(from_cache)
    # Claude's clients count by cache lifetime, and then leave the plain count at zero.
    kept = sum(token_count(details[name]) or 0 for name in _WRITTEN_TO_CACHE if name in details)
    sent = token_count(counts.get("input_tokens"))
    written = token_count(counts.get("output_tokens"))
    # A prompt is never empty: clients turn a missing count into zero. The same applies to a reply
    # of zero tokens.
    possible = sent and cached is not None and cached + kept <= sent
    known = bool(possible and written is not None and (written or not message.text))
    tokens = (sent or 0, (cached or 0) if known else 0, written or 0)
    return Usage(
        calls=1,
        input_tokens=tokens[0],
        cached_input_tokens=tokens[1],
        output_tokens=tokens[2],
        reasoning_tokens=token_count((counts.get("output_token_details") or {}).get("reasoning"))
        or 0,
        cost_usd=prices.cost_usd(label, *tokens, kept) if known or label in prices.FREE else None,
        seconds=seconds,
        uncounted=int(not sent or written is None),
    )


_WRITTEN_TO_CACHE = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")

MOST_TOKENS = 10**9
"""More tokens than any request can have; a larger number is the provider's error."""


def token_count(value: object) -> int | None:
    """Return a number of tokens; None for text, fractions, negative and infinite numbers.

    >>> token_count(12), token_count(12.0), token_count("12"), token_count(-1), token_count(1e30), token_count(None)
    (12, 12, 12, None, None, None)
    """
    if type(value) is int:
        return value if 0 <= value <= MOST_TOKENS else None
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS and value == int(value) else None


# How a reply ended

REFUSED = "The reply is a refusal."


def ending_of(metadata: Mapping[str, Any], text: str, *, reasoned: bool) -> tuple[Ending, str]:
    """Return how a reply ended; if it is incomplete, also the reason and a remedy.

    ``failed``: the provider stopped it, and the same call may succeed later. A reply with an
    unknown finish reason is complete only if its text does not look cut off.

    Args:
        metadata: the provider's metadata of the reply.
        text: its text without reasoning.
        reasoned: whether the model is known to have reasoned before it answered.
    """
    feedback = metadata.get("prompt_feedback")
    # Gemini's reason for refusing the prompt; the response then has no candidate.
    if isinstance(feedback, Mapping) and (blocked := feedback.get("block_reason")):
        word = getattr(blocked, "name", blocked)
        return "filtered", f"The provider's filter refused the prompt ({word})."
    details = metadata.get("incomplete_details")
    status = metadata.get("status")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    # In APIs other than the Responses API this is the HTTP status, or missing.
    sayings = (*map(metadata.get, _PLACES), reason, None if str(status).isdecimal() else status)
    words = [word for word in sayings if isinstance(word, str) and word]
    known = {how: word for word in words if (how := _how(word)) is not None}
    worst = next((how for how in _WORST_FIRST if how in known), None)
    if worst is not None:
        return worst, _problem(worst, known[worst], reasoned=reasoned and not text.strip())
    # An unfinished last line that is longer than a label or title.
    last = text.strip().rpartition("\n")[2].strip()
    if _is_open(text) or (words and len(last.split()) > 6 and last[-1:].isalpha()):
        source = f" (the provider's words: {words[0]!r})" if words else ""
        return "cut_off", f"The reply breaks off{source}."
    return "complete", ""


_WORST_FIRST: tuple[Ending, ...] = ("filtered", "refused", "failed", "cut_off", "complete")

_PLACES = ("finish_reason", "stop_reason", "stopReason", "done_reason", "completion_reason")


@lru_cache(maxsize=256)
def _how(word: str) -> Ending | None:
    """Return the meaning of a word; an unknown word counts as the known error word inside it.

    A streamed reply repeats the words of all its parts: ``MAX_TOKENSMAX_TOKENS``.
    """
    # Bedrock and others use camel case, Cohere and Gemini capitals.
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word.strip())
    spelled = re.sub(r"[^a-z]+", "_", snake.lower()).strip("_")
    bad = (
        (known, how)
        for known, how in FINISH_REASONS.items()
        if how != "complete" and len(known) > 5
    )
    return FINISH_REASONS.get(spelled) or next(
        (how for known, how in bad if known in spelled), None
    )


def _problem(how: Ending, word: str, *, reasoned: bool) -> str:
    """Return why a reply with this finish reason is incomplete, and a remedy if there is one."""
    if how == "complete":
        return ""
    if how == "refused":
        return REFUSED
    if how == "filtered":
        return f"The provider's filter withheld the reply ({word})."
    if how == "failed":
        return f"the provider broke the reply off ({word})"
    return _cut_off_problem(word, reasoned)


def _cut_off_problem(word: str, reasoned: bool) -> str:
    if "context" in word.lower():
        return "The reply was cut off, since the model's context is full: take shorter texts or a larger context."
    if reasoned:
        return (
            "The model spent all its tokens on reasoning and did not come to its answer: "
            "raise max_tokens (a setting, or ?max_tokens= behind the model's name), or lower the reasoning effort."
        )
    if re.search(r"length|max|limit|incomplete", word, re.IGNORECASE):
        return (
            "The reply was cut off by the length limit: "
            "raise max_tokens (a setting, or ?max_tokens= behind the model's name), or have the model say less."
        )
    return f"The provider ended the reply too early ({word})."


def _is_open(text: str) -> bool:
    """Return whether a text ends inside a JSON object or code fence, or looks unfinished."""
    text = text.strip()
    unclosed = text.startswith(("{", "```")) and text.count("{") > text.count("}")
    return unclosed or text.endswith((",", ";", "(", "[", " -")) or text.count("```") % 2 == 1


# The answering model


@lru_cache(maxsize=64)
def _shown(words: str) -> str:
    """Return the provider's words, redacted and cut; cached, because they repeat."""
    return redact(words)[:200]


def is_another(asked: str, served: str) -> bool:
    """Return whether another model answered; dated versions and aliases count as the same.

    >>> is_another("gpt-4o-mini", "gpt-4o-mini-2024-07-18"), is_another("gpt-4o", "gpt-4o-mini")
    (False, True)
    >>> is_another("claude-sonnet-4-0", "claude-sonnet-4-20250514"), is_another("gemini-flash-latest", "gemini-3")
    (False, False)
    """
    # The provider decides which model an alias such as ``gemini-flash-latest`` denotes.
    if asked == served or asked.endswith("latest"):
        return False
    return _family(asked) != _family(served)


# A dated or numbered version of the requested model: -2024-07-18, -20250514, -0613, -001,
# @20240620, :latest, -v1:0.
_VERSION = re.compile(
    r"(?:[-@.]?(?:v\d+(?::\d+)?|\d{4}-\d\d-\d\d|\d{8}|\d{6}|\d{3,4})|-0|:[\w.-]+|[-:]latest|-preview(?:-[\d-]+)?|-exp)$"
)


def _family(name: str) -> str:
    """Return a model's name without provider (``models/``, ``openai/``) and version."""
    shortened = MODEL_PREFIXES.sub("", name.lower().rpartition("/")[2])
    while (shorter := _VERSION.sub("", shortened)) not in ("", shortened):
        shortened = shorter
    return shortened
