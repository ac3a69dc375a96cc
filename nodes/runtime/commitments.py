"""The forms of a judge that may be unsure, and the verdict or abstention that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...state.errors import Fault, InputError, ReplyError
from ...state.graph_state import JudgeState
from ...state.settings import CommitFirstSettings
from ...state.tasks import CompareTask, ScoreTask
from ...state.transcript import last_turn
from ...state.verdict import StopReason
from ..replies.declarations import declares_unsure
from .output_schemas import OutputSchema, PairSchema, ScoreSchema, Value
from .verdicts import Decision

_UNSURE = "true only if the own answer is no basis for a verdict; the score then does not count."


def check_task(_settings: CommitFirstSettings, task: ScoreTask | CompareTask) -> None:
    """Check that a task has a question to answer first.

    Raises:
        InputError: a rating without a source.
    """
    if isinstance(task, ScoreTask) and task.source is None:
        problem = "is missing: commit_first writes an answer of its own to it before it judges"
        raise InputError.from_faults("task", [Fault("missing", ("task", "source"), problem, None)])


class _OrUnsure(ScoreSchema):
    """A score that may be replaced by the declaration UNSURE (value None)."""

    def schema(self) -> dict[str, Any]:
        whole = super().schema()
        fields = dict(whole["properties"])
        reasoning = fields.pop("reasoning")
        unsure = {"type": "boolean", "description": _UNSURE}
        properties = {"reasoning": reasoning, "unsure": unsure, **fields}
        return {**whole, "properties": properties, "required": list(properties)}

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        unsure = fields.get("unsure", False)
        if not isinstance(unsure, bool):
            raise ReplyError("The field unsure is not true or false.", raw, "missing")
        if unsure:
            reasons = fields.get("reasoning")
            words = reasons.strip() if isinstance(reasons, str) else ""
            return f"{words}\nUNSURE".strip(), None
        return super().from_fields(fields, raw)

    def from_text(self, text: str) -> Value:
        unsure = declares_unsure(text, shown=self.shown)
        try:
            value = super().from_text(text)
        except ReplyError as error:
            # Without a score, a reply looks as if it refused or broke off.
            if unsure and error.fault in ("missing", "refused", "cut_off"):
                return None
            raise
        if unsure:
            problem = "The reply gives a score and declares UNSURE as well."
            raise ReplyError(problem, text, "contradictory")
        return value


class ScoreOrUnsure(_OrUnsure):
    """Request one number on a scale, or UNSURE."""

    template: ClassVar[str] = "commit_first/form_score"


class PairOrUnsure(_OrUnsure, PairSchema):
    """Request a score for each of two answers, or UNSURE."""

    template: ClassVar[str] = "commit_first/form_pair"


def form_of(task: ScoreTask | CompareTask) -> OutputSchema:
    """Return the form of the judge's reply: a score or a pair of scores, or UNSURE."""
    if isinstance(task, CompareTask):
        return PairOrUnsure(task.low, task.high)
    aspect = task.aspect
    return ScoreOrUnsure(aspect.low, aspect.high, aspect.name, aspect.choices)


def after_judge(state: JudgeState, _settings: CommitFirstSettings) -> str:
    """Abstain if the judge declared that it is unsure."""
    judged = last_turn(state["transcript"], "scorer")
    return "unsure" if judged is None or judged["value"] is None else "sure"


def why(state: JudgeState, settings: CommitFirstSettings) -> StopReason:
    """Return why the judgement ended: it is complete, or the judge abstained."""
    return "abstained" if after_judge(state, settings) == "unsure" else "complete"


def by_judge(state: JudgeState, settings: CommitFirstSettings) -> Decision:
    """Decide by the judge's score; an abstention has none. The details have its own answer."""
    judged = last_turn(state["transcript"], "scorer")
    own = last_turn(state["transcript"], "committer")
    details = {"own_answer": own["content"] if own else ""}
    unsure = after_judge(state, settings) == "unsure"
    return Decision(None if unsure else state["scores"][-1], judged, details=details)
