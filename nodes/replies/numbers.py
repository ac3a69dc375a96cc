"""Recognise numbers as texts write them, in digits and words, with their maximum and alternatives."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from .vocabulary import one_of

# From a word to its number. English first: where languages share a word, the first entry counts.
_WORDS: dict[str, float] = {}
for _language in (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn",
    "zéro un deux trois quatre cinq six sept huit neuf dix",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
    "zero uno due tre quattro cinque sei sette otto nove dieci",
    "zero um dois três quatro cinco seis sete oito nove dez",
    "ноль один два три четыре пять шесть семь восемь девять десять",
    "零 一 二 三 四 五 六 七 八 九 十",
):
    for _value, _word in enumerate(_language.split()):
        _WORDS.setdefault(_word, float(_value))
_WORDS |= {"两": 2.0, "une": 1.0, "una": 1.0, "eine": 1.0, "〇": 0.0}
DIGITS = r"\d++(?:[.,]\d++)*+"
_NAMES = "|".join(sorted(map(re.escape, _WORDS), key=len, reverse=True))

NUMBER = (
    rf"(?:(?<![A-Za-z0-9_.,/])[+-]?{DIGITS}(?![A-Za-z_\d])"
    rf"|(?<![^\W\d_])(?:{_NAMES})(?:(?: and a half"
    rf"| point (?:{_NAMES}))(?!\w))?(?![A-Za-zÀ-ɏ\u0400-\u04ff'\u2019-]))"
)
"""A number in digits (not part of a word, a date or a path) or as a word up to twenty."""

LIMIT = rf"(?:{DIGITS}(?![A-Za-z_\d])|(?:{_NAMES})(?![^\W\d_]))"
"""A number that may follow a slash: the maximum in ``4/5``."""
# A longer run of digits is taken for infinity, which is off every scale, and not converted.
_LONGEST = 60
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def value_of(number: str) -> float | None:
    """Return the value of a number as written; None where it is none (``1.2.3``).

    >>> value_of("3,5"), value_of("1,250"), value_of("four"), value_of("two and a half"), value_of("1.2.3")
    (3.5, 1250.0, 4.0, 2.5, None)
    """
    text = number.strip().casefold()
    if len(text) > _LONGEST:
        return math.inf
    if text in _WORDS:
        return _WORDS[text]
    whole, half, _ = text.partition(" and a half")
    if half and whole in _WORDS:
        return _WORDS[whole] + 0.5
    whole, point, tenth = text.partition(" point ")
    if point and whole in _WORDS and tenth in _WORDS:
        return _WORDS[whole] + _WORDS[tenth] / 10
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return float(text.replace(",", ".")) if _DECIMAL.fullmatch(text) else None


def written(value: float) -> str:
    """Return a value as a person would write it.

    >>> written(7.0), written(2.5)
    ('7', '2.5')
    """
    if not math.isfinite(value) or abs(value) >= 1e15:
        return "a number without bounds" if value > 0 else "a negative number without bounds"
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"


class Strength(IntEnum):
    """How clearly the form of a statement says that its number is the score."""

    BARE = 1
    FRACTION = 2
    CRITERION = 3
    PHRASE = 4
    LABEL = 5
    FINAL = 6
    BRACKETS = 7
    FIELDS = 8


class Statement(NamedTuple):
    """A stated value.

    Attributes:
        strength: how clearly it is the score.
        at: position in the text at which the statement begins.
        values: the value, or several where the statement gives alternatives.
        out_of: the maximum that it names; None where it names none.
        subject: what is scored, where the statement says so.
        end: position at which the value ends, with its alternatives.
        own_at: position at which the value begins, where the words before it are no part of the statement.
    """

    strength: int
    at: int
    values: tuple[float, ...]
    out_of: float | None = None
    subject: str = ""
    end: int = 0
    own_at: int | None = None

    def placed(self, at: int, end: int) -> Statement:
        """Return the same statement at another place."""
        return self._replace(at=at, end=end)

    @property
    def stated(self) -> object:
        """What it states."""
        return self.values

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The part of the text that states it."""
        return ((self.at if self.own_at is None else self.own_at, self.end),)


# An end of a scale, maybe with its meaning: ``1 (worst)``.
_POINT = r"\d{1,3}(?:\.\d)?(?: ?\([^()\n]{1,40}\))?"
_RANGE = rf"{_POINT} ?{one_of('- to through and bis à a al 〜 ~ до')} ?{_POINT}"
# Mentions of the scale: ``on a scale of 1 to 5``, ``(1-5)``, ``满分5分``.
_SCALES = re.compile(
    rf"\b{one_of('on using in within auf sur su en over')} (?:an? |the |einer |une |una )?(?:\w{{1,20}} )?"
    rf"{one_of('scale range skala échelle scala escala')} ?(?:of|from|von|de|da)? ?(?:{_RANGE}"
    rf"|\d{{1,3}}(?! ?[.\n]))|[(\[] ?(?:scale ?(?:of|from)?:? ?|from |range:? ?)?{_RANGE} ?(?:scale)?[)\]]"
    rf"|\b{_RANGE} scale\b|\brange {_RANGE}|满分(?:为|是)?\d{{1,3}}分?|\d{{1,3}}点満点|\d{{1,3}}分制",
    re.IGNORECASE,
)
# Words that may stand before a score: ``a solid 4``, ``about 3``.
_HEDGES = one_of(
    "a an the just only about around approximately roughly solid strong full perfect near-perfect low high "
    "clear at between un une una uno ein eine einen di de ca. ~ ≈"
)

VALUE = rf"(?:{_HEDGES} ){{0,3}}[\[({{<\"']{{0,2}}(?P<value>{NUMBER})"
"""A number with what may stand before it: ``roughly 4``, ``[4``."""
_CLOSERS = r"[\])}>\"']{0,2}"
# The maximum behind a value: ``/5``, ``out of 5``, ``su 5``.
_OUT_OF = re.compile(
    rf"{_CLOSERS} ?(?:/|out of|{one_of('su sur von de из')}(?= )) ?(?:the |a )?(?:possible |total "
    rf"|maximum )?(?P<out>{LIMIT})",
    re.IGNORECASE,
)
_JOINTS = one_of("or and or_maybe or_even oder ou o или 或")
# An alternative behind a value: ``3 or 4``, ``3-4``.
_OTHER = re.compile(rf" ?(?:(?:[-~]|to|bis) ?|{_JOINTS} (?:an? )?|, ?)(?P<value>{NUMBER})", re.IGNORECASE)
_LOOSE_JOINTS = ("and", ",", "-", "to")
_CLOSES = re.compile(r"\s*(?:\Z|[.;)\]\n]|out of|points?\b|/)")
# A revision: ``3 -> 4``.
_ARROW = re.compile(rf" ?(?:->|→|=>|⇒) ?(?P<value>{NUMBER})")
# A calculation, whose result is the value: ``(4 + 3 + 5) / 3 = 4``.
_SUM = re.compile(rf"(?: ?[-+*x×/÷()] ?\(?{NUMBER}\)?){{1,12}}\)? ?= ?(?P<value>{NUMBER})")
_UNITS = one_of("point points pt pts pts. star stars punkte punkten punti puntos балл балла баллов 点 分 점")
_UNIT = re.compile(
    rf"{_CLOSERS} ?{_UNITS}?"
    r"(?![^\W\d_])",
    re.IGNORECASE,
)
# Words that may follow a value that ends its phrase: ``a 4 because ...``.
_FOLLOWERS = one_of(
    "for in on because as since due given and but which with to overall here instead rather based at would "
    "seems seem is was might may could if reflecting indicating per für pour para out when considering "
    "while though than regarding across from under also so therefore al sul com por parce weil perché "
    "porque è isn't"
)
_ENDS = re.compile(rf"\s*(?:\Z|[.,;:!?)\]}}>\"'*|\x00\n—(\[]|- |-\Z|{_FOLLOWERS}(?!\w))", re.IGNORECASE)
# What may follow a value that is alone on its line: a maximum, a unit, a remark in brackets.
_LINE_TAIL = re.compile(
    r"[\])]{0,2}(?: ?(?:/|out of|or|to|-|,|and) ?[\w.,]{1,8})?[\])]{0,2} ?"
    r"(?:points?|stars?|点|分|점|балл\w{0,2})?[.:]?(?: ?\([^()]{0,60}\))?[.;,! ]{0,3}",
    re.IGNORECASE,
)


def without_scales(words: str, low: float, high: float) -> str:
    """Remove mentions of the scale.

    >>> without_scales("On a scale of 1 to 5, from 1 to 5 points, 4 (1-5).", 1, 5)
    ' ,   points, 4  .'
    """
    own = rf"\b(?:from|between) {low:g}(?: \([^()\n]{{1,40}}\))? (?:to|and|through) {high:g}(?![\d.,]\d)"
    return re.sub(own, " ", _SCALES.sub(" ", words), flags=re.IGNORECASE)


@dataclass(frozen=True)
class ScaleRemover:
    """Remove mentions of one scale from a text; equal where the scales are, so that a result can be kept for it."""

    low: float
    high: float

    def __call__(self, words: str) -> str:
        return without_scales(words, self.low, self.high)


def value_at(words: str, match: re.Match[str], strength: int) -> Statement | None:
    """Return the value that ``match`` found with what follows it (maximum, alternatives); None where it is no number.

    The result of a sum (``3 + 4 = 7``) or of an arrow (``3 -> 4``) replaces what stands before it.
    """
    first = value_of(match["value"])
    if first is None:
        return None
    end = match.end("value")
    if words.startswith("%", end):
        return Statement(strength, match.start(), (first,), 100.0, end=end + 1)
    for form in (_SUM, _ARROW):
        result = form.match(words, end)
        if result is not None and (value := value_of(result["value"])) is not None:
            return Statement(
                strength, match.start(), (value,), _out_of(words, result.end())[0], end=result.end()
            )
    out_of, limit_end = _out_of(words, end)
    others, other_end = _alternatives(words, limit_end)
    if others and out_of is None:
        out_of = _out_of(words, other_end)[0]
    return Statement(strength, match.start(), (first, *others), out_of, end=other_end if others else end)


def ends_phrase(words: str, end: int) -> bool:
    """Whether a value that ends at ``end`` ends its phrase too, so that no noun follows (as in ``gives 5 reasons``)."""
    limit = _OUT_OF.match(words, end)
    end = limit.end() if limit else end
    unit = _UNIT.match(words, end)
    return _ENDS.match(words, unit.end() if unit else end) is not None


def limit_ends_phrase(words: str, end: int) -> bool:
    """Whether a value that names its maximum ends its phrase; ``4 out of 5 of them`` does not."""
    limit = _OUT_OF.match(words, end)
    return limit is not None and ends_phrase(words, limit.end()) and not words.startswith(" of ", limit.end())


def limit_end(words: str, end: int) -> int:
    """Return where the maximum behind a value ends that ends at ``end``."""
    return _out_of(words, end)[1]


def ends_line(words: str, end: int) -> bool:
    """Whether nothing but a maximum or a note follows the value on its line."""
    stop = words.find("\n", end, end + 200)
    return _LINE_TAIL.fullmatch(words, end, stop if stop >= 0 else len(words)) is not None


def _out_of(words: str, end: int) -> tuple[float | None, int]:
    match = _OUT_OF.match(words, end)
    return (value_of(match["out"]), match.end()) if match else (None, end)


def _alternatives(words: str, end: int) -> tuple[tuple[float, ...], int]:
    match = _OTHER.match(words, end)
    if match is None:
        return (), end
    joint = words[end : match.start("value")]
    spaced = joint[:1] in " ," and joint.strip().casefold() in _LOOSE_JOINTS
    if spaced and not _CLOSES.match(words, match.end("value")):
        return (), end
    value = value_of(match["value"])
    return ((), end) if value is None else ((value,), match.end())
