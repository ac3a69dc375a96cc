"""ChatEval: referees of different personas discuss a text, then judge it together (Chan et al. 2024).

    prepare --> straight --+--> weigh        a comparison in both orders of the answers, side by side;
            +-> swapped  --+                 a score task, or calibration turned off: ``straight`` alone

    Inside each:  prepare -> referee --all turns held--> vote -> conclude
                             ^  |  ^
                      next --+  +--+-- summarizer (between turns, where the strategy has one)

Each of N referees speaks T times: one by one, all at the same time, or all at the same time with a summary of
every turn. In the last turn they hand in scores. A score task gets their average. Of two answers the one wins
that more than half of the referees prefer; without such a majority, the one with the higher average. By default
a comparison is held in both orders at once, and each referee votes by its averages over the two.

Why it stops: always ``complete``, after T turns.

Model calls: N * T; with the summarizer T - 1 more (T with ``summarize_last``); a comparison with position
calibration takes twice as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.graph import END, START

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.personas import Referee, load_referees, with_roles
from ..nodes.prepare_conclude import conclude, prepare
from ..nodes.referee import contribute
from ..nodes.summarizer import summarizer
from ..nodes.vote_aggregation import majority_vote, scores_over_orders, vote
from ..state.call_counts import CallsByRole, Can, exactly
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.settings import ChatEvalSettings, make_settings
from ..state.tasks import TaskKind
from ..state.transcript import Turn
from ..state.verdict import Verdict
from . import ablations
from .base import ProtocolGraph
from .position_calibration import PositionGraph, number_of_orders, weigh_orders
from .protocol_record import Protocol, Replay


def calls(settings: ChatEvalSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count every referee in every turn and a summary between turns, in each order of the answers."""
    summarized = settings.turns if settings.summarize_last else settings.turns - 1
    discussion = {
        "referee": exactly(settings.referees * settings.turns),
        "summarizer": exactly(summarized if settings.strategy == "summarizer" else 0),
    }
    return {role: of_role * number_of_orders(settings, kind) for role, of_role in discussion.items()}


protocol = Protocol(
    name="chateval",
    summary="referees with different personas discuss, then vote or average",
    source="ChatEval (Chan et al. 2024)",
    kinds=("score", "compare"),
    roles=("referee", "summarizer"),
    settings=ChatEvalSettings,
    prompts=("shared", "chateval"),
    calls=calls,
    role_kinds={"referee": "panel", "summarizer": "assists"},
    replay=Replay(fixed=("roles", "referees", "strategy", "summary", "summarize_last", "score_each_turn")),
    ablations=ablations.CHATEVAL,
)


def referee_turns(state: JudgeState) -> list[Turn]:
    """Return what the referees have said so far."""
    return [turn for turn in state["transcript"] if turn["role"] == "referee"]


def turn_is_over(state: JudgeState) -> bool:
    """Tell whether every referee has spoken in the present turn of the discussion."""
    return len(referee_turns(state)) % len(state["details"]["roles"]) == 0


def next_speakers(
    state: JudgeState, referees: Sequence[Referee], settings: ChatEvalSettings
) -> tuple[Sequence[Referee], int]:
    """Return who speaks next and in which turn: one referee after the other, or all of them at the same time."""
    said = len(referee_turns(state))
    turn = said // len(referees) + 1
    return ([referees[said % len(referees)]] if settings.strategy == "one_by_one" else referees), turn


def turns_left(state: JudgeState, settings: ChatEvalSettings) -> bool:
    """Tell whether the referees have another turn to come."""
    return state["round"] < settings.turns


def after_referee(state: JudgeState, settings: ChatEvalSettings) -> str:
    """The turn goes on until all have spoken; then it is summarized if somebody will read that, and the next begins."""
    if not turn_is_over(state):
        return "next_referee"
    if settings.strategy == "summarizer" and (turns_left(state, settings) or settings.summarize_last):
        return "turn_over"
    return after_summarizer(state, settings)


def after_summarizer(state: JudgeState, settings: ChatEvalSettings) -> str:
    """The referees vote after the last turn."""
    return "another_turn" if turns_left(state, settings) else "turns_spent"


async def discuss(state: JudgeState, runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Have the next referee speak, or all of them where they speak simultaneously."""
    referees = await load_referees(runtime.settings)
    speakers, turn = next_speakers(state, referees, runtime.settings)
    return await contribute(state, runtime, referees, speakers, turn)


def weigh_votes(straight: JudgeOutput, mapped: JudgeOutput) -> Verdict:
    """Average each referee's scores over the two orders, then let the referees vote."""
    winner, details = majority_vote(scores_over_orders(straight["transcript"], mapped["transcript"]))
    roles = straight["verdict"]["details"]["roles"]
    return weigh_orders(straight, mapped, winner, {"roles": roles, **details})


def core(graph: ProtocolGraph[ChatEvalSettings]) -> ProtocolGraph[ChatEvalSettings]:
    """Add the discussion's nodes and edges: they run once for each order of the answers."""
    graph.agent("prepare", prepare(protocol))
    graph.agent("referee", discuss)
    graph.agent("summarizer", summarizer)
    graph.agent("vote", vote)
    graph.agent("conclude", conclude(protocol))
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "referee")
    after_turn = {"another_turn": "referee", "turns_spent": "vote"}
    graph.route(
        "referee", after_referee, {"next_referee": "referee", "turn_over": "summarizer", **after_turn}
    )
    graph.route("summarizer", after_summarizer, after_turn)
    graph.add_edge("vote", "conclude")
    graph.add_edge("conclude", END)
    return graph


def build(
    settings: ChatEvalSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> PositionGraph[ChatEvalSettings]:
    """Build the ChatEval graph, yours to compile.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role (``referee``, ``summarizer``) or agent
            (``referee_2``), ``"*"`` for all others.
        **fields: single settings, such as ``turns=3`` or ``roles="coding"``; they win over ``settings``.

    Raises:
        pydantic.ValidationError: a setting that does not exist or cannot be so.
        UsageError: a role that the protocol does not have, or a file of roles that cannot be read.

    >>> graph = build(roles=["critic", "scientist"], turns=1).compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> [turn["agent"] for turn in result["transcript"]]
    ['referee_1', 'referee_2']
    """
    bound = with_roles(make_settings(ChatEvalSettings, settings, fields))
    return PositionGraph(core(ProtocolGraph(protocol, ChatEvalSettings, bound, models)), weigh_votes)


graph = build().compile(name="chateval")
