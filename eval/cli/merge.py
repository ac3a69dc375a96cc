"""Put the shards of a run together: the command ``jurygraph merge``."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path

import typer

from ..results.merge import merge as merge_folders
from .option_sets import argument, option
from .runtime import SOME_FAILED, console


def merge(
    folders: list[Path] = argument("Folders of the shards, or the one above them.", "DIR"),
    out: Path = option("Folder for the whole run.", "DIR", default=MISSING),
) -> None:
    """Put the shards of a run together, in the order of the dataset, as if one process had judged everything.

    A shard that is missing, or items that failed, are judged when the run's command is given this --out.

    Exit codes: 0 all judged, 2 bad input, 3 something failed or is missing.
    """
    merged = merge_folders(folders, out)
    output = console()
    output.print_line(f"{out}: {merged.judged:,} verdicts, {merged.failed:,} failed")
    if merged.missing:
        which = ", ".join(map(str, merged.missing))
        output.print_line(
            f"missing: shard {which}; the run's command without --shard, with --out {out}, judges the rest"
        )
    if merged.missing or merged.failed:
        raise typer.Exit(SOME_FAILED)
