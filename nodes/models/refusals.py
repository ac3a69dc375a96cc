"""Find the parameter that a provider's refusal is about, so that the call can be made without it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .capabilities import BOUNDS, CACHE, LIMIT, LOGPROBS, SEVERAL, STRUCTURE, SYSTEM
from .provider_words import WORDS, any_of, by_word

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
    for name, pattern in SHAPING.items():
        # In quotes, without which the pattern does not take a bare ``n`` for the parameter.
        named = parameter is not None and pattern.fullmatch(f"'{parameter}'")
        # 403 as well: OpenAI says "You are not allowed to request logprobs from this model" with that status.
        if name in sent and status in {400, 403, 422} and (named or pattern.search(message)):
            return name
    words = _snake(message)
    found, refused = {what for what, signs in _FINDS.items() if signs.search(words)}, status in _REFUSALS
    if refused and "no_system" in found:
        return SYSTEM
    # Bedrock refuses marks with 403 as well.
    if (refused or status == 403) and "cache" in found:
        return CACHE
    known = _known(parameter) if parameter else None
    too_much = refused and "too_much" in found
    if known == STRUCTURE or (not known and (too_much or _is_about_form(status, found))):
        # The reply's form comes from this package, and a caller cannot mend it: it is eased for whatever reason.
        eased = BOUNDS if too_much or "bound" in found else STRUCTURE
        return eased if refused else None
    if status not in {400, 422}:
        return None
    # A call's own parameters have the default limit alone: where it is too high, the provider's own one holds.
    too_high = LIMIT in sent and (known == LIMIT or "limit" in found)
    named_here = {known} if parameter else {_known(word) for word in re.findall(r"[a-z_]+", words)}
    rejected = next((name for name in DROPPABLE if name in named_here), None)
    return LIMIT if too_high else rejected if "unsupported" in found else None


def _known(name: str) -> str | None:
    """Return the parameter that a provider's word stands for, if it is one that can be left out."""
    # Providers also name a part, such as ``response_format.json_schema``: its first word is the parameter.
    first = _snake(name).partition(".")[0]
    first = _OTHER_NAMES.get(first, first)
    return first if first in (*DROPPABLE, STRUCTURE) else None


def is_about_something_else(message: str) -> bool:
    """Tell whether a refusal is certainly not about the form that the reply was to have."""
    return _FINDS["no_form"].search(_snake(message)) is not None


def _is_about_form(status: int | None, found: set[str]) -> bool:
    """Tell whether a refusal in whose words this was found is about the form that the reply was to have."""
    if status not in _REFUSALS or "no_form" in found:
        return False
    # The form is the likeliest cause where none is told: schemas are what models differ in most.
    if status in {400, 422} and "unexplained" in found:
        return True
    # An error of the server's own may pass, unless it says that it will not.
    if status < 500 and "form_parameter" in found:
        return True
    return bool({"unsupported", "not_built"} & found and {"form_parameter", "form"} & found)


_REFUSALS = {400, 404, 405, 415, 422, 500, 501}
"""With 404 OpenRouter says that no endpoint has a feature; servers of open models say it with 500."""
_FINDS = {what: any_of(patterns) for what, patterns in WORDS["refusals"].items()}
"""Finds what a refusal is about in its words."""

_OTHER_NAMES = by_word(WORDS["parameters"])


def _snake(message: str) -> str:
    # Gemini writes ``responseSchema`` or ``maxOutputTokens`` for what its client calls ``response_schema``.
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty")
"""Parameters that a call can be made without."""
