"""Read labels in the same way for files, data frames, ``agree`` and Python.

Labels are scores, winners and missing values. A value is read, missing, or an error; it is never
ignored silently::

    read_score("4,5")      4.5      a decimal comma, full-width digits, true and false (1 and 0),
                                    yes and no, 85 %
    read_winner("Model B") "2"      1 and 2, A and B, answer 1, model_b, tie, draw
    read_score("N/A")      None     missing
    read_winner("0")                UnreadableLabelError, with a remedy

``LabelCodes`` translate coded labels, such as winners counted from 0.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from math import isfinite, isnan
from numbers import Real
from types import MappingProxyType
from typing import Any

from ...state.errors import UsageError
from ...state.redaction import redact_all
from ...state.verdict import Winner

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null", "-"})
"""Texts for a missing value, in lower case."""

LabelCodes = Mapping[str, str]
"""The meaning of each value of a file: a score, a winner or a missing value."""

NO_CODES: LabelCodes = MappingProxyType({})

_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}

# float() alone would also accept "1_000", "inf" and "nan".
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")

# Many languages use a decimal comma in spreadsheets.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")

# A spreadsheet shows .85 as 85 %, but stores .85.
_PERCENT = re.compile(r"(?P<number>.*\d)\s*%")

# "1" or "a", also as "answer 1", "model_a" and "response B". Tables write 1.0 in a column with
# missing cells.
_WINNER = re.compile(r"(?:(?:answer|model|response)[ _]?)?(?P<side>[12ab])(?:\.0)?")

_TIES = frozenset(
    {"tie", "draw", "equal", "tie (bothbad)", "tie (both bad)", "both_bad", "bothbad", "c"}
)

# Verdicts of Arena-Hard and JudgeBench: A>B, A>>B, B>A, also in square brackets, and A=B.
_ORDER = re.compile(r"\[*(?:a(?P<order>>>?|<<?|=)b|b(?P<turned>>>?|<<?|=)a)\]*")


class UnreadableLabelError(ValueError):
    """Raised for a value that is neither a label nor missing.

    Attributes:
        remedy: advice for users who can define the meaning of labels (``--labels``).
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def is_missing(value: Any) -> bool:
    """Return whether a value means that there is none.

    >>> [is_missing(value) for value in (None, float("nan"), " N/A ", [], 0, "0", [None])]
    [True, True, True, True, False, False, False]
    """
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    if isinstance(value, float):
        return isnan(value)
    if isinstance(value, list | tuple):
        return not value
    # By name, because pandas is not imported: its NA and NaT.
    return type(value).__name__ in ("NAType", "NaTType")


def read_score(value: Any) -> float | None:
    """Read a score; ``None`` if it is missing.

    Raises:
        UnreadableLabelError: not a finite number.

    >>> read_score("4,5"), read_score("TRUE"), read_score(3), read_score("NA")
    (4.5, 1.0, 3.0, None)
    >>> read_score("85 %")
    0.85
    """
    if type(value) is float and isfinite(value):
        return value  # the common case first, because there may be millions of results
    if is_missing(value):
        return None
    number: float | None = None
    if isinstance(value, str):
        text = _plain(value)
        number = _TRUTH.get(text)
        percent = _PERCENT.fullmatch(text)
        if percent:
            text = percent["number"]
        if _DECIMAL_COMMA.fullmatch(text):
            text = text.replace(",", ".")
        if _NUMBER.fullmatch(text):
            number = float(text) / 100 if percent else float(text)
    elif isinstance(value, Real):  # also True and False, which are text in CSV files
        try:
            number = float(value)
        except OverflowError:
            number = None
    if number is None or not isfinite(number):
        remedy = 'say what your labels mean with --labels, such as --labels "poor=1,fair=2,good=3"'
        raise UnreadableLabelError(f"{_shown(value)} is not a number", remedy)
    return number


def read_winner(value: Any) -> Winner | None:
    """Read the winner of a comparison; ``None`` if it is missing.

    Raises:
        UnreadableLabelError: neither answer 1, nor answer 2, nor a tie.

    >>> read_winner(1.0), read_winner("model_b"), read_winner("Draw"), read_winner("-")
    ('1', '2', 'tie', None)
    >>> read_winner("A>>B"), read_winner("[[B>A]]"), read_winner("A=B"), read_winner("A<B")
    ('1', '2', 'tie', '2')
    """
    if is_missing(value):
        return None
    text = ""
    if isinstance(value, str):
        text = _plain(value)
    elif isinstance(value, Real) and not isinstance(value, bool):
        text = _digits(value)
    if text in _TIES:
        return "tie"
    if match := _WINNER.fullmatch(text):
        return "1" if match["side"] in "1a" else "2"
    if match := _ORDER.fullmatch(text):
        sign = match["order"] or match["turned"]
        if sign == "=":
            return "tie"
        return "1" if (">" in sign) == bool(match["order"]) else "2"
    problem = f"{_shown(value)} is not 1, 2 or tie"
    if text == "0":
        counted = 'if labels are counted from 0, add --labels "0=1,1=2,2=tie"'
        raise UnreadableLabelError(
            problem, f'{counted}; if 0 is a tie, add --labels "0=tie,1=1,2=2"'
        )
    remedy = 'say what your labels mean with --labels, such as --labels "left=1,right=2,both=tie"'
    raise UnreadableLabelError(problem, remedy)


def parse_label_codes(text: str) -> dict[str, str]:
    """Read the meaning of the values of a file.

    Raises:
        UsageError: not in the form VALUE=LABEL, or a repeated value.

    >>> parse_label_codes("0=1, 1=2, 2=tie")
    {'0': '1', '1': '2', '2': 'tie'}
    """
    codes: dict[str, str] = {}
    for pair in text.split(","):
        value, equals, label = (part.strip() for part in pair.partition("="))
        if not (value and equals and label):
            raise UsageError(
                f'--labels: {pair!r} is not of the form VALUE=LABEL, such as "0=1,1=2,2=tie"'
            )
        if value in codes:
            raise UsageError(
                f"--labels: {value!r} is given two meanings, {codes[value]} and {label}"
            )
        codes[value] = label
    return codes


def translated(value: Any, codes: LabelCodes) -> Any:
    """Return the meaning of a value; lists and objects are translated member by member.

    Missing values stay unchanged. Every other value must have a code, because a value that is read
    literally could have another meaning.

    Raises:
        UnreadableLabelError: a value without a code.

    >>> codes = parse_label_codes("0=1,1=2,2=tie")
    >>> translated([0, 1.0, None], codes), translated("1", codes)
    (['1', '2', None], '2')
    """
    if not codes or is_missing(value):
        return value
    if isinstance(value, Mapping):
        return {name: translated(member, codes) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [translated(member, codes) for member in value]
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    text = _digits(value) if is_number else str(value).strip()
    if text in codes:
        return codes[text]
    problem = f"{_shown(value)} is not among the values of --labels ({', '.join(codes)})"
    raise UnreadableLabelError(problem, f"add its meaning, such as {text[:80]}=1")


def _plain(text: str) -> str:
    """Return a text in lower case, with full-width characters and minus signs as on a keyboard."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-")
    return text.strip().lower()


def _digits(number: Any) -> str:
    """Write a number without the ".0" that tables with missing cells add to whole numbers."""
    return f"{number:.15g}" if isinstance(number, float) else str(number)


def _shown(value: Any) -> str:
    # Redact before shortening, because part of a key is not recognized.
    text = repr(redact_all(value))
    return f"{text[:80]}..." if len(text) > 80 else text
