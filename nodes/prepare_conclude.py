"""The first and the last node of every protocol: a checked task in, a verdict out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.types import Overwrite

from ..state.errors import UsageError
from ..state.graph_state import JudgeState
from ..state.tasks import TaskKind, parse_task
from ..state.transcript import usage_of_turns
from ..state.verdict import Verdict, outcome_fields


def prepare(state: JudgeState, protocol: str, kinds: Sequence[TaskKind]) -> dict[str, Any]:
    """Check the task before any model is called, and start from a clean slate (a thread may be used again).

    Raises:
        pydantic.ValidationError: a bad task; names the field.
        UsageError: a kind of task that the protocol does not take.
    """
    task = parse_task(state.get("task"))
    if task.kind not in kinds:
        raise UsageError(f"{protocol} takes no task of the kind {task.kind!r}, only {' and '.join(kinds)}")
    slate = {key: Overwrite([]) for key in ("transcript", "scores", "warnings")}
    unset = dict.fromkeys(("stop_reason", "final", "winner"))
    return {**slate, **unset, "details": Overwrite({}), "task": task.model_dump(mode="json"), "round": 0}


def conclude(state: JudgeState, protocol: str) -> dict[str, Any]:
    """Make the verdict of what the state holds: the final score, or the last one where nobody overruled it."""
    scores, final = state["scores"], state.get("final")
    outcome = outcome_fields(scores[-1] if final is None else final)
    if winner := state.get("winner"):
        outcome["winner"] = winner
    verdict = Verdict(
        protocol=protocol,
        kind=state["task"]["kind"],
        **outcome,
        stop_reason=state.get("stop_reason") or "complete",
        rounds=state["round"],
        score_by_round=scores,
        details=state["details"],
        warnings=tuple(dict.fromkeys(state["warnings"])),
        **usage_of_turns(state["transcript"]).flat(),
    )
    return {"verdict": verdict.model_dump(mode="json")}
