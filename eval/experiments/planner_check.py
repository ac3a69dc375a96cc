"""Ask a judge's planner before a comparison spends anything on other agents.

A planner, such as G-Eval's, writes the steps that all verdicts of a judge are based on. If it
fails, the judge fails on every item and cannot be compared.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from ...graphs.engine.base import Graph
from ...graphs.engine.given_graphs import judges_of
from ...nodes.evaluation_steps import keep_steps_in
from ...nodes.models.send import answering_calls
from ...nodes.runtime.prompt_context import rubric_of_user
from ...state.errors import ModelCallError, ReplyError, StoppedError
from ...state.tasks import TaskKind, rubric_of
from ..journal.records import JournalError
from ..results.run_folder import run_folder
from ..run.calls.call_pipeline import RunContext
from ..run.calls.judge_item import JudgementContext, current_judgement
from ..run.plan.plan import Plan
from ..run.runner import check_run, drained_when_stopped, make_pipeline


def planner_of(graph: Graph, kind: TaskKind) -> str | None:
    """Return the role that plans before other agents are asked; ``None`` if there is none.

    >>> from jurygraph.graphs import debate, geval
    >>> planner_of(geval.graph, "score"), planner_of(debate.graph, "score")
    ('planner', None)
    >>> planner_of(geval.build(steps=["Read."]).compile(), "score") is None
    True
    """
    # Wrappers and graphs of other packages have their agents in subgraphs.
    if (judge := judges_of(graph).get("")) is None:
        return None
    record = judge.record
    settings = judge.bound
    asked = dict(record.calls(settings, kind, lambda *_: False))
    asked |= record.calls_once(settings, kind, lambda *_: False)
    planners = (role for role, does in record.role_kinds.items() if does == "plans")
    return next((role for role in planners if role in asked and asked[role].most), None)


async def planner_problem(planned: Plan, context: RunContext, run: str) -> Exception | None:
    """Ask a judge's planner about the first item, for each aspect; return the error if it fails.

    The calls are in the journal, so the judge's run does not pay for them again.

    Args:
        planned: the run of one judge.
        context: the limits and the progress record of the run.
        run: the id of the run that counts the calls.
    """
    [graph] = planned.graphs.values()
    node = planner_of(graph, planned.dataset.kind)
    # A batch call may take a day: then the planner is asked in the first pass of the run.
    if node is None or context.config.batch or planned.recording is not None:
        return None
    check_run(planned, context.config)
    manifest = {**planned.manifest, "run": run}
    async with run_folder(None, manifest, context.config, context.counts.waits) as folder:
        pipeline = make_pipeline(planned, folder, context)
        await pipeline.open()
        context.counts.take_up(0, 0, folder.journal.totals(), run)
        async with drained_when_stopped(pipeline, context.stop, context.config.grace):
            with answering_calls(pipeline), keep_steps_in(folder.steps):
                first: str | None = None
                for key, item, aspect in planned.jobs():
                    first = first or key.item
                    if key.item != first:
                        break
                    if key.repeat:
                        continue
                    current_judgement.set(JudgementContext(key, {}))
                    task = item.task(aspect)
                    try:
                        with rubric_of_user(rubric_of(task)):
                            await _run_until(graph, node, {"task": task.model_dump(mode="json")})
                    except (ReplyError, ModelCallError) as error:
                        return error
                    except (StoppedError, JournalError):
                        return None  # the comparison stops and reports another reason
    return None


async def _run_until(graph: Graph, node: str, task: Any) -> None:
    """Run a graph until a node has ended, without later nodes."""
    updates: Any = graph.astream(task, None, stream_mode="updates")
    async with aclosing(updates):
        async for update in updates:
            if node in update:
                return
