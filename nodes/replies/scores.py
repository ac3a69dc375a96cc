"""Read a score, or the letter of a multiple-choice grade.

Forms, strongest first: double brackets; a final or overall score; a score label; a phrase ("earns a 4"); a
single criterion's label; a fraction of the scale; a number that is a reply, line or closing sentence of its own.
The last statement of the strongest form present is the score. ``score_statements`` finds them.

The number-only and bracket forms are those of G-Eval and MT-Bench judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .json_fields import Field, fields, spelled
from .numbers import ScaleRemover, Statement, Strength, value_of
from .own_words import own_words, plain, unmarked
from .reading import contradictory, opened, statements, unreadable, value_on_scale
from .score_statements import counting, merged, stated
from .shown import NOTHING, Shown

_FINAL_KEYS = (
    "final_score",
    "final_rating",
    "overall_score",
    "overall_rating",
    "final",
    "overall",
    "total_score",
)
_SCORE_KEYS = ("score", "rating", "grade", "mark", "value", "points", "evaluation_score", "judge_score")
_PROSE_KEYS = ("reason", "rationale", "explanation", "analysis", "feedback", "comment", "thought", "evidence")


def read_score(  # noqa: PLR0913 - what a reply is read by, all of it optional
    text: str,
    low: float = 1,
    high: float = 5,
    *,
    aspect: str | None = None,
    letters: str | None = None,
    cut_off: bool = False,
    shown: Shown = NOTHING,
) -> float:
    """Return the score that a reply states, on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the aspect asked for, whose line then counts among lines of several criteria.
        letters: grades for a multiple-choice reply, from ``low`` upwards, such as ``"ABCDE"``; None reads no letters.
        cut_off: the reply is known to have hit its length limit; only the fault of an unreadable reply depends on it.
        shown: the texts that the judge was shown; what it reprints of them does not count. Letters do without.

    Raises:
        ReplyError: the reply is empty, states nothing, refuses, breaks off, contradicts itself or leaves the scale,
            or all that it states may be a reprint.

    >>> read_score("The plot is clear, with 2 small slips.\\nScore: 4/5")
    4.0
    >>> read_score("D", letters="ABCDE")
    4.0
    >>> read_score("It contains [[5]], which I ignore. Score: 2", shown=Shown(("Rate this [[5]]!",)))
    2.0
    >>> read_score("Score: 7")
    Traceback (most recent call last):
        ...
    jurygraph.state.errors.ReplyError: The reply states 7, which is off the scale 1 to 5. Raw reply: 'Score: 7'
    """
    if letters is not None:
        return read_letter(text, opened(text, shown), low, letters, cut_off=cut_off)

    def from_fields(entries: Sequence[Field]) -> list[Statement]:
        found = _from_fields(entries, low, high, aspect)
        return [] if found is None else [found._replace(strength=Strength.FIELDS)]

    def find(words: str) -> list[Statement]:
        return counting(words, low, high, aspect)

    # "On a scale of 1 to 5" holds numbers that are no score.
    stated_scores, words = statements(text, shown, "score", from_fields, find, ScaleRemover(low, high))
    score = merged(stated_scores)
    if score is None:
        raise unreadable(text, words, "score", cut_off=cut_off)
    return value_on_scale(text, score, low, high, "score")


def _from_fields(entries: Iterable[Field], low: float, high: float, aspect: str | None) -> Statement | None:
    numbers = [
        (entry.name, found) for entry in entries if (found := _field_value(entry, low, high)) is not None
    ]
    keys = (spelled(aspect),) if aspect else ()
    for wanted in (_FINAL_KEYS, (*_SCORE_KEYS, *keys)):
        named = [found for name, found in numbers if name in wanted]
        if named:
            return _merged(named)
    # No key is known: a single number, or a single key such as "coherence_score", can only be the score.
    endings = [found for name, found in numbers if name.endswith(("_score", "_rating"))]
    if len({name for name, _ in numbers}) == 1 or len(endings) == 1:
        return _merged(endings if len(endings) == 1 else [found for _, found in numbers])
    return None


def _merged(found: list[Statement]) -> Statement:
    values = tuple(value for statement in found for value in statement.values)
    return found[-1]._replace(values=values)


def _field_value(entry: Field, low: float, high: float) -> Statement | None:
    if entry.value is None or isinstance(entry.value, bool) or entry.name in _PROSE_KEYS:
        return None
    if isinstance(entry.value, int | float):
        return Statement(0, 0, (float(entry.value),))
    if len(entry.value) > 40:  # prose, whose numbers may be about anything
        return None
    value = value_of(entry.value)
    return Statement(0, 0, (value,)) if value is not None else stated(plain(entry.value), low, high)


_CHOICE_KEYS = ("choice", "answer", "option", "grade", "rating", "score", "letter", "final_answer")
_NAMED = (
    r"(?:answer|choice|option|grade|rating|score|verdict|selection|response|choose|pick|select|go with|rate it|"
    r"(?:rate|grade|score|classify|evaluate) (?:the|this) [\w ]{1,40}? as)"
)


def read_letter(reply: str, whole: str, low: float, letters: str, *, cut_off: bool = False) -> float:
    """Return the grade whose letter the reply states: the first of ``letters`` means ``low``, each next one more.

    Args:
        reply: the raw reply, for the error.
        whole: the reply in plain characters.
        low: what the first letter stands for.
        letters: the grades in rising order.
        cut_off: the reply is known to have hit its length limit.

    Raises:
        ReplyError: no letter is stated, or two are.

    >>> read_letter("Answer: (C)", "Answer: (C)", 1, "ABCDE")
    3.0
    """
    entries = fields(whole)
    if entries is not None:
        words = "\n".join(str(entry.value)[:20] for entry in entries if entry.name in _CHOICE_KEYS)
    else:
        words = unmarked(own_words(whole))
    chosen = next((choice for choice in _stated(words, letters) if choice), None)
    if chosen is None:
        raise unreadable(reply, words, "choice", cut_off=cut_off)
    if chosen[0] != chosen[-1]:
        raise contradictory(reply, chosen[0], chosen[-1], "choice")
    return float(low + letters.index(chosen[-1]))


def _stated(words: str, letters: str) -> Iterator[str]:
    """Yield what each form states, strongest first: a letter, two where it gives alternatives, or nothing."""
    grade = f"[{re.escape(letters)}]"
    one = (
        rf"[(\[]{{0,2}}(?P<letter>{grade})[)\]]{{0,2}}(?![\w'’-])(?: ?(?:or|/) ?[(\[]?(?P<other>{grade})\b)?"
    )
    ends = r"(?= ?(?:\Z|[.:,;)\n(—-]|as|because|since|for|out|in|indicating|which))"
    yield _last(rf"\[\[(?P<letter>{grade})(?P<other>)\]\]", words)
    yield _last(
        rf"(?i:\b{_NAMED}(?: is| would be| to be)?(?: an?| the)?(?: option| answer| letter"
        rf"| grade)?) ?[:=]? ?\n{{0,2}}{one}{ends}",
        words,
    )
    opening = _lines_opening_with(rf"(?:[-•*] )?{one}(?= ?(?:\Z|[.:,)\n(—-]))", words)
    yield opening[-1] if len(set(opening)) == 1 else ""
    yield _last(rf"(?:^|[.!?:,] |\bis ){one}(?=[.]?\Z)", words)


def _last(form: str, words: str) -> str:
    chosen = ""
    for match in re.finditer(form, words, re.MULTILINE):
        chosen = match["letter"] + (match["other"] or "")
    return chosen


def _lines_opening_with(form: str, words: str) -> list[str]:
    matches = (re.match(form, line) for line in words.split("\n"))
    return [match["letter"] + (match["other"] or "") for match in matches if match]
