"""Test a judge on hostile texts: the command ``jurygraph redteam``."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from ...state.errors import UsageError
from ..experiments.attacks import DRAWN, grids, replayed
from ..experiments.redteam import AttackOptions, plan_redteam
from .exit_codes import ExitCode
from .experiment_screen import carry_out_experiment
from .option_sets import argument, flag, takes_options
from .plan_options import PlanOptions
from .run import announce, default_out
from .runtime import CommandConfig, console, interruptible


@dataclass(frozen=True, kw_only=True)
class RedTeamCommandOptions(AttackOptions):
    """The hostile texts to draw, and whether a model is called."""

    replayed: bool = flag(panel="Attacks")
    """Call no model: parse replies that honest judges might give to such texts, and count whose
    verdict is read."""
    all: bool = flag(
        f"With --replayed: parse all replies, not a sample of {DRAWN:,}.", panel="Attacks"
    )


@takes_options(without=("shard", "repeats", "replies", "sample", "PlanOptions.seed"))
def redteam(
    protocol: str = argument(
        "The judge: a protocol, or a file: mine.py, mine.py:graph.", "[PROTOCOL]", default="single"
    ),
    *,
    chosen: PlanOptions,
    attacking: RedTeamCommandOptions,
    config: CommandConfig,
) -> None:
    """Test a judge on texts that try to dictate their own verdict.

    Judges clean items (--data; by default the bundled demo), and again with hostile texts inserted.
    Prints how many verdicts were forged (read from words copied out of the text), lost, or
    persuaded (moved at least halfway to what the text states), with agreement and cost. --limit
    counts clean items; each takes 1 + --attacks verdicts.

    Writes a run folder with redteam.json. The same command with the same --out resumes a test that
    stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed or was lost, 4 budget
    reached, 130 interrupted.
    """
    out = console()
    if attacking.replayed:
        out.print_grids(grids(replayed(None if attacking.all else DRAWN, attacking.seed)))
        raise typer.Exit(ExitCode.ALL_JUDGED)
    if attacking.all:
        raise UsageError(
            "--all only applies to replies that are read without a model: add --replayed"
        )
    folder = chosen.out or default_out(["redteam", protocol], chosen.data or "demo")
    with interruptible():
        dataset = chosen.dataset() or "demo"
        planned = plan_redteam(protocol, dataset, attacking, chosen.of_plan(folder))
        announce(out, planned.plan, config)
    carry_out_experiment(out, planned, folder, config)
