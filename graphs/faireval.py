"""FairEval: several judgements with evidence first, in both orders of the answers (Wang et al. 2024, section 3).

    prepare --one_order, both_orders--> scorer (k samples) -> conclude

Multiple evidence calibration: the scorer writes its evidence and then the scores, ``k`` times at temperature 1.
Balanced position calibration: the same with the answers swapped, at the same time. Each answer's scores are averaged
over samples and orders; the higher average wins. A sample that cannot be read is left out and counted.

Why it stops: always ``complete``.

Model calls: 2 where the provider gives several replies to one request, else 2k; half of that with
``position_calibration=false``.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.bound_judge import Models
from ..nodes.faireval_scorer import mean_of_samples, pairs_in, scorer
from ..nodes.models.capabilities import SEVERAL
from ..nodes.verdicts import lone_scorer, number_of_orders
from ..state.graph_state import JudgeOutput
from ..state.protocols import CallsByRole, Can, Protocol, Replay, sampled
from ..state.settings import FairEvalSettings
from ..state.tasks import TaskKind
from ..state.verdict import Verdict
from .base import ProtocolGraph
from .calibrated import weigh_orders
from .options import Bound, FairEvalOptions


def calls(settings: FairEvalSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the samples of each order of the answers."""
    return {"scorer": sampled(settings.k, can("scorer", SEVERAL)) * number_of_orders(settings, kind)}


protocol = Protocol(
    name="faireval",
    summary="several judgements, evidence first, in both orders of the answers, averaged",
    source="FairEval (Wang et al. 2024)",
    kinds=("compare",),
    roles=("scorer",),
    settings=FairEvalSettings,
    prompts=("shared", "faireval"),
    calls=calls,
    role_kinds={"scorer": "scores"},
    replay=Replay(settings=lambda samples: {"k": samples}),
)


def weigh(straight: JudgeOutput, mapped: JudgeOutput) -> Verdict:
    """Average both orders; the details hold each order's samples, their scores in the task's order."""
    verdict = weigh_orders(straight, mapped)
    orders = (straight, mapped)
    kept = {name: value for name, value in verdict.details.items() if name != "details_by_order"}
    samples = {
        "samples_by_order": [pairs_in(order["transcript"]) for order in orders],
        "unread_samples": sum(order["verdict"]["details"]["unread_samples"] for order in orders),
    }
    return verdict.model_copy(update={"details": {**kept, **samples}})


def build(
    settings: Bound[FairEvalSettings] = None, models: Models | None = None, **fields: Unpack[FairEvalOptions]
) -> ProtocolGraph[FairEvalSettings]:
    """Build the FairEval graph, yours to compile; arguments and errors as for ``debate.build``.

    >>> graph = build(k=2).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["calls"]
    4
    """
    graph = ProtocolGraph(protocol, FairEvalSettings, settings, models, fields)
    graph.panel("scorer", scorer, lone_scorer, decide=mean_of_samples, weigh=weigh)
    return graph


graph = build().compile(name="faireval")
