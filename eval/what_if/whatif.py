"""Find out how far a turn moves verdicts: judge the debates of a run on without it, and compare."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Unpack, cast

import numpy as np

from ...graphs.base import Graph
from ...nodes.bound_judge import Models
from ...nodes.sync_bridge import run_blocking
from ...state.errors import UsageError
from ..analysis.comparison import PairwiseComparator
from ..analysis.loading import load_evaluations
from ..analysis.verdict_columns import directions, moved
from ..calls.call_pipeline import RunContext
from ..datasets.dataset import Data
from ..equal_budget.versus_plan import file_name, take_up_run
from ..plan.plan import Plan, plan
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.experiment import ExperimentResult
from ..results.folder import JOURNAL, SHARED_JOURNAL, read_manifest
from ..run.runner import execute
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, mean_statistic
from ..statistics.significance import sign_test
from ..tables.grid import Column, Grid, columns_of, text_column
from .forked_debates import SWAPPED, Edit, ForkedGraph

FOLDER = "whatif"


@dataclass(frozen=True)
class TurnEffect:
    """Says how far a turn moved the verdicts on one aspect, or on the comparisons.

    All compare the debate as it was with the debate without the turn: the turn is what brought it nearer the label.
    """

    subject: Annotated[str, text_column("on")]
    n: Annotated[int, Column("debates", about="debates in which the turn could be changed")]
    moved: Annotated[Statistic, Column("moved", form="percent", digits=0, about="verdicts that it changed")]
    move: Annotated[
        Statistic | None,
        Column("mean move", digits=2, about="change of the score: with the turn, minus without"),
    ]
    towards: Annotated[int, Column("towards", about="verdicts that it moved towards the label")]
    away: Annotated[int, Column("away", about="verdicts that it moved away from the label")]
    p: Annotated[float | None, Column("p", form="p")]
    """sign test of towards against away; none where rows share a group or an item"""
    agreement: Annotated[
        Statistic, Column("Δ agreement", about="in the leading metric: with the turn, minus without")
    ]
    p_agreement: Annotated[float | None, Column("p of Δ", form="p")]


@dataclass(frozen=True)
class WhatIf(ExperimentResult):
    """Holds what came of one changed turn.

    Attributes:
        protocol: whose debates were forked.
        edit: what was changed.
        metric: that agreement is measured by.
        effects: by aspect.
    """

    file = "whatif.json"
    protocol: str
    edit: Edit
    metric: str
    effects: tuple[TurnEffect, ...]

    def grids(self) -> Iterator[Grid]:
        """Make the table: what the turn did, aspect by aspect."""
        less = f"{self.protocol} as it was, minus {self.protocol} {self.edit.title}"
        yield Grid.from_records(f"{less}: {METRICS[self.metric].title}", columns_of(TurnEffect), self.effects)


@dataclass(frozen=True)
class WhatIfPlan:
    """A run's debates to be forked at a turn, checked and not begun.

    Attributes:
        protocol: its name in the run.
        edit: what is to be changed.
        recorded: the run.
        plan: of the forked debates: those in which the turn is there.
        config: with the run's own journal, which answers the calls up to the turn.
    """

    protocol: str
    edit: Edit
    recorded: Evaluation
    plan: Plan
    config: RunConfig


def whatif(
    run: str | Path,
    edits: Sequence[Edit] | Edit,
    data: Data | None = None,
    protocol: str | None = None,
    models: Models | None = None,
    **limits: Unpack[RunLimits],
) -> list[WhatIf]:
    """Fork the debates of a run at a turn, have the rest judged anew, and say how far the turn moved verdicts.

    Args:
        run: its folder. Its journal answers the calls up to the turn; what follows is asked and paid for.
        edits: what is changed, each by itself.
        data: what was judged, where it cannot be loaded again by the run's own record.
        protocol: whose debates, where the run is of several.
        models: chat models of your own, which the run's record names and does not hold.
        **limits: see ``RunConfig``.

    Raises:
        UsageError: no such turn, or a run that cannot be forked; before any call.
    """
    return run_blocking(awhatif(run, edits, data, protocol, models, **limits))


async def awhatif(
    run: str | Path,
    edits: Sequence[Edit] | Edit,
    data: Data | None = None,
    protocol: str | None = None,
    models: Models | None = None,
    **limits: Unpack[RunLimits],
) -> list[WhatIf]:
    """Fork from async code; arguments and errors are those of ``whatif``."""
    config = RunConfig.from_options(limits)
    wanted = [edits] if isinstance(edits, Edit) else edits
    about = data, protocol, config, models
    planned = [await asyncio.to_thread(plan_whatif, Path(run), edit, *about) for edit in wanted]
    return [await carry_out_whatif(edited, RunContext(edited.config)) for edited in planned]


def plan_whatif(
    folder: Path,
    edit: Edit,
    data: Data | None,
    protocol: str | None,
    config: RunConfig,
    models: Models | None,
) -> WhatIfPlan:
    """Check what is to be forked; arguments and errors are those of ``whatif``."""
    names = list(read_manifest(folder)["signatures"])
    name = protocol or names[0]
    if len(names) > 1 and protocol is None:
        raise UsageError(f"{folder} is a run of {', '.join(names)}: name the one to fork with --protocol")
    recorded, dataset, options = take_up_run(name, name, folder, data, {"models": models})
    kind = str(recorded.manifest["signatures"][name]).partition("|")[0].removeprefix("protocol:")
    judged = [result for result in recorded.results if result.status == "ok" and not result.repeat]
    debates = {(result.item, result.aspect): result.transcript for result in judged}
    changeable = [key for key, transcript in debates.items() if edit.of_turns(kind, transcript)]
    if not changeable:
        turns = Counter(turn.get("id", "").removeprefix(SWAPPED) for turn in chain(*debates.values()))
        usual = ", ".join(f"{turn} (in {count:,})" for turn, count in turns.most_common(12))
        fixed = "it gives the score that is the verdict, and its agent gives no other"
        reason = fixed if turns[edit.turn] else "no such turn"
        raise UsageError(f"{edit.turn} cannot be changed in {folder}: {reason}; turns are {usual}")
    label = f"{name} {edit.title}"
    options["out"] = folder / FOLDER / file_name(f"{edit.change}-{edit.turn}")
    whole = plan({label: name}, dataset, **options)
    forked = cast("Graph", ForkedGraph(whole.graphs[label], edit))
    part = replace(whole, graphs={label: forked}, only=frozenset(changeable))
    if config.journal is None:
        journals = (folder / JOURNAL, folder.parent / SHARED_JOURNAL, folder.parent.parent / SHARED_JOURNAL)
        config = replace(config, journal=next((path for path in journals if path.exists()), None))
    return WhatIfPlan(name, edit, recorded, part, config)


async def carry_out_whatif(planned: WhatIfPlan, context: RunContext) -> WhatIf:
    """Judge the forked debates, as far as the budget goes, and compare them with those of the run."""
    return compare_turn(planned, await execute(planned.plan, context)).write()


def compare_turn(planned: WhatIfPlan, forked: Evaluation) -> WhatIf:
    """Compare the debates of a run with the same debates without a turn."""
    label = next(iter(planned.plan.graphs))
    resampling = Resampling()
    runs = {planned.protocol: (planned.protocol, planned.recorded), label: (label, forked)}
    with_turn, without = load_evaluations(runs)

    def effects() -> Iterator[TurnEffect]:
        for aspect, cell in with_turn.cells.items():
            other = without.cells[aspect]
            pair = PairwiseComparator(cell.subject, resampling).compare(cell.side, other.side)
            difference = pair.differences[cell.subject.metric]
            # All that were forked, those without a label, too: both are sorted by item.
            shared = cell.rows.take(np.isin(cell.rows.keys, other.rows.keys))
            before, after, winners = other.rows.judged, shared.judged, shared.winners
            ways = Counter(directions(before, after, shared.human, winners).tolist())
            yield TurnEffect(
                subject=cell.subject.label,
                n=len(shared),
                moved=mean_statistic(moved(before, after, winners), shared.clusters, resampling),
                move=None if winners else mean_statistic(after - before, shared.clusters, resampling),
                towards=ways[1],
                away=ways[-1],
                p=sign_test(ways[1], ways[-1], shared.clusters),
                agreement=difference.difference,
                p_agreement=difference.p,
            )

    metric = next(iter(with_turn.cells.values())).subject.metric
    return WhatIf(planned.protocol, planned.edit, metric, tuple(effects()), **WhatIf.ended(forked))
