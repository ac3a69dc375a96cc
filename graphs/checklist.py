"""Checklist: every criterion of a rubric is answered by itself, and code adds up the points.

    prepare --criteria--> checker x N -> tally -> conclude

A rubric is a list of criteria with points, below 0 for something undesirable. Each criterion is
answered with yes, no or not applicable, and with a quotation from the candidate. Code checks that
the quotation occurs in the candidate. If it does not, the reply cannot be read: the checker is
asked again, and a second failure is an error.

The score is HealthBench's: the sum of the points of all criteria that are met, divided by the sum
of the positive points of all criteria that apply. It is at least 0, and is mapped to the aspect's
scale. The rubric belongs to the aspect (``rubric`` in its file). Rows of a dataset can have a
rubric of their own, whose criteria are added to those of the aspect.

Stop reason: always ``complete``.

Model calls: N checkers, each for ``group`` criteria: one call per criterion by default.
"""

from __future__ import annotations

from math import ceil
from typing import Unpack

from ..nodes.checker import checker, tally
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.checklists import by_tally, check_task, checkers, groups, scores_of_tally
from ..state.citations import HEALTHBENCH
from ..state.graph_state import JudgeState
from ..state.protocol_facts import CHECKLIST_FACTS
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, exactly
from ..state.rubrics import MOST_CRITERIA
from ..state.settings import ChecklistSettings
from ..state.tasks import CompareTask, RubricInput, ScoreTask, TaskKind
from .engine.base import ProtocolGraph, each
from .engine.options import Bound, ChecklistOptions


def calls(settings: ChecklistSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count the calls of the shortest and of the longest possible rubric."""
    most = 1 if settings.group == "all" else ceil(MOST_CRITERIA / settings.group)
    return {"checker": CallRange(1, most)}


def calls_of_task(
    settings: ChecklistSettings, task: ScoreTask | CompareTask, _can: Can
) -> CallsByRole:
    """Count one call for each group of the task's criteria."""
    return {"checker": exactly(len(groups(task, settings)))}


protocol = Protocol(
    name="checklist",
    summary="a rubric's criteria, each answered with a quotation, and the points added up",
    source="HealthBench (Arora et al. 2025)",
    citation=HEALTHBENCH,
    kinds=("score",),
    roles=("checker",),
    settings=ChecklistSettings,
    prompts=("shared", "checklist"),
    calls=calls,
    calls_of_task=calls_of_task,
    input_schema=RubricInput,
    check_task=check_task,
    role_kinds=CHECKLIST_FACTS.role_kinds,
)


def criteria_open(_state: JudgeState, _settings: ChecklistSettings) -> str:
    """Return the only outcome of ``prepare``: all criteria are to be checked."""
    return "criteria"


def build(
    settings: Bound[ChecklistSettings] = None,
    models: Models | None = None,
    **fields: Unpack[ChecklistOptions],
) -> ProtocolGraph[ChecklistSettings]:
    """Build the checklist's graph, not compiled; arguments and errors as for ``debate.build``.

    >>> rubric = [{"criterion": "Names the year.", "points": 3}, {"criterion": "Is off topic.", "points": -2}]
    >>> graph = build().compile()
    >>> result = graph.invoke({"task": {"kind": "score", "candidate": "The bridge opened in 1932.",
    ...     "aspect": {"name": "facts", "criteria": "The facts that matter.", "rubric": rubric}}})
    >>> result["verdict"]["calls"], [turn["agent"] for turn in result["transcript"]]
    (2, ['checker_1', 'checker_2', 'tally'])
    """
    graph = ProtocolGraph(protocol, ChecklistSettings, settings, models, fields, scores_of_tally)
    graph.begin()
    graph.agents("checker", checker, then="tally")
    graph.agent("tally", tally, then="conclude")
    graph.end(decide=by_tally)
    graph.route("prepare", criteria_open, {"criteria": each("checker", checkers)})
    return graph


graph = build().compile(name="checklist")
