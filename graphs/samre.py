"""SAMRE: one advocate for each answer, several rounds, a judge, and a jury (courtroom paper, section 3.2).

    prepare -> advocates -> judge -> jury -> tally -> conclude
                   ^          |        (without jurors straight to the tally)
                   +----------+ at most max_rounds times; by way of the summarizer with memory="summary"

Each round the judge gives both sides a total of 6 to 120, and feedback. The mean totals are the verdict's scores;
the jury's majority wins. Equal votes: the higher mean; equal again: a tie.

Why it stops: ``agreement`` (two rounds running favour the same side; a tied round favours none), ``max_rounds``.

Model calls: 3R + jurors, R being the rounds held (2 to 4 by default); ``memory="summary"`` adds one after each
round but the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..nodes.advocate import lone_advocates
from ..nodes.bound_judge import Models
from ..nodes.court_summarizer import summarizer
from ..nodes.courtroom_judge import judge_of_round
from ..nodes.juror import jury
from ..nodes.vote_aggregation import rounds_agree, tally
from ..state.call_counts import CallRange, CallsByRole, Can, exactly
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.tasks import TaskKind
from . import ablations
from .base import ProtocolGraph
from .protocol_record import Protocol, Replay


def calls(settings: SamreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Two rounds that agree at best, all of them at worst; then the jury."""
    rounds = CallRange(min(2, settings.max_rounds), settings.max_rounds)
    between = CallRange(rounds.least - 1, rounds.most - 1)
    return {
        "advocate": rounds * 2,
        "judge": rounds,
        "juror": exactly(settings.jurors),
        "summarizer": between if settings.memory == "summary" else exactly(0),
    }


protocol = Protocol(
    name="samre",
    summary="two advocates argue over several rounds before a judge and a jury",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.2",
    kinds=("compare",),
    roles=("advocate", "judge", "juror", "summarizer"),
    settings=SamreSettings,
    prompts=("shared", "courtroom"),
    calls=calls,
    role_kinds={"advocate": "argues", "judge": "scores", "juror": "votes", "summarizer": "assists"},
    replay=Replay(fixed=("backgrounds", "memory", "ballot")),
    score_gaps="by_round",
    ablations=ablations.SAMRE,
)


def another_round(state: JudgeState, settings: SamreSettings) -> bool:
    """Whether the debate goes on: the last two rounds do not agree, and rounds are left."""
    return not rounds_agree(state["scores"]) and state["round"] < settings.max_rounds


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """On to the next round, or to whoever decides."""
    if another_round(state, settings):
        return "summarizer" if settings.memory == "summary" else "advocates"
    return "jury" if settings.jurors else "tally"


def build(
    settings: SamreSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> ProtocolGraph[SamreSettings]:
    """The SAMRE graph, yours to compile; arguments and errors as for ``debate.build``.

    >>> graph = build(jurors=3).compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> result["verdict"]["details"]["votes"]
    {'1': 3, '2': 0}
    """
    graph = ProtocolGraph(protocol, SamreSettings, settings, models, fields)
    graph.agent("advocates", lone_advocates)
    graph.agent("judge", judge_of_round)
    graph.agent("summarizer", summarizer)
    graph.agent("jury", jury)
    graph.agent("tally", tally)
    graph.add_edge("prepare", "advocates")
    graph.add_edge("advocates", "judge")
    graph.route("judge", after_judge, ["advocates", "summarizer", "jury", "tally"])
    graph.add_edge("summarizer", "advocates")
    graph.add_edge("jury", "tally")
    graph.add_edge("tally", "conclude")
    return graph


graph = build().compile(name="samre")
