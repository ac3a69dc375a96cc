"""Make the first and the last node of every protocol: ``prepare`` checks the task, ``conclude`` makes the verdict.

Both are made for a protocol where its graph is wired::

    graph.agent("prepare", prepare(protocol))
    graph.agent("conclude", conclude(protocol, stop_reason))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langgraph.types import Overwrite

from ..state.errors import UsageError
from ..state.graph_state import JudgeState
from ..state.tasks import TaskKind, parse_task
from ..state.transcript import usage_of_turns
from ..state.verdict import StopReason, Verdict, outcome_fields
from .agent_runtime import AgentRuntime

Node = Callable[[JudgeState, AgentRuntime[Any]], Awaitable[dict[str, Any]]]


class JudgesTasks(Protocol):
    """Name what the two nodes need to know of a protocol: its name, and the kinds of task that it takes."""

    @property
    def name(self) -> str: ...
    @property
    def kinds(self) -> tuple[TaskKind, ...]: ...


def prepare(protocol: JudgesTasks) -> Node:
    """Make the node that checks the task before any model is called and empties the rest of the state.

    The node raises:
        pydantic.ValidationError: a bad task; names the field.
        UsageError: a kind of task that the protocol does not take.
    """

    async def prepare_task(state: JudgeState, _runtime: AgentRuntime[Any]) -> dict[str, Any]:
        task = parse_task(state.get("task"))
        if task.kind not in protocol.kinds:
            kinds = " and ".join(protocol.kinds)
            raise UsageError(f"{protocol.name} takes no task of the kind {task.kind!r}, only {kinds}")
        # A thread may be used again: reducers would append to what its last run left behind.
        empty = {key: Overwrite([]) for key in ("transcript", "scores", "warnings")}
        unset = dict.fromkeys(("final", "winner"))
        return {**empty, **unset, "details": Overwrite({}), "task": task.model_dump(mode="json"), "round": 0}

    return prepare_task


def complete(_state: JudgeState, _settings: Any) -> StopReason:
    """Return the stop reason of a protocol that nothing cuts short."""
    return "complete"


def conclude(protocol: JudgesTasks, stop_reason: Callable[[JudgeState, Any], StopReason] = complete) -> Node:
    """Make the node that builds the verdict from the state: the final score, or the last one if none overruled it.

    Args:
        protocol: the protocol that the verdict names.
        stop_reason: returns why the protocol ended, from the state and the settings alone.
    """

    async def build_verdict(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        scores, final = state["scores"], state.get("final")
        outcome = outcome_fields(scores[-1] if final is None else final)
        # A vote may decide for the answer with the lower score, and then overrules the winner by scores.
        if winner := state.get("winner"):
            outcome["winner"] = winner
        verdict = Verdict(
            protocol=protocol.name,
            kind=state["task"]["kind"],
            **outcome,
            stop_reason=stop_reason(state, runtime.settings),
            rounds=state["round"],
            score_by_round=scores,
            details=state["details"],
            # A model's warnings come with each of its turns; each is told once, in the order of its first turn.
            warnings=tuple(dict.fromkeys(state["warnings"])),
            **usage_of_turns(state["transcript"]).flat(),
        )
        return {"verdict": verdict.model_dump(mode="json")}

    return build_verdict
