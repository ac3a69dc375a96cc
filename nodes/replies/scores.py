"""Read a score: its fields, its labels, its bare forms.

Forms, strongest first: double brackets; a final or overall score; a score label; a phrase ("earns a 4"); a
single criterion's label; a fraction of the scale; a number that is a reply, line or closing sentence of its own.
The last statement of the strongest form present is the score.

The number-only and bracket forms are those of G-Eval and MT-Bench judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .json_fields import Field, spelled
from .own_words import plain
from .provenance import Grammar, Statement, Strength
from .shown import NOTHING, Shown
from .statements import final_statements, strongest, value_on_scale
from .vocabulary import (
    FINAL_WORDS,
    NO_SCORES,
    NUMBERED_LINE,
    VALUE,
    Number,
    any_of,
    ends_line,
    ends_phrase,
    is_doubted,
    maximum,
    number_at,
    pattern,
    qualifier_of,
    value_of,
    without_scales,
    word_set,
)

Score = Statement[Number]


def read_score(
    text: str, low: float = 1, high: float = 5, *, aspect: str | None = None, shown: Shown = NOTHING
) -> float:
    """Return the score that a reply states, on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the aspect asked for, whose line then counts among lines of several criteria.
        shown: the texts that the judge was shown; what it reprints of them does not count.

    Raises:
        ReplyError: the reply is empty, states nothing, refuses, breaks off, contradicts itself or leaves the scale,
            or all that it states may be a reprint.

    >>> read_score("The plot is clear, with 2 small slips.\\nScore: 4/5")
    4.0
    >>> read_score("It contains [[5]], which I ignore. Score: 2", shown=Shown(("Rate this [[5]]!",)))
    2.0
    >>> read_score("Score: 7")
    Traceback (most recent call last):
        ...
    jurygraph.state.errors.ReplyError: The reply states 7, which is off the scale 1 to 5. Raw reply: 'Score: 7'
    """
    scores = final_statements(text, shown, _Scores(low, high, aspect))
    # Where the last statement is one of several, all have to agree.
    values = tuple(value for score in scores for value in score.value.values)
    return value_on_scale(text, Number(values, scores[-1].value.out_of), low, high, "score")


_FINAL_KEYS = word_set("final_score final_rating overall_score overall_rating final overall total_score")
_SCORE_KEYS = word_set("score rating grade mark value points evaluation_score judge_score")
_PROSE_KEYS = word_set("reason rationale explanation analysis feedback comment thought evidence")


@dataclass(frozen=True)
class _Scores(Grammar[Number]):
    what: ClassVar[str] = "score"
    low: float
    high: float
    aspect: str | None = None

    def prepare(self, words: str) -> str:
        return without_scales(words, self.low, self.high)

    def from_fields(self, entries: Sequence[Field]) -> list[Number]:
        numbers = [(entry.name, number) for entry in entries if (number := self._in_field(entry)) is not None]
        aspect_keys = {spelled(self.aspect)} if self.aspect else set()
        names = [name for name, _ in numbers]
        # No key is known: a single number, or a single key such as "coherence_score", can only be the score.
        endings = [name for name in names if name.endswith(("_score", "_rating"))]
        alone = set(endings if len(endings) == 1 else names)
        for wanted in (_FINAL_KEYS, _SCORE_KEYS | aspect_keys, alone if len(alone) == 1 else ()):
            if values := [number for name, number in numbers if name in wanted]:
                return values
        return []

    def _in_field(self, entry: Field) -> Number | None:
        if isinstance(entry.value, bool) or entry.name in _PROSE_KEYS:
            return None
        if not isinstance(entry.value, str):
            return Number((float(entry.value),))
        if len(entry.value) > 40:  # prose, whose numbers may be about anything
            return None
        scores = _Scores(self.low, self.high).find(self.prepare(plain(entry.value)))
        values = tuple(value for score in scores for value in score.value.values)
        return Number(values, scores[-1].value.out_of) if scores else None

    def find(self, words: str) -> list[Score]:
        """Return the last of the strongest statements, or all of them where each is about a subject of its own."""
        statements = [*_bracketed(words), *_labelled(words)]
        statements += [*_phrases(words, self.aspect), *_criteria(words, self.aspect)]
        statements = [self._weighed(statement) for statement in _outside_lists(words, statements)]
        criteria = {score.subject for score in statements if score.strength == Strength.CRITERION}
        if len(criteria) > 1:  # which are no score of the whole
            statements = [score for score in statements if score.strength != Strength.CRITERION]
        if all(score.strength == Strength.UNLIKELY for score in statements):
            statements += [*_fractions(words, self.high), *([] if criteria else _bare(words))]
        finalists = strongest(statements)
        subjects = {statement.subject for statement in finalists}
        # Nor does "Score for style: 4. Score for content: 2." state one; the values then contradict each other.
        # Numbers on lines of their own have one subject, and contradict each other too.
        many = len(subjects) > 1 and "" not in subjects
        bare = any(statement.strength == Strength.BARE for statement in finalists)
        return finalists if many or bare else finalists[-1:]

    def _weighed(self, score: Score) -> Score:
        """Return a statement; a phrase off the scale is most likely none, as in "gives 12 reasons"."""
        on_scale = all(self.low <= value <= self.high for value in score.value.values)
        is_phrase = score.strength == Strength.PHRASE
        return score if on_scale or not is_phrase else score._replace(strength=Strength.UNLIKELY)


# A line that begins as a list item does: ``- ``, ``2. ``, ``(3) ``.
_ITEM = re.compile(r"(?:[-•*+]|\(?\d{1,2}[.)]) ")


def _outside_lists(words: str, statements: list[Score]) -> list[Score]:
    """Drop the items of a list that scores several criteria, each in its own words."""
    items = {
        statement: line
        for statement in statements
        if statement.strength < Strength.FINAL
        and _ITEM.match(words, line := words.rfind("\n", 0, statement.at) + 1)
    }
    strengths = {statement.strength for statement in items}
    if len(set(items.values())) < 2 or strengths == {Strength.CRITERION}:
        return statements
    others = [statement for statement in statements if statement not in items]
    several = len({statement.value.values for statement in items}) > 1
    return others if others or several else statements


def _statement(words: str, match: re.Match[str], strength: Strength, subject: str = "") -> Score | None:
    """Return the statement of the value that a form has matched, with what follows it; None where it is no number."""
    number = number_at(words, match)
    return None if number is None else Statement(strength, match.start(), number[1], number[0], subject)


_BRACKETED = pattern("score_in_brackets", flags=0)


def _bracketed(words: str) -> Iterator[Score]:
    """Find ``[[4]]``."""
    for match in _BRACKETED.finditer(words):
        values = map(value_of, filter(None, match.group("value", "other")))
        if known := tuple(value for value in values if value is not None):
            number = Number(known, float(match["out"]) if match["out"] else None)
            yield Statement(Strength.BRACKETS, match.start(), match.end(), number)


_LABELLED, _STATED = pattern("labelled_score"), pattern("stated_score")
_SEPARATED = re.compile(r"[:=\n—-]|->|→")
_STATES = pattern("states_score", flags=0)
# The last ones count; without a limit, a reply full of labels would take long for nothing.
_MOST_LABELS = 500


def _labelled(words: str) -> Iterator[Score]:
    """Find ``Score: 4``, ``Final score = 4/5``, ``The overall rating is 3``."""
    for form in (_LABELLED, _STATED):
        for match in list(form.finditer(words))[-_MOST_LABELS:]:
            between = words[match.end("label") : match.start("value")]
            # "Scores:" and then "1. Coherence ...": the 1 numbers a list.
            if "\n" in between and match["value"] == "1" and not ends_line(words, match.end("value")):
                continue
            qualifier = qualifier_of(words, match.start())
            prose = form is _STATED or not _SEPARATED.search(between)
            if qualifier.is_of_others or (prose and is_doubted(words, match)):
                continue
            subject = (match["target"] or "").casefold()
            called_final = re.match(FINAL_WORDS, match["label"] + between, re.IGNORECASE)
            if qualifier.is_final or called_final or between.startswith(" final"):
                strength = Strength.FINAL
            elif prose and not _STATES.match(between) and not ends_phrase(words, match.end("value")):
                continue
            elif not prose and qualifier.is_plain:
                strength = Strength.LABEL
            elif not prose and len(qualifier.words.split()) <= 5:
                strength, subject = Strength.CRITERION, f"{qualifier.words} {match['label']}".casefold()
            else:
                strength = Strength.PHRASE
            statement = _statement(words, match, strength, subject)
            if statement is not None and not (prose and _is_result(statement)):
                yield statement


_OF, _GIVING = pattern("score_of"), pattern("score_given")


def _phrases(words: str, aspect: str | None) -> Iterator[Score]:
    """Find ``a score of 4 out of 5``, ``I would give it a 3``, ``The coherence of the summary is 3``."""
    of_scores = [*_OF.finditer(words)]
    matches = [*of_scores, *_GIVING.finditer(words)]
    if aspect is not None:
        thing = r"(?:[\w'\u2019-]{1,24} ){0,5}?[\w'\u2019-]{1,24}"
        sentence = rf"\b{re.escape(aspect)}(?: (?:of|for) {thing})?{any_of('copula')} {VALUE}"
        matches += re.finditer(sentence, words, re.IGNORECASE)
    for place, match in enumerate(matches):
        is_of = place < len(of_scores)
        qualifier = qualifier_of(words, match.start() if is_of else 0)
        if qualifier.is_of_others or is_doubted(words, match):
            continue
        statement = _statement(words, match, Strength.FINAL if qualifier.is_final else Strength.PHRASE)
        if statement and not _is_result(statement) and (is_of or ends_phrase(words, statement.end)):
            yield statement


def _is_result(statement: Score) -> bool:
    """Whether two falling numbers are the result of a match, ``3-1``, rather than a range."""
    values = statement.value.values
    return len(values) == 2 and values[0] > values[1]


_CRITERION = pattern("criterion", re.MULTILINE)
_OWN_LABEL_WORDS = word_set("overall final my the score rating for of summary's response's text's")


def _criteria(words: str, aspect: str | None) -> Iterator[Score]:
    """Find ``Coherence: 3``, a criterion's line; the line of the aspect that was asked for is a score line."""
    for match in _CRITERION.finditer(words):
        label = match["label"].strip().casefold()
        # ``overall coherence`` is the aspect's own label, ``coherence of style`` is not.
        asked = "\n" if aspect is None else aspect.casefold()
        wanted = asked in label and _OWN_LABEL_WORDS.issuperset(label.replace(asked, " ", 1).split())
        between = words[match.end("label") : match.start("value")]
        below, equation = "\n" in between, "=" in between and "\n" in words.strip()
        # ``Coherence: 3``, not ``Word count: 90``.
        short = label.isascii() and len(label) < 3
        criterion = not short and len(label.split()) <= 6 and not NO_SCORES.search(label) and not equation
        if not (wanted or criterion) or (below and not ends_line(words, match.end("value"))):
            continue
        statement = _statement(words, match, Strength.LABEL if wanted else Strength.CRITERION)
        if statement is not None and ends_phrase(words, statement.end):
            end = maximum(words, statement.end)[1]
            # The agent's label before a text's number makes it no statement of the agent's own.
            parts = () if wanted else ((match.start("value"), end),)
            yield statement._replace(end=end, subject="" if wanted else label, parts=parts)


_FRACTION = pattern("fraction", flags=0)


def _fractions(words: str, high: float) -> Iterator[Score]:
    """Find ``4/5`` or ``4 out of 5`` on a scale that ends at 5; ``4 out of 5 of them`` is none."""
    for match in _FRACTION.finditer(words):
        statement = _statement(words, match, Strength.FRACTION)
        out_of, end = maximum(words, match.end("value"))
        if statement is None or out_of is None or statement.value.out_of != high:
            continue
        if ends_phrase(words, end) and not words.startswith(" of ", end):
            yield statement._replace(end=end)


_LINE = pattern("score_line", re.MULTILINE)
_CLOSING = pattern("closing_score", re.IGNORECASE | re.MULTILINE)
_CLOSING_TAIL = re.compile(r"[\])]{0,2}(?: ?(?:/|out of) ?\d{1,3})?[.)\]! ]{0,3}")
_GLOSS = pattern("gloss", re.IGNORECASE | re.MULTILINE)
# What follows a number with which a reply begins: ``2. The response is ...``, ``4 - clear and fluent``.
_EXPLAINED = re.compile(r"(?:[.:;,)]| ?-| ?—| ?\() ?[^\W\d_\x00]")


def _bare(words: str) -> list[Score]:
    """Find a number that stands alone on a line, or closes or opens the text; all where several lines hold one."""
    lines = (match for match in _LINE.finditer(words) if ends_line(words, match.end("value")))
    alone = [statement for match in lines if (statement := _statement(words, match, Strength.BARE))]
    if alone:
        return alone
    # ``The text is well made. 4``
    for match in reversed(list(_CLOSING.finditer(words, max(0, len(words) - 40)))):
        statement = _statement(words, match, Strength.BARE)
        if statement is not None and _CLOSING_TAIL.fullmatch(words, match.end("value")):
            return [statement._replace(parts=((match.start("value"), statement.end),))]
    # ``2. The response is somewhat interesting``, ``Rather good (4)``; a numbered list states no score.
    if len(NUMBERED_LINE.findall(words)) > 1:
        return []
    start = len(words) - len(words.lstrip("\n"))
    gloss, number = _GLOSS.match(words, start), _LINE.match(words, start)
    opening = gloss or (number if number and _EXPLAINED.match(words, number.end("value")) else None)
    statement = _statement(words, opening, Strength.BARE) if opening else None
    return [statement] if statement else []
