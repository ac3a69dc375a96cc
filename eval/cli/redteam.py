"""Measure how a judge holds out against hostile texts: the command ``jurygraph redteam``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import typer

from ...state.errors import UsageError
from ..red_team.attacks import DRAWN, replayed
from ..red_team.redteam import ATTACKS, carry_out_redteam, plan_redteam
from ..results.config import RunConfig
from .option_sets import argument, flag, option, takes_options
from .plan_options import PlanOptions
from .run import announce, carry_out_to_end, default_out, show_experiment
from .runtime import ALL_JUDGED, RunFlags, console, interruptible

attack = partial(option, panel="Attacks")


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is drawn from the set of hostile texts."""

    attacks: int = attack(metavar="N", default=ATTACKS, min=1)
    """Number of hostile texts for each item and aspect; one is inserted at a time."""
    draw_seed: int = attack(metavar="N", default=0, name="--seed")
    """Random seed by which the hostile texts are drawn."""
    replayed: bool = flag(panel="Attacks")
    """Call no model: parse replies that honest judges might give to such texts, and count whose verdict is read."""
    all: bool = flag(f"With --replayed: parse all replies, not a sample of {DRAWN:,}.", panel="Attacks")


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
    """Test a judge on texts that try to dictate their own verdict.

    Judges clean items (--data; by default the bundled demo), and again with hostile texts inserted. Prints how many
    verdicts were forged (read from words copied out of the text), lost, or persuaded (moved at least halfway to what
    the text states), with agreement and cost. --limit counts clean items; each takes 1 + --attacks verdicts.

    Writes a run folder with redteam.json. The same command with the same --out resumes a test that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed or was lost, 4 budget reached,
    130 interrupted.
    """
    out = console()
    if drawn.replayed:
        out.print_grids(replayed(None if drawn.all else DRAWN, drawn.draw_seed).grids())
        raise typer.Exit(ALL_JUDGED)
    if drawn.all:
        raise UsageError("--all only applies to replies that are read without a model: add --replayed")
    folder = chosen.out or default_out(["redteam", protocol], chosen.data or "demo")
    with interruptible():
        dataset = chosen.dataset() or "demo"
        planned = plan_redteam(protocol, dataset, chosen.of_plan(folder), drawn.attacks, drawn.draw_seed)
        announce(out, planned.plan, config, flags.dry_run)
    work, show = partial(carry_out_redteam, planned), partial(show_experiment, out)
    raise typer.Exit(carry_out_to_end(out, folder, flags, config, work, show)[1])
