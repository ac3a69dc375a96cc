"""DEBATE: a Critic attacks a Scorer's score, and a Commander relays messages (Kim et al. 2024).

    prepare -> commander -> scorer -> commander -> critic --no issue--> conclude
                   ^                                  |
                   +------------- objection ----------+   at most n times, then the last score,
                                                          a tie-breaker, or a human decides

Stop reasons:

- ``no_issue``: the Critic has no objection.
- ``max_rounds``: the last score counts after n objections. It also counts if the debate outgrows a
  model's context and ``on_overflow`` is ``last``.
- ``tie_breaker`` or ``human``: after n objections, another agent or a human decides.
- ``stable``, ``predicted``, ``budget``: the debate ended before n objections, by ``stop``,
  ``n="auto"`` or ``budget_tokens``. The last score counts.

Model calls with a relaying Commander: 2i if the Critic is satisfied in round i, 2n + 1 if the
debate stays unresolved, 2n + 2 with the tie-breaker, 2i + 1 if it ends early after round i.
``commander="llm"`` adds one call to every Scorer and Critic call. With ``juror_tools``, up to
``tool_rounds`` requests for tools come before each Scorer and Critic call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Literal, Unpack

from ..nodes.commander import Recipient, commander
from ..nodes.critic import critic
from ..nodes.human import human
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.stops import EarlyStop, early_stop_of_debate
from ..nodes.runtime.verdicts import Decision, by_last_score, with_early_stop
from ..nodes.scorer import scorer
from ..nodes.tie_breaker import tie_breaker
from ..state.citations import DEBATE
from ..state.errors import ContextOverflowError
from ..state.graph_state import JudgeState
from ..state.protocol_facts import DEBATE_FACTS
from ..state.protocols import (
    CallRange,
    CallsByRole,
    Can,
    Protocol,
    Replay,
    exactly,
    with_requests_for_tools,
)
from ..state.settings import DebateSettings
from ..state.tasks import TaskKind
from ..state.transcript import last_turn
from ..state.verdict import StopReason
from ..state.verdict_warnings import OVERFLOW
from .engine.base import ProtocolGraph
from .engine.options import Bound, DebateOptions


def calls(settings: DebateSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one round if the Critic is satisfied at once, otherwise up to n objections."""
    scorer = CallRange(1, settings.most_rounds + 1)
    # A budget may not suffice for a round of criticism.
    critic = CallRange(1 if settings.budget_tokens is None else 0, settings.most_rounds)
    of_roles = {
        "commander": scorer + critic if settings.commander == "llm" else exactly(0),
        "scorer": scorer,
        "critic": critic,
        "tie_breaker": CallRange(0, 1 if settings.fallback == "tie_breaker" else 0),
    }
    return with_requests_for_tools(of_roles, settings, "scorer", "critic")


def impossible(settings: DebateSettings) -> set[str]:
    """Return the outcomes that the settings exclude: the other ways to end without agreement."""
    excluded = {"max_rounds", "tie_breaker", "human"} - {unresolved(settings)}
    if not (settings.stop or settings.n == "auto" or settings.budget_tokens):
        excluded |= {"early_end"}
    return excluded | {"context_full"} if settings.on_overflow == "error" else excluded


protocol = Protocol(
    name="debate",
    summary="a Scorer revises its score until a devil's advocate has no issue with it",
    source="DEBATE (Kim et al. 2024)",
    citation=DEBATE,
    kinds=("score", "compare"),
    roles=("commander", "scorer", "critic", "tie_breaker"),
    settings=DebateSettings,
    prompts=("shared", "debate"),
    calls=calls,
    role_kinds=DEBATE_FACTS.role_kinds,
    tool_roles=("scorer", "critic"),
    pauses_for_person=lambda settings: (
        "on_unresolved=human" if settings.fallback == "human" else ""
    ),
    may_end_unresolved=lambda settings: settings.fallback == "last",
    replay=Replay(fixed=("persona", "commander")),
    impossible=impossible,
)


def next_speaker(state: JudgeState) -> Recipient:
    """Return the next speaker: the Critic after the Scorer, otherwise the Scorer."""
    speakers = (turn["role"] for turn in reversed(state["transcript"]))
    # The Commander's messages come between those of the Scorer and the Critic.
    last = next((role for role in speakers if role in ("scorer", "critic")), None)
    return "critic" if last == "scorer" else "scorer"


def critic_is_satisfied(state: JudgeState) -> bool:
    """Return whether the Critic's latest turn declares that there is no issue."""
    turn = last_turn(state["transcript"], "critic")
    return turn is not None and turn["value"] is True


def unresolved(settings: DebateSettings) -> Literal["max_rounds", "tie_breaker", "human"]:
    """Return the stop reason of a debate after n objections, as the settings choose it."""
    return "max_rounds" if settings.fallback == "last" else settings.fallback


def after_commander(state: JudgeState, _settings: DebateSettings) -> str:
    """Route the Commander's message to the next speaker."""
    if context_is_full(state):
        return "context_full"
    return "critic_speaks" if next_speaker(state) == "critic" else "scorer_speaks"


def after_scorer(state: JudgeState, settings: DebateSettings) -> str:
    """Route to the Critic while rounds are left, otherwise to the end that the settings choose."""
    if context_is_full(state):
        return "context_full"
    if state["round"] >= settings.most_rounds:
        return unresolved(settings)
    return "early_end" if early_stop(state, settings) else "another_round"


def after_critic(state: JudgeState, _settings: DebateSettings) -> str:
    """End the debate if the Critic has no issue, otherwise return its objection to the Scorer."""
    if context_is_full(state):
        return "context_full"
    return "no_issue" if critic_is_satisfied(state) else "objection"


def early_stop(state: JudgeState, settings: DebateSettings) -> EarlyStop | None:
    """Return why the debate ends before its last round, or ``None``."""
    if state["round"] >= settings.most_rounds:
        return None
    return early_stop_of_debate(settings, state["scores"], state["transcript"])


def stop_reason(state: JudgeState, settings: DebateSettings) -> StopReason:
    """Return why the debate ended: no issue is left, it ended early, or n objections."""
    # The verdict treats a full context like the last round, with a warning of its own.
    if context_is_full(state):
        return "max_rounds"
    if critic_is_satisfied(state):
        return "no_issue"
    early = early_stop(state, settings)
    return early.reason if early else unresolved(settings)


def decide(state: JudgeState, settings: DebateSettings) -> Decision:
    """Decide by the last score, or by the agent or human that settles an unresolved debate."""
    decision = by_last_score(protocol.role_kinds)(state, settings)
    ended = not critic_is_satisfied(state) and not context_is_full(state)
    return with_early_stop(
        decision,
        early_stop(state, settings) if ended else None,
        state["transcript"],
        settings.budget_tokens,
    )


def context_is_full(state: JudgeState) -> bool:
    """Return whether a prompt exceeded a model's context, so that the last score counts."""
    return "context_full" in state["details"]


Agent = Callable[[JudgeState, AgentRuntime[DebateSettings]], Awaitable[dict[str, Any]]]


def within_context(agent: Agent) -> Agent:
    """Wrap an agent so that a call that exceeds its context ends the debate at the last score."""

    @wraps(agent)
    async def asked(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
        try:
            return await agent(state, runtime)
        except ContextOverflowError as error:
            # Before the Scorer's first turn there is no score that could count.
            if runtime.settings.on_overflow == "error" or not state["scores"]:
                raise
            return {"details": {"context_full": str(error)}, "warnings": [OVERFLOW.of()]}

    return asked


async def relay(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Have the Commander pass the latest message to the next speaker."""
    speaker = next_speaker(state)
    # A round begins with the message that calls the Critic.
    round = state["round"] + 1 if speaker == "critic" else state["round"]
    return await commander(state, runtime, speaker, round)


def wire(graph: ProtocolGraph[DebateSettings]) -> ProtocolGraph[DebateSettings]:
    """Add the nodes and edges that DEBATE and its plain variant share."""
    graph.begin(then="commander")
    graph.agent("commander", within_context(relay))
    graph.agent("scorer", within_context(scorer))
    graph.agent("critic", within_context(critic))
    graph.agent("tie_breaker", within_context(tie_breaker), then="conclude")
    graph.agent("human", human, then="conclude")
    graph.end(stop_reason, decide)
    speakers = {"scorer_speaks": "scorer", "critic_speaks": "critic", "context_full": "conclude"}
    graph.route("commander", after_commander, speakers)
    over = dict.fromkeys(("max_rounds", "early_end", "context_full"), "conclude")
    decides = {"tie_breaker": "tie_breaker", "human": "human"}
    graph.route("scorer", after_scorer, {"another_round": "commander", **over, **decides})
    answers = {"objection": "commander", "no_issue": "conclude", "context_full": "conclude"}
    graph.route("critic", after_critic, answers)
    return graph


def build(
    settings: Bound[DebateSettings] = None,
    models: Models | None = None,
    **fields: Unpack[DebateOptions],
) -> ProtocolGraph[DebateSettings]:
    """Build the DEBATE graph, not compiled.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role, ``"*"`` for all others.
        **fields: single settings, such as ``n=2`` or ``persona="plain"``; they override
            ``settings``.

    Raises:
        InputError: an unknown setting or an invalid value.
        UsageError: a role that the protocol does not have.

    >>> graph = build(n=2, persona="moderate").compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> result["verdict"]["protocol"]
    'debate'
    """
    return wire(ProtocolGraph(protocol, DebateSettings, settings, models, fields))


graph = build().compile(name="debate")
