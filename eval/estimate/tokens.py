"""How many tokens a text has, roughly: by its letters, for no tokenizer is at hand that knows every model."""

from __future__ import annotations

import re

LATIN, WIDE, OTHER = 4.0, 1.3, 2.5
"""Characters to a token. Latin script: Google's guide to Gemini's tokens, and near what GPT-4o's tokenizer makes of
English (4.4). Chinese, Japanese and Korean: between the 1.1 and 2.0 that Cohere gives for the three in Wikipedia.
Other scripts lie between those two, and apart from each other by model and language."""

_WIDE = re.compile(
    r"[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_OTHER = re.compile(r"[\u0370-\u10ff\u1200-\u1dff\u2c00-\u2dff\ufb00-\ufdff\U00010000-\U0001ffff]")


def tokens_in(text: str) -> float:
    """About so many tokens; a model's own tokenizer may find a third more or fewer.

    >>> tokens_in("It rained all day."), round(tokens_in("雨が降った。"), 1)
    (4.5, 4.6)
    """
    if text.isascii():
        return len(text) / LATIN
    wide, other = len(_WIDE.findall(text)), len(_OTHER.findall(text))
    return wide / WIDE + other / OTHER + (len(text) - wide - other) / LATIN
