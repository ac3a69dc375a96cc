"""Read the ratings of WMT's MQM campaigns.

A row is one error that a rater marked in a translation. The rows of a translation become one item
with a score per rater: minus the sum of the errors' weights. Higher is better, and 0 means no
errors. The weights come from Freitag et al. (2021) and match the scores that are published with the
ratings. Errors in the source have no weight, as in the ratings since 2022.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...state.errors import DataError
from .files import Row

NEEDS = ("system", "doc", "rater", "source", "target", "category", "severity")
"""The columns that every file of ratings has."""

USES = (*NEEDS, "doc_id", "seg_id", "docSegId", "globalSegId")
"""The columns that items are made from."""

ASPECT = "mqm"

# Files of different years use different names for a segment's number. The first is unique in its
# language pair.
_SEGMENT_COLUMNS = ("seg_id", "globalSegId", "docSegId", "doc_id")

_MARKS = re.compile(
    r"""
    </?v>       # around the words that have the error
    """,
    re.VERBOSE,
)

_SEVERITIES = {"major": 5.0, "critical": 5.0, "minor": 1.0, "neutral": 0.0, "no-error": 0.0}
_MINOR_PUNCTUATION = 0.1
_NO_TRANSLATION = 25.0

# These are not faults of the translation, or do not make it worse.
_WITHOUT_WEIGHT = ("source error", "source issue", "accuracy/creative reinterpretation")

# A test of the rater's attention, on a text with inserted errors.
_TEST_OF_RATER = "hotw-test"


def weight(category: str, severity: str) -> float | None:
    """Return the weight of an error; ``None`` for an unknown severity.

    >>> weight("Accuracy/Omission", "Major"), weight("Fluency/Punctuation", "Minor"), weight("No-error", "No-error")
    (5.0, 0.1, 0.0)
    """
    category = category.strip().lower()
    severity = severity.strip().lower()
    if severity not in _SEVERITIES:
        return None
    if category.startswith(_WITHOUT_WEIGHT):
        return 0.0
    if category.startswith("non-translation"):
        return _NO_TRANSLATION
    if category == "fluency/punctuation" and severity == "minor":
        return _MINOR_PUNCTUATION
    return _SEVERITIES[severity]


def gathered(rows: Iterable[Row], where: str) -> Iterator[Row]:
    """Yield a row for each translation, with each rater's score; ``where`` is for messages.

    Raises:
        DataError: an unknown severity, or a row without a segment's number.
    """
    found: dict[tuple[str, str, str], tuple[int, dict[str, Any]]] = {}
    penalties: dict[tuple[str, ...], dict[str, float]] = {}
    for number, row in rows:
        severity = str(row.get("severity", ""))
        category = str(row.get("category", ""))
        if severity.strip().lower() == _TEST_OF_RATER:
            continue
        penalty = weight(category, severity)
        if penalty is None:
            known = ", ".join(_SEVERITIES)
            raise DataError(
                f"{where} {number}: severity {severity!r} is not one of MQM's ({known})"
            )
        segment = _segment(row, f"{where} {number}")
        key = (str(row["doc"]), segment, str(row["system"]))
        if key not in found:
            # The file may be long, so store only the first row of each translation.
            found[key] = number, _item(row, segment)
            penalties[key] = {}
        rater = str(row["rater"])
        penalties[key][rater] = penalties[key].get(rater, 0.0) + penalty
    for key, (number, item) in found.items():
        # Avoid -0.0 for a translation without errors.
        scores = [round(0.0 - penalty, 6) for penalty in penalties[key].values()]
        yield number, {**item, "human": {ASPECT: scores}, "annotators": [*penalties[key]]}


def _segment(row: Mapping[str, Any], place: str) -> str:
    for name in _SEGMENT_COLUMNS:
        if row.get(name) not in (None, ""):
            return str(row[name])
    # Without a number, the ratings of different segments would be added up as one translation.
    columns = ", ".join(_SEGMENT_COLUMNS)
    raise DataError(f"{place}: no number of a segment; a rating needs one of {columns}")


def _item(row: Mapping[str, Any], segment: str) -> dict[str, Any]:
    rest = {name: value for name, value in row.items() if name not in USES}
    group = f"{row['doc']}-{segment}"
    return rest | {
        "id": f"{group}-{row['system']}",
        "group": group,
        "system": row["system"],
        "source": _MARKS.sub("", str(row["source"])),
        "candidate": _MARKS.sub("", str(row["target"])),
    }
