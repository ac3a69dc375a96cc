"""Find the parameter that a provider's refusal is about, so that the call can be made without it."""

from __future__ import annotations

import re
from collections.abc import Mapping

SEVERAL, LOGPROBS = "n", "logprobs"
"""Parameters that ask for several replies to one request, and for the likely tokens in each place of a reply."""

# Matches ``logprobs``, ``top_logprobs`` and Gemini's ``responseLogprobs``; a bare ``n`` is too common a letter, so it
# must be quoted or stand before a verb: ``'n' is not supported``, ``n must be 1``.
SHAPING = {
    LOGPROBS: re.compile(r"['\"`]?(?:response_?)?(?:top_)?log_?probs['\"`]?", re.IGNORECASE),
    SEVERAL: re.compile(r"['\"`]n['\"`]|\bn (?:must|should|is|>|=)|multiple (?:choices|completions)"),
}
"""From each parameter that decides the shape of a reply to a pattern that finds it in a refusal."""


def rejected_parameter(
    status: int | None, message: str, parameter: str | None, sent: Mapping[str, object]
) -> str | None:
    """Return the parameter that the provider does not take, or None where the call cannot be made without it.

    A parameter whose *value* is refused (too large, say) is the caller's to mend, and stays; but the number of
    replies to a request and that of log-probabilities are no caller's choice.

    Args:
        status: HTTP status of the refusal.
        message: its words.
        parameter: what it names as the offender, if anything.
        sent: the parameters of this call alone.
    """
    if (shaping := _rejected_shape(status, message, parameter, sent)) is not None:
        return shaping
    if status not in {400, 422}:
        return None
    said = _snake(message)
    named = [parameter] if parameter else re.findall(r"[a-z_]+", said)
    if _NO_JSON.search(said):
        named = [STRUCTURE]
    # Providers also name a part, such as ``response_format.json_schema``: its first word is the parameter.
    found = {_OTHER_NAMES.get(name, name) for name in (_snake(n).partition(".")[0] for n in named)}
    rejected = next((name for name in DROPPABLE if name in found), None)
    # The reply's schema comes from this package, and a caller cannot mend it: it is dropped for whatever reason.
    unsupported = _UNSUPPORTED.search(said) or (parameter and rejected == STRUCTURE)
    return rejected if unsupported else None


def _rejected_shape(
    status: int | None, message: str, parameter: str | None, sent: Mapping[str, object]
) -> str | None:
    """Return ``n`` or ``logprobs`` where it was sent and the refusal, in whatever words, is about it; else None."""
    # 403 as well: OpenAI says "You are not allowed to request logprobs from this model" with that status.
    if status not in {400, 403, 422}:
        return None
    for name, spoken_of in SHAPING.items():
        # In quotes, without which the pattern does not take a bare ``n`` for the parameter.
        named = parameter is not None and spoken_of.fullmatch(f"'{parameter}'")
        if name in sent and (named or spoken_of.search(message)):
            return name
    return None


_UNSUPPORTED = re.compile(
    r"unsupported|not (?:\w+ )?supported|(?:not|n't) support|unknown (?:name|parameter|field|argument)|unrecognized"
    r"|unexpected keyword|cannot find field|only the default|not (?:permitted|allowed|enabled|available)|deprecated"
)
_NO_JSON = re.compile(
    r"(?:json mode|json schema|structured outputs?|function calling|tool use) (?:is|are) not"
)

STRUCTURE = "response_format"
"""Stands for every parameter that asks for JSON, under whatever name the provider knows it."""
_OTHER_NAMES = {
    **dict.fromkeys(("tools", "tool_choice", "response_schema", "response_json_schema"), STRUCTURE),
    **dict.fromkeys(("response_mime_type", "json_schema"), STRUCTURE),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens"), "max_tokens"),
}


def _snake(message: str) -> str:
    # Gemini writes ``responseSchema`` or ``maxOutputTokens`` for what its client calls ``response_schema``.
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty", STRUCTURE)
"""Parameters that a call can be made without."""
