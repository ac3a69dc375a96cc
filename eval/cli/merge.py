"""Put the shards of a run together: the command ``jurygraph merge``."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path

import typer

from ..results.merge import merge as merge_folders
from .option_sets import argument, option
from .runtime import SOME_FAILED, console


def merge(
    folders: list[Path] = argument("Folders of the shards, or the folder that holds them.", "DIR"),
    out: Path = option("Folder for the whole run.", "DIR", default=MISSING),
) -> None:
    """Merge the shards of a run, in the order of the dataset, as if one process had judged everything.

    To judge missing shards and failed items, repeat the run's command without --shard and with this --out.

    Exit codes: 0 all judged, 2 bad input, 3 something failed or is missing.
    """
    merged = merge_folders(folders, out)
    output = console()
    output.print_line(f"{out}: {merged.judged:,} verdicts, {merged.failed:,} failed")
    if merged.missing:
        remedy = f"to judge the rest, repeat the run's command without --shard, with --out {out}"
        output.print_line(f"missing: shard {', '.join(map(str, merged.missing))}; {remedy}")
    if merged.missing or merged.failed:
        raise typer.Exit(SOME_FAILED)
