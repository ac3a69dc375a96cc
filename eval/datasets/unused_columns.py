"""List the unused columns of a user's data, and how to use possible labels among them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ...state.tasks import TaskKind
from .items import fields_of
from .label_reader import LabelCodes, UnreadableLabelError, is_missing, read_winner, translated
from .reading import (
    BETTER,
    COLUMN_WORDS,
    TOGETHER,
    Columns,
    Table,
    columns_in,
    guess_labels,
    number_columns,
    scores_of_answers,
    simple_name,
)

COUNTED = "0=1,1=2,2=tie"
"""The meaning of winners that are counted from 0."""

_TIE_WORDS = {"tie", "draw", "equal", "same", "similar", "both", "neither", "none"}
"""Values of winners that mean a tie."""

MOST_NAMED = 8
"""The number of unused columns that a notice names."""

LABEL_WORDS = {*COLUMN_WORDS["labels"]}
"""Words in the names of columns with labels."""
OTHER_NUMBERS = {*COLUMN_WORDS["other_numbers"]}
"""Words in the names of columns with numbers other than labels."""


@dataclass(frozen=True)
class Offer:
    """A column that looks like a label, and how to use it.

    Attributes:
        field: the field of an item that it could be.
        column: its name, or the names of several annotators' columns.
        codes: a possible meaning of its values, in the syntax of ``--labels``, if they cannot be
            read directly.
        aspect_is_open: whether the name of the aspect is an example.
    """

    field: str
    column: str
    codes: str = ""
    aspect_is_open: bool = False


@dataclass(frozen=True)
class Unused:
    """Columns that were not used.

    Attributes:
        names: all of them.
        offers: the columns that look like labels.
    """

    names: Sequence[str] = ()
    offers: Sequence[Offer] = ()

    def words(self, in_frame: bool = False) -> str:
        """List the columns, and the option to use possible labels; empty if there are none.

        >>> Unused(["winner"], [Offer("human", "winner")]).words()
        'Column `winner` was not used. To use it as the human label, add `--columns human=winner`.'
        """
        if not self.names:
            return ""
        offers = (_sentence(offer, len(self.names) == 1, in_frame) for offer in self.offers)
        return " ".join([not_used(self.names), *offers])

    def offered(self) -> str:
        """Return how to use the columns that look like labels, without the other columns."""
        return " ".join(_sentence(offer, False, in_frame=False) for offer in self.offers)


def not_used(names: Sequence[str]) -> str:
    """Report that columns were not used.

    >>> not_used(["length", "topic"])
    'Columns `length`, `topic` were not used.'
    """
    more = len(names) - MOST_NAMED
    named = ", ".join(f"`{_short(name)}`" for name in names[:MOST_NAMED])
    named += f" and {more:,} more" if more > 0 else ""
    noun, were = ("Column", "was") if len(names) == 1 else ("Columns", "were")
    return f"{noun} {named} {were} not used."


def _sentence(offer: Offer, alone: bool, in_frame: bool) -> str:
    if in_frame:
        codes = (
            f", label_codes={dict(pair.split('=') for pair in offer.codes.split(','))}"
            if offer.codes
            else ""
        )
        how = f"call `load_dataset(..., columns={{{offer.field!r}: {offer.column!r}}}{codes})`"
    else:
        codes = f" --labels {quoted(offer.codes)}" if offer.codes else ""
        how = f"add `--columns {quoted(f'{offer.field}={offer.column}')}{codes}`"
    if offer.aspect_is_open:
        aspect = offer.field.partition(".")[2]
        return f"If `{offer.column}` holds human scores of {aspect}, {how}; for another aspect, use its name."
    columns = " and ".join(f"`{name}`" for name in offer.column.split(TOGETHER))
    meaning = ", if its values have this meaning" if offer.codes else ""
    if offer.codes == COUNTED and not in_frame:
        meaning += " (`--labels 0=tie,1=1,2=2` if 0 is a tie)"
    if BETTER in offer.column:
        first, second = columns_in(offer.column)
        return f"To take the answer with the higher of `{first}` and `{second}` as the human label, {how}."
    label = (
        "the human label" if TOGETHER not in offer.column else "the labels of several annotators"
    )
    return f"To use {'it' if alone else columns} as {label}{meaning}, {how}."


def quoted(text: str) -> str:
    """Return a word of a command, quoted if necessary.

    >>> print(quoted("human=winner"), quoted("human=who won"), quoted("human=$"))
    human=winner "human=who won" 'human=$'
    """
    safe = shlex.quote(text)
    return safe if safe == text or {*text} & {*'"$`!\\'} else f'"{text}"'


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:60]}..."


def unused_columns(
    kind: TaskKind, seen: Collection[str], columns: Columns, first: Table, codes: LabelCodes
) -> Unused:
    """Return the columns that were not used.

    Args:
        kind: the kind of the items.
        seen: the names of all columns.
        columns: the columns that fields are taken from.
        first: the first rows.
        codes: the label for each value, if labels are coded.
    """
    mapped = {*columns.values(), *chain(*map(columns_in, columns.values()))}
    # A path such as ``conversation.1.content`` uses part of a column.
    mapped |= {column.split(".")[0] for column in mapped}
    known = fields_of(kind)
    if not all(isinstance(row.get("annotations", {}), Mapping) for row in first):
        known = known - {"annotations"}
    # Messages are the question or the source, unless these have their own columns.
    material = "question" if kind == "compare" else "source"
    if material in seen or material in columns:
        known = known - {"messages", "turns"}
    names = [name for name in seen if name and name not in mapped and name not in known]
    labelled = "human" in seen or any(field.partition(".")[0] == "human" for field in columns)
    return Unused(names, tuple(_offers(kind, names, first, codes, labelled, columns))[:3])


def _offers(
    kind: TaskKind,
    names: Sequence[str],
    first: Table,
    codes: LabelCodes,
    labelled: bool,
    columns: Columns,
) -> Sequence[Offer]:
    """Return the columns that look like labels."""
    usable = offerable(names)
    rows = [{name: row[name] for name in usable if name in row} for row in first]
    if kind == "compare":
        if labelled:
            return []
        if both := scores_of_answers(rows):
            return [Offer("human", both)]
        like = [name for name in usable if words_of(name) & LABEL_WORDS]
        offers = [winner_offer(name, [row.get(name) for row in rows], codes) for name in like]
        return [offer for offer in offers if offer is not None]
    by_aspect = [
        Offer(field, column)
        for field, column in guess_labels(kind, rows, codes).items()
        if field not in columns
    ]
    if by_aspect or labelled:
        return by_aspect
    objects = [name for name in usable if any(_is_scores(row.get(name)) for row in rows)]
    if len(objects) == 1:
        return [Offer("human", objects[0])]
    numbers = [name for name in number_columns(rows, ()) if not words_of(name) & OTHER_NUMBERS]
    numbers.sort(key=lambda name: not words_of(name) & LABEL_WORDS)
    return [Offer("human.coherence", name, aspect_is_open=True) for name in numbers[:1]]


def unreadable_winners(
    rows: Iterable[Mapping[str, Any]], columns: Columns, codes: LabelCodes
) -> str:
    """Explain how to read the first unreadable winner; empty if all are readable."""
    label = columns.get("human", "")
    labels = [] if BETTER in label else columns_in(label)
    for row in rows:
        for column in labels:
            try:
                read_winner(translated(row.get(column), codes))
            except UnreadableLabelError as error:
                return f"Also, in column `{column}`: {error}; {error.remedy}."
    return ""


def _is_scores(value: Any) -> bool:
    """Return whether a value is an object of numbers, such as scores by aspect."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(number, int | float) for number in value.values())


def offerable(names: Collection[str]) -> list[str]:
    """Return the names that ``--columns`` can take: without its separators or outer blanks."""
    return [
        name for name in names if not {",", TOGETHER, BETTER} & {*name} and name == name.strip()
    ]


def words_of(name: str) -> set[str]:
    """Return the words in the name of a column, in lower case."""
    return {*simple_name(name).split("_")}


def winner_offer(name: str, values: Sequence[Any], codes: LabelCodes) -> Offer | None:
    """Offer a column as the winner, with a meaning for unreadable values; ``None`` if unlikely."""
    given = [value for value in values if not is_missing(value)]
    try:
        readable = [read_winner(translated(value, codes)) for value in given]
    except UnreadableLabelError:
        readable = []
    if readable:
        return Offer("human", name)
    texts = sorted({str(value).strip() for value in given if isinstance(value, str | int | float)})
    counted = bool(texts) and {*texts} <= {"0", "1", "2"}
    if (not counted and not 2 <= len(texts) <= len(("1", "2", "tie"))) or any(
        "," in text or "=" in text for text in texts
    ):
        return None
    if counted:
        # Other rows may have the third value.
        return Offer("human", name, COUNTED)
    # A value that means a tie comes last.
    texts.sort(key=lambda text: text.lower() in _TIE_WORDS)
    pairs = zip(texts, ("1", "2", "tie"), strict=False)
    return Offer("human", name, ",".join(f"{text}={meaning}" for text, meaning in pairs))
