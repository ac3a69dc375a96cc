"""Read the response to a request from a chat model's messages: text, fields, how it ended, what it took, who answered.

Every provider says with a word of its own, in a place of its own, how a reply ended: ``finish_reason`` (OpenAI, Gemini,
Mistral, Groq, DeepSeek), ``stop_reason`` (Anthropic), ``stopReason`` (Bedrock), ``done_reason`` (Ollama), ``status``
with ``incomplete_details`` (OpenAI's Responses API).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

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
from .provider_words import WORDS


def read_response(
    messages: Messages, label: str, seconds: float, tool: str | None = None, asked_name: str | None = None
) -> Reply:
    """Read the messages of one request; the first is returned with the usage, the others are attached to it.

    Args:
        messages: the replies to the request.
        label: the name of the model that was asked; a fallback may have written the reply.
        seconds: how long the request took.
        tool: the tool that was offered to answer with; calls of any other one are no reply.
        asked_name: the model's name as it was sent; None where it says nothing about the model.

    Raises:
        ResponseError: it holds no reply, by the provider's own word.
        UnreadResponseError: it could not be read; the error has the response, so that a run can keep it.
    """
    writer = messages[0].response_metadata.pop(WRITER, label)
    known: dict[str, Any] = {} if writer == label else {"model": writer}
    metadata = messages[0].response_metadata
    # As LangChain's clients keep it.
    served = metadata.get("model_name") or metadata.get("model") or metadata.get("model_id")
    is_other = isinstance(served, str) and asked_name and is_another(asked_name, served)
    facts = {"served": served if is_other else "", "system_fingerprint": metadata.get("system_fingerprint")}
    known |= {name: _shown(words) for name, words in facts.items() if isinstance(words, str) and words}
    try:
        others = tuple(_reply(message, writer, seconds, tool).without_usage() for message in messages[1:])
        return _reply(messages[0], writer, seconds, tool, others=others, **known)
    except ResponseError:
        raise
    except Exception as error:
        problem = f"{label}: the response came, but could not be read: {redact(repr(error))}"
        raise UnreadResponseError(problem, messages, seconds, tool) from error


def is_empty(message: BaseMessage) -> bool:
    """Return whether a message has no text, no arguments and no reason for that."""
    # Gemini's client makes such a message of any JSON without a reply in it, an error page of a proxy among them, and
    # LangChain writes its own name for the provider into each.
    about = message.response_metadata.keys() - {"model_provider"} or getattr(message, "usage_metadata", None)
    return not (about or message.text or _called(message))


def _reply(message: BaseMessage, label: str, seconds: float, tool: str | None, **further: Any) -> Reply:
    usage, called, content = _usage(message, label, seconds), _called(message), message.content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    # Reasoning in blocks of its own, and what was said on the way, do not count.
    final = [block.get("text") or "" for block in blocks if block.get("phase") == "final_answer"]
    words = "".join(final) or str(message.text)
    arguments = "\n".join(text for name, text in called if name == tool)
    answer = without_reasoning(words)
    # Servers of open models say ``reasoning`` or ``reasoning_content`` beside the text, others use blocks.
    beside = _REASONING & {name for name, value in message.additional_kwargs.items() if value}
    apart = beside or any(block.get("type") in _REASONING for block in blocks)
    reasoned = usage.reasoning_tokens > 0 or answer != words or bool(apart)
    how, problem = ending_of(message.response_metadata, answer or arguments, reasoned=reasoned)
    # OpenAI sends a refusal beside an empty text; a reply by function call has no text either.
    refusals = [place.get("refusal") for place in (message.additional_kwargs, *blocks)]
    if refusal := next((str(stated) for stated in refusals if stated), ""):
        how, problem = "refused", WORDS["problems"]["refused"]
    if how == "failed":
        raise ResponseError(problem, 200)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    given = next((dict(call["args"]) for call in calls if call["name"] == tool), None)
    # An object among other words is a statement like any other, and left to the readers, which know the texts.
    fields = whole_object(words) if given is None else given
    logprobs = message.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not problem and called and not (words or arguments):
        problem = f"The reply calls a tool that was not offered: {called[0][0]}({called[0][1][:300]})."
    return Reply(
        # Reasoning stays in the text: only who knows the prompt can tell the model's own tags from quoted ones.
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
    """Return name and arguments of each function call, as JSON text, unreadable ones as they came."""
    if not isinstance(message, AIMessage):
        return []
    broken = [(str(call["name"]), str(call["args"])) for call in message.invalid_tool_calls]
    return [*((call["name"], json.dumps(call["args"])) for call in message.tool_calls), *broken]


_REASONING = {"thinking", "redacted_thinking", "reasoning", "reasoning_content"}


def replace_surrogates(value: Any) -> Any:
    """Return JSON with the replacement character in place of each half of a surrogate pair.

    Models write such halves, and neither files nor databases take them.

    >>> replace_surrogates({"said": ["fine", chr(0xD83D)]}) == {"said": ["fine", chr(0xFFFD)]}
    True
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            # Through UTF-16, where two halves side by side become the character that they stand for.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {replace_surrogates(str(name)): replace_surrogates(inner) for name, inner in value.items()}
    return [replace_surrogates(inner) for inner in value] if isinstance(value, list) else value


# What a request took


def _usage(message: BaseMessage, label: str, seconds: float) -> Usage:
    """Read what the request took; where the provider does not say, or says what cannot be, its cost is unknown."""
    counts = getattr(message, "usage_metadata", None) or {}
    details = counts.get("input_token_details") or {}
    # Under a service tier of OpenAI's, the name has the tier in front. What is cached may be left out; what is said of
    # it and cannot be makes the cost unknown.
    from_cache = next((details[name] for name in details if name.endswith("cache_read")), None)
    cached = 0 if from_cache is None else token_count(from_cache)
    # Claude's clients tell apart how long a prompt is kept, and leave the plain count at zero then.
    kept = sum(token_count(details[name]) or 0 for name in _WRITTEN_TO_CACHE if name in details)
    sent, written = token_count(counts.get("input_tokens")), token_count(counts.get("output_tokens"))
    # No prompt is empty: clients make a zero of what the provider left out. The same goes for words that took no token.
    possible = sent and cached is not None and cached + kept <= sent
    known = bool(possible and written is not None and (written or not message.text))
    tokens = (sent or 0, (cached or 0) if known else 0, written or 0)
    return Usage(
        calls=1,
        input_tokens=tokens[0],
        cached_input_tokens=tokens[1],
        output_tokens=tokens[2],
        reasoning_tokens=token_count((counts.get("output_token_details") or {}).get("reasoning")) or 0,
        cost_usd=prices.cost_usd(label, *tokens, kept) if known or label in prices.FREE else None,
        seconds=seconds,
        uncounted=int(not sent or written is None),
    )


_WRITTEN_TO_CACHE = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")

MOST_TOKENS = 10**9
"""More tokens than any request has; a larger number is a mistake of the provider's."""


def token_count(value: object) -> int | None:
    """Return a number of tokens; None for what is none: text, fractions, negative and endless numbers.

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

How = Literal["complete", "cut_off", "refused", "filtered", "failed"]


def ending_of(metadata: Mapping[str, Any], text: str, *, reasoned: bool) -> tuple[How, str]:
    """Return how a reply ended, and in one sentence why a reply that is not complete is not, with the remedy if any.

    ``failed``: the provider broke it off for a reason of its own, and the same call may succeed later. A word that is
    not known here is not taken for complete where the text looks as if it broke off.

    Args:
        metadata: all that the provider said of the reply.
        text: what counts of its words: no reasoning.
        reasoned: whether the model is known to have reasoned before it answered.
    """
    feedback = metadata.get("prompt_feedback")
    # Why Gemini refused the prompt, in which case its response has no candidate at all.
    if isinstance(feedback, Mapping) and (blocked := feedback.get("block_reason")):
        word = getattr(blocked, "name", blocked)
        return "filtered", f"The provider's filter refused the prompt ({word})."
    details, status = metadata.get("incomplete_details"), metadata.get("status")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    # Other APIs than the Responses one have their status of HTTP, or none, under this name.
    sayings = (*map(metadata.get, _PLACES), reason, None if str(status).isdecimal() else status)
    words = [word for word in sayings if isinstance(word, str) and word]
    known = {how: word for word in words if (how := _how(word)) is not None}
    worst = next((how for how in _WORST_FIRST if how in known), None)
    if worst is not None:
        return worst, _problem(worst, known[worst], reasoned=reasoned and not text.strip())
    # A last line that is longer than a label or title and has no end.
    last = text.strip().rpartition("\n")[2].strip()
    if _is_open(text) or (words and len(last.split()) > 6 and last[-1:].isalpha()):
        source = f" (the provider says {words[0]!r} of it)" if words else ""
        return "cut_off", f"The reply breaks off{source}."
    return "complete", ""


_WORST_FIRST: tuple[How, ...] = ("filtered", "refused", "failed", "cut_off", "complete")

_KNOWN: Mapping[str, How] = {word: how for how, words in WORDS["endings"].items() for word in words.split()}

_PLACES = ("finish_reason", "stop_reason", "stopReason", "done_reason", "completion_reason")


@lru_cache(maxsize=256)
def _how(word: str) -> How | None:
    """Return what a word means; of a word that is not known, what the known one inside of it means, if that is bad.

    A streamed reply has the words of all its parts in a row: ``MAX_TOKENSMAX_TOKENS``.
    """
    # Bedrock and others write words together, Cohere and Gemini in capitals.
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word.strip())
    spelled = re.sub(r"[^a-z]+", "_", snake.lower()).strip("_")
    bad = ((known, how) for known, how in _KNOWN.items() if how != "complete" and len(known) > 5)
    return _KNOWN.get(spelled) or next((how for known, how in bad if known in spelled), None)


def _problem(how: How, word: str, *, reasoned: bool) -> str:
    why: str = how
    if how == "cut_off":
        by_length = re.search(r"length|max|limit|incomplete", word, re.IGNORECASE)
        why = "reasoning" if reasoned else "length" if by_length else "early"
        why = "context" if "context" in word.lower() else why
    problem: str = WORDS["problems"][why]
    return problem.format(word=word)


def _is_open(text: str) -> bool:
    """Tell whether a text ends inside of a JSON object or a code fence, or with a sign that something follows."""
    text = text.strip()
    unclosed = text.startswith(("{", "```")) and text.count("{") > text.count("}")
    return unclosed or text.endswith((",", ";", "(", "[", " -")) or text.count("```") % 2 == 1


# Who answered


@lru_cache(maxsize=64)
def _shown(words: str) -> str:
    """Redact and cut the provider's words, which are the same in most of its replies."""
    return redact(words)[:200]


def is_another(asked: str, served: str) -> bool:
    """Tell whether a provider answered with another model; a dated version or an alias of one is the same.

    >>> is_another("gpt-4o-mini", "gpt-4o-mini-2024-07-18"), is_another("gpt-4o", "gpt-4o-mini")
    (False, True)
    >>> is_another("claude-sonnet-4-0", "claude-sonnet-4-20250514"), is_another("gemini-flash-latest", "gemini-3")
    (False, False)
    """
    # What an alias such as ``gemini-flash-latest`` stands for is the provider's to say.
    if asked == served or asked.endswith("latest"):
        return False
    return _family(asked) != _family(served)


# A dated or numbered version of what was asked for: -2024-07-18, -20250514, -0613, -001, @20240620, :latest, -v1:0.
_VERSION = re.compile(
    r"(?:[-@.]?(?:v\d+(?::\d+)?|\d{4}-\d\d-\d\d|\d{8}|\d{6}|\d{3,4})|-0|:[\w.-]+|[-:]latest|-preview(?:-[\d-]+)?|-exp)$"
)
# us.anthropic.claude-..., as Bedrock names models
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere)\.")


def _family(name: str) -> str:
    """Return a model's name without the provider before it (``models/``, ``openai/``) and without its version."""
    shortened = _BEDROCK.sub("", name.lower().rpartition("/")[2])
    while (shorter := _VERSION.sub("", shortened)) not in ("", shortened):
        shortened = shorter
    return shortened
