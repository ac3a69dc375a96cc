"""ChatEval: referees of different personas discuss a text, then judge it together (Chan et al. 2024).

    prepare --roles_given--------> next_speakers --referees--> referee ----> next_speakers     one or all side by side
       +--roles_open--> planner -> next_speakers --summary---> summarizer -> next_speakers     between turns
                                   next_speakers --complete--> conclude

Each of N referees speaks T times: one by one, all at the same time, or all at the same time with a summary of
every turn. In the last turn they hand in scores. A score task gets their average. Of two answers the one wins
that more than half of the referees prefer; without such a majority, the one with the higher average. By default
a comparison is held in both orders of the answers at once, each with its own discussion, and each referee votes by its
averages over the two. With ``roles=auto`` a planner first writes the referees' personas for the question at hand.

Why it stops: always ``complete``, after T turns.

Model calls: N * T; with the summarizer T - 1 more (T with ``summarize_last``); a comparison with position
calibration takes twice as many. ``roles=auto``: 1 more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.personas import casting, roles_are_open, with_roles
from ..nodes.referee import referee, referees, roles_of_referees, who_judged
from ..nodes.summarizer import summarizer
from ..nodes.verdicts import number_of_orders, scores_over_orders, turns_in_order, vote
from ..state.aggregation import majority_vote
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.protocols import CallsByRole, Can, Protocol, Replay, exactly
from ..state.settings import ChatEvalSettings
from ..state.settings.protocol_settings import AUTO
from ..state.tasks import TaskKind
from ..state.transcript import Turn
from ..state.verdict import Verdict
from .base import FanOut, ProtocolGraph, each
from .calibrated import weigh_orders
from .options import Bound, ChatEvalOptions


def calls(settings: ChatEvalSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count every referee in every turn and a summary between turns, in each order of the answers."""
    summarized = settings.turns if settings.summarize_last else settings.turns - 1
    discussion = {
        "referee": exactly(settings.referees * settings.turns),
        "summarizer": exactly(summarized if settings.strategy == "summarizer" else 0),
    }
    of_all = {role: of_role * number_of_orders(settings, kind) for role, of_role in discussion.items()}
    return {"planner": exactly(int(settings.roles == AUTO)), **of_all}


protocol = Protocol(
    name="chateval",
    summary="referees with different personas discuss, then vote or average",
    source="ChatEval (Chan et al. 2024)",
    kinds=("score", "compare"),
    roles=("planner", "referee", "summarizer"),
    settings=ChatEvalSettings,
    prompts=("shared", "chateval", "casting"),
    calls=calls,
    role_kinds={"planner": "plans", "referee": "panel", "summarizer": "assists"},
    agents=lambda settings: {"referee": settings.referees},
    phases={
        "next_speakers": {
            "prepare": ["referees"],
            "planner": ["referees"],
            "referee": ["referees", "summary", "complete"],
            "summarizer": ["referees", "complete"],
        }
    },
    replay=Replay(fixed=("roles", "referees", "strategy", "summary", "summarize_last", "score_each_turn")),
)


def turns_of(state: JudgeState, role: str) -> list[Turn]:
    """Return what a role has said in one order of the answers; both orders go on at the same pace."""
    return [turn for turn in turns_in_order(state, 1) if turn["role"] == role]


def next_referees(state: JudgeState, settings: ChatEvalSettings) -> Sequence[str]:
    """Return who speaks next: one referee after the other, or all of them at the same time."""
    everybody = referees(state, settings)
    if settings.strategy != "one_by_one":
        return everybody
    return [everybody[len(turns_of(state, "referee")) % len(everybody)]]


async def next_speakers(_state: JudgeState, _runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Wait until all who were asked have spoken; ``what_follows`` names who is next."""
    return {}


def what_follows(state: JudgeState, settings: ChatEvalSettings) -> str:
    """A turn goes on until all have spoken, and is then summed up if wanted; the last one ends the discussion."""
    turns, spoken = divmod(len(turns_of(state, "referee")), len(state["details"]["roles"]))
    if settings.strategy == "summarizer" and not spoken:
        # A summary of the last turn would be read by no referee.
        wanted = turns if turns < settings.turns or settings.summarize_last else turns - 1
        if len(turns_of(state, "summarizer")) < wanted:
            return "summary"
    return "referees" if turns < settings.turns else "complete"


def weigh_votes(straight: JudgeOutput, mapped: JudgeOutput) -> Verdict:
    """Average each referee's scores over the two orders, then let the referees vote."""
    winner, details = majority_vote(scores_over_orders(straight["transcript"], mapped["transcript"]))
    return weigh_orders(straight, mapped, winner, {**who_judged(straight), **details})


def build(
    settings: Bound[ChatEvalSettings] = None, models: Models | None = None, **fields: Unpack[ChatEvalOptions]
) -> ProtocolGraph[ChatEvalSettings]:
    """Build the ChatEval graph, yours to compile.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role (``referee``, ``summarizer``) or agent
            (``referee_2``), ``"*"`` for all others.
        **fields: single settings, such as ``turns=3`` or ``roles="coding"``; they win over ``settings``.

    Raises:
        InputError: a setting that does not exist or cannot be so.
        UsageError: a role that the protocol does not have, or a file of roles that cannot be read.

    >>> graph = build(roles=["critic", "scientist"], turns=1).compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> [turn["agent"] for turn in result["transcript"]]
    ['referee_1', 'referee_2']
    """
    graph = ProtocolGraph(protocol, ChatEvalSettings, settings, models, fields)
    graph.bound_judge.bound = with_roles(graph.bound_judge.bound)
    graph.begin(roles_of_referees)
    graph.agent("planner", casting, then="next_speakers")
    graph.agent("next_speakers", next_speakers)
    graph.agents("referee", referee, then="next_speakers")
    graph.agents("summarizer", summarizer, then="next_speakers")
    graph.end(decide=vote, weigh=weigh_votes)
    graph.route("prepare", roles_are_open, {"roles_given": "next_speakers", "roles_open": "planner"})
    speak = each("referee", next_referees)
    sum_up = each("summarizer", lambda _state, _settings: ["summarizer"])
    outcomes: dict[str, str | FanOut] = {"referees": speak, "summary": sum_up, "complete": "conclude"}
    graph.route("next_speakers", what_follows, outcomes)
    return graph


graph = build().compile(name="chateval")
