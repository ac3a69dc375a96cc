"""Reads fields of result rows from columns with other names, and reports unused columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...state.tasks import TaskKind
from ..datasets.files import Row
from ..datasets.label_reader import NO_CODES, LabelCodes, is_missing
from ..datasets.reading import (
    ANNOTATOR_COLUMNS,
    LOOKED_AT,
    TOGETHER,
    Columns,
    columns_in,
    guess_labels,
    number_columns,
)
from ..datasets.selection import renamed
from ..datasets.unused_columns import (
    LABEL_WORDS,
    OTHER_NUMBERS,
    Offer,
    not_used,
    offerable,
    quoted,
    winner_offer,
    words_of,
)
from .agreement_rows import IDENTIFYING, TEXTS
from .results import Result

FIELDS = frozenset(
    {
        *("item", "group", "system", "aspect", "protocol", "repeat", "status"),
        *("score", "winner", "human", "annotations", "annotator"),
        *TEXTS,
    }
)
"""The fields of a result row that agreement is computed from."""

_KNOWN = {*FIELDS, *IDENTIFYING, *ANNOTATOR_COLUMNS, *Result.model_fields}

# Fields of the labels that `jurygraph review` writes, beside those of a result row.
_OF_REVIEWS = {"names", "saw_verdict"}

# Words in the names of columns with a judge's verdicts.
_JUDGE_WORDS = {
    *("judge", "judged", "model", "llm", "gpt", "gpt4", "auto", "automatic", "machine", "metric"),
    *("pred", "prediction", "predicted", "verdict"),
}
# Words in the names of columns with human labels, which a judge's columns do not have.
_HUMAN_WORDS = {
    "human",
    "gold",
    "annotation",
    "annotator",
    "expert",
    "label",
    "manual",
    "people",
    "truth",
}


class ResultColumns:
    """Reads rows of results whose columns may have other names.

    Args:
        place: the name of the file, for messages.
        columns: the columns of fields.
        codes: the meanings of the values of human labels.
    """

    def __init__(self, place: str, columns: Columns, codes: LabelCodes = NO_CODES) -> None:
        self._place = place
        self._columns = columns
        self._codes = codes
        self._first: list[dict[str, Any]] = []
        self._seen: dict[str, None] = {}

    def renamed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with the fields of results.

        Raises:
            DataError: one of the columns is empty in all rows.
        """
        yield from renamed(self._remembered(rows), self._columns, self._place, self._seen)

    def _remembered(self, rows: Iterable[Row]) -> Iterator[Row]:
        for number, row in rows:
            if len(self._first) < LOOKED_AT:
                self._first.append(row)
            yield number, row

    def notice(self, in_python: bool = False) -> str:
        """Return a notice about unused columns, with the option that uses them as labels."""
        taken = {column.split(".")[0] for of in self._columns.values() for column in columns_in(of)}
        known = _KNOWN | _OF_REVIEWS if self._seen.keys() >= _OF_REVIEWS else _KNOWN
        names = [name for name in self._seen if name and name not in known and name not in taken]
        if not names:
            return ""
        offers = self._offers(names)
        return " ".join([not_used(names), *([_sentence(offers, in_python)] if offers else [])])

    def _offers(self, names: Sequence[str]) -> list[Offer]:
        """Return columns for a missing human label and a missing judge's verdict."""

        def given(field: str) -> bool:
            return field in self._columns or any(
                not is_missing(row.get(field)) for row in self._first
            )

        free = offerable(names)
        rows = [{name: row[name] for name in free if name in row} for row in self._first]
        kind: TaskKind = "compare" if given("winner") else "score"
        offers = []
        if not given("human"):
            by_judges = {name for name in free if words_of(name) & _JUDGE_WORDS - _HUMAN_WORDS}
            of_people = [
                {name: cell for name, cell in row.items() if name not in by_judges} for row in rows
            ]
            if offer := self._label(kind, of_people):
                offers.append(offer)
        if not (given("score") or given("winner")):
            human = offers[0].column.split(TOGETHER) if offers else []
            left = [{name: cell for name, cell in row.items() if name not in human} for row in rows]
            scores = [
                name for name in number_columns(left, ()) if not words_of(name) & OTHER_NUMBERS
            ]
            scores.sort(key=lambda name: not words_of(name) & (_JUDGE_WORDS | LABEL_WORDS))
            offers += [Offer("score", name) for name in scores[:1]]
        return offers

    def _label(self, kind: TaskKind, rows: Sequence[dict[str, Any]]) -> Offer | None:
        """Return the column, or columns of several annotators, most similar to a human label."""
        for column in guess_labels(kind, rows, self._codes).values():
            return Offer("human", column)
        names = [*dict.fromkeys(name for row in rows for name in row)]
        if kind == "compare":
            like = [name for name in names if words_of(name) & LABEL_WORDS]
            offers = [
                winner_offer(name, [row.get(name) for row in rows], self._codes) for name in like
            ]
            return next(filter(None, offers), None)
        numbers = [name for name in number_columns(rows, ()) if not words_of(name) & OTHER_NUMBERS]
        numbers.sort(
            key=lambda name: (not words_of(name) & _HUMAN_WORDS, not words_of(name) & LABEL_WORDS)
        )
        return Offer("human", numbers[0]) if numbers else None


def _sentence(offers: Sequence[Offer], in_python: bool) -> str:
    """Return a sentence with the option or argument that uses the offered columns."""
    codes = next((offer.codes for offer in offers if offer.codes), "")
    if in_python:
        meanings = (
            f", label_codes={dict(pair.split('=') for pair in codes.split(','))}" if codes else ""
        )
        columns = {offer.field: offer.column for offer in offers}
        how = f"call `agreement(..., columns={columns}{meanings})`"
    else:
        pairs = ",".join(f"{offer.field}={offer.column}" for offer in offers)
        how = f"add `--columns {quoted(pairs)}" + (f" --labels {quoted(codes)}`" if codes else "`")
    meaning = ", if its values have this meaning" if codes else ""
    uses = []
    for offer in offers:
        columns_named = " and ".join(f"`{name}`" for name in offer.column.split(TOGETHER))
        several = TOGETHER in offer.column
        label = "the labels of several annotators" if several else "the human label"
        uses.append(
            f"{columns_named} as {label if offer.field == 'human' else 'the score of the judge'}"
        )
    return f"To use {' and '.join(uses)}{meaning}, {how}."
