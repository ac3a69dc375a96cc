"""Which of the scores that a text states is its last word."""

from __future__ import annotations

import re
from bisect import bisect_right

from .bare import bare
from .forms import bracketed, criteria, fractions, labelled, phrases
from .values import Statement, Strength, without_scales

_ITEM = re.compile(r"(?:[-•*+]|\(?\d{1,2}[.)]) ")


def stated(words: str, low: float, high: float, aspect: str | None = None) -> Statement | None:
    """The statement that counts in ``words``, None where there is none.

    Args:
        words: what the reply itself says, unmarked.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the aspect asked for, whose line is a score line.

    >>> stated("Grammar: 3\\nStyle: 4\\nFinal score: 4 out of 5", 1, 5).values
    (4.0,)
    """
    words = without_scales(words, low, high)
    found = [*bracketed(words), *labelled(words), *phrases(words), *criteria(words, aspect)]
    found = _outside_lists(words, found)
    strong = [one for one in found if one.strength >= Strength.LABEL]
    if strong:
        return _settled(strong)
    told = [one for one in found if one.strength == Strength.PHRASE]
    fitting = [one for one in told if all(low <= value <= high for value in one.values)]
    weaker = fitting or _single_criterion(found) or [*fractions(words, high)] or _bare(words, found) or told
    return _settled(weaker) if weaker else None


def _settled(found: list[Statement]) -> Statement:
    """The last of the strongest statements; all values where they are about different subjects."""
    strongest = max(one.strength for one in found)
    finalists = [one for one in found if one.strength == strongest]
    last = max(finalists, key=lambda one: one.at)
    subjects = {one.subject for one in finalists}
    if len(subjects) > 1 and "" not in subjects:
        values = tuple(value for one in finalists for value in one.values)
        return last._replace(values=(*values, *last.values))
    return last


def _single_criterion(found: list[Statement]) -> list[Statement]:
    """The one criterion that a reply scores; several different ones are no score of the whole."""
    scored = [one for one in found if one.strength == Strength.CRITERION]
    return scored if len({one.subject for one in scored}) == 1 else []


def _bare(words: str, found: list[Statement]) -> list[Statement]:
    return [] if any(one.strength == Strength.CRITERION for one in found) else bare(words)


def _outside_lists(words: str, found: list[Statement]) -> list[Statement]:
    """Without the items of a list that scores several criteria, each in its own words."""
    starts = [0, *(match.end() for match in re.finditer("\n", words))]
    lines = {one: starts[bisect_right(starts, one.at) - 1] for one in found if one.strength < Strength.FINAL}
    items = {one: line for one, line in lines.items() if _ITEM.match(words, line)}
    if len(set(items.values())) < 2 or {one.strength for one in items} == {Strength.CRITERION}:
        return found
    others = [one for one in found if one not in items]
    return others if others or len({one.values for one in items}) > 1 else found
