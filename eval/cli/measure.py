"""Compute reference metrics over a dataset, in the format of a run's results: the command ``jurygraph measure``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..datasets.dataset import MAX_CHARACTERS
from ..metrics import measure as measure_all
from .data_options import Columns, SampleSize, Seed, load_data
from .run import default_out, print_evaluation
from .runtime import ALL_JUDGED, SOME_FAILED, Aspects, DataDir, MaxChars, console


def measure(
    metrics: Annotated[
        str,
        typer.Argument(
            metavar="METRIC[,METRIC...]",
            help="One metric, or several: rouge-l, bleu-4, bertscore, moverscore, bartscore, "
            "unieval, gptscore, one that another package registers, or your own function as module:function.",
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE", help="A dataset's name (see `datasets`), or a JSONL, CSV or Parquet file."
        ),
    ],
    aspect: Aspects = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Measure only the first N items.")
    ] = None,
    sample: SampleSize = None,
    seed: Seed = None,
    columns: Columns = None,
    data_dir: DataDir = None,
    max_chars: MaxChars = MAX_CHARACTERS,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the results.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Rename the results that the folder holds and start anew.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", hidden=True)] = False,
) -> None:
    """Compute reference metrics over a dataset; no model is called.

    Writes results.jsonl and run.json as `run` does, so that `report` compares metrics with judges.

    Exit codes: 0 all measured, 2 bad input, 3 something failed.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    sys.path.append(str(Path.cwd()))  # where the user's own module may be
    out_console = console()
    dataset = load_data(data, data_dir, max_chars, columns, sample, seed)
    assert dataset is not None  # data were named
    # Without a folder given, its name is made of the metrics', without their parameters after "?" and without colons.
    evaluation = measure_all(
        names,
        dataset,
        aspects=aspect or [],
        limit=limit,
        out=out or default_out([name.partition("?")[0].replace(":", ".") for name in names], data),
        replace=overwrite or replace,
    )
    print_evaluation(out_console, evaluation)
    for name, reasons in evaluation.manifest["left_out"].items():
        left_out = ", ".join(f"{count:,} items with {reason}" for reason, count in reasons.items())
        out_console.print(f"{name}: left out {left_out}", soft_wrap=True)
    raise typer.Exit(SOME_FAILED if evaluation.failed else ALL_JUDGED)
