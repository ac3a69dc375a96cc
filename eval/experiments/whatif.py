"""Find out how far a turn moves verdicts: fork a run's debates at that turn, judge on without it, and compare."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Unpack, cast
from uuid import uuid4

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver

from ...graphs.base import Graph, ProtocolGraph
from ...graphs.given_graphs import judges_of
from ...graphs.registry import role_kinds
from ...nodes.bound_judge import Models
from ...nodes.sync_bridge import run_blocking
from ...state.errors import UsageError
from ...state.transcript import Turn
from ..analysis.comparison import PairwiseComparator
from ..analysis.loading import load_evaluations
from ..analysis.verdict_columns import directions, moved
from ..calls.call_pipeline import RunContext
from ..datasets.dataset import Data
from ..plan.plan import Options, Plan, plan
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.experiment import ExperimentResult
from ..results.folder import JOURNAL, SHARED_JOURNAL, read_manifest
from ..run.runner import execute
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, mean_statistic
from ..statistics.sample import paired_difference
from ..statistics.significance import sign_test
from ..tables.grid import Column, Grid, columns_of, text_column
from .versus_plan import file_name, take_up_run

FOLDER = "whatif"
Change = Literal["drop", "flip"]
SILENCE = "(This turn is left out.)"
SWAPPED = "swapped/"


@dataclass(frozen=True)
class Edit:
    """Names a turn and what becomes of it.

    Attributes:
        turn: its id, such as ``critic:1``; in both orders of the answers, where there are two.
        change: ``drop``: it says nothing, and the debate goes on; ``flip``: it says the opposite.
    """

    turn: str
    change: Change

    @property
    def title(self) -> str:
        """What the changed judge is called, behind its name."""
        return f"without {self.turn}" if self.change == "drop" else f"with {self.turn} flipped"

    def of_turns(self, protocol: str, transcript: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return the changes of a debate's turns; none where the turn is not there, or nothing can be changed in it."""
        kinds = role_kinds(protocol)
        changes = []
        for place, turn in enumerate(transcript):
            # In whatever order of the answers it is.
            if turn.get("id", "").removeprefix(SWAPPED) == self.turn:
                kind, later = kinds.get(turn["role"], "scores"), transcript[place + 1 :]
                changed = _dropped(turn, kind, later) if self.change == "drop" else _flipped(turn)
                changes += [{"id": turn.get("id"), **changed}] if changed else []
        return changes


def _dropped(turn: Turn, kind: str, later: Sequence[Turn]) -> dict[str, Any] | None:
    if kind == "objects":
        # Neither an objection nor the word that ends the debate: the next one speaks, and hears nothing.
        return {"content": SILENCE, "value": False}
    if kind in ("argues", "assists"):
        return {"content": SILENCE}
    # A score that stands in the verdict cannot be left out of it; one that its agent gives again can.
    scores = [other for other in later if other["agent"] == turn["agent"] and other["value"] is not None]
    again = any(other.get("order") == turn.get("order") for other in scores)
    return {"content": SILENCE} if again and kind in ("scores", "panel") else None


def _flipped(turn: Turn) -> dict[str, Any] | None:
    value = turn["value"]
    if isinstance(value, bool):
        return {"content": "I do not agree." if value else "NO ISSUE", "value": not value}
    if isinstance(value, list):
        first, second = reversed(value)
        words = f"My scores: {first:g} for answer 1, {second:g} for answer 2."
        return {"content": words, "value": [first, second]}
    if isinstance(value, int | float) and (scale := turn.get("scale")):
        mirrored = sum(scale) - value
        return {"content": f"My score: {mirrored:g}.", "value": mirrored}
    return None


@dataclass(frozen=True)
class TurnEffect:
    """Says how far a turn moved the verdicts on one aspect, or on the comparisons.

    All compare the debate as it was with the debate without the turn: the turn is what brought it nearer the label.
    """

    subject: Annotated[str, text_column("on")]
    n: Annotated[int, Column("debates", about="debates in which the turn could be changed")]
    moved: Annotated[Statistic, Column("moved", form="percent", digits=0, about="verdicts that it changed")]
    move: Annotated[Statistic | None, Column("mean move", digits=2)]
    """change of the score: with the turn, minus without"""
    towards: Annotated[int, Column("towards", about="verdicts that it moved towards the label")]
    away: Annotated[int, Column("away", about="verdicts that it moved away from the label")]
    p: Annotated[float | None, Column("p", form="p")]
    """sign test of towards against away; none where rows share a group or an item"""
    agreement: Annotated[Statistic, Column("Δ agreement")]
    """in the leading metric: with the turn, minus without"""
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


class WhatIfPlan(NamedTuple):
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


class WhatIfOptions(RunLimits, total=False):
    """Names what is needed to take up a run where its own record does not say it, and limits.

    Attributes:
        data: what was judged, where it cannot be loaded again by the run's own record.
        protocol: whose debates, where the run is of several.
        models: chat models of your own, which the run's record names and does not hold.
    """

    data: Data | None
    protocol: str | None
    models: Models | None


def whatif(run: str | Path, edits: Sequence[Edit] | Edit, **options: Unpack[WhatIfOptions]) -> list[WhatIf]:
    """Fork the debates of a run at a turn, have the rest judged anew, and say how far the turn moved verdicts.

    Args:
        run: its folder. Its journal answers the calls up to the turn; what follows is asked and paid for.
        edits: what is changed, each by itself.
        **options: see ``WhatIfOptions`` and ``RunConfig``.

    Raises:
        UsageError: no such turn, or a run that cannot be forked; before any call.
    """
    return run_blocking(awhatif(run, edits, **options))


async def awhatif(
    run: str | Path, edits: Sequence[Edit] | Edit, **options: Unpack[WhatIfOptions]
) -> list[WhatIf]:
    """Fork from async code; arguments and errors are those of ``whatif``."""
    config = RunConfig.from_options(options, ("data", "protocol", "models"))
    wanted = [edits] if isinstance(edits, Edit) else edits
    planned = [await asyncio.to_thread(plan_whatif, Path(run), edit, config, options) for edit in wanted]
    return [await carry_out_whatif(edited, RunContext(edited.config)) for edited in planned]


def plan_whatif(run: Path, edit: Edit, config: RunConfig, options: WhatIfOptions) -> WhatIfPlan:
    """Check what is to be forked; arguments and errors are those of ``whatif``."""
    names = list(read_manifest(run)["signatures"])
    name = options.get("protocol") or names[0]
    if len(names) > 1 and options.get("protocol") is None:
        raise UsageError(f"{run} is a run of {', '.join(names)}: name the one to fork with --protocol")
    given: Options = {"models": options.get("models")}
    recorded, dataset, of_run = take_up_run(name, name, run, options.get("data"), given)
    # A signature begins with the protocol's own name, whatever the run calls it.
    kind = str(recorded.manifest["signatures"][name]).partition("|")[0].removeprefix("protocol:")
    judged = [result for result in recorded.results if result.status == "ok" and not result.repeat]
    debates = {(result.item, result.aspect): result.transcript for result in judged}
    changeable = [key for key, transcript in debates.items() if edit.of_turns(kind, transcript)]
    if not changeable:
        turns = Counter(turn.get("id", "").removeprefix(SWAPPED) for turn in chain(*debates.values()))
        usual = ", ".join(f"{turn} (in {count:,})" for turn, count in turns.most_common(12))
        fixed = "it gives the score that is the verdict, and its agent gives no other"
        reason = fixed if turns[edit.turn] else "no such turn"
        raise UsageError(f"{edit.turn} cannot be changed in {run}: {reason}; turns are {usual}")
    label = f"{name} {edit.title}"
    of_run["out"] = run / FOLDER / file_name(f"{edit.change}-{edit.turn}")
    whole = plan({label: name}, dataset, **of_run)
    forked = cast("Graph", ForkedGraph(whole.graphs[label], edit))
    part = replace(whole, graphs={label: forked}, only=frozenset(changeable))
    if config.journal is None:
        # In its own folder, or in that of the comparison or the sweep which it is a run of.
        journals = (run / JOURNAL, run.parent / SHARED_JOURNAL, run.parent.parent / SHARED_JOURNAL)
        config = replace(config, journal=next((path for path in journals if path.exists()), None))
    return WhatIfPlan(name, edit, recorded, part, config)


async def carry_out_whatif(planned: WhatIfPlan, context: RunContext) -> WhatIf:
    """Judge the forked debates, as far as the budget goes, and compare them with those of the run."""
    forked = await execute(planned.plan, context)
    label, resampling = next(iter(planned.plan.graphs)), Resampling()
    runs = {planned.protocol: (planned.protocol, planned.recorded), label: (label, forked)}
    with_turn, without = load_evaluations(runs)
    effects = []
    for aspect, data in with_turn.by_aspect.items():
        other = without.by_aspect[aspect]
        compared = PairwiseComparator(data.subject, resampling).samples(data.side, other.side)
        difference = paired_difference([compared], data.subject.metric)
        # All that were forked, those without a label, too: both are sorted by item.
        shared = data.rows.take(np.isin(data.rows.keys, other.rows.keys))
        before, after, winners = other.rows.judged, shared.judged, shared.winners
        ways = Counter(directions(before, after, shared.human, winners).tolist())
        effect = TurnEffect(
            subject=data.subject.label,
            n=len(shared),
            moved=mean_statistic(moved(before, after, winners), shared.clusters, resampling),
            move=None if winners else mean_statistic(after - before, shared.clusters, resampling),
            towards=ways[1],
            away=ways[-1],
            p=sign_test(ways[1], ways[-1], shared.clusters),
            agreement=difference.difference,
            p_agreement=difference.p,
        )
        effects.append(effect)
    metric = next(iter(with_turn.by_aspect.values())).subject.metric
    return WhatIf(planned.protocol, planned.edit, metric, tuple(effects), **WhatIf.ended(forked)).write()


class ForkedGraph:
    """A judge's graph that is run as it is, then forked at a turn and run to its end; only the fork's verdict counts.

    It answers as the graph does for everything but ``astream``, which is how a run judges an item. Calls of the first
    part are those of the recorded run, which the journal answers.

    Raises:
        UsageError: the judge is a wrapper or another package's graph, whose turns lie in graphs inside.
    """

    def __init__(self, graph: Graph, edit: Edit) -> None:
        if not isinstance(graph.builder, ProtocolGraph):
            remedy = "use a run of the inner protocol"
            raise UsageError(f"{graph.name} contains other graphs, whose debates cannot be forked: {remedy}")
        self._saver = InMemorySaver()
        self._graph = graph.copy(update={"checkpointer": self._saver})
        self._edit, self._protocol = edit, judges_of(graph)[""].protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    async def astream(self, input: Any, config: Any = None, **_options: Any) -> AsyncIterator[Any]:
        """Yield the last state of the fork, or that of the debate itself where there is nothing to change."""
        thread: Any = {**(config or {}), "configurable": {"thread_id": uuid4().hex}}
        try:
            state = await self._graph.ainvoke(input, thread)
            if edits := self._edit.of_turns(self._protocol, state["transcript"]):
                edited = {edit["id"] for edit in edits}
                # Latest first: the last one in which all have spoken is the one right behind them.
                behind = [
                    snapshot
                    async for snapshot in self._graph.aget_state_history(thread)
                    if edited <= {turn.get("id") for turn in snapshot.values.get("transcript") or ()}
                ]
                forked = await self._graph.aupdate_state(behind[-1].config, {"transcript": edits})
                state = await self._graph.ainvoke(None, {**thread, **forked})
            changes = {"of": self._protocol, "changed": [edit["id"] for edit in edits]}
            details = {**(state["verdict"].get("details") or {}), **changes}
            yield {**state, "verdict": {**state["verdict"], "details": details}}
        finally:
            await self._saver.adelete_thread(thread["configurable"]["thread_id"])
