"""What everybody in the courtroom has in common: the six criteria, the case, the record (appendix C)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..state.graph_state import JudgeState
from ..state.transcript import Score, Turn
from .hearing import Answer
from .prompting import Prompt, Prompts
from .showing import task_of


@dataclass(frozen=True)
class Criterion:
    """One of the six things that each answer is given points for."""

    name: str
    meaning: str


CRITERIA = (
    Criterion("Relevance", "it keeps to the question."),
    Criterion("Accuracy", "what it says is right, and rests on credible sources."),
    Criterion("Depth", "it analyses thoroughly, and the case for it is complete."),
    Criterion("Clarity", "it is clearly put, and one thing follows from another."),
    Criterion("Reasoning", "its reasons are strong, and facts support them."),
    Criterion("Answering the opponent", "it stands up to what the other side has to say, and meets it."),
)
LOWEST, HIGHEST = 1, 20
"""Points on one criterion."""

LOWEST_TOTAL, HIGHEST_TOTAL = LOWEST * len(CRITERIA), HIGHEST * len(CRITERIA)
SIDES = (1, 2)


def court_prompt(state: JudgeState, prompts: Prompts, own: str, record: Iterable[Turn] | None = ()) -> Prompt:
    """Case, criteria and record as everybody in court sees them, then what is the agent's own.

    ``record=None`` is a case without advocates.
    """
    shared = [_case(state, prompts, debated=record is not None)]
    turns = list(record or ())
    if turns:
        shared.append(prompts.render("courtroom/log", turns=turns))
    return Prompt(system=prompts.render("shared/system"), shared="\n\n".join(shared), own=own)


def court_details(**more: Any) -> dict[str, Any]:
    """The particulars of a call as metadata; totals are what is scored unless ``more`` says otherwise."""
    return {"kind": "compare", "low": LOWEST_TOTAL, "high": HIGHEST_TOTAL, **more}


def heard(answers: Sequence[Answer]) -> dict[str, Any]:
    """The state update of several answers at once."""
    return {
        "transcript": [answer.turn for answer in answers],
        "warnings": [warning for answer in answers for warning in answer.warnings],
    }


def totals_so_far(scores: Sequence[Score]) -> str:
    """Earlier totals, round by round, for a prompt.

    >>> totals_so_far([[95.0, 87.0], [90.0, 91.5]])
    '(95, 87), (90, 91.5)'
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return ", ".join(f"({first:g}, {second:g})" for first, second in pairs)


def side_of(turn: Turn) -> int:
    """Which answer a turn is about: ``advocate_2_3`` and ``aggregator_2`` speak for answer 2; 0 is neither.

    >>> from ..state.transcript import turn_without_model
    >>> side_of(turn_without_model(1, "advocate_2_3", "advocate", "Aye."))
    2
    """
    _, *numbers = turn["agent"].split("_")
    return int(numbers[0]) if numbers else 0


def _case(state: JudgeState, prompts: Prompts, debated: bool) -> str:
    task = task_of(state)
    values = {name: getattr(task, name) for name in type(task).model_fields}
    scale = {"low": LOWEST, "high": HIGHEST, "total_low": LOWEST_TOTAL, "total_high": HIGHEST_TOTAL}
    return prompts.render("courtroom/case", **{**values, **scale, "criteria": CRITERIA, "debated": debated})
