"""SAMRE: one advocate for each answer, several rounds, a judge, and a jury (courtroom paper, section 3.2).

    prepare -> advocates -> judge -> jury -> tally -> conclude
                   ^          |        (no jurors: on to the tally)
                   +----------+ at most max_rounds times; by way of the summarizer with memory="summary"

Each round the judge gives both sides a total of 6 to 120, and feedback. The mean totals are the verdict's scores;
the jury's majority wins. Equal votes: the higher mean; equal again: a tie.

Why it stops: ``agreement`` (two rounds running favour the same side; a tied round favours none), ``max_rounds``.

Model calls: 3R + jurors, R being the rounds held (2 to 4 by default); ``memory="summary"`` adds one after each
round but the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langgraph.graph import END, START

from ..nodes.advocate import lone_advocates
from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.court_summarizer import summarizer
from ..nodes.courtroom_judge import judge_of_round
from ..nodes.juror import jury
from ..nodes.prepare_conclude import conclude, prepare
from ..nodes.vote_aggregation import tally
from ..state.call_counts import CallRange, CallsByRole, Can, exactly
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.tasks import TaskKind
from ..state.transcript import Score
from . import ablations
from .base import ProtocolGraph
from .protocol_record import Protocol, Replay


def calls(settings: SamreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count two rounds if they agree, all of them at most; then the jury."""
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


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Tell whether the last two rounds favour the same side; a tied round agrees with nothing.

    >>> rounds_agree([[90, 80], [70, 60]]), rounds_agree([[90, 80], [70, 70]]), rounds_agree([[90, 80]])
    (True, False, False)
    """
    gaps = [pair[0] - pair[1] for pair in scores[-2:] if isinstance(pair, list)]
    return len(gaps) == 2 and gaps[0] * gaps[1] > 0


def stop_reason(state: JudgeState, _settings: SamreSettings) -> Literal["agreement", "max_rounds"]:
    """Say why no further round is held."""
    return "agreement" if rounds_agree(state["scores"]) else "max_rounds"


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """The rounds end when two in a row agree or none is left; another one may begin with a summary of the memory."""
    if rounds_agree(state["scores"]) or state["round"] >= settings.max_rounds:
        ended = stop_reason(state, settings)
        return ended if settings.jurors else f"{ended}_without_jury"
    return "another_round" if settings.memory == "full" else "another_round_from_summary"


async def open_round(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Begin a round: both advocates argue at the same time."""
    return await lone_advocates(state, runtime, round=state["round"] + 1)


def build(
    settings: SamreSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> ProtocolGraph[SamreSettings]:
    """Build the SAMRE graph, yours to compile; arguments and errors as for ``debate.build``.

    >>> graph = build(jurors=3).compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> result["verdict"]["details"]["votes"]
    {'1': 3, '2': 0}
    """
    graph = ProtocolGraph(protocol, SamreSettings, settings, models, fields)
    graph.agent("prepare", prepare(protocol))
    graph.agent("advocates", open_round)
    graph.agent("judge", judge_of_round)
    graph.agent("summarizer", summarizer)
    graph.agent("jury", jury)
    graph.agent("tally", tally)
    graph.agent("conclude", conclude(protocol, stop_reason))
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "advocates")
    graph.add_edge("advocates", "judge")
    graph.route(
        "judge",
        after_judge,
        {
            "another_round": "advocates",
            "another_round_from_summary": "summarizer",
            "agreement": "jury",
            "max_rounds": "jury",
            "agreement_without_jury": "tally",
            "max_rounds_without_jury": "tally",
        },
    )
    graph.add_edge("summarizer", "advocates")
    graph.add_edge("jury", "tally")
    graph.add_edge("tally", "conclude")
    graph.add_edge("conclude", END)
    return graph


graph = build().compile(name="samre")
