"""Carry out a comparison at equal spending: the protocol first, then its opponents with what it has really spent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack, cast

from ...graphs.options import AnyJudge
from ...nodes.sync_bridge import run_blocking
from ...state.usage import Usage, total_usage
from ..analysis.loading import load_evaluations
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import Reason, StopSignal
from ..datasets.dataset import Data
from ..plan.plan import Options, Plan
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.folder import exclusive, write_whole
from ..run.pipelines import check_run
from ..run.runner import execute
from ..storage.private_files import make_private_folder
from ..sweeps.sweep_plan import JOURNAL
from .equal_spending import size_for
from .opponents import Opponent
from .terms import Terms, TermsByName
from .versus_plan import VersusPlan, plan_versus
from .versus_result import FILE, Versus, compare

LOCK = "versus.lock"


class VersusOptions(TermsByName, Options, RunLimits, total=False):
    """Names the terms of a comparison, what all its runs have in common, and the limits of all of them together."""


def versus(protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]) -> Versus:
    """Find out whether a protocol pays: better than what the same budget buys of a single judge, on the same items.

    ``aversus`` is the same for async code.

    Args:
        protocol: a protocol's name, or a graph: one of your own, or a wrapper such as ``repeated(debate.build(), 3)``.
        data: a dataset, its name, a file or a table in memory; may be left out where a run is taken up.
        **options: see ``Terms``, ``Options`` and ``RunConfig``. Settings of an opponent stand under its name.

    Raises:
        UsageError: bad input, told before any call.

    >>> result = versus("debate", "demo", aspects=["consistency"], limit=6, by="calls", settings={"n": 2})
    >>> result.finding.answer, [contest.opponent for contest in result.contests]
    ('cannot be told', ['single', 'ensemble'])
    """
    return run_blocking(aversus(protocol, data, **options))


async def aversus(protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]) -> Versus:
    """Compare from async code; arguments and errors are those of ``versus``."""

    def named(kind: Any) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name in kind.__annotations__}

    terms, wanted = Terms(**named(TermsByName)), cast("Options", named(Options))
    config = RunConfig.from_options(options, (*Options.__annotations__, *TermsByName.__annotations__))
    out = wanted.get("out")
    with TemporaryDirectory(prefix="jurygraph-") as temporary:
        folder = Path(temporary) / "versus" if out is None else Path(out)
        # In a thread: planning reads the dataset, which would hold up the event loop.
        planned = await asyncio.to_thread(plan_versus, protocol, data, terms, folder, config, wanted)
        result = await carry_out_versus(planned, config)
    # What was in a temporary folder is gone by now.
    return result if out is not None else replace(result, folder=None, folders={})


@dataclass
class VersusCounts(ProgressCounters):
    """Counts the progress of all runs together.

    Attributes:
        run: whose run is on.
        spent: what each run has spent, in earlier starts, too.
    """

    run: str = ""
    spent: dict[str, Usage] = field(default_factory=dict)

    def take_up(self, wanted: int, resumed: int, spent: Usage) -> None:
        """Begin one more run: what is open of it is added to what is wanted."""
        self.wanted = self.judged + self.failed + wanted - resumed
        self.spent[self.run] = spent
        self.usage = total_usage(self.spent.values())

    def paid(self, usage: Usage) -> None:
        """Count a call that was made."""
        super().paid(usage)
        self.spent[self.run] += usage


async def carry_out_versus(
    planned: VersusPlan,
    config: RunConfig | None = None,
    counts: VersusCounts | None = None,
    stop: StopSignal | None = None,
) -> Versus:
    """Carry out a planned comparison, as far as its budget goes; the arguments are those of ``runner.execute``.

    The protocol's run comes first. A single judge is then sampled once on every item, which says how many samples the
    protocol's spending pays for; an ensemble of as many is asked last. Whole samples rarely come out even, so the last
    one counts on a part of the items only (``matched``).
    """
    config, counts, stop = config or RunConfig(), counts or VersusCounts(), stop or StopSignal()
    make_private_folder(planned.folder)
    config = replace(config, journal=config.journal or planned.folder / JOURNAL)
    with exclusive(planned.folder / LOCK, "comparison"):
        rounds = _Rounds(planned, config, counts, stop)
        evaluations = await rounds.run()
        if rounds.stopped is not None:
            stop.ask(rounds.stopped, rounds.explanation)
        result = compare(evaluations, planned.opponents[: len(evaluations) - 1], planned.terms)
        result = replace(result, folder=planned.folder, stopped=rounds.stopped)
        write_whole(planned.folder / FILE, result.to_json())
    return result


class _Rounds:
    """Carries out the runs of a comparison one after the other."""

    def __init__(
        self, planned: VersusPlan, config: RunConfig, counts: VersusCounts, stop: StopSignal
    ) -> None:
        self._planned, self._config, self._counts, self._stop = planned, config, counts, stop
        self.stopped: Reason | None = None
        self.explanation = ""

    async def run(self) -> dict[str, tuple[str, Evaluation]]:
        """Return each run by its label; the protocol's first, then those of the opponents that were reached."""
        planned, name = self._planned, self._planned.name
        own = planned.taken_up or await self._execute(planned.own, planned.share(self._config, False), name)
        runs = {name: (name, own)}
        judged = frozenset((result.item, result.aspect) for result in own.results if result.status == "ok")
        for opponent in planned.opponents:
            if self._stop.is_asked or not judged:
                break
            size = await self._size(opponent, runs, judged)
            runs[opponent.name] = opponent.name, await self._opponent(opponent, size, judged)
        return runs

    async def _size(
        self, opponent: Opponent, runs: Mapping[str, tuple[str, Evaluation]], judged: frozenset[Any]
    ) -> int:
        """Return how many samples the protocol's spending pays for, by what one sample of each item took."""
        first = self._planned.opponents[0]
        if first.name in runs and first.panel is None:
            # A judge's samples are much like those of an ensemble of such judges, which need not be tried first.
            name, sampled = runs[first.name]
            one_each = replace(sampled, results=[result for result in sampled.results if result.repeat == 0])
        else:
            name, one_each = opponent.name, await self._opponent(opponent, 1, judged)
        own = self._planned.name
        judge, single = load_evaluations({own: runs[own], name: (name, one_each)})
        sizes = [
            size_for(cell.rows, single.cells[aspect].rows, self._planned.terms.by)
            for aspect, cell in judge.cells.items()
            if aspect in single.cells and len(cell.rows) and len(single.cells[aspect].rows)
        ]
        return max(sizes, default=1)

    async def _opponent(self, opponent: Opponent, size: int, judged: frozenset[Any]) -> Evaluation:
        plan = replace(self._planned.of_opponent(opponent, size), only=judged)
        return await self._execute(plan, self._planned.share(self._config, True), opponent.name)

    async def _execute(self, plan: Plan, config: RunConfig, name: str) -> Evaluation:
        check_run(plan, config)
        self._counts.run = self._counts.phase = name
        evaluation = await execute(plan, config, self._counts, self._stop)
        if evaluation.stopped is not None:
            self.stopped, self.explanation = self._stop.reason, f"{name}: {self._stop.explanation}"
        # Each run has its own part of the budget: where one has used it up, the next may begin.
        if self._stop.reason == "budget":
            self._stop.take_back()
        return evaluation
