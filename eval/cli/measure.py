"""Compute reference metrics over a dataset, in the format of a run's results: the command ``jurygraph measure``."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

import typer

from ..metrics import measure as measure_all
from .option_sets import argument, flag, option, takes_options
from .plan_options import DATA, PlanOptions
from .run import default_out, print_evaluation
from .runtime import ALL_JUDGED, SOME_FAILED, console


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(PlanOptions):
    """What is to be measured: data are always named, and the results are no run's that could be resumed."""

    data: str = option(f"{DATA}.", "NAME|FILE", default=MISSING)
    limit: int | None = option(metavar="N", min=1)
    """Measure only the first N items."""
    out: Path | None = option(metavar="DIR")
    """Folder for the results."""
    overwrite: bool = flag(old_name="replace")
    """Start again in a folder that already holds results; the old results are renamed."""


@takes_options(without=("replies", "model", "role_model", "settings", "repeats", "shard"))
def measure(
    metrics: str = argument(
        "One or more metrics: rouge-l, bleu-4, bertscore, moverscore, bartscore, unieval, gptscore, one that "
        "another package registers, or your own function as module:function.",
        "METRIC[,METRIC...]",
    ),
    *,
    chosen: MeasureOptions,
) -> None:
    """Compute reference metrics over a dataset; no model is called.

    Writes results.jsonl and run.json as `run` does, so that `report` compares metrics with judges.

    Exit codes: 0 all measured, 2 bad input, 3 something failed.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    sys.path.append(str(Path.cwd()))  # where the user's own module may be
    dataset = chosen.dataset()
    assert dataset is not None  # data were named
    # Without a folder given, its name is made of the metrics', without their parameters after "?" and without colons.
    plain = [name.partition("?")[0].replace(":", ".") for name in names]
    folder = chosen.out or default_out(plain, chosen.data)
    evaluation = measure_all(
        names, dataset, aspects=chosen.aspect or [], limit=chosen.limit, out=folder, replace=chosen.overwrite
    )
    out = console()
    print_evaluation(out, evaluation)
    for name, reasons in evaluation.manifest["left_out"].items():
        left_out = ", ".join(f"{count:,} items with {reason}" for reason, count in reasons.items())
        out.print_line(f"{name} left out {left_out}")
    raise typer.Exit(SOME_FAILED if evaluation.failed else ALL_JUDGED)
