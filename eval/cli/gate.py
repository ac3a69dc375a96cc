"""Check a finished run against gates: ``jurygraph gate``, and the options of ``jurygraph run``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import typer

from ...state.errors import UsageError
from ..judges.gates.gates import Gates, read_run, write_junit
from ..results.evaluation import Evaluation
from ..tables.grid import printable
from .exit_codes import ExitCode
from .option_sets import argument, option
from .runtime import Output, check_file, console, exit_code, key_and_value, program

gate_option = partial(option, panel="Gates")


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """The requirements for a run."""

    fail_under: list[str] | None = gate_option(metavar="ASPECT=SCORE")
    """Exit with code 5 if a protocol's mean score is lower than this; for comparisons,
    answer_1=SHARE or answer_2=SHARE is a minimum share of wins; repeatable."""
    baseline: Path | None = gate_option(metavar="DIR")
    """Folder of an earlier run of the same judges: exit with code 5 if a mean is lower than in that
    run by more than chance explains."""
    max_drop: float | None = gate_option(metavar="SCORE", min=0)
    """How far a mean may fall below that of the baseline. Default: 0."""
    junit: Path | None = gate_option(metavar="FILE")
    """Write judgements and gates to this file as JUnit XML."""

    def gates(self) -> Gates:
        """Make gates from the options.

        Raises:
            UsageError: an option with an invalid value, or without another one that it needs.
        """
        if self.max_drop is not None and self.baseline is None:
            raise UsageError("--max-drop needs an earlier run: give its folder with --baseline DIR")
        check_file("--junit", self.junit)
        limits: dict[str, float] = {}
        for text in self.fail_under or []:
            name, value = key_and_value(text, "--fail-under ASPECT=SCORE")
            if name in limits:
                raise UsageError(
                    f"--fail-under {text}: {name} already has the limit {limits[name]:g}"
                )
            try:
                limits[name] = float(value)
            except ValueError:
                raise UsageError(f"--fail-under {text}: {value!r} is not a number") from None
        return Gates(limits, self.baseline, self.max_drop or 0.0)


def gate(folder: Path = argument("The folder of a run.", "DIR"), *, chosen: GateOptions) -> None:
    """Check a run against minimum scores and an earlier run, for CI.

    Reads the mean scores of a finished run; nothing is judged.

    Exit codes: 0 all gates met, 2 bad input, 3 items without a verdict, 5 a gate is not met.
    """
    gates = chosen.gates()
    if not gates and chosen.junit is None:
        raise UsageError("no gate given: add --fail-under ASPECT=SCORE or --baseline DIR")
    out = console()
    run = read_run(folder)
    if failed := len(run.failed):
        of_all = f"{failed:,} of {len(run.results):,} judgements failed"
        out.print_line(f"{of_all}, see {folder}/results.jsonl", "red")
    end_with_gates(out, gates, run, chosen.junit)


def end_with_gates(out: Output, gates: Gates, run: Evaluation, junit: Path | None) -> NoReturn:
    """Print a line for each gate, write the JUnit file, and exit; skip gates of a stopped run."""
    results = [] if run.stopped else gates.results(run)
    for result in results:
        style = {"met": "green", "not met": "bold red", "undecided": "yellow"}[result.status]
        out.print_line(printable(str(result)), style)
    if run.stopped and gates:
        out.print("gates were not checked, because the run is not complete")
    if junit is not None:
        write_junit(junit, run, results, program())
        out.print_line(f"JUnit: {junit}")
    # Report an incomplete run first, because its gates mean little.
    met = all(result.passed for result in results)
    raise typer.Exit(
        exit_code(run.stopped, len(run.failed))
        or (ExitCode.ALL_JUDGED if met else ExitCode.GATE_NOT_MET)
    )
