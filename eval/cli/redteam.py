"""Measure how a judge holds out against hostile texts: the command ``jurygraph redteam``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import typer

from ...state.errors import UsageError
from ..red_team.redteam import ATTACKS, carry_out_redteam, plan_redteam
from ..red_team.replayed import DRAWN, replayed
from ..results.config import RunConfig
from .option_sets import argument, flag, option, takes_options
from .plan_options import PlanOptions
from .run import announce, carry_out_to_end, default_out, show_experiment
from .runtime import ALL_JUDGED, RunFlags, console, interruptible

attack = partial(option, panel="The attacks")


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is drawn from the set of hostile texts."""

    attacks: int = attack(metavar="N", default=ATTACKS, min=1)
    """Hostile texts for each item and aspect, one at a time."""
    draw_seed: int = attack(metavar="N", default=0, name="--seed")
    """Says which texts are drawn."""
    replayed: bool = flag(panel="The attacks")
    """Call no model: read what honest judges may reply to such texts, and count whose verdict is read."""
    all: bool = flag(f"With --replayed: all replies, not {DRAWN:,} of them.", panel="The attacks")


@takes_options(without=("shard", "repeats", "replies", "sample", "seed"))
def redteam(
    protocol: str = argument(
        "The judge: a protocol, or a file: mine.py, mine.py:graph.", "[PROTOCOL]", default="single"
    ),
    *,
    chosen: PlanOptions,
    drawn: AttackOptions,
    config: RunConfig,
    flags: RunFlags,
) -> None:
    """Find out how a judge holds out against texts that judge themselves.

    Judges honest items (--data; by default the bundled demo) as they are, and again with hostile texts in them. Tells
    how many verdicts were forged (read out of copied words), lost, or persuaded (moved half the way to what the text
    states), beside agreement and cost. --limit is of honest items; each takes 1 verdict and one for each of --attacks.

    Writes a run folder with redteam.json. The same command with the same --out resumes what stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed or was lost, 4 budget reached,
    130 interrupted.
    """
    out = console()
    if drawn.replayed:
        out.print_grids(replayed(None if drawn.all else DRAWN, drawn.draw_seed).grids())
        raise typer.Exit(ALL_JUDGED)
    if drawn.all:
        raise UsageError("--all is of the replies that are read without a model: add --replayed")
    data = chosen.data or "demo"
    folder = chosen.out or default_out(["redteam", protocol], data)
    with interruptible():
        dataset = chosen.dataset() or "demo"
        planned = plan_redteam(protocol, dataset, chosen.of_plan(folder), drawn.attacks, drawn.draw_seed)
        announce(out, planned.plan, config, flags.dry_run)
    work, show = partial(carry_out_redteam, planned, config), partial(show_experiment, out)
    raise typer.Exit(carry_out_to_end(out, folder, flags, work, show)[1])
