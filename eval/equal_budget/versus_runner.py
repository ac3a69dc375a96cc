"""Carry out a comparison at equal spending: the protocol first, then its opponents with what it has really spent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from ...graphs.options import AnyJudge
from ...nodes.sync_bridge import run_blocking
from ..calls.call_pipeline import RunContext
from ..calls.shutdown import Reason
from ..datasets.dataset import Data
from ..plan.plan import Options, Plan, divided
from ..results.config import RunLimits
from ..results.evaluation import Evaluation
from ..results.folder import shared_calls
from ..run.runner import execute
from .equal_spending import size_for
from .terms import Terms, TermsByName
from .versus_plan import VersusPlan, plan_versus
from .versus_result import Versus, compare


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
    config, wanted, of_terms = divided(options, *TermsByName.__annotations__)
    terms = Terms(**of_terms)
    out = wanted.get("out")
    with TemporaryDirectory(prefix="jurygraph-") as temporary:
        folder = Path(temporary) / "versus" if out is None else Path(out)
        # In a thread: planning reads the dataset, which would hold up the event loop.
        planned = await asyncio.to_thread(plan_versus, protocol, data, terms, folder, config, wanted)
        result = await carry_out_versus(planned, RunContext(config))
    # What was in a temporary folder is gone by now.
    return result if out is not None else replace(result, folder=None, folders={})


async def carry_out_versus(planned: VersusPlan, context: RunContext) -> Versus:
    """Carry out a planned comparison, as far as its budget goes, which is for all runs together.

    The protocol's run comes first. A single judge is then sampled once on every item, which says how many samples the
    protocol's spending pays for; an ensemble of as many is asked last. Whole samples rarely come out even, so the last
    one counts on a part of the items only (``matched``).
    """
    name, stop = planned.name, context.stop
    stopped: Reason | None = None
    explanation = ""

    async def judged_by(label: str, plan: Plan) -> Evaluation:
        nonlocal stopped, explanation
        context.counts.phase = label
        evaluation = await execute(plan, replace(context, config=planned.share(sharing, label != name)))
        if evaluation.stopped is not None:
            stopped, explanation = stop.reason, f"{label}: {stop.explanation}"
        # Each run has its own part of the budget: where one has used it up, the next may begin.
        if stop.reason == "budget":
            stop.take_back()
        return evaluation

    with shared_calls(planned.folder, "comparison", context.config) as sharing:
        own = planned.taken_up or await judged_by(name, planned.own)
        runs = {name: own}
        judged = frozenset((result.item, result.aspect) for result in own.results if result.status == "ok")
        first = planned.opponents[0]
        for opponent in planned.opponents:
            if stop.is_asked or not judged:
                break
            if first.name in runs and first.panel is None:
                # A judge's samples are much like those of an ensemble of such judges, which need not be tried first.
                sampled = runs[first.name]
                once = [result for result in sampled.results if not result.repeat]
                one_each = replace(sampled, results=once)
            else:
                one = replace(planned.of_opponent(opponent, 1), only=judged)
                one_each = await judged_by(opponent.name, one)
            size = size_for(own, name, one_each, planned.terms.by)
            of_size = replace(planned.of_opponent(opponent, size), only=judged)
            runs[opponent.name] = await judged_by(opponent.name, of_size)
        if stopped is not None:
            stop.ask(stopped, explanation)
        result = compare(runs, planned.opponents[: len(runs) - 1], planned.terms)
        return replace(result, folder=planned.folder, stopped=stopped).write()
