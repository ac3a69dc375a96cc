"""Write the verdicts of runs to one table: the command ``jurygraph export``."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from ...state.errors import UsageError
from .option_sets import argument, flag, option
from .runtime import check_file, console, interruptible


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The output file of the table, and its columns."""

    out: Path = option(metavar="FILE", default=MISSING)
    """Write to this file. Its ending names the format: .parquet, .csv or .jsonl."""
    turns: bool = flag()
    """Add the transcripts: nested in Parquet and JSONL, JSON text in CSV."""
    without_texts: bool = flag()
    """Leave out the judged texts, for example if the data is gone."""
    data: list[Path] | None = option(metavar="FILE")
    """Read the texts from this copy of a run's data, if the data was moved; repeatable."""
    overwrite: bool = flag()
    """Replace the file if it exists."""


def export(
    folders: list[Path] = argument("Folders of runs.", "DIR"), *, chosen: ExportOptions
) -> None:
    """Write verdicts and texts to one Parquet, CSV or JSONL file.

    The file is for pandas, polars, DuckDB or a spreadsheet, and has one row for each verdict. A row
    has the texts, ids, judge, verdict, human labels, cost and warnings. Failed items have a row
    with their error.
    """
    from ..report.exports.exporting import export as write

    if chosen.without_texts and chosen.data:
        raise UsageError("--data is read for the texts only: give either --data or --without-texts")
    check_file("--out", chosen.out)
    with interruptible("interrupted; no file was written"):
        exported = write(
            folders,
            chosen.out,
            turns=chosen.turns,
            texts=not chosen.without_texts,
            data=chosen.data or (),
            overwrite=chosen.overwrite,
        )
    out = console()
    for note in exported.notes:
        out.print_line(f"Warning: {note}", "yellow")
    rows = f"{exported.rows:,} {'row' if exported.rows == 1 else 'rows'}"
    failed = f", {exported.failed:,} without a verdict" if exported.failed else ""
    out.print_line(f"wrote {exported.path}: {rows}, {len(exported.columns)} columns{failed}")
