"""Compute how any judge's scores agree with human ratings: the command ``jurygraph agree``."""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...state.errors import DataError, UsageError
from ..datasets.frames import row_file
from ..datasets.label_reader import parse_label_codes
from ..datasets.reading import ReadingNotice
from ..datasets.selection import parse_columns
from ..report.labels import listed
from ..report.result_tables import as_json, grids
from ..results.agreement import Resampling, RowsByAspect
from ..results.agreement_columns import FIELDS, ResultColumns
from ..results.agreement_rows import FLAGGED, FlaggedItems
from ..results.folder import results_of
from ..results.results import FILE
from ..statistics.tie_policy import TiePolicy
from ..tables.grid import printable
from .option_sets import argument, flag, option
from .runtime import check_confidence, console, echo


@dataclass(frozen=True, kw_only=True)
class AgreeOptions:
    """Selection of rows, treatment of ties and votes, and method of the intervals."""

    as_text: bool = flag(name="--json")
    """Print JSON instead of tables."""
    protocol: str | None = option(metavar="NAME")
    """Use only the rows of this protocol."""
    columns: list[str] | None = option(metavar="FIELD=COLUMN,...")
    """Columns of your own file to read these fields from, such as human=gold,score=judge_score;
    repeatable."""
    labels: str | None = option(metavar="VALUE=LABEL,...")
    """What the values in the human column mean, such as "0=1,1=2,2=tie" or "poor=1,good=2"; name
    every value."""
    skip_unreadable: bool = flag()
    """Leave out rows with a value that cannot be read, and count them. By default, such a value is
    an error."""
    without_flagged: bool = flag()
    """Leave out items with a text that states a verdict of its own, for all protocols."""
    ties: Literal["class", "left_out", "half"] = option(default="class")
    """In comparisons, treat a human tie as a class, leave it out, or count any verdict on it as
    half right."""
    votes: Literal["majority", "each"] = option(default="majority")
    """In comparisons, compare with the majority of the annotators or with each single vote."""
    resamples: int = option(metavar="N", min=0, max=1_000_000, default=1000)
    """Number of bootstrap resamples; 0 for no intervals."""
    confidence: float = option(metavar="P", default=0.95)
    """Confidence level of the intervals, between 0 and 1."""
    seed: int = option(metavar="N", min=0, default=0)
    """Random seed of the bootstrap."""


def agree(
    file: Path = argument(
        "A .jsonl, .csv, .json or .parquet file (also .gz), or the folder of a run. Its rows have item, human and "
        "score or winner, and may have group, aspect, protocol, repeat and status.",
        "FILE",
    ),
    *,
    chosen: AgreeOptions,
) -> None:
    """Compute agreement with humans from a file of scores.

    Scores: Pearson, Spearman and Kendall correlations. Preferences: accuracy and Cohen's kappa.

    A note below each table names the kind of interval (Wilson, Student over groups, bootstrap over
    groups).

    The JSON has an entry for each aspect (for comparisons: preference), within one for each
    protocol if several.
    """
    check_confidence(chosen.confidence)
    protocol = chosen.protocol
    how = Resampling(chosen.resamples, chosen.confidence, chosen.seed)
    # Before the values are read, because any row of an item may flag it, also a later one.
    flagged = _flagged_items(file, chosen) if chosen.without_flagged else None
    read = _columns(file, chosen)
    gathered = _gathered(file, chosen, flagged, read)
    for notice in (*(rows.annotated() for rows in gathered.values()), read.notice()):
        if notice:
            warnings.warn(f"{file}: {notice}", ReadingNotice, stacklevel=2)
    rule = TiePolicy(chosen.ties, chosen.votes)
    results = {name: rows.agreement(how, rule) for name, rows in gathered.items()}
    repeats = {name: rows.over_repeats(rule) for name, rows in gathered.items()}
    measured = [result for aspects in results.values() for result in aspects.values()]
    if not any(result.n for result in measured):
        # Every row was left out: the reasons usually show a missing or misspelt field.
        reasons = sum((Counter(result.left_out) for result in measured), Counter[str]())
        fields = (
            "" if file.is_dir() else f"; the first row has {', '.join(next(_rows(file)[1])[1])}"
        )
        raise DataError(
            f"{file}: none of its {reasons.total():,} rows can be used: {listed(reasons)}; "
            f"a row needs the field human, and score or winner (1, 2 or tie){fields}"
        )
    if chosen.as_text:
        plain = {name: as_json(aspects, repeats[name]) for name, aspects in results.items()}
        echo(json.dumps(plain if len(plain) > 1 else next(iter(plain.values())), indent=2))
        return
    out = console()
    title = f"{file.name}, {protocol}" if protocol else file.name
    out.print_grids(grids(results, repeats, title), gap=False)
    if flagged:
        out.print_line(printable(str(flagged.note())))


def _columns(file: Path, chosen: AgreeOptions) -> ResultColumns:
    """Return the reader of a file's columns."""
    if chosen.columns and file.is_dir():
        raise UsageError(f"--columns only applies to a file, and {file} is the folder of a run")
    columns = parse_columns(",".join(chosen.columns), FIELDS) if chosen.columns else {}
    if inner := next((field for field in columns if "." in field), None):
        outer, _, aspect = inner.partition(".")
        raise UsageError(
            f"--columns: a row has one label, of the aspect {aspect!r} or of another; "
            f"use {outer}={columns[inner]}, and aspect=COLUMN if rows have different aspects"
        )
    return ResultColumns(str(file), columns, _codes(chosen))


def _codes(chosen: AgreeOptions) -> dict[str, str]:
    return parse_label_codes(chosen.labels) if chosen.labels else {}


def _gathered(
    file: Path, chosen: AgreeOptions, flagged: FlaggedItems | None, read: ResultColumns
) -> dict[str, RowsByAspect]:
    """Gather the rows of each protocol, in order of first appearance."""
    protocol = chosen.protocol
    codes = _codes(chosen)
    called, raw = _rows(file)
    numbered = raw if file.is_dir() else read.renamed((place, dict(row)) for place, row in raw)
    gathered: defaultdict[str, RowsByAspect] = defaultdict(
        lambda: RowsByAspect(called, codes, chosen.skip_unreadable)
    )
    for place, row in numbered:
        left_out = flagged is not None and flagged.leaves_out(_item(row, place))
        # Results from other tools may name no protocol: they are collected under an empty name.
        rows = gathered[str(row.get("protocol") or "")]
        rows.add(row, place, left_out=FLAGGED if left_out else None)
    if not gathered:
        raise DataError(f"{file}: no rows")
    if protocol is None:
        return gathered
    if protocol not in gathered:
        others = ", ".join(repr(name) for name in gathered if name) or "none"
        raise UsageError(
            f"{file}: no rows of protocol {protocol!r}; protocols in the file: {others}"
        )
    return {protocol: gathered[protocol]}


def _flagged_items(file: Path, chosen: AgreeOptions) -> FlaggedItems:
    """Collect the items with a verdict in their text, from the warnings of all rows.

    Raises:
        UsageError: rows without warnings, or a stream, which cannot be read a second time for its
            values.
    """
    flagged = FlaggedItems(left_out=True)
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise UsageError(
            f"{file}: --without-flagged reads rows twice: give a file, or the folder of a run"
        )
    called, rows = _rows(file, whole=True)
    if not file.is_dir():
        rows = _columns(file, chosen).renamed((place, dict(row)) for place, row in rows)
    for place, row in rows:
        if not isinstance(warnings := row.get("warnings"), list | tuple):
            raise UsageError(
                f"{called} {place}: the row has no list of warnings, so --without-flagged cannot "
                "tell whether a text of its item states a verdict: "
                f"give the folder of a run, or its {FILE}"
            )
        flagged.add(_item(row, place), map(str, warnings))
    return flagged


def _item(row: Mapping[str, Any], place: int) -> Hashable:
    """Return the item of a row; a row without one counts as a separate item."""
    item = row.get("item")
    return ("row", place) if item in (None, "") else str(item)


def _rows(file: Path, whole: bool = False) -> tuple[str, Iterator[tuple[int, Mapping[str, Any]]]]:
    """Return how messages name a row (file and unit), and the numbered rows.

    Rows of a run have no warnings unless ``whole`` is set.
    """
    if file.is_dir():
        if not (file / FILE).is_file():
            # The runs of a sweep's cells are in subfolders.
            runs = sorted(
                {str(path.parent) for path in (*file.glob(f"*/{FILE}"), *file.glob(f"*/*/{FILE}"))}
            )
            more = ", ..." if len(runs) > 3 else ""
            below = f"; it contains the runs {', '.join(runs[:3])}{more}" if runs else ""
            raise UsageError(f"{file}: not the folder of a run, because it has no {FILE}{below}")
        results = results_of(file).read()
        return f"{file / FILE}, result", enumerate(
            map(vars, results) if whole else results.heads(), start=1
        )
    rows = row_file(file)
    return f"{file}, {rows.line_name if file.is_file() else 'line'}", rows.rows()
