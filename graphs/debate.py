"""DEBATE: a Scorer, a devil's advocate who attacks the score, and a Commander between them (Kim et al. 2024).

    prepare -> commander -> scorer -> commander -> critic --no issue--> conclude
                   ^                                  |
                   +------------- objection ----------+   at most n times, then the last score,
                                                          a tie-breaker, or a human decides

Why it stops: ``no_issue`` (the Critic has none), ``max_rounds`` (n objections, the last score stands),
``tie_breaker`` or ``human`` (n objections, somebody else decides).

Model calls with a relaying Commander: 2i when the Critic is satisfied in round i, 2n + 1 unresolved, 2n + 2 with
the tie-breaker. With ``commander="llm"`` every Scorer and Critic call takes one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langgraph.graph import END, START

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.commander import Recipient, commander
from ..nodes.critic import critic
from ..nodes.human import human
from ..nodes.prompt_context import debate_turns
from ..nodes.scorer import scorer
from ..nodes.tie_breaker import tie_breaker
from ..nodes.verdicts import conclude, prepare
from ..state.call_counts import CallRange, CallsByRole, Can, exactly
from ..state.graph_state import JudgeState
from ..state.role_kinds import RoleKind
from ..state.settings import DebateSettings
from ..state.tasks import TaskKind
from ..state.transcript import last_turn
from ..state.verdict import StopReason
from . import ablations
from .base import ProtocolGraph
from .protocol_record import Protocol, Replay


def calls(settings: DebateSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one round if the Critic is satisfied at once, n objections at most, and who decides after them."""
    scorer, critic = CallRange(1, settings.n + 1), CallRange(1, settings.n)
    return {
        "commander": scorer + critic if settings.commander == "llm" else exactly(0),
        "scorer": scorer,
        "critic": critic,
        "tie_breaker": CallRange(0, 1 if settings.fallback == "tie_breaker" else 0),
    }


ROLE_KINDS: dict[str, RoleKind] = {
    "scorer": "scores",
    "critic": "objects",
    "tie_breaker": "decides",
    "human": "decides",
    "commander": "assists",
}


def pauses_for_person(settings: DebateSettings) -> str:
    """Name the setting by which an unresolved debate waits for a person, if it does."""
    return "on_unresolved=human" if settings.fallback == "human" else ""


protocol = Protocol(
    name="debate",
    summary="a Scorer revises its score until a devil's advocate has no issue with it",
    source="DEBATE (Kim et al. 2024)",
    kinds=("score", "compare"),
    roles=("commander", "scorer", "critic", "tie_breaker"),
    settings=DebateSettings,
    prompts=("shared", "debate"),
    calls=calls,
    role_kinds=ROLE_KINDS,
    pauses_for_person=pauses_for_person,
    may_end_unresolved=lambda settings: settings.fallback == "last",
    replay=Replay(fixed=("persona", "commander")),
    ablations=ablations.DEBATE,
)


Outcome = Literal["no_issue", "objection", "another_round", "max_rounds", "tie_breaker", "human"]
Speaks = Literal["scorer_speaks", "critic_speaks"]


def next_speaker(state: JudgeState) -> Recipient:
    """Name who speaks next: the Critic answers the Scorer, the Scorer answers the task and every objection."""
    said = debate_turns(state)
    return "critic" if said and said[-1]["role"] == "scorer" else "scorer"


def round_of(state: JudgeState, speaker: Recipient) -> int:
    """Number the round that the next speaker belongs to: a round begins when the Critic is called."""
    return state["round"] + 1 if speaker == "critic" else state["round"]


def critic_is_satisfied(state: JudgeState) -> bool:
    """Tell whether the Critic's latest turn declares that there is no issue."""
    turn = last_turn(state["transcript"], "critic")
    return turn is not None and turn["value"] is True


def rounds_left(state: JudgeState, settings: DebateSettings) -> bool:
    """Tell whether the Critic may be called once more."""
    return state["round"] < settings.n


def unresolved(settings: DebateSettings) -> Literal["max_rounds", "tie_breaker", "human"]:
    """Name what ends a debate after n objections: the last score stands, or somebody else decides."""
    return "max_rounds" if settings.fallback == "last" else settings.fallback


def after_commander(state: JudgeState, _settings: DebateSettings) -> Speaks:
    """The Commander's message goes to the next speaker."""
    return "critic_speaks" if next_speaker(state) == "critic" else "scorer_speaks"


def after_scorer(state: JudgeState, settings: DebateSettings) -> Outcome:
    """The Critic hears the score while rounds are left."""
    return "another_round" if rounds_left(state, settings) else unresolved(settings)


def after_critic(state: JudgeState, _settings: DebateSettings) -> Outcome:
    """NO ISSUE ends the debate; an objection goes back to the Scorer."""
    return "no_issue" if critic_is_satisfied(state) else "objection"


def stop_reason(state: JudgeState, settings: DebateSettings) -> StopReason:
    """Say why the debate ended: the Critic had no issue, or n objections were left unresolved."""
    return "no_issue" if critic_is_satisfied(state) else unresolved(settings)


async def relay(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Have the Commander hand the latest words to the next speaker."""
    speaker = next_speaker(state)
    return await commander(state, runtime, speaker, round_of(state, speaker))


def wire(graph: ProtocolGraph[DebateSettings]) -> ProtocolGraph[DebateSettings]:
    """Add the debate's nodes and edges; DEBATE and its plain variant have them in common."""
    graph.agent("prepare", prepare(graph.protocol))
    graph.agent("commander", relay)
    graph.agent("scorer", scorer)
    graph.agent("critic", critic)
    graph.agent("tie_breaker", tie_breaker)
    graph.agent("human", human)
    graph.agent("conclude", conclude(graph.protocol, stop_reason))
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "commander")
    graph.route("commander", after_commander, {"scorer_speaks": "scorer", "critic_speaks": "critic"})
    graph.route(
        "scorer",
        after_scorer,
        {
            "another_round": "commander",
            "max_rounds": "conclude",
            "tie_breaker": "tie_breaker",
            "human": "human",
        },
    )
    graph.route("critic", after_critic, {"objection": "commander", "no_issue": "conclude"})
    graph.add_edge("tie_breaker", "conclude")
    graph.add_edge("human", "conclude")
    graph.add_edge("conclude", END)
    return graph


def build(
    settings: DebateSettings | Mapping[str, Any] | None = None, models: Models | None = None, **fields: Any
) -> ProtocolGraph[DebateSettings]:
    """Build the DEBATE graph, yours to compile.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role, ``"*"`` for all others.
        **fields: single settings, such as ``n=2`` or ``persona="plain"``; they win over ``settings``.

    Raises:
        InputError: a setting that does not exist or cannot be so.
        UsageError: a role that the protocol does not have.

    >>> graph = build(n=2, persona="moderate").compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> result["verdict"]["protocol"]
    'debate'
    """
    return wire(ProtocolGraph(protocol, DebateSettings, settings, models, fields))


graph = build().compile(name="debate")
