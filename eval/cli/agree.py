"""``jurygraph agree``: agreement with people, of anybody's scores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...state.errors import DataError, UsageError
from ..agreement import Agreement, Resampling, RowsByAspect
from ..datasets.frames import row_file
from ..run.results import FILE, ResultsFile
from ..tables.formats import to_rich
from ..tables.result_tables import as_json, grids, listed, nothing_counts
from .runtime import console


class Ties(StrEnum):
    """What a human tie is."""

    CLASS = "class"
    LEFT_OUT = "left_out"
    HALF = "half"


class Votes(StrEnum):
    """Whose preference counts."""

    MAJORITY = "majority"
    EACH = "each"


def agree(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows with item, score or winner, human, and group, aspect, protocol, repeat, status if any: "
            ".jsonl, .csv (also .gz), .json, .parquet, or the folder of a run.",
        ),
    ],
    as_text: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    protocol: Annotated[str | None, typer.Option(help="Of this protocol only.")] = None,
    ties: Annotated[
        Ties,
        typer.Option(help="A human tie is a class of its own, left out, or half right whatever is said."),
    ] = Ties.CLASS,
    votes: Annotated[
        Votes, typer.Option(help="In comparisons, people's majority counts, or each annotator's vote.")
    ] = Votes.MAJORITY,
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    confidence: Annotated[float, typer.Option(help="Of intervals, between 0 and 1.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of resamples.")] = 0,
) -> None:
    """Agreement of a judge's scores or preferences with people's: correlations, or accuracy and kappa.

    Intervals come of groups drawn with replacement, or of items where there are no groups. JSON is by aspect
    (comparisons: preference); by protocol and aspect where the file holds several protocols.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence must lie between 0 and 1, not at {confidence:g}")
    how = Resampling(resamples, confidence, seed)
    gathered = _gathered(file, protocol)
    rules: dict[str, Any] = {"ties": ties.value, "votes": votes.value}
    found = {name: rows.agreement(how, **rules) for name, rows in gathered.items()}
    repeats = {name: rows.over_repeats(**rules) for name, rows in gathered.items()}
    _check(file, [one for aspects in found.values() for one in aspects.values()])
    if as_text:
        plain = {name: as_json(aspects, repeats[name]) for name, aspects in found.items()}
        typer.echo(json.dumps(plain if len(plain) > 1 else next(iter(plain.values())), indent=2))
        return
    out = console()
    for grid in grids(found, repeats, f"{file.name}, {protocol}" if protocol else file.name):
        out.print(to_rich(grid, out.width))


def _gathered(file: Path, protocol: str | None) -> dict[str, RowsByAspect]:
    """The rows by protocol, in the order in which protocols come up."""
    found: dict[str, RowsByAspect] = {}
    called, rows = _rows(file)
    for place, row in rows:
        name = str(row.get("protocol") or "")
        if name not in found:
            found[name] = RowsByAspect(called)
        found[name].add(row, place)
    if not found:
        raise DataError(f"{file}: no rows")
    if protocol is None:
        return found
    if protocol not in found:
        there = ", ".join(repr(name) for name in found if name) or "none"
        raise UsageError(f"{file}: no protocol {protocol!r}; it has {there}")
    return {protocol: found[protocol]}


def _rows(file: Path) -> tuple[str, Iterator[tuple[int, Mapping[str, Any]]]]:
    """What a row's place is called, and the rows with their places."""
    if file.is_dir():
        if not (file / FILE).is_file():
            raise UsageError(f"{file}: not the folder of a run, which has a {FILE}{_runs_below(file)}")
        return f"{file / FILE}, result", enumerate(ResultsFile(file).read().heads(), start=1)
    rows = row_file(file)
    return f"{file}, {rows.unit if file.is_file() else 'line'}", rows.rows()


def _runs_below(folder: Path) -> str:
    """The runs in a folder of several, such as that of a sweep."""
    found = sorted({str(path.parent) for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{FILE}")})
    more = ", ..." if len(found) > 3 else ""
    return f"; there are some below it: {', '.join(found[:3])}{more}" if found else ""


def _check(file: Path, found: list[Agreement]) -> None:
    if nothing_counts(found):
        reasons: Counter[str] = Counter()
        for one in found:
            reasons.update(one.left_out)
        raise DataError(
            f"{file}: none of its {reasons.total():,} rows counts: {listed(reasons)}; "
            f"a row needs score or winner (1, 2 or tie), and human{_fields(file)}"
        )


def _fields(file: Path) -> str:
    """What a row has instead, where it may be that a name is wrong."""
    return "" if file.is_dir() else f"; the first has {', '.join(next(_rows(file)[1])[1])}"
