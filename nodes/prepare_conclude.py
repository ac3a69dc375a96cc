"""Make the first and the last node of every protocol: ``prepare`` checks the task, ``conclude`` makes the verdict.

Both are made for a protocol where its graph is wired::

    graph.agent("prepare", prepare(protocol))
    graph.agent("conclude", conclude(protocol, stop_reason))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.role_kinds import RoleKind
from ..state.settings import Settings
from ..state.tasks import TaskKind, parse_task
from ..state.transcript import Turn, usage_of_turns
from ..state.verdict import StopReason, Verdict, outcome_fields
from .agent_runtime import AgentRuntime
from .answer_orders import number_of_orders, turns_in_order
from .decision import Decide, Decision, by_last_score
from .replies.shown import verdict_warnings
from .round_scores import scores_of_roles

Node = Callable[[JudgeState, AgentRuntime[Any]], Awaitable[dict[str, Any]]]
Weigh = Callable[[JudgeOutput, JudgeOutput], Verdict]
"""A function that makes one verdict of both orders' outcomes; the second is already in the task's order."""


class JudgesTasks(Protocol):
    """Name what the two nodes need to know of a protocol."""

    @property
    def name(self) -> str: ...
    @property
    def kinds(self) -> tuple[TaskKind, ...]: ...
    @property
    def role_kinds(self) -> Mapping[str, RoleKind]: ...


Details = Callable[[Any], Awaitable[dict[str, Any]]]
"""Returns, from the settings, the details with which a protocol begins."""


async def no_details(_settings: Settings) -> dict[str, Any]:
    """Return no details: most protocols have none before they begin."""
    return {}


def prepare(protocol: JudgesTasks, details: Details = no_details) -> Node:
    """Make the node that checks the task before any model is called and empties the rest of the state.

    Args:
        protocol: whose task it is.
        details: returns the details to begin with, from the settings.

    The node raises:
        UsageError: a bad task (names the field), or a kind of task that the protocol does not take.
    """

    async def prepare_task(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        task = parse_task(state.get("task"))
        if task.kind not in protocol.kinds:
            kinds = " and ".join(protocol.kinds)
            raise UsageError(f"{protocol.name} takes no task of the kind {task.kind!r}, only {kinds}")
        # A thread may be used again: the reducers would add to what its last run left behind, and None empties them.
        empty = dict.fromkeys(("transcript", "warnings", "details", "round"))
        begun: dict[str, Any] = {
            "task": task.model_dump(mode="json"),
            "orders": [*range(1, number_of_orders(runtime.settings, task.kind) + 1)],
            "scores": [],
            "verdict": None,
        }
        if found := await details(runtime.settings):
            begun["details"] = found
        return {**empty, **begun}

    return prepare_task


def _verdicts_in(task: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning for each text of the task that states a verdict itself."""
    fields = ("source", "fact", "candidate", "question", "reference", "answer_1", "answer_2")
    return verdict_warnings({name.replace("_", " "): task.get(name) for name in fields})


def complete(_state: JudgeState, _settings: Any) -> StopReason:
    """Return the stop reason of a protocol that nothing cuts short."""
    return "complete"


def conclude(
    protocol: JudgesTasks,
    stop_reason: Callable[[JudgeState, Any], StopReason] = complete,
    decide: Decide | None = None,
    weigh: Weigh | None = None,
) -> Node:
    """Make the node that builds the verdict from the turns in the state.

    Args:
        protocol: the protocol that the verdict names.
        stop_reason: returns why the protocol ended, from the state and the settings alone.
        decide: returns what the turns come to; by default the score of the last round, unless a turn of a role that
            ``decides`` overrules it.
        weigh: makes one verdict of two where a comparison was held in both orders of the answers.
    """
    decide = decide or by_last_score(protocol.role_kinds)
    scores_by_round = scores_of_roles(protocol.role_kinds)

    def verdict_of(state: JudgeState, settings: Any) -> Verdict:
        decision = decide(state, settings)
        return Verdict(
            protocol=protocol.name,
            kind=state["task"]["kind"],
            **_outcome(decision),
            stop_reason=stop_reason(state, settings),
            rounds=state["round"],
            score_by_round=state["scores"],
            details=decision.details,
            # A model's warnings come with each of its turns; each is told once, in the order of its first turn.
            warnings=tuple(
                dict.fromkeys([*state["warnings"], *decision.warnings, *_verdicts_in(state["task"])])
            ),
            **_explanation(decision.turn),
            **usage_of_turns(state["transcript"]).flat(),
        )

    def outcome_of_order(state: JudgeState, order: int, settings: Any) -> JudgeOutput:
        """Return what the turns of one order come to by themselves; their values are in the task's order."""
        alone: JudgeState = {**state, "transcript": turns_in_order(state, order)}
        verdict = verdict_of({**alone, "scores": scores_by_round(alone)}, settings)
        return JudgeOutput(verdict=verdict.model_dump(mode="json"), transcript=alone["transcript"])

    async def build_verdict(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        if weigh is None or len(state["orders"]) < 2:
            verdict = verdict_of(state, runtime.settings)
        else:
            verdict = weigh(*(outcome_of_order(state, order, runtime.settings) for order in (1, 2)))
        return {"verdict": verdict.model_dump(mode="json")}

    return build_verdict


def _outcome(decision: Decision) -> dict[str, Any]:
    outcome = outcome_fields(decision.final)
    # A vote may decide for the answer with the lower score, and then overrules the winner by scores.
    return {**outcome, "winner": decision.winner} if decision.winner else outcome


def _explanation(turn: Turn | None) -> dict[str, Any]:
    if turn is None:
        return {}
    words = turn["content"].strip() or f"{turn['agent']} gave {turn['value']} and no reasons."
    return {"explanation": words, "explained_by": turn.get("id")}
