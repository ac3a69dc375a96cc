"""Compare a judge with a debate on a few items: the command ``jurygraph try``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import typer

from ...graphs.engine.registry import DEFAULT
from ...state.transcript import NO_USAGE
from ..analysis.equal_cost import ensemble_protocols
from ..datasets.dataset import Dataset, data_options, describe_data
from ..results.evaluation import Evaluation
from ..run.plan.labels_needed import note_without_labels
from ..run.plan.plan import plan
from ..run.runner import check_run, execute
from ..tables.grid import cost_in_words
from .option_sets import argument, option, takes_options
from .plan_options import DATA, PlanOptions
from .progress import carry_out_to_end
from .run import announce, default_out, print_evaluation
from .runtime import (
    CommandConfig,
    Output,
    command,
    console,
    interruptible,
)
from .screens import Step

TRIED = (next(iter(ensemble_protocols().values())).single, DEFAULT)
"""A single judge, and the debate that it is compared with."""
FEW = 24
BUNDLED = ("demo", "demo-pairs")
"""The datasets that only demonstrate the command."""
DEMO_ASPECT = "consistency"
"""The aspect of the demo texts that is judged unless others are named: one is enough to see how
the command works, and a fourth of the calls."""


@dataclass(frozen=True, kw_only=True)
class TriedOptions(PlanOptions):
    """A sample with a few items of some groups."""

    sample: int | None = option(metavar="N", min=1, default=FEW)
    """Number of items to judge, drawn at random, a few from each group."""
    # Two items of a group can be ranked, and more groups give more certainty.
    of_group: int | None = option(metavar="N", min=1, default=2)
    """Most items per group (for example 2 summaries per article), so that the sample covers many
    groups. They are drawn at random within a group."""


@takes_options(without=("data", "replies", "limit", "repeats", "shard", "dry_run"))
def try_(
    data: str = argument(f"{DATA}.", "FILE|NAME"), *, chosen: TriedOptions, config: CommandConfig
) -> None:
    """Compare one judge with a debate on a few of your own items.

    Prints how the file was read, judges the items with `single` and `debate`, tells which of the
    two agrees better with the labels, and estimates what judging the rest would cost. The demo texts
    are judged on consistency, unless `--aspect` names other aspects.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130
    interrupted.
    """
    folder = chosen.out or default_out(["try"], data)
    of_aspect = ""
    if data == BUNDLED[0] and not chosen.aspect:
        chosen = replace(chosen, aspect=[DEMO_ASPECT])
        of_aspect = f", judged on {DEMO_ASPECT} (for another aspect: --aspect coherence)"
    out = console()
    with interruptible():
        # Load all items, because the rest is counted at the end.
        whole = chosen.whole(data)
        few = whole.sample(chosen.sample or FEW, chosen.seed or 0, chosen.of_group)
        prepared = plan(TRIED, few, **chosen.of_plan(folder))
        check_run(prepared, config)
        out.print_line(
            f"{len(few):,} of {len(whole):,} items of {whole.name}, with {' and '.join(TRIED)}"
            f"{of_aspect}"
        )
        if note := note_without_labels(prepared):
            out.print_line(note, "yellow")
        announce(out, prepared, config)

    def show(out: Output, evaluation: Evaluation) -> list[Step]:
        steps = print_evaluation(out, evaluation, config.verbose, len(whole))
        # The table of all judges is shown for the whole dataset.
        first = steps[:-1]
        rest = _rest_of_tried(evaluation, whole, few, chosen)
        own = Step(
            "try your own table", command("try", "mine.csv", "--model", "openai:gpt-4o-mini")
        )
        return [step for step in (*first, rest, own if whole.name in BUNDLED else None) if step]

    raise typer.Exit(carry_out_to_end(out, folder, config, partial(execute, prepared), show)[1])


def _rest_of_tried(
    evaluation: Evaluation, whole: Dataset, few: Dataset, chosen: TriedOptions
) -> Step | None:
    """Return the command that judges the other items, with its cost; ``None`` if it is unknown."""
    left = len(whole) - len(few)
    # The sample shows the cost of the rest only if all of it was judged.
    if not left or evaluation.stopped or evaluation.failed:
        return None
    spent = dict.fromkeys(TRIED, NO_USAGE)
    for (protocol, _aspect), overview in evaluation.figures.overviews.items():
        spent[protocol] += overview.usage
    more = left / len(few)
    calls = sum(usage.calls for usage in spent.values()) * more
    costs = [usage.discounted(more).cost_usd for usage in spent.values()]
    cost = None if None in costs else sum(each or 0.0 for each in costs)
    about = f"about {calls:,.0f} calls, {cost_in_words(cost)}"
    taken = {
        "--aspect": chosen.aspect,
        "--model": chosen.model and [chosen.model],
        "--role-model": chosen.role_model,
        "--set": chosen.settings,
    }
    given = [
        word
        for option, values in taken.items()
        for value in values or ()
        for word in (option, value)
    ]
    seed = [] if chosen.seed is None else ["--seed", str(chosen.seed)]
    # Use a sample of all items again, because the folder refuses a run without a seed, or with
    # another one.
    sample = ["--sample", str(len(whole)), *seed, "--out", str(evaluation.folder)]
    words = ["run", ",".join(TRIED), *data_options(describe_data(whole)), *given, *sample]
    return Step(f"judge all {len(whole):,}", command(*words), about)
