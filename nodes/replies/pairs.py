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
from typing import ClassVar

from .json_fields import Field, spelled
from .provenance import Grammar, Statement, Strength
from .shown import NOTHING, Shown
from .statements import final_statements, strongest, value_on_scale
from .vocabulary import (
    FINAL_WORDS,
    Number,
    ends_phrase,
    in_any_case,
    marked,
    maximum,
    number_at,
    pattern,
    qualifier_of,
    side_of,
    value_of,
    without_scales,
)

Pair = tuple[Number, Number]


def read_pair(text: str, low: float = 1, high: float = 10, *, shown: Shown = NOTHING) -> tuple[float, float]:
    """Return the scores that a reply gives to the first and the second text, each on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of either score.
        high: highest value of either score.
        shown: the texts that the judge was shown; what it reprints of them does not count.

    Raises:
        ReplyError: the reply is empty, states no pair, refuses, breaks off, contradicts itself or leaves the scale,
            or all that it states may be a reprint.

    >>> read_pair("8 7.5\\nAssistant 1 is more precise.")
    (8.0, 7.5)
    >>> read_pair("Relevance: [18, 15]\\nFinal scores: (95, 87)", low=6, high=120)
    (95.0, 87.0)
    """
    pair = final_statements(text, shown, _Pairs(low, high))[-1].value
    first, second = (value_on_scale(text, number, low, high, "score of one text") for number in pair)
    return first, second


_FINAL = in_any_case(rf"\b(?:{FINAL_WORDS}|sums?|tuple|output|tally|grand)\b")
_SCORES = pattern("score_words")
# The keys of a JSON reply that name a text: ``score_1``, ``first``, ``assistant_b_rating``.
_KEY = re.compile(r"(?:^|_)(?P<side>[12ab]|first|second|one|two)(?:_(?:scores?|ratings?|totals?|final))*$")


@dataclass(frozen=True)
class _Pairs(Grammar[Pair]):
    what: ClassVar[str] = "pair of scores"
    low: float
    high: float

    def prepare(self, words: str) -> str:
        return without_scales(marked(words), self.low, self.high)

    def from_fields(self, entries: Sequence[Field]) -> list[Pair]:
        sides: dict[str | None, list[tuple[str, float]]] = {"1": [], "2": []}
        for entry in entries:
            value = None if isinstance(entry.value, bool) else value_of(str(entry.value))
            keys = [spelled(part) for part in entry.path]
            named = [(at, match) for at, key in enumerate(keys) if (match := _KEY.search(key))]
            if value is not None and named:
                at, key = named[-1]
                rest = " ".join(keys[:at] + keys[at + 1 :]).replace("_", " ")
                sides[side_of(key["side"])].append((rest, value))
        # Final scores if there are any, else scores, else any number under the two texts' keys.
        for wanted in (_FINAL, _SCORES, re.compile("")):
            given = [{value for rest, value in side if wanted.search(rest)} for side in sides.values()]
            if [len(values) for values in given] == [1, 1]:
                return [(Number(tuple(given[0])), Number(tuple(given[1])))]
        return []

    def find(self, words: str) -> list[Statement[Pair]]:
        pairs = [*_tuples(words), *_named_pairs(words), *_sides(words)]
        line = words.partition("\n")[0]
        if match := _COMMA_LINE.fullmatch(line.strip()) or _WHOLE_LINE.fullmatch(line.strip()):
            pairs.insert(0, Statement(Strength.FIRST_LINE, 0, len(line), _two(match)))
        if any(pair.strength > Strength.CRITERION for pair in pairs):
            return strongest(pairs)[-1:]
        # Only pairs of criteria: a single criterion is the final pair, several are none.
        return pairs[-1:] if len({pair.subject for pair in pairs}) == 1 else []


# --- two numbers beside each other ----------------------------------------------------------------------------------

_COMMA_LINE, _WHOLE_LINE = pattern("pair_line_with_commas", flags=0), pattern("pair_line", flags=0)
_TUPLE = pattern("tuple", flags=0)
_NAMED_PAIR = pattern("named_pair")
# The last ones count; without a limit, a reply full of tuples would take long for nothing.
_MOST_TUPLES = 200


def _two(match: re.Match[str]) -> Pair:
    """Return the two scores that a form has matched; its last groups are value, maximum, value, maximum."""
    first, limit, second, second_limit = match.groups(default="")[-4:]
    written = ((first, limit), (second, second_limit or limit))
    # A run of digits beyond all measure is infinity, which is off every scale.
    first_score, second_score = (
        Number((float(number.replace(",", ".")),), float(most) if most else None) for number, most in written
    )
    return first_score, second_score


def _tuples(text: str) -> Iterator[Statement[Pair]]:
    """Find ``(95, 87)`` behind a label or on a line of its own."""
    for match in list(_TUPLE.finditer(text))[-_MOST_TUPLES:]:
        before = text[max(0, match.start() - 100) : match.start()].rpartition("\n")[2]
        context = before.strip(" -•:=\x00") or _heading(text, match.start())
        strength = _strength(context, None if before.strip(" -•\x00") else Strength.OWN_LINE)
        if strength is not None:
            yield Statement(strength, *match.span(), _two(match), context.casefold())


def _named_pairs(text: str) -> Iterator[Statement[Pair]]:
    """Find ``Total: 95, 87``, ``Scores: 8 and 7``."""
    for match in _NAMED_PAIR.finditer(text):
        strength = _strength(f"{qualifier_of(text, match.start()).words} {match['label']}")
        if strength is not None and ends_phrase(text, match.end()):
            yield Statement(strength, *match.span(), _two(match), match["label"].casefold())


_REVISION = pattern("revision")


def _strength(context: str, alone: Strength | None = None) -> Strength | None:
    """Return the strength of a pair that stands behind ``context`` (the words of its line, or its heading).

    None where the pair does not count: it is another agent's, or only talked about. ``alone`` is the strength of one
    that has its line to itself and no heading.
    """
    label = re.split(r"[.;!?] ", context)[-1].casefold()
    if _FINAL.search(label):
        return Strength.FINAL
    scores = _SCORES.search(label)
    if scores:
        qualifier = qualifier_of(label, scores.start())
        if qualifier.is_of_others:
            return None
        plainly = qualifier.is_plain or re.search(r"\b(?:give|assign|the|are|is)\b", label)
        return Strength.LABEL if plainly else Strength.CRITERION
    if alone:
        return Strength.CRITERION if label else alone
    return Strength.CRITERION if re.fullmatch(r"[^\W\d][^\n]{0,60}", context) and context == label else None


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


# --- a number for each text -----------------------------------------------------------------------------------------

_SIDE_LINE, _SIDE_PROSE, _BOTH = map(pattern, ("side_line", "side_prose", "both"))
# Scores of the two texts that are this close are one statement.
_CLOSE = 20


def _sides(text: str) -> Iterator[Statement[Pair]]:
    """Pair the scores that each text is given by name, within the same strength and subject."""
    alike: dict[tuple[Strength, str], dict[str, Statement[Number]]] = {}
    for side, score in sorted([*_side_lines(text), *_side_prose(text)], key=lambda named: named[1].at):
        alike.setdefault((score.strength, score.subject), {})[side] = score
    for (strength, subject), last in alike.items():
        if len(last) == 2:
            near, far = sorted(last.values(), key=lambda score: score.at)
            close = far.at - near.end <= _CLOSE
            spans = ((near.at, far.end),) if close else (*near.spans, *far.spans)
            yield Statement(strength, far.at, far.end, (last["1"].value, last["2"].value), subject, spans)
    for match in _BOTH.finditer(text):
        if number := number_at(text, match):
            yield Statement(Strength.PHRASE, *match.span(), (number[0], number[0]))


def _side_lines(text: str) -> Iterator[tuple[str, Statement[Number]]]:
    """Find ``Assistant 1: 8``, ``The score of answer 2: 7``, ``Score 1: 8``, each with the text that it is about."""
    for match in _SIDE_LINE.finditer(text):
        score = number_at(text, match)
        if score is None or not ends_phrase(text, score[1]):
            continue
        before = text[max(0, match.start() - 80) : match.start()].rpartition("\n")[2]
        context = re.split(r"[①②]", before)[0].strip(" -•:*\x00") or _heading(text, match.start())
        context = re.sub(r"\W*\b(?:of|for)\Z", "", context)
        named = _SCORES.search(match[0]) or _FINAL.search(match[0])
        strength = _strength(f"{context} {named[0]}" if named else context, Strength.LABEL)
        side = side_of(match["index"] or match["side"])
        if strength is not None and side is not None:
            subject = context.casefold() if strength == Strength.CRITERION else ""
            yield side, Statement(strength, match.start(), score[1], score[0], subject)


def _side_prose(text: str) -> Iterator[tuple[str, Statement[Number]]]:
    """Find ``Assistant 1 a score of 10 and Assistant 2 a score of 1``, each with the text that it is about."""
    for match in _SIDE_PROSE.finditer(text):
        before = "" if match["value"] else "_"  # the two orders have groups of their own
        end, value = match.end(f"value{before}"), value_of(match[f"value{before}"])
        side = side_of(match[f"side{before}"])
        if value is not None and side is not None and (before or ends_phrase(text, end)):
            number = Number((value,), maximum(text, end)[0])
            yield side, Statement(Strength.PHRASE, *match.span(), number)
