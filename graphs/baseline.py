"""One judge alone scores both answers on six criteria in one call (courtroom paper, Algorithm 3).

    prepare -> judge -> conclude

Each answer gets 1 to 20 points on each criterion, which makes a total of 6 to 120. The higher total
wins.

Stop reason: always ``complete``.

Model calls: 1.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.courtroom_judge import by_last_ruling, judge_alone
from ..nodes.runtime.bound_judge import Models
from ..state.citations import COURTROOM
from ..state.protocol_facts import BASELINE_FACTS
from ..state.protocols import Protocol, exactly
from ..state.settings import BaselineSettings
from .engine.base import ProtocolGraph
from .engine.options import Bound, CommonOptions

protocol = Protocol(
    name="baseline",
    summary="one judge scores both answers on six criteria",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, Algorithm 3",
    citation=COURTROOM,
    kinds=("compare",),
    roles=("judge",),
    settings=BaselineSettings,
    prompts=("shared", "courtroom"),
    calls=lambda _settings, _kind, _can: {"judge": exactly(1)},
    role_kinds=BASELINE_FACTS.role_kinds,
    is_baseline=BASELINE_FACTS.is_baseline,
    score_gaps=BASELINE_FACTS.score_gaps,
)


def build(
    settings: Bound[BaselineSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CommonOptions],
) -> ProtocolGraph[BaselineSettings]:
    """Build the judge's graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build().compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> result["verdict"]["winner"], result["verdict"]["calls"]
    ('1', 1)
    """
    graph = ProtocolGraph(protocol, BaselineSettings, settings, models, fields)
    graph.begin(then="judge")
    graph.agent("judge", judge_alone, then="conclude")
    graph.end(decide=by_last_ruling)
    return graph


graph = build().compile(name="baseline")
