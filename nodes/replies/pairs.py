"""Read two scores, one for each of two texts that are compared.

Forms, strongest first: a final or total pair; two numbers that are the first line; a labelled pair or a line for
each text; a pair on a line of its own; prose that gives each text its score. Pairs of single criteria are not the
final pair. The last statement of the strongest form present counts.

The first-line form is that of FairEval and Vicuna reviews, the tuple that of MORE and SAMRE. Names of the two texts
are replaced by ① and ② before anything is read (``vocabulary.marked``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from .json_fields import Field, spelled
from .numbers import NUMBER, ScaleRemover, Statement, ends_phrase, value_at, value_of
from .reading import statements, unreadable, value_on_scale
from .shown import NOTHING, Shown
from .vocabulary import FINAL_WORDS, SCORE_WORDS, is_of_others, is_plain, marked, qualifier_of


class _Strength(IntEnum):
    """How clearly a form says that its numbers are the final pair."""

    CRITERION = 1
    PROSE = 2
    ALONE = 3
    LABEL = 4
    FIRST_LINE = 5
    FINAL = 6
    FIELDS = 7


class _Pair(NamedTuple):
    """Two scores stated together; ``context`` is what their line or heading says they are about."""

    strength: int
    at: int
    first: Statement
    second: Statement
    context: str = ""
    spans: tuple[tuple[int, int], ...] = ((0, 0),)

    def placed(self, at: int, end: int) -> _Pair:
        """Return the same pair at another place."""
        return self._replace(at=at, spans=((at, end),))

    @property
    def stated(self) -> object:
        """What it states."""
        return self.first.values, self.second.values


class _SideScore(NamedTuple):
    """One text's score, to be paired with the other's of the same strength and context."""

    strength: int
    at: int
    side: str
    score: Statement
    context: str
    end: int


_DIGITS = r"[+-]?\d+(?:\.\d+)?"
_MAXIMUM = r"(?: ?(?:/|out of) ?(\d+))?"
# Two numbers next to each other: ``8 7``, ``[8, 7]``, ``8/10 and 7/10``, ``8 vs. 7``.
_TWO = (
    rf"[(\[]{{0,2}} ?({_DIGITS}){_MAXIMUM}[)\]]?(?: points)?(?: ?[,;|&] ?| vs\.? | and | ?- ?| to | )"
    rf"[(\[]? ?({_DIGITS}){_MAXIMUM} ?(?: points)?[)\]]{{0,2}}"
)
# The same with decimal commas, where a blank, a bar or a semicolon separates: ``8,5 7,0``.
_COMMAS = r"[(\[]? ?(\d+,\d+)()(?: ?[;|&] ?| )(\d+,\d+|\d+)() ?[)\]]?"
_WHOLE_LINE = re.compile(rf"[-• ]*(?:{_COMMAS}|{_TWO})[.;, ]{{0,3}}")
# A tuple in brackets, SAMRE's form: ``(95, 87)``.
_TUPLE = re.compile(rf"[(\[] ?({_DIGITS}){_MAXIMUM} ?[,;|] ?({_DIGITS}){_MAXIMUM} ?[)\]]")
# A label and two numbers: ``Total: 95, 87``.
_NAMED_PAIR = re.compile(
    rf"(?P<label>{SCORE_WORDS}|\b(?:totals?|sums?|tuple|tally|output|result))(?: (?:tuple|are|is|for ① and ②"
    rf"|of ① and ②|of|totals?)){{0,3}} ?[:=]?[ \n]{{0,2}}{_TWO}",
    re.IGNORECASE,
)
_FINAL = re.compile(rf"\b(?:{FINAL_WORDS}|sums?|tuple|output|tally|grand)\b", re.IGNORECASE)
_SCORES = re.compile(SCORE_WORDS, re.IGNORECASE)
_VALUE = rf"(?:an? |the )?(?:score |rating )?(?:of )?[(\[]{{0,2}}(?P<value>{NUMBER})"
# A text and its score on a line: ``①: 8``, ``Score 2 = 7``.
_SIDE_LINE = re.compile(
    rf"(?P<side>[①②]|\bscore[ _]?(?P<index>[12AB])\b)(?: (?:{SCORE_WORDS}|total|final|overall"
    rf"|sum)){{0,3}}(?: ?\([^()\n]{{0,40}}\))? ?(?:[:=]|-(?= )|—|\()(?: ?(?:{SCORE_WORDS}"
    rf"|total)(?: of)?[:=]?)?(?: |\n(?=[\d(\[]+[^\n]{{0,12}}(?:\n|\Z)))?{_VALUE}",
    re.IGNORECASE,
)
# A text and its score in a sentence: ``① gets an 8``, ``a score of 7 for ②``.
_SIDE_PROSE = re.compile(
    rf"(?P<side>[①②])(?: (?:would |should |also |therefore |thus |only |then ){{0,2}}(?:gets?|receives?|scores?"
    rf"|scored|earns?|deserves?|is (?:rated|given|scored|awarded)|has|with|merits?))? (?:(?:(?:an?"
    rf"|the) )?(?:{SCORE_WORDS}) of |(?:an? )(?={NUMBER})|(?={NUMBER}))(?P<value>{NUMBER})"
    rf"|(?:{SCORE_WORDS}) (?:of|is) (?P<value_>{NUMBER})(?:/\d+)? (?:for|to) (?P<side_>[①②])",
    re.IGNORECASE,
)
# ``both get a score of 8``.
_BOTH = re.compile(rf"\bboth (?:\w+ ){{0,4}}?(?:{SCORE_WORDS}) of (?P<value>{NUMBER})", re.IGNORECASE)
# A heading under which a judge states the verdict anew; it is no criterion.
_REVISION = re.compile(
    r"reflection|reconsider|revis|updated|evaluation|verdict|conclusion|assessment|decision|judge?ment",
    re.IGNORECASE,
)
# The keys of a JSON reply that name a text: ``score_1``, ``first``, ``assistant_b_rating``.
_KEY = re.compile(r"(?:^|_)(?P<side>[12ab]|first|second|one|two)(?:_(?:scores?|ratings?|totals?|final))*$")
# The last ones count; without a limit, a reply full of tuples would take long for nothing.
_MOST_TUPLES = 200
# Scores of the two texts that are this close are one statement.
_CLOSE = 20
_FIRST_SIDES = ("1", "a", "first", "one", "①")


def read_pair(
    text: str, low: float = 1, high: float = 10, *, cut_off: bool = False, shown: Shown = NOTHING
) -> tuple[float, float]:
    """Return the scores that a reply gives to the first and the second text, each on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of either score.
        high: highest value of either score.
        cut_off: the reply is known to have hit its length limit; only the fault of an unreadable reply depends on it.
        shown: the texts that the judge was shown; what it reprints of them does not count.

    Raises:
        ReplyError: the reply is empty, states no pair, refuses, breaks off, contradicts itself or leaves the scale,
            or all that it states may be a reprint.

    >>> read_pair("8 7.5\\nAssistant 1 is more precise.")
    (8.0, 7.5)
    >>> read_pair("Relevance: [18, 15]\\nFinal scores: (95, 87)", low=6, high=120)
    (95.0, 87.0)
    """
    prepare = _Marker(low, high)
    pairs, words = statements(text, shown, "pair of scores", _from_fields, _counting, prepare)
    if not pairs:
        raise unreadable(text, words, "pair of scores", cut_off=cut_off)
    first, second = (
        value_on_scale(text, score, low, high, "score of one text")
        for score in (pairs[-1].first, pairs[-1].second)
    )
    return first, second


def _from_fields(entries: Sequence[Field]) -> list[_Pair]:
    sides: dict[str, list[tuple[str, float]]] = {"1": [], "2": []}
    for entry in entries:
        value = None if isinstance(entry.value, bool) else value_of(str(entry.value))
        named = [at for at, key in enumerate(entry.path) if _KEY.search(spelled(key))]
        if value is None or not named:
            continue
        key = _KEY.search(spelled(entry.path[named[-1]]))
        rest = [spelled(part) for at, part in enumerate(entry.path) if at != named[-1]]
        sides["1" if key and key["side"] in _FIRST_SIDES else "2"].append((" ".join(rest), value))
    # Final scores if there are any, else scores, else any number under the two texts' keys.
    for wanted in (_FINAL, _SCORES, re.compile("")):
        firsts, seconds = (
            [value for rest, value in side if wanted.search(rest.replace("_", " "))]
            for side in sides.values()
        )
        if len(set(firsts)) == 1 and len(set(seconds)) == 1:
            return [_Pair(_Strength.FIELDS, 0, _score(firsts[-1]), _score(seconds[-1]))]
    return []


@dataclass(frozen=True)
class _Marker(ScaleRemover):
    """Mark the names of the two texts, and remove mentions of the scale."""

    def __call__(self, words: str) -> str:
        return super().__call__(marked(words))


def _counting(text: str) -> list[_Pair]:
    """Return the pair that counts in ``text``, if there is one."""
    pairs = [*_first_line(text), *_tuples(text), *_named_pairs(text), *_sides(text)]
    final = [pair for pair in pairs if pair.strength > _Strength.CRITERION]
    if final:
        strongest = max(pair.strength for pair in final)
        return [max((pair for pair in final if pair.strength == strongest), key=lambda pair: pair.at)]
    # Only pairs of criteria: a single criterion is the final pair, several are none.
    contexts = {pair.context for pair in pairs}
    return pairs[-1:] if len(contexts) == 1 else []


def _score(value: float, out_of: float | None = None) -> Statement:
    return Statement(0, 0, (value,), out_of)


def _two(groups: tuple[str | None, ...]) -> tuple[Statement, Statement] | None:
    """Return the two scores in the groups of a pair's pattern: value, maximum, value, maximum."""
    # The pattern has two alternatives of four groups each; one of them is unset.
    if groups[0] is None:
        groups = groups[4:]
    first, second = value_of(groups[0] or ""), value_of(groups[2] or "")
    if first is None or second is None:
        return None
    limits = [float(limit) if limit else None for limit in (groups[1], groups[3])]
    return _score(first, limits[0]), _score(second, limits[1] if limits[1] is not None else limits[0])


def _first_line(text: str) -> Iterator[_Pair]:
    line = text.partition("\n")[0]
    match = _WHOLE_LINE.fullmatch(line.strip())
    if match and (scores := _two(match.groups())):
        yield _Pair(_Strength.FIRST_LINE, 0, *scores, spans=((0, len(line)),))


def _tuples(text: str) -> Iterator[_Pair]:
    """Find ``(95, 87)`` behind a label or on a line of its own."""
    for match in list(_TUPLE.finditer(text))[-_MOST_TUPLES:]:
        scores = _two(match.groups())
        before = text[max(0, match.start() - 100) : match.start()].rpartition("\n")[2]
        context = before.strip(" -•:=\x00") or _heading(text, match.start())
        strength = _strength(context, alone=not before.strip(" -•\x00"))
        if scores and strength is not None:
            yield _Pair(strength, match.start(), *scores, context.casefold(), (match.span(),))


def _named_pairs(text: str) -> Iterator[_Pair]:
    """Find ``Total: 95, 87``, ``Scores: 8 and 7``."""
    for match in _NAMED_PAIR.finditer(text):
        scores = _two(match.groups()[1:])
        before = text[max(0, match.start() - 60) : match.start()]
        strength = _strength(f"{qualifier_of(before)} {match['label']}", alone=False)
        if scores and strength is not None and ends_phrase(text, match.end()):
            yield _Pair(strength, match.start(), *scores, match["label"].casefold(), (match.span(),))


def _strength(context: str, *, alone: bool) -> int | None:
    """Return the strength of a pair that stands behind ``context`` (the words of its line, or its heading).

    None where the pair does not count: it is another agent's, or only talked about.
    """
    label = re.split(r"[.;!?] ", context)[-1].casefold()
    if _FINAL.search(label):
        return _Strength.FINAL
    scores = _SCORES.search(label)
    if scores:
        qualifier = qualifier_of(label[: scores.start()])
        if is_of_others(qualifier):
            return None
        plainly = is_plain(qualifier) or re.search(r"\b(?:give|assign|the|are|is)\b", label)
        return _Strength.LABEL if plainly else _Strength.CRITERION
    if alone:
        return _Strength.ALONE if not label else _Strength.CRITERION
    return _Strength.CRITERION if re.fullmatch(r"[^\W\d][^\n]{0,60}", context) and context == label else None


def _heading(text: str, at: int) -> str:
    """Return the closest line above that is a heading: short, without a number, ending in a colon or in nothing."""
    for line in reversed(text[max(0, at - 300) : at].split("\n")[:-1]):
        stripped = line.strip(" -•\x00")
        if not stripped or re.match(r"[①②]", stripped):
            continue
        if _REVISION.search(stripped):
            return ""
        return stripped.rstrip(":") if len(stripped) <= 60 and not re.search(r"\d|[.!?]\Z", stripped) else ""
    return ""


def _sides(text: str) -> Iterator[_Pair]:
    """Pair the scores that each text is given by name, within the same strength and context."""
    scores = [*_side_lines(text), *_side_prose(text)]
    for strength in sorted({found.strength for found in scores}):
        for context in {found.context for found in scores if found.strength == strength}:
            alike = [found for found in scores if found.strength == strength and found.context == context]
            firsts = [found for found in alike if found.side == "1"]
            seconds = [found for found in alike if found.side == "2"]
            if firsts and seconds:
                first, second = max(firsts, key=lambda one: one.at), max(seconds, key=lambda one: one.at)
                spans = _joined((first.at, first.end), (second.at, second.end))
                at = max(first.at, second.at)
                yield _Pair(strength, at, first.score, second.score, context, spans)
    for match in _BOTH.finditer(text):
        score = value_at(text, match, 0)
        if score is not None:
            yield _Pair(_Strength.PROSE, match.start(), score, score, spans=(match.span(),))


def _joined(*spans: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return two spans in their order; as one, where they are close to each other."""
    first, second = sorted(spans)
    return ((first[0], second[1]),) if second[0] - first[1] <= _CLOSE else (first, second)


def _side_lines(text: str) -> Iterator[_SideScore]:
    """Find ``Assistant 1: 8``, ``The score of answer 2: 7``, ``Score 1: 8``."""
    for match in _SIDE_LINE.finditer(text):
        score = value_at(text, match, 0)
        if score is None or not ends_phrase(text, score.end):
            continue
        before = text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
        context = re.split(r"[①②]", before)[0].strip(" -•:*\x00") or _heading(text, match.start())
        context = re.sub(r"\W*\b(?:of|for)\Z", "", context)
        named = _SCORES.search(match[0]) or _FINAL.search(match[0])
        strength = _strength(f"{context} {named[0]}" if named else context, alone=True)
        if strength == _Strength.ALONE:
            strength = _Strength.LABEL
        if strength is not None:
            index = (match["index"] or match["side"]).casefold()
            kind = context.casefold() if strength == _Strength.CRITERION else ""
            side = "1" if index in _FIRST_SIDES else "2"
            yield _SideScore(strength, match.start(), side, score, kind, score.end)


def _side_prose(text: str) -> Iterator[_SideScore]:
    """Find ``Assistant 1 a score of 10 and Assistant 2 a score of 1``."""
    for match in _SIDE_PROSE.finditer(text):
        end = match.end("value") if match["value"] else match.end("value_")
        value = value_of(match["value"] or match["value_"])
        if value is not None and (match["value_"] or ends_phrase(text, end)):
            maximum = re.match(r" ?(?:/|out of) ?(\d+)", text[end : end + 16])
            score = _score(value, float(maximum[1]) if maximum else None)
            side = match["side"] or match["side_"]
            side = "1" if side == "①" else "2"
            yield _SideScore(_Strength.PROSE, match.start(), side, score, "", match.end())
