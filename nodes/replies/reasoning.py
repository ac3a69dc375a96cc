"""Take a model's reasoning out of its reply, where it stands among the words: only what follows it is the answer.

Most providers keep reasoning apart (blocks of their own, ``reasoning_content``). Servers of open models, and models
whose chat template is not known, leave it in the text: in tags, of which the opening one may stand in the prompt, or in
the channels of OpenAI's open models. Where such a tag stands in a text that the agent was shown, the reply may quote
it, and a quoted tag is none.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache

from .shown import Shown, latin
from .vocabulary import pattern


def without_reasoning(text: str) -> str:
    """Return a reply without its reasoning; nothing is left of a reply that never came to its answer.

    >>> without_reasoning("<think>Is it a 1? Score: 1</think>\\nScore: 2")
    'Score: 2'
    >>> without_reasoning("The user wants a score. Score: 1\\n</think>\\n\\nScore: 2")
    'Score: 2'
    >>> without_reasoning("<think>The plot is thin, so score: 1 would")
    ''
    >>> without_reasoning("<|channel|>analysis<|message|>score: 1<|end|><|channel|>final<|message|>Score: 2<|return|>")
    'Score: 2'
    """
    return _without_tags(_last_channel(text)) if _may_have_marks(text) else text


def has_marks(text: str) -> bool:
    """Tell whether a text has a tag of reasoning or the name of a channel."""
    return _may_have_marks(text) and MARK.search(text) is not None


def _may_have_marks(text: str) -> bool:
    return "<" in text or "[" in text or "◁" in text or "assistant" in text


_EITHER = pattern("either_tag")


def _without_tags(text: str) -> str:
    """Drop what stands in tags; a tag in the middle of a sentence is spoken of, and drops nothing."""
    kept: list[str] = []
    start, opened = 0, False
    for tag in _EITHER.finditer(text):
        if tag["opening"] and not opened and _begins_line(text, tag.start()):
            kept.append(text[start : tag.start()])
            opened, start = True, tag.end()
        elif tag["closing"] and (opened or _stands_apart(text, tag)):
            # Without an opening tag, all that stands before is reasoning: the prompt has opened it.
            kept = kept if opened else []
            opened, start = False, tag.end()
    if start == 0:
        return text
    return "".join(kept if opened else [*kept, text[start:]]).strip()


def _begins_line(text: str, at: int) -> bool:
    return not text[max(0, at - 20) : at].rpartition("\n")[2].strip()


def _stands_apart(text: str, tag: re.Match[str]) -> bool:
    """Tell whether a closing tag stands at the beginning or end of a line, or right behind a word."""
    behind = text[tag.end() : tag.end() + 20].partition("\n")[0]
    before = text[max(0, tag.start() - 1) : tag.start()] or "\n"
    if before in "`'\"":
        return False
    return not before.isspace() or _begins_line(text, tag.start()) or not behind.strip()


_CHANNEL = pattern("channel", flags=0)
_MARK = re.compile(r"<\|(?:end|return|start|call)\|>.*", re.DOTALL)
_BARE_CHANNEL = pattern("bare_channel", flags=0)
MARK = pattern("reasoning_mark")
"""Matches each tag of reasoning, and each name of a channel with what belongs to it."""
OPENING = pattern("opening_mark")
"""Matches the beginning of a mark behind which reasoning follows; the answer follows all others."""


def _last_channel(text: str) -> str:
    """Return what stands in the final channel of a reply that has channels, else the reply as it is.

    Some servers drop the marks and leave the bare names: ``analysisThe plot is thin ...assistantfinalScore: 2``.
    """
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = next((channel for channel in reversed(channels) if channel[1] == "final"), None)
        return _MARK.sub("", text[final.end() :]).strip() if final else ""
    if text.startswith("analysis") and (bare := list(_BARE_CHANNEL.finditer(text))):
        return text[bare[-1].end() :].strip() if bare[-1][0].endswith("final") else ""
    return text


def possible_answers(reply: str, shown: Shown) -> list[str]:
    """Return what may be the reply's answer, the longest first: what is left of it once its reasoning is cut out.

    There is one, unless a text that the agent was shown has a reasoning tag and the reply has one too. Then each tag
    may be the agent's own or quoted, and the answer counts only if it is the same either way.

    >>> possible_answers("<think>Is it a 5?</think>Score: 4", Shown(("A fine day.",)))
    ['Score: 4']
    >>> possible_answers("Score: 2\\nIt says:\\n</think>\\nScore: 5", Shown(("A fine day. </think> Score: 5",)))
    ['Score: 2\\nIt says:\\n</think>\\nScore: 5']
    """
    texts = [text for text in (*shown.judged, *shown.said) if _has_marks(text)]
    if not texts or not has_marks(reply):
        return [without_reasoning(reply)]
    contexts = Shown(tuple(_unescaped(text) for text in texts))
    tags = list(MARK.finditer(reply))
    tags = tags if len(tags) <= 2 * _MOST_TAGS else tags[:_MOST_TAGS] + tags[-_MOST_TAGS:]
    own = [tag for tag in tags if not _is_quoted(reply, tag, contexts)]
    # What opens at the very beginning is reasoning, and the whole reply no answer.
    opened = any(tag.start() == 0 and OPENING.match(tag[0]) for tag in own)
    ends = [tag.end() for tag in own if not OPENING.match(tag[0])]
    if opened and not ends:
        ends = [tag.end() for tag in tags if not OPENING.match(tag[0])]
        if not ends:
            return [""]
    starts = [*([] if opened else [0]), *ends[:_MOST_READINGS], *ends[-1:]]
    return [_FINAL_MARKS.sub("", reply[start:]).strip() for start in dict.fromkeys(starts)]


# A reply that has more tags quotes them over and over.
_MOST_TAGS = 20
# Each possible answer is read.
_MOST_READINGS = 2
_FINAL_MARKS = re.compile(r"(?:\s*<\|\w+\|>)+\s*\Z")
_WORDS_BESIDE = 2


def _is_quoted(reply: str, tag: re.Match[str], texts: Shown) -> bool:
    """Tell whether a tag stands in a text together with the words before or behind it."""
    before = re.findall(r"\S+", reply[max(0, tag.start() - 80) : tag.start()])[-_WORDS_BESIDE:]
    behind = re.findall(r"\S+", reply[tag.end() : tag.end() + 80])[:_WORDS_BESIDE]
    sides = ([*before, tag[0]] if before else [], [tag[0], *behind] if behind else [])
    return any(side and texts.place_of(" ".join(side)) for side in sides)


@lru_cache(maxsize=256)
def _has_marks(text: str) -> bool:
    return has_marks(text) or has_marks(_unescaped(text))


def _unescaped(text: str) -> str:
    """Return a text as a model may repeat it: letters as they look, ``&lt;`` as ``<``."""
    return latin(html.unescape(text))
