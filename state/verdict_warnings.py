"""Declare the kinds of warnings of a verdict: the words of each, and the name under which reports count it.

A warning is a sentence, so that it reads the same in a graph's output, in a results file and on a page. Reports find
its kind again by the words that all warnings of a kind have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from .transcript import Turn


class WarningKind(NamedTuple):
    """Name one kind of warning.

    Attributes:
        words: what it says, with ``{names}`` in place of what differs.
        label: what reports call all warnings of this kind.

    >>> VOID_VOTE.of("juror_2", problem="The reply is empty."), kind_of("juror_2: void vote. It is empty.").label
    ('juror_2: void vote. The reply is empty.', 'void vote')
    """

    words: str
    label: str

    def of(self, who: str = "", **facts: Any) -> str:
        """Return the warning; ``who`` is the agent that it is about, and the round where there are several."""
        return f"{who}: " * bool(who) + self.words.format(**facts)


ASKED_AGAIN = WarningKind("the reply was asked for again {times} time(s)", "reply asked for again")
COPIED = WarningKind(
    "the reply repeats what it was shown, word for word", "reply that copies what it was shown"
)
UNREAD_SAMPLES = WarningKind(
    "{unread} of {asked} samples could not be read and were left out", "samples left out as unreadable"
)
VOID_VOTE = WarningKind("void vote. {problem}", "void vote")
INCONSISTENT = WarningKind("position inconsistency: {winners}", "the order of the answers decided")
NO_LOGPROBS = WarningKind("{model} returns no token log-probabilities", "no token log-probabilities")
ONE_REFEREE = WarningKind("there is only one referee: nobody to discuss with", "only one referee")
SPEECH_CUT_OFF = WarningKind("the speech was cut off; it counts as far as it goes", "speech cut off")
OFF_SCALE = WarningKind("{share:.0%} of the probability is off the scale", "probability off the scale")
SAME_AS_OTHER = WarningKind("says the same as {other}, word for word", "agents that repeat each other")
SAME_AGAIN = WarningKind("repeats its round {earlier}, word for word", "agents that repeat themselves")
EMPTY_OBJECTION = WarningKind("objects without saying to what ({words!r})", "objection without content")
COPIED_DECLARATION = WarningKind(
    "declares NO ISSUE in its prompt's words ({words!r})", "declaration that copies its prompt"
)
PROMPT_CUT = WarningKind(
    "the server counted {counted:,} tokens in a prompt of {sent:,} characters, so it may have cut the prompt",
    "prompt that the server may have cut",
)
OTHER_MODEL = WarningKind("{model} was answered by another model, {served}", "reply by another model")
OVERFLOW = WarningKind(
    "the debate outgrew the context: its last score stands", "debate that outgrew the context"
)

HEALTH = (
    *(SPEECH_CUT_OFF, OFF_SCALE, SAME_AS_OTHER, SAME_AGAIN, EMPTY_OBJECTION, COPIED_DECLARATION),
    *(PROMPT_CUT, OTHER_MODEL, OVERFLOW),
)
"""What says of a verdict that the judges behind it did not work as they were meant to."""
KINDS = (ASKED_AGAIN, COPIED, UNREAD_SAMPLES, VOID_VOTE, INCONSISTENT, NO_LOGPROBS, ONE_REFEREE, *HEALTH)


def kind_of(warning: str) -> WarningKind | None:
    """Return the kind of a warning, or None where it is of none that is declared here."""
    return next((kind for kind in KINDS if _pattern(kind.words).search(warning)), None)


def repeated_words(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield a warning for each turn that says, word for word, what an agent has said before: another, or the same one.

    Values do not count, nor do samples, and words that no model wrote. What is too short to be an argument is no
    repetition: a score alone may well be the same.
    """
    earlier: dict[tuple[int | None, str], Turn] = {}
    for turn in turns:
        lines = (" ".join(line.casefold().split()) for line in turn["content"].splitlines())
        words = " ".join(line for line in lines if len(line) >= _TELLING and not _VALUE.search(line))
        if turn["model"] is None or "sample" in turn or not words:
            continue
        first = earlier.setdefault((turn.get("order"), words), turn)
        who = f"{turn['agent']}, round {turn['round']}"
        if first["agent"] != turn["agent"]:
            yield SAME_AS_OTHER.of(who, other=first["agent"])
        elif first is not turn:
            yield SAME_AGAIN.of(who, earlier=first["round"])


def copied_words(who: str, content: str, prompt: str) -> Iterator[str]:
    """Yield a warning where a reply does hardly more than repeat, word for word, what its agent was shown.

    Args:
        who: the agent and its round.
        content: the text of its reply.
        prompt: the conversation up to the reply; it holds the texts, the log and the instructions.
    """
    joined = (" ".join(line.split()) for line in content.splitlines())
    lines = [line for line in joined if len(line) >= _TELLING][:_MOST_LINES]
    length = sum(map(len, lines))
    # This is asked of every reply. Most have a word in a line that the prompt lacks, which is told at once.
    possible = [line for line in lines if all(word in prompt for word in line.split())]
    if length < _LONG or sum(map(len, possible)) < _SHARE * length:
        return
    prompt = " ".join(prompt.split())
    if sum(len(line) for line in possible if line in prompt) >= _SHARE * length:
        yield COPIED.of(who)


_TELLING, _LONG, _SHARE = 20, 80, 0.9
"""Characters of a line, and of all such lines, below which equal words are no repetition (``Score: 4``, ``NO ISSUE``);
the share that must be copied."""
_MOST_LINES = 200
"""So many lines are looked at, since each is looked for in the whole prompt."""
_VALUE = re.compile(r": *[\[\]\d.,/ ]+$")


@lru_cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\{[^}]*\}", words))), re.DOTALL)
