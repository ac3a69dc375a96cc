"""``jurygraph measure``: reference metrics over a dataset, as rows beside the judges."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..datasets.dataset import MAX_CHARACTERS, load_dataset
from ..metrics import measure as measure_all
from .run import default_out, print_evaluation
from .runtime import ALL_JUDGED, SOME_FAILED, console


def measure(
    metrics: Annotated[
        str,
        typer.Argument(
            help="One metric, or several with commas between: rouge-l, bleu-4, bertscore, moverscore, bartscore, "
            "unieval, gptscore, the name of one that another package registers, or a function of your own as "
            "module:function."
        ),
    ],
    data: Annotated[str, typer.Option(help="A dataset's name (see `datasets`), or a file.")],
    aspect: Annotated[
        list[str] | None, typer.Option(help="An aspect's name or a YAML file; default: all that have labels.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many items only.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with a published dataset's files.")] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="The longest text that an item may have.")
    ] = MAX_CHARACTERS,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Rename the results that the folder holds.")
    ] = False,
) -> None:
    """Compute reference metrics: results.jsonl and run.json as a run writes them. No model is called.

    Exit codes: 0 all measured, 2 bad input, 3 something failed.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    sys.path.append(str(Path.cwd()))  # where one's own module may lie
    out_console = console()
    evaluation = measure_all(
        names,
        load_dataset(data, data_dir, max_characters=max_chars),
        aspects=aspect or [],
        limit=limit,
        out=out or default_out([name.partition("?")[0].replace(":", ".") for name in names], data),
        replace=replace,
    )
    print_evaluation(out_console, evaluation)
    for name, reasons in evaluation.manifest["left_out"].items():
        told = ", ".join(f"{count:,} items with {reason}" for reason, count in reasons.items())
        out_console.print(f"{name}: left out {told}", soft_wrap=True)
    raise typer.Exit(SOME_FAILED if evaluation.failed else ALL_JUDGED)
