"""Parameters a provider may not take, and which one a refusal names."""

from __future__ import annotations

import re
from collections.abc import Mapping

SEVERAL, LOGPROBS = "n", "logprobs"
"""Several replies to one request; what was likely in place of each token."""

SHAPING = {
    LOGPROBS: re.compile(r"['\"`]?(?:response_?)?(?:top_)?log_?probs['\"`]?", re.IGNORECASE),
    SEVERAL: re.compile(r"['\"`]n['\"`]|\bn (?:must|should|is|>|=)|multiple (?:choices|completions)"),
}
"""What decides the shape of a reply, and how a refusal speaks of it."""


def rejected_parameter(
    status: int | None, message: str, parameter: str | None, sent: Mapping[str, object]
) -> str | None:
    """The parameter that the provider does not take, where it is one that can be done without.

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
    found = {_OTHER_NAMES.get(name, name) for name in (_snake(n).partition(".")[0] for n in named)}
    rejected = next((name for name in DROPPABLE if name in found), None)
    unsupported = _UNSUPPORTED.search(said) or (parameter and rejected == STRUCTURE)
    return rejected if unsupported else None


def _rejected_shape(
    status: int | None, message: str, parameter: str | None, sent: Mapping[str, object]
) -> str | None:
    """``n`` or ``logprobs`` where it was sent and the refusal, in whatever words, is about it."""
    if status not in {400, 403, 422}:
        return None
    for name, spoken_of in SHAPING.items():
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
"""Stands for all that asks for JSON, under whatever name the provider knows it."""
_OTHER_NAMES = {
    **dict.fromkeys(("tools", "tool_choice", "response_schema", "response_json_schema"), STRUCTURE),
    **dict.fromkeys(("response_mime_type", "json_schema"), STRUCTURE),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens"), "max_tokens"),
}


def _snake(message: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty", STRUCTURE)
"""What a call can do without."""
