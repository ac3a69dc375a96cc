"""FairEval: several judgements, evidence first, in both orders of the answers (Wang et al. 2024).

    prepare --one_order, both_orders--> scorer (k samples) -> conclude

Multiple evidence calibration (section 3): the scorer writes its evidence and then the scores, ``k``
times at temperature 1. Balanced position calibration: it does the same with the answers swapped, at
the same time. Each answer's scores are averaged over samples and orders. The higher average wins.
Samples that cannot be read are left out and counted.

Stop reason: always ``complete``.

Model calls: 2 if the provider returns several replies to one request, otherwise 2k; half of that
with ``position_calibration=false``.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.faireval_scorer import mean_of_samples, pairs_in, scorer
from ..nodes.models.capabilities import SEVERAL
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.verdicts import lone_scorer, number_of_orders
from ..state.citations import FAIREVAL
from ..state.graph_state import Outcome
from ..state.protocol_facts import FAIREVAL_FACTS
from ..state.protocols import CallsByRole, Can, Protocol, Replay, sampled
from ..state.settings import FairEvalSettings
from ..state.tasks import TaskKind
from ..state.verdict import Verdict
from .engine.base import ProtocolGraph
from .engine.options import Bound, FairEvalOptions
from .wrappers.calibrated import weigh_orders


def calls(settings: FairEvalSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the samples of each order of the answers."""
    return {
        "scorer": sampled(settings.k, can("scorer", SEVERAL)) * number_of_orders(settings, kind)
    }


protocol = Protocol(
    name="faireval",
    summary="several judgements, evidence first, in both orders of the answers, averaged",
    source="FairEval (Wang et al. 2024)",
    citation=FAIREVAL,
    kinds=("compare",),
    roles=("scorer",),
    settings=FairEvalSettings,
    prompts=("shared", "faireval"),
    calls=calls,
    role_kinds=FAIREVAL_FACTS.role_kinds,
    replay=Replay(settings=lambda samples: {"k": samples}),
)


def weigh(straight: Outcome, mapped: Outcome) -> Verdict:
    """Average both orders.

    The details list the samples of each order, with their scores in the task's order of the
    answers.
    """
    verdict = weigh_orders(straight, mapped)
    orders = (straight, mapped)
    kept = {name: value for name, value in verdict.details.items() if name != "details_by_order"}
    samples = {
        "samples_by_order": [pairs_in(order["transcript"]) for order in orders],
        "unread_samples": sum(order["verdict"]["details"]["unread_samples"] for order in orders),
    }
    return verdict.model_copy(update={"details": {**kept, **samples}})


def build(
    settings: Bound[FairEvalSettings] = None,
    models: Models | None = None,
    **fields: Unpack[FairEvalOptions],
) -> ProtocolGraph[FairEvalSettings]:
    """Build the FairEval graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build(k=2).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["calls"]
    4
    """
    graph = ProtocolGraph(protocol, FairEvalSettings, settings, models, fields)
    graph.panel("scorer", scorer, lone_scorer, decide=mean_of_samples, weigh=weigh)
    return graph


graph = build().compile(name="faireval")
