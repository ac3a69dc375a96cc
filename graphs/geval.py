"""G-Eval: one score, weighted by the probability of every score on the scale (Liu et al. 2023).

    prepare --> planner --> scorer --> conclude
        +--- steps are given ---^

The planner writes the evaluation steps from the aspect's criteria. It does so once per aspect and
model: ``evaluate`` stores the steps of a run in ``run.json``, and
``nodes.evaluation_steps.keep_steps_in`` does the same in your own code. With the setting ``steps``,
the planner is not called.

The score is the expectation over the scale (section 2): the sum of p(s) * s. The probabilities come
from the log-probabilities of the tokens at the position of the score, otherwise from samples at
temperature 1. The verdict's details contain the distribution and its source
(``details["weighting"]``).

Stop reason: always ``complete``.

Model calls: 1 with log-probabilities. Sampling takes 1 if the provider returns several replies to
one request, otherwise one per sample. The first verdict adds the planner's call. A model that turns
out to return no log-probabilities costs one more call, the first time.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.evaluation_steps import planner
from ..nodes.geval_scorer import expectation, expected_by_round, scorer
from ..nodes.models.capabilities import LOGPROBS, SEVERAL
from ..nodes.runtime.bound_judge import Models
from ..state.citations import GEVAL
from ..state.graph_state import JudgeState
from ..state.protocol_facts import GEVAL_FACTS
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly, sampled
from ..state.settings import GEvalSettings
from ..state.tasks import TaskKind
from .engine.base import ProtocolGraph
from .engine.options import Bound, GEvalOptions


def calls(settings: GEvalSettings, _kind: TaskKind, can: Can) -> CallsByRole:
    """Count one call with log-probabilities, otherwise the samples.

    With ``weighting=auto``, a failed attempt to get log-probabilities adds one call to the samples.
    """
    samples = sampled(settings.samples, can("scorer", SEVERAL))
    if settings.weighting == "logprobs":
        return {"scorer": exactly(1)}
    tried = settings.weighting == "auto" and can("scorer", LOGPROBS)
    return {"scorer": CallRange(1, 1 + samples.most) if tried else samples}


protocol = Protocol(
    name="geval",
    summary="one scorer with evaluation steps, its score weighted by token probabilities",
    source="G-Eval (Liu et al. 2023)",
    citation=GEVAL,
    kinds=("score",),
    roles=("planner", "scorer"),
    settings=GEvalSettings,
    prompts=("shared", "geval"),
    calls=calls,
    # The planner is called once for all verdicts, unless the steps are given.
    calls_once=lambda settings, _kind, _can: {"planner": exactly(0 if settings.steps else 1)},
    role_kinds=GEVAL_FACTS.role_kinds,
    number_only_roles=("scorer",),
    impossible=lambda settings: {"no_steps" if settings.steps else "steps_given"},
    # A replay has no planner. The steps make no difference there, because the scorer's replies are
    # recorded.
    replay=Replay(
        settings=lambda n: {"weighting": "sampling", "samples": n, "steps": ("As recorded.",)}
    ),
)


def after_prepare(_state: JudgeState, settings: GEvalSettings) -> str:
    """Skip the planner if the steps are given."""
    return "steps_given" if settings.steps else "no_steps"


def build(
    settings: Bound[GEvalSettings] = None,
    models: Models | None = None,
    **fields: Unpack[GEvalOptions],
) -> ProtocolGraph[GEvalSettings]:
    """Build the G-Eval graph, not compiled; arguments and errors as for ``debate.build``.

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
