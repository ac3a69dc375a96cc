"""Take a model's reasoning out of its reply, where it stands among the words: only what follows it is the answer.

Most providers keep reasoning apart (blocks of their own, ``reasoning_content``). Servers of open models, and models
whose chat template is not known, leave it in the text: in tags, of which the opening one may stand in the prompt, or in
the channels of OpenAI's open models.
"""

from __future__ import annotations

import re


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
    if not _may_have_marks(text):
        return text
    return _without_tags(_last_channel(text))


def has_marks(text: str) -> bool:
    """Tell whether a text has a tag of reasoning or the name of a channel."""
    return _may_have_marks(text) and MARK.search(text) is not None


def _may_have_marks(text: str) -> bool:
    return "<" in text or "[" in text or "◁" in text or "assistant" in text


_NAMES = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reason|scratchpad)"
_OPENING = re.compile(
    rf"<{_NAMES}>|\[THINK\]|◁think▷|<\|(?:START_THINKING|begin_of_thought)\|>", re.IGNORECASE
)
_CLOSING = re.compile(
    rf"</{_NAMES}>|\[/THINK\]|◁/think▷|<\|(?:END_THINKING|end_of_thought)\|>", re.IGNORECASE
)
_EITHER = re.compile(f"(?P<opening>{_OPENING.pattern})|(?P<closing>{_CLOSING.pattern})", re.IGNORECASE)


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


_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>")
_MARK = re.compile(r"<\|(?:end|return|start|call)\|>.*", re.DOTALL)
_BARE_CHANNEL = re.compile(r"(?:assistant)(?:analysis|commentary|final)")
MARK = re.compile(
    rf"{_OPENING.pattern}|{_CLOSING.pattern}|{_CHANNEL.pattern}|{_BARE_CHANNEL.pattern}", re.IGNORECASE
)
"""Matches each tag of reasoning, and each name of a channel with what belongs to it."""
OPENING = re.compile(rf"{_OPENING.pattern}|<\|channel\|>(?!\s*final)|assistant(?!final)", re.IGNORECASE)
"""Matches the beginning of a mark behind which reasoning follows; the answer follows all others."""


def _last_channel(text: str) -> str:
    """Return what stands in the final channel of a reply that has channels, else the reply as it is.

    Some servers drop the marks and leave the bare names: ``analysisThe plot is thin ...assistantfinalScore: 2``.
    """
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = next((found for found in reversed(channels) if found[1] == "final"), None)
        return _MARK.sub("", text[final.end() :]).strip() if final else ""
    if text.startswith("analysis") and (bare := list(_BARE_CHANNEL.finditer(text))):
        return text[bare[-1].end() :].strip() if bare[-1][0].endswith("final") else ""
    return text
