"""MORE: a team of advocates for each answer, one round, one judge (courtroom paper, sections 3.1 and 3.3).

    prepare -> advocates -> aggregators -> judge -> conclude
                  ^  |                     ^   |
                  |  +------ concat -------+   +-- rounds left --> feedback --+
                  |  +------ best ------> judge_of_each (likewise)            |
                  +-----------------------------------------------------------+

What comes before the judge is one defence that a model makes of each team's (``aggregate="llm"``), all of them
(``concat``), or the one of each team that scores best alone (``best``, whose scores decide with no further judge).
The last round's totals count, 6 to 120 a side; the higher one wins.

Why it stops: ``complete``, always; the number of rounds is fixed.

Model calls with k advocates a side: 2k + 3 in one round (``llm``), 2k + 1 (``concat``), 4k (``best``). Each
further round adds the same and 1 for the judge's feedback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import END, START

from ..nodes.advocate import teams_of_advocates
from ..nodes.agent_runtime import AgentRuntime
from ..nodes.aggregator import aggregators
from ..nodes.bound_judge import Models
from ..nodes.courtroom_judge import feedback, judge_of_teams
from ..nodes.defence_judge import judge_of_each
from ..nodes.prepare_conclude import conclude, prepare
from ..state.call_counts import CallsByRole, Can, exactly
from ..state.graph_state import JudgeState
from ..state.settings import MoreSettings
from ..state.tasks import TaskKind
from . import ablations
from .base import ProtocolGraph
from .protocol_record import Protocol, Replay


def calls(settings: MoreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count both teams in every round, the aggregators, the judge, and feedback between rounds."""
    team, rounds = 2 * settings.advocates, settings.rounds
    judged = team if settings.aggregate == "best" else 1
    return {
        "advocate": exactly(team * rounds),
        "aggregator": exactly(2 * rounds if settings.aggregate == "llm" else 0),
        "judge": exactly(judged * rounds + rounds - 1),
    }


protocol = Protocol(
    name="more",
    summary="teams of advocates defend the two answers before one judge",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.1",
    kinds=("compare",),
    roles=("advocate", "aggregator", "judge"),
    settings=MoreSettings,
    prompts=("shared", "courtroom"),
    calls=calls,
    role_kinds={"advocate": "argues", "aggregator": "argues", "judge": "scores"},
    replay=Replay(fixed=("advocates", "aggregate", "collaborate")),
    score_gaps="by_round",
    ablations=ablations.MORE,
)


def after_advocates(_state: JudgeState, settings: MoreSettings) -> str:
    """A team's defences are merged into one, go to the judge as they are, or are judged one by one."""
    return settings.aggregate


def after_judge(state: JudgeState, settings: MoreSettings) -> str:
    """The scores of the last round decide; before it, both sides get feedback for the next one."""
    return "another_round" if state["round"] < settings.rounds else "rounds_spent"


async def open_round(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Begin a round: both teams write their defences."""
    return await teams_of_advocates(state, runtime, round=state["round"] + 1)


def build(
    settings: MoreSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> ProtocolGraph[MoreSettings]:
    """Build the MORE graph, yours to compile; arguments and errors as for ``debate.build``.

    >>> graph = build(advocates=2, aggregate="concat").compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> [turn["agent"] for turn in result["transcript"]]
    ['advocate_1_1', 'advocate_1_2', 'advocate_2_1', 'advocate_2_2', 'judge']
    """
    graph = ProtocolGraph(protocol, MoreSettings, settings, models, fields)
    graph.agent("prepare", prepare(protocol))
    graph.agent("advocates", open_round)
    graph.agent("aggregators", aggregators)
    graph.agent("judge", judge_of_teams)
    graph.agent("judge_of_each", judge_of_each)
    graph.agent("feedback", feedback)
    graph.agent("conclude", conclude(protocol))
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "advocates")
    graph.route(
        "advocates", after_advocates, {"llm": "aggregators", "concat": "judge", "best": "judge_of_each"}
    )
    graph.add_edge("aggregators", "judge")
    for judge in ("judge", "judge_of_each"):
        graph.route(judge, after_judge, {"another_round": "feedback", "rounds_spent": "conclude"})
    graph.add_edge("feedback", "advocates")
    graph.add_edge("conclude", END)
    return graph


graph = build().compile(name="more")
