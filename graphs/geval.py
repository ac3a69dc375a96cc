"""G-Eval: one score, weighted by the probability of every score on the scale (Liu et al. 2023, section 2).

    prepare --> planner --> scorer --> conclude
        +--- steps are given ---^

The planner writes the evaluation steps from the aspect's criteria: once an aspect and model for all the items of a
run (``evaluate`` keeps them in ``run.json``; in code of one's own: ``nodes.evaluation_steps.keep_steps_in``), not at
all where the setting ``steps`` gives them. The score is the expectation over the scale: the sum of p(s) * s, with p
from the log-probabilities of the tokens that were likely in place of the score, else from samples at temperature 1.
The verdict tells which (``details["weighting"]``), and the distribution.

Why it stops: always ``complete``.

Model calls: 1 by log-probabilities; by sampling 1 where the provider gives several replies to one request, else
one a sample. The verdict that has the steps written takes one more, the planner's. A model that turns out to return no
log-probabilities costs one call more, the first time.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.bound_judge import Models
from ..nodes.evaluation_steps import planner
from ..nodes.geval_scorer import expectation, expected_by_round, scorer
from ..nodes.models.capabilities import LOGPROBS, SEVERAL
from ..state.graph_state import JudgeState
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly, sampled
from ..state.settings import GEvalSettings
from ..state.tasks import TaskKind
from .base import ProtocolGraph
from .options import Bound, GEvalOptions


def calls(settings: GEvalSettings, _kind: TaskKind, can: Can) -> CallsByRole:
    """Count one call by log-probabilities, else the samples, one more where log-probabilities were tried in vain."""
    samples = sampled(settings.samples, can("scorer", SEVERAL))
    if settings.weighting == "logprobs":
        return {"scorer": exactly(1)}
    tried = settings.weighting == "auto" and can("scorer", LOGPROBS)
    return {"scorer": CallRange(1, 1 + samples.most) if tried else samples}


protocol = Protocol(
    name="geval",
    summary="one scorer with evaluation steps, its score weighted by token probabilities",
    source="G-Eval (Liu et al. 2023)",
    kinds=("score",),
    roles=("planner", "scorer"),
    settings=GEvalSettings,
    prompts=("shared", "geval"),
    calls=calls,
    # The planner's, unless the steps are given.
    calls_once=lambda settings, _kind, _can: {"planner": exactly(0 if settings.steps else 1)},
    role_kinds={"planner": "plans", "scorer": "scores"},
    number_only_roles=("scorer",),
    # A replay has no planner. What the steps say makes no difference there: the scorer's replies are given.
    replay=Replay(settings=lambda n: {"weighting": "sampling", "samples": n, "steps": ("As recorded.",)}),
)


def after_prepare(_state: JudgeState, settings: GEvalSettings) -> str:
    """Steps that are given need no planner."""
    return "steps_given" if settings.steps else "no_steps"


def build(
    settings: Bound[GEvalSettings] = None, models: Models | None = None, **fields: Unpack[GEvalOptions]
) -> ProtocolGraph[GEvalSettings]:
    """Build the G-Eval graph, yours to compile; arguments and errors as for ``debate.build``.

    >>> graph = build(samples=5, steps=["Read both texts.", "Give a score."]).compile()
    >>> task = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "consistency"}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["details"]["weighting"], verdict["calls"]
    ('sampling', 5)
    """
    graph = ProtocolGraph(protocol, GEvalSettings, settings, models, fields, expected_by_round)
    graph.begin()
    graph.agent("planner", planner, then="scorer")
    graph.agent("scorer", scorer, then="conclude")
    graph.end(decide=expectation)
    graph.route("prepare", after_prepare, {"no_steps": "planner", "steps_given": "scorer"})
    return graph


graph = build().compile(name="geval")
