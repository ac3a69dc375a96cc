"""Carry out an experiment for a command, and print its first screen and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import typer

from ..experiments.experiment import Done, Experiment
from ..results.experiment_result import ExperimentResult
from ..tables.grid import Grid
from ..tables.screen import FirstScreen
from .progress import carry_out_to_end
from .runtime import CommandConfig, Output, command
from .screens import Step, print_screens


def carry_out_experiment(
    out: Output, planned: Experiment[Done], folder: Path, config: CommandConfig
) -> NoReturn:
    """Carry out an experiment, print its result, and end the command with its exit code.

    Args:
        out: the console.
        planned: the experiment.
        folder: the folder of its result; the same command with it resumes the experiment.
        config: the limits, whether it is a dry run, and whether all tables are printed.
    """
    show = partial(print_result, everything=config.verbose)
    raise typer.Exit(carry_out_to_end(out, folder, config, planned.carry_out, show)[1])


def print_result(out: Output, done: ExperimentResult, everything: bool) -> list[Step]:
    """Print the first screen of a result, and its tables if requested; return suggested commands."""
    assert done.folder is not None
    return print_experiment(out, done.folder, done.screen(), done.grids(), everything=everything)


def print_experiment(
    out: Output,
    folder: Path,
    screen: FirstScreen,
    grids: Iterable[Grid],
    runs: Sequence[Path] = (),
    *,
    everything: bool,
) -> list[Step]:
    """Print the first screen of an experiment; return suggested commands.

    Args:
        out: the console.
        folder: the folder of its result.
        screen: its first screen.
        grids: its tables.
        runs: the folders of its runs, if it has several.
        everything: whether to print all remarks and the tables.
    """
    more = command("report", folder, "--all")
    print_screens(out, [screen], everything, more)
    if everything:
        out.print_grids(grids)
    page = command("report", folder, "--html", "report.html", "--open")
    steps = [] if everything else [Step("see all tables", more)]
    steps.append(Step("see the page", page))
    if len(runs) > 1:
        compared = command("report", *runs, "--html", "report.html", "--open")
        steps.append(Step("compare its runs on a page", compared))
    return steps
