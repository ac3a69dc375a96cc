"""Compare a protocol with other uses of its budget: the command ``jurygraph versus``."""

from __future__ import annotations

from ..experiments.equal_spending import Terms
from ..experiments.versus_plan import VERSUS_WITHOUT, VersusPlan
from ..experiments.versus_runner import plan_comparison
from ..run.plan.estimator import estimate_table
from ..statistics.resampling import FEWEST_CLUSTERS, is_few
from .experiment_screen import carry_out_experiment
from .option_sets import argument, takes_options
from .plan_options import PlanOptions
from .run import default_out
from .runtime import CommandConfig, Output, console, interruptible
from .show import print_note


@takes_options(without=("shard", "repeats", "replies", *VERSUS_WITHOUT))
def versus(
    protocol: str = argument(
        "The protocol to test: a name, or a file such as mine.py or mine.py:graph.", "PROTOCOL"
    ),
    *,
    terms: Terms,
    chosen: PlanOptions,
    config: CommandConfig,
) -> None:
    """Test whether a debate beats a single judge on the same budget.

    Judges with the protocol first; then with a single judge sampled as often, and an ensemble of as
    many identical judges, as the protocol's spending pays for. Limits apply to all of these
    together.

    Writes a run folder for each, and versus.json. The same command with the same --out resumes a
    test that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130
    interrupted.
    """
    folder = chosen.out or default_out(["versus", protocol], chosen.data or str(terms.taken_from))
    out = console()
    with interruptible():
        comparison = plan_comparison(
            protocol, chosen.dataset(), terms, folder, config, chosen.of_plan(folder)
        )
        comparison.check(config)
        _announce_versus(out, comparison.planned, config)
    carry_out_experiment(out, comparison, folder, config)


def _announce_versus(out: Output, planned: VersusPlan, config: CommandConfig) -> None:
    """Print the comparison and, if it costs money or is a dry run, an estimate of all runs."""
    if is_few(groups := planned.groups):
        are = "1 group is" if groups == 1 else f"{groups} groups are"
        few = f"{are} too few to tell whether {planned.name} pays: at least {FEWEST_CLUSTERS} are needed"
        out.print_line(f"{few} (an item without a group counts as one)", "yellow")
    if not config.dry_run and not planned.own.costs_money:
        return
    print_note(out, planned.own.manifest)
    expected, sizes = planned.estimate()
    if expected is None:
        out.print_line(
            f"no estimate: the calls of {planned.name} are not known before they are made"
        )
        return
    out.print_grids([estimate_table(expected)], gap=False)
    named = ", ".join(opponent.title(sizes[opponent.name]) for opponent in planned.opponents)
    out.print_line(
        f"expected at equal {planned.terms.by}: {named}; adjusted to what it really spends"
    )
    if expected.exceeds(**config.budget):
        then = "each run stops when its part is spent, and only items that all have judged are compared"
        out.print_line(f"the budget may be too small: {then}", "yellow")
