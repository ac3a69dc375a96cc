"""DEBATE: a Scorer, a devil's advocate who attacks the score, and a Commander between them (Kim et al. 2024).

    prepare -> commander -> scorer -> commander -> critic --no issue--> conclude
                   ^                                  |
                   +------------- objection ----------+   at most n times, then the last score,
                                                          a tie-breaker, or a human decides

Why it stops: ``no_issue`` (the Critic has none), ``max_rounds`` (n objections, the last score stands; so it does where
the debate outgrows a model's context and ``on_overflow`` is ``last``), ``tie_breaker`` or ``human`` (n objections,
somebody else decides).

Model calls with a relaying Commander: 2i when the Critic is satisfied in round i, 2n + 1 unresolved, 2n + 2 with
the tie-breaker. With ``commander="llm"`` every Scorer and Critic call takes one more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Literal, Unpack

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.commander import Recipient, commander
from ..nodes.critic import critic
from ..nodes.human import human
from ..nodes.scorer import scorer
from ..nodes.tie_breaker import tie_breaker
from ..state.errors import ContextOverflowError
from ..state.graph_state import JudgeState
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly
from ..state.settings import DebateSettings
from ..state.tasks import TaskKind
from ..state.transcript import last_turn
from ..state.verdict import StopReason
from ..state.verdict_warnings import OVERFLOW
from .base import ProtocolGraph
from .options import Bound, DebateOptions


def calls(settings: DebateSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one round if the Critic is satisfied at once, n objections at most, and who decides after them."""
    scorer, critic = CallRange(1, settings.n + 1), CallRange(1, settings.n)
    return {
        "commander": scorer + critic if settings.commander == "llm" else exactly(0),
        "scorer": scorer,
        "critic": critic,
        "tie_breaker": CallRange(0, 1 if settings.fallback == "tie_breaker" else 0),
    }


protocol = Protocol(
    name="debate",
    summary="a Scorer revises its score until a devil's advocate has no issue with it",
    source="DEBATE (Kim et al. 2024)",
    kinds=("score", "compare"),
    roles=("commander", "scorer", "critic", "tie_breaker"),
    settings=DebateSettings,
    prompts=("shared", "debate"),
    calls=calls,
    role_kinds={
        "scorer": "scores",
        "critic": "objects",
        "tie_breaker": "decides",
        "human": "decides",
        "commander": "assists",
    },
    pauses_for_person=lambda settings: "on_unresolved=human" if settings.fallback == "human" else "",
    may_end_unresolved=lambda settings: settings.fallback == "last",
    replay=Replay(fixed=("persona", "commander")),
)


def next_speaker(state: JudgeState) -> Recipient:
    """Name who speaks next: the Critic answers the Scorer, the Scorer answers the task and every objection."""
    speakers = (turn["role"] for turn in reversed(state["transcript"]))
    # The Commander's own messages lie between theirs.
    last = next((role for role in speakers if role in ("scorer", "critic")), None)
    return "critic" if last == "scorer" else "scorer"


def critic_is_satisfied(state: JudgeState) -> bool:
    """Tell whether the Critic's latest turn declares that there is no issue."""
    turn = last_turn(state["transcript"], "critic")
    return turn is not None and turn["value"] is True


def unresolved(settings: DebateSettings) -> Literal["max_rounds", "tie_breaker", "human"]:
    """Name what ends a debate after n objections: the last score stands, or somebody else decides."""
    return "max_rounds" if settings.fallback == "last" else settings.fallback


def after_commander(state: JudgeState, _settings: DebateSettings) -> str:
    """The Commander's message goes to the next speaker."""
    if context_is_full(state):
        return "context_full"
    return "critic_speaks" if next_speaker(state) == "critic" else "scorer_speaks"


def after_scorer(state: JudgeState, settings: DebateSettings) -> str:
    """The Critic hears the score while rounds are left."""
    if context_is_full(state):
        return "context_full"
    return "another_round" if state["round"] < settings.n else unresolved(settings)


def after_critic(state: JudgeState, _settings: DebateSettings) -> str:
    """NO ISSUE ends the debate; an objection goes back to the Scorer."""
    if context_is_full(state):
        return "context_full"
    return "no_issue" if critic_is_satisfied(state) else "objection"


def stop_reason(state: JudgeState, settings: DebateSettings) -> StopReason:
    """Say why the debate ended: the Critic had no issue, or n objections were left unresolved."""
    # To the reader of a verdict it is as if no round were left; a warning tells the difference.
    if context_is_full(state):
        return "max_rounds"
    return "no_issue" if critic_is_satisfied(state) else unresolved(settings)


def context_is_full(state: JudgeState) -> bool:
    """Tell whether an agent's prompt did not fit into its model's context, and the last score is to stand."""
    return "context_full" in state["details"]


Agent = Callable[[JudgeState, AgentRuntime[DebateSettings]], Awaitable[dict[str, Any]]]


def within_context(agent: Agent) -> Agent:
    """Return the agent, whose call that does not fit into the context leaves the debate at its last score."""

    @wraps(agent)
    async def asked(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
        try:
            return await agent(state, runtime)
        except ContextOverflowError as error:
            # Before the Scorer's first turn there is no score that could stand.
            if runtime.settings.on_overflow == "error" or not state["scores"]:
                raise
            return {"details": {"context_full": str(error)}, "warnings": [OVERFLOW.of()]}

    return asked


async def relay(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Have the Commander hand the latest words to the next speaker."""
    speaker = next_speaker(state)
    # A round begins when the Critic is called, and so with the message that calls it.
    round = state["round"] + 1 if speaker == "critic" else state["round"]
    return await commander(state, runtime, speaker, round)


def wire(graph: ProtocolGraph[DebateSettings]) -> ProtocolGraph[DebateSettings]:
    """Add the debate's nodes and edges; DEBATE and its plain variant have them in common."""
    graph.begin(then="commander")
    graph.agent("commander", within_context(relay))
    graph.agent("scorer", within_context(scorer))
    graph.agent("critic", within_context(critic))
    graph.agent("tie_breaker", within_context(tie_breaker), then="conclude")
    graph.agent("human", human, then="conclude")
    graph.end(stop_reason)
    speakers = {"scorer_speaks": "scorer", "critic_speaks": "critic", "context_full": "conclude"}
    graph.route("commander", after_commander, speakers)
    over = dict.fromkeys(("max_rounds", "context_full"), "conclude")
    decides = {"tie_breaker": "tie_breaker", "human": "human"}
    graph.route("scorer", after_scorer, {"another_round": "commander", **over, **decides})
    answers = {"objection": "commander", "no_issue": "conclude", "context_full": "conclude"}
    graph.route("critic", after_critic, answers)
    return graph


def build(
    settings: Bound[DebateSettings] = None, models: Models | None = None, **fields: Unpack[DebateOptions]
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
