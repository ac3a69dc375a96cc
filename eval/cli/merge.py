"""Put the shards of a run together: the command ``jurygraph merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..results.merge import merge as merge_folders
from .runtime import SOME_FAILED, console


def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders of the shards, or the one above them.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the whole run.")],
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
