"""Measure how far a turn moves verdicts: fork debates at it, judge without it, and compare.

A model that samples may give another verdict after any fork. So each debate is forked twice at the
same turn: once with the turn changed, and once unchanged, as a placebo. The effect is the
difference between the two forks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Unpack, cast
from uuid import uuid4

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver

from ...graphs.engine.base import Graph, ProtocolGraph
from ...graphs.engine.given_graphs import judges_of
from ...graphs.engine.registry import role_kinds
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.runtime.bound_judge import Models
from ...state.errors import UsageError
from ...state.transcript import Turn
from ..analysis.comparison import PairwiseComparator
from ..analysis.loading import JudgeAspectData, load_evaluations
from ..analysis.verdict_columns import directions, moved
from ..datasets.dataset import Data
from ..report.labels import shown_note
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.experiment_result import ExperimentResult
from ..results.folder import JOURNAL, SHARED_JOURNAL, read_manifest
from ..results.placebo import PLACEBO_REPEAT, may_vary
from ..run.calls.call_pipeline import RunContext
from ..run.plan.plan import Options, plan
from ..statistics.alignment import Ints
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Resampling, Statistic, mean_statistic
from ..statistics.sample import paired_difference
from ..statistics.significance import LEVEL, clustered_sign_test, holm
from ..tables.grid import Column, Grid, columns_of, figure, text_column
from ..tables.screen import FirstScreen
from .experiment import OneRun
from .versus_plan import file_name, take_up_run

FOLDER = "whatif"
MOST_EVIDENCE = 2
"""The number of aspects in the evidence on the first screen; its table has all."""
Change = Literal["drop", "flip"]
SILENCE = "(This turn is left out.)"
SWAPPED = "swapped/"


@dataclass(frozen=True)
class Edit:
    """A turn and the change to it.

    Attributes:
        turn: its id, such as ``critic:1``; in both orders of the answers, if there are two.
        change: ``drop``: it is empty, and the debate goes on; ``flip``: it states the opposite.
    """

    turn: str
    change: Change

    @property
    def title(self) -> str:
        """The description of the change, after the judge's name."""
        return f"without {self.turn}" if self.change == "drop" else f"with {self.turn} flipped"

    def of_turns(self, protocol: str, transcript: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return the changes of a debate's turns; empty if there is nothing to change."""
        kinds = role_kinds(protocol)
        changes = []
        for place, turn in enumerate(transcript):
            # The turn may be in either order of the answers.
            if turn.get("id", "").removeprefix(SWAPPED) == self.turn:
                kind = kinds.get(turn["role"], "scores")
                later = transcript[place + 1 :]
                changed = _dropped(turn, kind, later) if self.change == "drop" else _flipped(turn)
                changes += [{"id": turn.get("id"), **changed}] if changed else []
        return changes


def _dropped(turn: Turn, kind: str, later: Sequence[Turn]) -> dict[str, Any] | None:
    if kind == "objects":
        # Neither an objection nor the word that ends the debate: the next agent sees no message.
        return {"content": SILENCE, "value": False}
    if kind in ("argues", "assists"):
        return {"content": SILENCE}
    # A score that is part of the verdict cannot be left out. It can if the same agent gives it
    # again.
    scores = [
        other for other in later if other["agent"] == turn["agent"] and other["value"] is not None
    ]
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


class TurnTests(NamedTuple):
    """The two-sided p-values of a turn's effect, before Holm's adjustment.

    Values are ``None`` if there is no test.

    Attributes:
        effect: sign test over groups: does the change move verdicts more often than the placebo?
        move: sign test over groups: does the turn raise or lower scores? ``None`` for comparisons.
        direction: sign test over groups: does the turn move verdicts towards or away from the
            label?
        agreement: does the turn change agreement with the labels?
    """

    effect: float | None
    move: float | None
    direction: float | None
    agreement: float | None


@dataclass(frozen=True)
class TurnEffect:
    """How far a turn moved the verdicts on one aspect, or on the comparisons.

    ``moved`` and ``placebo`` compare with the verdicts of the run. All other values compare the
    debate without the turn with the placebo, which has the turn and was resumed at the same place.
    """

    subject: Annotated[str, text_column("on")]
    n: Annotated[int, Column("debates", about="debates in which the turn could be changed")]
    moved: Annotated[
        Statistic, Column("moved", form="percent", digits=0, about="verdicts that it changed")
    ]
    placebo: Annotated[
        Statistic,
        Column(
            "placebo", form="percent", digits=0, about="verdicts that changed with nothing changed"
        ),
    ]
    effect: Annotated[
        Statistic, Column("effect", form="percent", digits=0, about="moved minus placebo")
    ]
    p_effect: Annotated[float | None, Column("p (Holm)", form="p", about="sign test over groups")]
    move: Annotated[Statistic | None, Column("mean move", digits=2)]
    """change of the score: with the turn, minus without"""
    p_move: Annotated[
        float | None, Column("p of move", form="p", about="sign test over groups, Holm")
    ]
    towards: Annotated[int, Column("towards", about="verdicts that it moved towards the label")]
    away: Annotated[int, Column("away", about="verdicts that it moved away from the label")]
    p: Annotated[
        float | None, Column("p of towards", form="p", about="sign test over groups, Holm")
    ]
    agreement: Annotated[Statistic, Column("Δ agreement")]
    """in the leading metric: with the turn, minus without"""
    p_agreement: Annotated[float | None, Column("p of Δ", form="p", about="Holm")]
    tests: TurnTests

    @property
    def evidence(self) -> str:
        """One line of evidence: verdicts moved by change and placebo, and the difference."""
        p = figure(self.p_effect, _P)
        effect = f"effect {_percent(self.effect)} (Holm-adjusted p {p if p.startswith('<') else f'= {p}'})"
        if self.p_effect is None:
            effect = (
                f"effect {_percent(self.effect)}; no test of fewer than {FEWEST_CLUSTERS} groups"
            )
        moved = f"{_percent(self.moved)} of {self.n:,} verdicts on {self.subject} moved"
        return f"{moved}, {_percent(self.placebo)} with nothing changed: {effect}"

    @property
    def adjusted(self) -> TurnTests:
        """The p-values adjusted for all tests that are shown together."""
        return TurnTests(self.p_effect, self.p_move, self.p, self.p_agreement)

    @property
    def changes_verdicts(self) -> bool:
        """Whether a test is significant after adjustment for all tests that are shown together."""
        return any(p is not None and p < LEVEL for p in self.adjusted)


@dataclass(frozen=True)
class WhatIf(ExperimentResult):
    """The result of changing one turn.

    Attributes:
        protocol: the protocol of the forked debates.
        edit: the change.
        metric: the metric of agreement.
        effects: by aspect; p-values are adjusted for all turns that were changed together.
        placebo_judged: whether the placebo was judged. Otherwise the judge repeats its verdicts,
            and the placebo is zero.
        note: a warning about the judge.
    """

    file = "whatif.json"
    protocol: str
    edit: Edit
    metric: str
    effects: tuple[TurnEffect, ...]
    placebo_judged: bool = False
    note: str | None = None

    @property
    def sentence(self) -> str:
        """The conclusion on the turn, without numbers."""
        turn = self.edit.turn
        if any(effect.changes_verdicts for effect in self.effects):
            return f"{turn} changes the verdicts of {self.protocol}"
        if not any(p is not None for effect in self.effects for p in effect.tests):
            return f"Too few debates to say whether {turn} changes verdicts"
        return f"No effect of {turn} on verdicts"

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        values = super().to_json()
        effects = zip(values["effects"], self.effects, strict=True)
        values["effects"] = [
            {**plain, "tests": effect.tests._asdict()} for plain, effect in effects
        ]
        return {"sentence": self.sentence, **values}

    def screen(self) -> FirstScreen:
        """Compose the first screen: whether the turn changes verdicts more than the placebo."""
        title = f"{self.protocol} {self.edit.title}"
        columns = (
            text_column(title, of=attrgetter("subject")),
            *columns_of(TurnEffect, only=("moved", "placebo", "effect")),
        )
        shown = [f"{effect.evidence}." for effect in self.effects]
        more = MOST_EVIDENCE
        return FirstScreen(
            name="",
            headline=self.sentence,
            table=Grid.from_records("", columns, self.effects),
            evidence=" ".join(shown[:more]),
            warnings=(shown_note(self.note),) if self.note else (),
            others=tuple(shown[more:]),
        )

    def grids(self) -> Iterator[Grid]:
        """Make the table: the effects of the turn, aspect by aspect."""
        less = f"{self.protocol} as it was, minus {self.protocol} {self.edit.title}"
        placebo = "placebo: the same debates, resumed at the same turn with nothing changed"
        if not self.placebo_judged:
            placebo = f"{placebo}; zero, because this judge gives the same verdict again"
        columns = columns_of(TurnEffect)
        yield Grid.from_records(
            f"{less}: {METRICS[self.metric].title}", columns, self.effects, [placebo]
        )


_P = Column("p", form="p")


def _percent(share: Statistic) -> str:
    value = "no figure" if share.value is None else f"{share.value:.0%}"
    return (
        value
        if share.low is None or share.high is None
        else f"{value} [{share.low:.0%}, {share.high:.0%}]"
    )


def adjusted_over_turns(results: Sequence[WhatIf]) -> list[WhatIf]:
    """Adjust the p-values of turns that were changed together, by Holm's method.

    Args:
        results: one for each changed turn; results with a folder are written again.
    """
    return [done.write() for done in _adjusted(results)]


def _adjusted(results: Sequence[WhatIf]) -> list[WhatIf]:
    p_values = iter(holm([p for done in results for effect in done.effects for p in effect.tests]))
    adjusted = []
    for done in results:
        effects = []
        for effect in done.effects:
            shown = TurnTests(*(next(p_values) for _ in effect.tests))
            effects.append(
                replace(
                    effect,
                    p_effect=shown.effect,
                    p_move=shown.move,
                    p=shown.direction,
                    p_agreement=shown.agreement,
                )
            )
        adjusted.append(replace(done, effects=tuple(effects)))
    return adjusted


class WhatIfOptions(RunLimits, total=False):
    """The limits, and inputs that the run's own record may lack.

    Attributes:
        data: the judged items, if the run's record is not enough to load them again.
        protocol: the protocol to fork, if the run has several.
        models: your own chat models, because the run's record contains only their names.
    """

    data: Data | None
    protocol: str | None
    models: Models | None


def whatif(
    run: str | Path, edits: Sequence[Edit] | Edit, **options: Unpack[WhatIfOptions]
) -> list[WhatIf]:
    """Fork the debates of a run at a turn, judge the rest again, and measure the turn's effect.

    A judge with varying replies judges the rest a second time without a change. The effect of the
    turn is the difference from this placebo.

    Args:
        run: its folder. Its journal answers the calls up to the turn; later calls are made and
            paid for.
        edits: the changes, each tested separately. p-values are adjusted for all of them.
        **options: see ``WhatIfOptions`` and ``RunConfig``.

    Raises:
        UsageError: no such turn, or a run that cannot be forked; raised before any call.
    """
    return run_blocking(awhatif(run, edits, **options))


async def awhatif(
    run: str | Path, edits: Sequence[Edit] | Edit, **options: Unpack[WhatIfOptions]
) -> list[WhatIf]:
    """Fork from async code; arguments and errors are the same as for ``whatif``."""
    config = RunConfig.from_options(options, ("data", "protocol", "models"))
    wanted = [edits] if isinstance(edits, Edit) else edits
    # Check all turns before the first call.
    planned = [
        await asyncio.to_thread(plan_whatif, Path(run), edit, config, options) for edit in wanted
    ]
    done = [await fork.carry_out(RunContext(config)) for fork in planned]
    return adjusted_over_turns(done)


@dataclass(frozen=True)
class WhatIfPlan(OneRun[WhatIf]):
    """The debates with a certain turn, to be forked at it; checked but not started.

    Attributes:
        protocol: its name in the run.
        edit: the change.
        recorded: the run.
        journal: the journal of the run, which answers the calls up to the turn; ``None`` if there
            is none.
        changed: the name of the judge with the changed turn.
        placebo: the name of the unchanged judge; ``None`` if its verdicts are those of the run.
        calls: the approximate number of calls after the turn in both arms, from the run.
    """

    protocol: str
    edit: Edit
    recorded: Evaluation
    journal: str | Path | None
    changed: str
    placebo: str | None
    calls: int

    async def carry_out(self, context: RunContext) -> WhatIf:
        """Judge the forked debates with the journal of the run."""
        config = replace(context.config, journal=self.journal)
        return await super().carry_out(replace(context, config=config))

    def result(self, evaluation: Evaluation) -> WhatIf:
        """Compare the forked debates with the placebo.

        The p-values are for this turn alone; ``adjusted_over_turns`` adjusts them for several.
        """
        runs = {self.protocol: (self.protocol, self.recorded)}
        for arm in self.plan.graphs:
            own = tuple(result for result in evaluation.results if result.protocol == arm)
            runs[arm] = (arm, Evaluation(own, evaluation.manifest, evaluation.folder))
        recorded, without, *placebo = load_evaluations(runs)
        # Without a judged placebo, the verdicts of the run are the placebo.
        with_turn = placebo[0] if placebo else recorded
        aspects = recorded.by_aspect
        effects = [
            turn_effect(data, with_turn.by_aspect[aspect], without.by_aspect[aspect])
            for aspect, data in aspects.items()
        ]
        of_one = WhatIf(
            self.protocol,
            self.edit,
            next(iter(aspects.values())).subject.metric,
            tuple(effects),
            self.placebo is not None,
            note=evaluation.manifest.get("note"),
            **WhatIf.ended(evaluation),
        )
        return _adjusted([of_one])[0]


def plan_whatif(run: Path, edit: Edit, config: RunConfig, options: WhatIfOptions) -> WhatIfPlan:
    """Check the debates to be forked; arguments and errors are the same as for ``whatif``."""
    names = list(read_manifest(run)["signatures"])
    name = options.get("protocol") or names[0]
    if len(names) > 1 and options.get("protocol") is None:
        raise UsageError(
            f"{run} is a run of {', '.join(names)}: name the one to fork with --protocol"
        )
    given: Options = {"models": options.get("models")}
    recorded, dataset, of_run = take_up_run(name, name, run, options.get("data"), given)
    # A signature begins with the protocol's own name, even if the run uses another one.
    kind = str(recorded.manifest["signatures"][name]).partition("|")[0].removeprefix("protocol:")
    judged = [result for result in recorded.results if result.status == "ok" and not result.repeat]
    debates = {(result.item, result.aspect): result.transcript for result in judged}
    changeable = [key for key, transcript in debates.items() if edit.of_turns(kind, transcript)]
    if not changeable:
        turns = Counter(
            turn.get("id", "").removeprefix(SWAPPED) for turn in chain(*debates.values())
        )
        usual = ", ".join(f"{turn} (in {count:,})" for turn, count in turns.most_common(12))
        if not turns[edit.turn]:
            raise UsageError(
                f"{edit.turn} cannot be changed in {run}: no such turn; turns are {usual}"
            )
        raise UsageError(
            f"{edit.turn} cannot be changed in {run}: it gives the score that is the verdict, and "
            f"its agent gives no other; turns are {usual}"
        )
    changed = f"{name} {edit.title}"
    of_run["out"] = run / FOLDER / file_name(f"{edit.change}-{edit.turn}")
    varies = may_vary(recorded.manifest, name)
    placebo = f"{name} resumed at {edit.turn}" if varies else None
    whole = plan({label: name for label in (changed, placebo) if label}, dataset, **of_run)
    mark = PLACEBO_REPEAT if varies else None
    forked = {changed: ForkedGraph(whole.graphs[changed], edit, mark)}
    if placebo is not None:
        forked[placebo] = ForkedGraph(whole.graphs[placebo], edit, mark, placebo=True)
    part = replace(whole, graphs=cast("dict[str, Graph]", forked), only=frozenset(changeable))
    calls = len(forked) * sum(_calls_after(edit.turn, debates[key]) for key in changeable)
    journal = config.journal
    if journal is None:
        # The journal is in the run's folder, or in that of its run set, comparison or sweep.
        shared = (
            run.parent / JOURNAL,
            run.parent / SHARED_JOURNAL,
            run.parent.parent / SHARED_JOURNAL,
        )
        journals = (run / JOURNAL, *shared)
        journal = next((path for path in journals if path.exists()), None)
    return WhatIfPlan(part, name, edit, recorded, journal, changed, placebo, calls)


def _calls_after(turn: str, transcript: Sequence[Turn]) -> int:
    """Count the calls after a turn in its order of the answers, or in both."""
    calls = 0
    for order in dict.fromkeys(spoken.get("order") for spoken in transcript):
        of_order = [spoken for spoken in transcript if spoken.get("order") == order]
        ids = [spoken.get("id", "").removeprefix(SWAPPED) for spoken in of_order]
        if turn in ids:
            calls += sum(spoken["calls"] for spoken in of_order[ids.index(turn) + 1 :])
    return calls


def turn_effect(
    recorded: JudgeAspectData,
    placebo: JudgeAspectData,
    without: JudgeAspectData,
    resampling: Resampling = Resampling(),  # noqa: B008 (frozen)
) -> TurnEffect:
    """Compare debates without a turn with the same debates resumed at the same turn.

    If the turn has no effect, the two forks of a debate are exchangeable for any model, because
    both begin with the same turns. So each is equally likely to differ from the verdict of the run,
    as the sign test assumes (Fisher 1935, The design of experiments, section 21).

    Args:
        recorded: the verdicts of the run.
        placebo: the verdicts of debates resumed without a change; those of the run if the judge
            never varies.
        without: the verdicts of debates with the turn changed.
        resampling: how to compute intervals.
    """
    difference = paired_difference(
        [PairwiseComparator(recorded.subject, resampling).pair(placebo.side, without.side)],
        recorded.subject.metric,
    )
    # All items in both forks, also without a label; sorted by item.
    kept = [
        arm.rows.take(np.isin(arm.rows.keys, _shared_keys(recorded, placebo, without)))
        for arm in (recorded, placebo, without)
    ]
    rows, resumed, changed = kept
    winners = rows.winners
    moved_by_change = moved(rows.judged, changed.judged, winners)
    moved_by_placebo = moved(rows.judged, resumed.judged, winners)
    excess = moved_by_change.astype(int) - moved_by_placebo
    ways = directions(changed.judged, resumed.judged, rows.human, winners)
    counts = Counter(ways.tolist())
    move = np.zeros(len(rows)) if winners else resumed.judged - changed.judged
    tests = TurnTests(
        clustered_sign_test(excess, rows.clusters),
        None if winners else clustered_sign_test(np.round(move, 9), rows.clusters),
        clustered_sign_test(ways, rows.clusters),
        difference.p,
    )
    return TurnEffect(
        subject=recorded.subject.label,
        n=len(rows),
        moved=mean_statistic(moved_by_change, rows.clusters, resampling),
        placebo=mean_statistic(moved_by_placebo, rows.clusters, resampling)
        if placebo is not recorded
        else Statistic(0.0),
        effect=mean_statistic(excess, rows.clusters, resampling),
        p_effect=tests.effect,
        move=None if winners else mean_statistic(move, rows.clusters, resampling),
        p_move=tests.move,
        towards=counts[1],
        away=counts[-1],
        p=tests.direction,
        agreement=difference.difference,
        p_agreement=tests.agreement,
        tests=tests,
    )


def _shared_keys(*arms: JudgeAspectData) -> Ints:
    first, *others = (arm.rows.keys for arm in arms)
    return reduce(np.intersect1d, others, first)


class ForkedGraph:
    """A judge's graph that is run, then forked at a turn; only the fork's verdict counts.

    It behaves like the graph except for ``astream``, with which a run judges an item. Calls of the
    first part are those of the recorded run, which the journal answers.

    Args:
        graph: the judge.
        edit: the turn and the change.
        mark: the number of the repeat that marks the calls after the fork, so that they get new
            replies. Two forks with the same mark share the replies to prompts that the turn does
            not change.
        placebo: leave the turn unchanged.

    Raises:
        UsageError: the judge is a wrapper or another package's graph, with turns in subgraphs.
    """

    def __init__(
        self, graph: Graph, edit: Edit, mark: int | None = None, *, placebo: bool = False
    ) -> None:
        if not isinstance(graph.builder, ProtocolGraph):
            raise UsageError(
                f"{graph.name} contains other graphs, whose debates cannot be forked: use a run of "
                "the inner protocol"
            )
        self._saver = InMemorySaver()
        self._graph = graph.copy(update={"checkpointer": self._saver})
        self._edit = edit
        self._protocol = judges_of(graph)[""].protocol
        self._mark = mark
        self._placebo = placebo

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    async def astream(self, input: Any, config: Any = None, **_options: Any) -> AsyncIterator[Any]:
        """Yield the last state of the fork, or of the debate if there is nothing to change."""
        thread: Any = {**(config or {}), "configurable": {"thread_id": uuid4().hex}}
        try:
            state = await self._graph.ainvoke(input, thread)
            if edits := self._edit.of_turns(self._protocol, state["transcript"]):
                edited = {edit["id"] for edit in edits}
                # Latest first: the last state in which all have spoken is directly after them.
                behind = [
                    snapshot
                    async for snapshot in self._graph.aget_state_history(thread)
                    if edited
                    <= {turn.get("id") for turn in snapshot.values.get("transcript") or ()}
                ]
                made = [] if self._placebo else edits
                updated = await self._graph.aupdate_state(behind[-1].config, {"transcript": made})
                forked: Any = {**thread, **updated}
                if self._mark is not None:
                    forked["metadata"] = {**(thread.get("metadata") or {}), "repeat": self._mark}
                state = await self._graph.ainvoke(None, forked)
            changed = [] if self._placebo else [edit["id"] for edit in edits]
            changes = {"of": self._protocol, "changed": changed, "resumed_at": self._edit.turn}
            details = {**(state["verdict"].get("details") or {}), **changes}
            yield {**state, "verdict": {**state["verdict"], "details": details}}
        finally:
            await self._saver.adelete_thread(thread["configurable"]["thread_id"])
