"""Try one judge and a debate on a few items of one's own data: the command ``jurygraph try``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import typer

from ...graphs.registry import DEFAULT
from ...state.transcript import NO_USAGE
from ..analysis.equal_cost import ensemble_protocols
from ..datasets.dataset import Dataset, data_options, describe_data
from ..plan.plan import plan
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..run.runner import check_run, execute
from ..tables.grid import cost_in_words
from .option_sets import argument, option, takes_options
from .plan_options import DATA, PlanOptions
from .run import announce, carry_out_to_end, default_out, print_evaluation
from .runtime import RunFlags, console, interruptible, program

TRIED = (next(iter(ensemble_protocols().values())).single, DEFAULT)
"""One judge, and the debate that it is held against."""
FEW = 24


@dataclass(frozen=True, kw_only=True)
class TriedOptions(PlanOptions):
    """What is tried: a few items of some groups."""

    sample: int | None = option(metavar="N", min=1, default=FEW)
    """Number of items to judge, drawn at random, a few from each group."""
    # Two can be put in order, and of many groups more can be said than of a few.
    of_group: int | None = option(metavar="N", min=1, default=2)
    """Number of items to draw from a group before other groups have had their turn."""


@takes_options(without=("data", "replies", "limit", "repeats", "shard", "dry_run"))
def try_(
    data: str = argument(f"{DATA}.", "FILE|NAME"),
    *,
    chosen: TriedOptions,
    config: RunConfig,
    flags: RunFlags,
) -> None:
    """Compare one judge with a debate on a few items of your own data.

    Prints how the file was read, judges the items with `single` and `debate`, tells which of the two agrees better with
    the labels, and estimates what judging the rest would cost.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    folder = chosen.out or default_out(["try"], data)
    out = console()
    with interruptible():
        whole = replace(chosen, data=data, sample=None, seed=None, of_group=None).dataset()
        assert whole is not None  # data were named
        few = whole.sample(chosen.sample or FEW, chosen.seed or 0, chosen.of_group)
        prepared = plan(TRIED, few, **chosen.of_plan(folder))
        check_run(prepared, config)
        out.print_line(f"{len(few):,} of {len(whole):,} items of {whole.name}, with {' and '.join(TRIED)}")
        announce(out, prepared, config, dry=False)
    work, show = partial(execute, prepared), partial(print_evaluation, out)
    evaluation, code = carry_out_to_end(out, folder, flags, config, work, show)
    for line in _the_rest(evaluation, len(few), whole, chosen):
        out.print_line(line)
    raise typer.Exit(code)


def _the_rest(evaluation: Evaluation, tried: int, whole: Dataset, chosen: PlanOptions) -> Iterator[str]:
    """Say what judging the other items would take, as these did, and with which command."""
    left = len(whole) - tried
    if not left or evaluation.stopped or evaluation.failed:
        return
    spent = dict.fromkeys(TRIED, NO_USAGE)
    for (protocol, _aspect), overview in evaluation.figures.overviews.items():
        spent[protocol] += overview.usage
    more = left / tried
    parts = []
    for name, usage in spent.items():
        cost = cost_in_words(usage.cost_usd and more * usage.cost_usd)
        parts.append(f"{name} about {more * usage.calls:,.0f} calls, {cost}")
    yield f"judging the other {left:,} items would take: {'; '.join(parts)}"
    taken = {
        "--aspect": chosen.aspect,
        "--model": chosen.model and [chosen.model],
        "--role-model": chosen.role_model,
        "--set": chosen.settings,
    }
    given = [word for option, values in taken.items() for value in values or () for word in (option, value)]
    seed = [] if chosen.seed is None else ["--seed", str(chosen.seed)]
    sample = ["--sample", str(len(whole)), *seed, "--out", str(evaluation.folder)]
    words = ["run", ",".join(TRIED), *data_options(describe_data(whole)), *given, *sample]
    yield f"to judge them, too: {program()} {shlex.join(words)}"
