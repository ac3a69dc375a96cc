"""What others have said, made fit for logs, traces and terminals: one line, no keys, no control characters."""

from __future__ import annotations

import os
import re

LONGEST = 1000
KEPT_AT_THE_END = 300
HIDDEN = "***"

_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST_SECRET = 8
_SECRETS = (
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=\bbearer )[\w.~+/=-]+"),
    re.compile(r"(?i)(?<=[?&]key=)[^&\s'\"]+"),
    re.compile(r"\b(?:sk|pk|lsv2|gsk|xai)[-_][\w-]{8,}|\bAIza[\w-]{10,}"),
)
_RAW_REPLY = " Raw reply: "


def harmless(text: str) -> str:
    """What an error says, fit to be shown.

    Keys are hidden: those in the environment, and whatever looks like one. Characters that do something rather than
    show something (new lines, terminal escapes, changes of direction) are spelled out. A model's reply is left out
    where an error quotes it, since it may quote the prompt in turn; it stands in the results.

    >>> harmless("no such key: sk-abcdefgh12345678")
    'no such key: ***'
    >>> print(harmless("fine\\n\\x1b[31mERROR"))
    fine\\n\\x1b[31mERROR
    """
    shown = _without_keys(text.partition(_RAW_REPLY)[0])
    if not shown.isprintable():
        shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown)
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST - KEPT_AT_THE_END]} ... {shown[-KEPT_AT_THE_END:]}"


def _without_keys(text: str) -> str:
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and value in text and _SECRET_NAME.search(name):
            text = text.replace(value, HIDDEN)
    for secret in _SECRETS:
        text = secret.sub(HIDDEN, text)
    return text
