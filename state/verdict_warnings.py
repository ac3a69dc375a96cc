"""The kinds of warnings of a verdict: their wording, and the names by which reports count them.

A warning is a sentence, so that it reads the same in a graph's output, in a results file and on a
page. Reports recognise its kind by the words that all warnings of a kind share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from .transcript import Turn


class WarningKind(NamedTuple):
    """One kind of warning.

    Attributes:
        words: the text, with ``{names}`` for the variable parts.
        label: the name of this kind in reports.

    >>> VOID_VOTE.of("juror_2", problem="The reply is empty."), kind_of("juror_2: void vote. It is empty.").label
    ('juror_2: void vote. The reply is empty.', 'void vote')
    """

    words: str
    label: str

    def of(self, who: str = "", **facts: Any) -> str:
        """Return the warning.

        ``who`` is the agent that it is about, with the round if there are several.
        """
        return f"{who}: " * bool(who) + self.words.format(**facts)


DISCLOSURE = "Demo mode: scores come from word counts, not from a language model."
"""The warning of every verdict of the offline judge."""
EARLIER_DISCLOSURE = (
    "The offline judge is no language model: it scores by lexical statistics of the texts."
)
"""The same warning in the results of earlier versions."""
LOCAL_DISCLOSURE = "The model local is tiny (SmolLM2, 135 million parameters): its verdicts are worth next to nothing."
"""The warning of every verdict of the model ``local``."""

ASKED_AGAIN = WarningKind("the reply was asked for again {times} time(s)", "reply asked for again")
COPIED = WarningKind(
    "the reply repeats what it was shown, word for word", "reply that copies what it was shown"
)
UNREAD_SAMPLES = WarningKind(
    "{unread} of {asked} samples could not be read and were left out",
    "samples left out as unreadable",
)
VOID_VOTE = WarningKind("void vote. {problem}", "void vote")
NO_VOTE = WarningKind("no vote, left out of the panel. {problem}", "panel without some members")
RECUSED_MEMBER = WarningKind(
    "recused, left out of the panel. {problem}", "panel with recused members"
)
UNKNOWN_FAMILY = WarningKind(
    "recuse=family: the family of {name} is unknown, so nobody was recused because of it",
    "recusal with an unknown family",
)
NO_AUTHOR = WarningKind(
    "recuse=family: the task does not name the author of every text, so a member may have judged "
    "a text of its family",
    "recusal without an author",
)
SILENT = WarningKind("left out of the discussion. {problem}", "discussion with silent turns")
REPLACED = WarningKind(
    "{model} has taken the seat of {replaces}. {reason}", "panel with replaced members"
)
NO_QUORUM = WarningKind(
    "{votes} of {jurors} jurors voted, and quorum={quorum} needs {needed}: the mean scores decide",
    "jury without a quorum",
)
INCONSISTENT = WarningKind("position inconsistency: {winners}", "the order of the answers decided")
NO_LOGPROBS = WarningKind(
    "{model} returns no token log-probabilities", "no token log-probabilities"
)
NO_TOKENS = WarningKind(
    "a model reported no tokens, so budget_tokens did not count all calls",
    "token budget that could not be checked",
)
ONE_REFEREE = WarningKind("there is only one referee: nobody to discuss with", "only one referee")
UNQUOTED = WarningKind(
    "{unquoted} of {met} criteria are met without a quotation from the candidate",
    "criteria met without a quotation",
)
NOT_TRIMMED = WarningKind(
    "fewer than three members voted, so no score was left out as the highest or the lowest",
    "trimmed mean of fewer than three",
)
TOOLS_FAILED = WarningKind(
    "{failed} of {asked} tool calls gave no result. {first}", "tool calls without a result"
)
TOOL_LIMIT = WarningKind(
    "{beyond} tool call(s) beyond tool_rounds={most} were not run", "tool calls beyond the limit"
)
LOOK_UP_UNREAD = WarningKind(
    "its request for tools could not be read, so it answered without it. {problem}",
    "unreadable requests for tools",
)
UNCITED = WarningKind(
    "cites none of its {results} tool result(s)", "replies that cite none of their evidence"
)
UNKNOWN_EVIDENCE = WarningKind(
    "cites {ids}, which it was not shown", "citations of unknown evidence"
)
SPEECH_CUT_OFF = WarningKind(
    "the speech was cut off; it counts as far as it goes", "speech cut off"
)
OFF_SCALE = WarningKind(
    "{share:.0%} of the probability is off the scale", "probability off the scale"
)
SAME_AS_OTHER = WarningKind(
    "says the same as {other}, word for word", "agents that repeat each other"
)
SAME_AGAIN = WarningKind(
    "repeats its round {earlier}, word for word", "agents that repeat themselves"
)
EMPTY_OBJECTION = WarningKind(
    "objects without saying to what ({words!r})", "objection without content"
)
COPIED_DECLARATION = WarningKind(
    "declares NO ISSUE in its prompt's words ({words!r})", "declaration that copies its prompt"
)
PROMPT_CUT = WarningKind(
    "the server counted {counted:,} tokens in a prompt of {sent:,} characters, so it may have cut the prompt",
    "prompt that the server may have cut",
)
OTHER_MODEL = WarningKind(
    "{model} was answered by another model, {served}", "reply by another model"
)
OVERFLOW = WarningKind(
    "the debate outgrew the context: its last score stands", "debate that outgrew the context"
)

HEALTH = (
    *(SPEECH_CUT_OFF, OFF_SCALE, SAME_AS_OTHER, SAME_AGAIN, EMPTY_OBJECTION, COPIED_DECLARATION),
    *(PROMPT_CUT, OTHER_MODEL, OVERFLOW, UNKNOWN_EVIDENCE),
)
"""Warnings that the judges of a verdict did not work as intended."""
KINDS = (
    ASKED_AGAIN,
    COPIED,
    UNREAD_SAMPLES,
    VOID_VOTE,
    NO_VOTE,
    RECUSED_MEMBER,
    UNKNOWN_FAMILY,
    NO_AUTHOR,
    SILENT,
    REPLACED,
    NO_QUORUM,
    INCONSISTENT,
    NO_LOGPROBS,
    NO_TOKENS,
    ONE_REFEREE,
    NOT_TRIMMED,
    UNQUOTED,
    TOOLS_FAILED,
    TOOL_LIMIT,
    LOOK_UP_UNREAD,
    UNCITED,
    *HEALTH,
)


def kind_of(warning: str) -> WarningKind | None:
    """Return the kind of a warning, or None if it is not declared here."""
    return next((kind for kind in KINDS if _pattern(kind.words).search(warning)), None)


def repeated_words(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield a warning for each turn that repeats an earlier turn word for word.

    The earlier turn may be another agent's or the agent's own. Values, samples and words without a
    model do not count. Short texts are not repetitions, because a score may well be the same.
    """
    earlier: dict[tuple[int | None, str], Turn] = {}
    for turn in turns:
        lines = (" ".join(line.casefold().split()) for line in turn["content"].splitlines())
        words = " ".join(
            line for line in lines if len(line) >= _TELLING and not _VALUE.search(line)
        )
        if turn["model"] is None or "sample" in turn or not words:
            continue
        first = earlier.setdefault((turn.get("order"), words), turn)
        who = f"{turn['agent']}, round {turn['round']}"
        if first["agent"] != turn["agent"]:
            yield SAME_AS_OTHER.of(who, other=first["agent"])
        elif first is not turn:
            yield SAME_AGAIN.of(who, earlier=first["round"])


def copied_words(who: str, content: str, prompt: str) -> Iterator[str]:
    """Yield a warning if a reply does little more than repeat its agent's prompt word for word.

    Args:
        who: the agent and its round.
        content: the text of its reply.
        prompt: the conversation before the reply, with the texts, the log and the instructions.
    """
    joined = (" ".join(line.split()) for line in content.splitlines())
    lines = [line for line in joined if len(line) >= _TELLING][:_MOST_LINES]
    length = sum(map(len, lines))
    # This runs for every reply. Most have a word in a line that the prompt lacks, which is a fast
    # test.
    possible = [line for line in lines if all(word in prompt for word in line.split())]
    if length < _LONG or sum(map(len, possible)) < _SHARE * length:
        return
    prompt = " ".join(prompt.split())
    if sum(len(line) for line in possible if line in prompt) >= _SHARE * length:
        yield COPIED.of(who)


_TELLING = 20
_LONG = 80
_SHARE = 0.9
"""The limits for repeated words: characters of a line, characters in all, and the share copied.

Shorter texts (``Score: 4``, ``NO ISSUE``) are not repetitions.
"""
_MOST_LINES = 200
"""The number of lines that are checked, because each is searched for in the whole prompt."""
_VALUE = re.compile(r": *[\[\]\d.,/ ]+$")


@lru_cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\{[^}]*\}", words))), re.DOTALL)
