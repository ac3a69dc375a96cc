"""Numbers as replies write them: digits, decimal commas, thousands, number words."""

from __future__ import annotations

import math
import re

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

_LONGEST = 60
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def value_of(number: str) -> float | None:
    """The value of a number as written, None where it is none (``1.2.3``).

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


def shown(value: float) -> str:
    """A value as a person would write it.

    >>> shown(7.0), shown(2.5)
    ('7', '2.5')
    """
    if not math.isfinite(value) or abs(value) >= 1e15:
        return "a number without bounds" if value > 0 else "a negative number without bounds"
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
