"""Find out whether a protocol pays at equal spending: the command ``jurygraph versus``."""

from __future__ import annotations

from functools import partial

import typer

from ..equal_budget.equal_spending import Terms
from ..equal_budget.versus_plan import VERSUS_WITHOUT, VersusPlan, plan_versus
from ..equal_budget.versus_runner import Versus, carry_out_versus
from ..plan.estimator import estimate_table
from ..plan.plan import count_judged
from ..results.config import RunConfig
from ..run.runner import check_run
from ..tables.grid import printable
from .option_sets import argument, takes_options
from .plan_options import PlanOptions
from .run import carry_out_to_end, default_out
from .runtime import Output, RunFlags, console, interruptible
from .show import print_note


@takes_options(without=("shard", "repeats", "replies", *VERSUS_WITHOUT))
def versus(
    protocol: str = argument(
        "The protocol to test: a name, or a file such as mine.py or mine.py:graph.", "PROTOCOL"
    ),
    *,
    terms: Terms,
    chosen: PlanOptions,
    config: RunConfig,
    flags: RunFlags,
) -> None:
    """Test whether a debate pays, compared with what the same budget buys from a single judge on the same items.

    Judges with the protocol first; then with a single judge sampled as often, and an ensemble of as many identical
    judges, as the protocol's spending pays for. Limits apply to all of these together.

    Writes a run folder for each, and versus.json. The same command with the same --out resumes a test that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    folder = chosen.out or default_out(["versus", protocol], chosen.data or str(terms.taken_from))
    out = console()
    with interruptible():
        planned = plan_versus(protocol, chosen.dataset(), terms, folder, config, chosen.of_plan(folder))
        _announce(out, planned, config, flags.dry_run)
    work, show = partial(carry_out_versus, planned), partial(print_versus, out)
    raise typer.Exit(carry_out_to_end(out, folder, flags, config, work, show)[1])


def _announce(out: Output, planned: VersusPlan, config: RunConfig, dry: bool) -> None:
    """Print what is compared and, if that costs money or is a dry run, an estimate of all runs.

    Raises:
        UsageError: a folder holds another run.
    """
    check_run(planned.own, config)
    if planned.taken_up is None:
        count_judged(planned.own, config)
    if not dry and not planned.own.costs_money:
        return
    print_note(out, planned.own.manifest)
    expected, sizes = planned.estimate()
    if expected is None:
        out.print_line(f"no estimate: the calls of {planned.name} are not known before they are made")
        return
    out.print_grids([estimate_table(expected)], gap=False)
    named = ", ".join(opponent.title(sizes[opponent.name]) for opponent in planned.opponents)
    out.print_line(f"expected at equal {planned.terms.by}: {named}; adjusted to what it really spends")
    if expected.exceeds(**config.budget):
        then = "each run stops when its part is spent, and only items that all have judged are compared"
        out.print_line(f"the budget may be too small: {then}", "yellow")


def print_versus(out: Output, done: Versus) -> None:
    """Print the answer, the tables that it rests on, and where the runs are."""
    out.print_line(printable(done.finding.sentence), "bold")
    for subject, finding in done.findings.items() if len(done.findings) > 1 else ():
        out.print_line(f"{subject}: {printable(finding.sentence)}")
    for note in done.notes:
        out.print_line(f"Warning: {printable(note)}", "yellow")
    out.print()
    out.print_grids(done.grids())
    for name, folder in done.folders.items():
        out.print_line(f"{name}: {folder}")
    out.print_line(f"results: {done.folder}/{done.file}")
