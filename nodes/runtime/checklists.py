"""A checklist: the groups of a rubric's criteria, the form of their answers, and the score.

Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

from ...state.errors import Fault, InputError, ReplyError, UsageError
from ...state.graph_state import JudgeState
from ...state.rubrics import (
    ANSWERS,
    Criterion,
    CriterionAnswer,
    RubricScore,
    check_rubric,
    rubric_score,
)
from ...state.settings import ChecklistSettings
from ...state.tasks import CompareTask, ScoreTask
from ...state.transcript import Score, Turn
from ...state.verdict_warnings import UNQUOTED
from ..replies.checks import answer_of, check_quotations, quoted, read_checks, read_quotations
from .output_schemas import OutputSchema, Value, object_schema, prose, read_words, written_choices
from .prompt_context import task_of
from .verdicts import Decision

LONGEST_QUOTATION = 300
"""Characters: a sentence or two."""


def check_task(settings: ChecklistSettings, task: ScoreTask | CompareTask) -> None:
    """Check that a task has a rubric that can be checked with these settings.

    Raises:
        InputError: no rubric, one that gives no score, an aspect that allows only some scores, or
            too many criteria for one call.
    """
    assert isinstance(task, ScoreTask)
    aspect = task.aspect
    where = ("task", "aspect", "rubric")
    problem = ""
    if not aspect.rubric:
        problem = (
            f"is missing: add criteria with points to the aspect {aspect.name} (rubric: in its "
            "file), or to each row in a column rubric"
        )
    elif aspect.choices:
        where = ("task", "aspect", "choices")
        problem = (
            f"allow only the scores {written_choices(aspect.choices)}, but a rubric gives scores "
            "between them: use another protocol, or an aspect without choices"
        )
    elif settings.group == "all" and len(aspect.rubric) > settings.most_at_once:
        problem = (
            f"has {len(aspect.rubric)} criteria, and one call takes at most "
            f"{settings.most_at_once}: set group={settings.most_at_once} or less"
        )
    else:
        try:
            check_rubric(aspect.rubric)
        except ValueError as error:
            problem = str(error)
    if problem:
        raise InputError.from_faults("task", [Fault("rubric", where, problem, None)])


class Group(NamedTuple):
    """The criteria that one checker answers.

    Attributes:
        agent: the checker's name.
        criteria: its criteria.
    """

    agent: str
    criteria: Sequence[Criterion]


def groups(task: ScoreTask | CompareTask, settings: ChecklistSettings) -> list[Group]:
    """Return the criteria of each checker, in the rubric's order."""
    assert isinstance(task, ScoreTask)
    rubric = task.aspect.rubric
    size = len(rubric) if settings.group == "all" else settings.group
    parts = [rubric[start : start + size] for start in range(0, len(rubric), size)]
    return [Group(f"checker_{number}", part) for number, part in enumerate(parts, start=1)]


def checkers(state: JudgeState, settings: ChecklistSettings) -> list[str]:
    """Return the names of all checkers, which are asked at the same time."""
    return [group.agent for group in groups(task_of(state), settings)]


@dataclass(frozen=True)
class ChecksSchema(OutputSchema):
    """Request an answer and a quotation for each criterion; the value lists the answers.

    Attributes:
        count: the number of criteria.
        candidate: the text that quotations must come from.
    """

    name: ClassVar[str] = "checks"
    template: ClassVar[str] = "checklist/form_checks"

    count: int
    # The request does not depend on it, and requests are cached.
    candidate: str = field(compare=False)

    def schema(self) -> dict[str, Any]:
        fields: dict[str, dict[str, Any]] = {"reasoning": prose("Reasons, criterion by criterion.")}
        for number in range(1, self.count + 1):
            about = (
                f"The candidate's words that decide criterion {number}; empty if there are none."
            )
            fields[f"quotation_{number}"] = {**prose(about), "maxLength": LONGEST_QUOTATION}
            fields[f"answer_{number}"] = {
                "type": "string",
                "enum": [*ANSWERS],
                "description": f"Whether the candidate meets criterion {number}.",
            }
        return object_schema("checks_reply", **fields)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        answers: list[CriterionAnswer] = []
        for number in range(1, self.count + 1):
            answer = answer_of(str(fields.get(f"answer_{number}", "")))
            if answer is None:
                problem = f"The field answer_{number} is none of {', '.join(ANSWERS)}."
                raise ReplyError(problem, raw, "missing")
            answers.append(answer)
        numbers = range(1, self.count + 1)
        quotations = [quoted(read_words(fields, f"quotation_{number}")) for number in numbers]
        check_quotations(quotations, self.candidate, raw)
        lines = [read_words(fields, "reasoning")]
        for number, quotation, answer in zip(numbers, quotations, answers, strict=True):
            lines += [f"Quotation {number}: {quotation or 'none'}", f"Criterion {number}: {answer}"]
        return "\n".join(lines).strip(), SEPARATOR.join(answers)

    def from_text(self, text: str) -> Value:
        answers = read_checks(text, self.count, shown=self.shown)
        check_quotations(read_quotations(text, self.count), self.candidate, text)
        return SEPARATOR.join(answers)

    def limits(self) -> dict[str, Any]:
        return {"count": self.count}


SEPARATOR = ", "
"""The text between the answers in a turn's value."""


class CheckedCriterion(NamedTuple):
    """A criterion with its answer and the quotation for it, which may be empty."""

    criterion: Criterion
    answer: CriterionAnswer
    quotation: str


def checked(transcript: Sequence[Turn], task: ScoreTask) -> list[CheckedCriterion] | None:
    """Return all criteria with their answers; None while a checker has not answered.

    Raises:
        UsageError: a person has changed the value of a turn into something that is no answer.
    """
    rubric = task.aspect.rubric
    turns = {turn["agent"]: turn for turn in transcript if turn["role"] == "checker"}
    answers: list[tuple[CriterionAnswer, str]] = []
    for agent in sorted(turns, key=lambda agent: int(agent.rpartition("_")[2])):
        turn = turns[agent]
        value = str(turn["value"])
        parts = value.split(SEPARATOR)
        of_turn = [answer for part in parts if (answer := answer_of(part)) is not None]
        if len(of_turn) < len(parts) or len(answers) + len(of_turn) > len(rubric):
            raise UsageError(
                f"the turn {turn['id']} has the value {value!r}: it takes {', '.join(ANSWERS)}, "
                "one for each of its criteria, separated by commas"
            )
        quotations = read_quotations(turn["content"], len(of_turn))
        answers += zip(of_turn, quotations, strict=True)
    if len(answers) < len(rubric):
        return None
    return [CheckedCriterion(c, *answer) for c, answer in zip(rubric, answers, strict=True)]


def score_of_checks(found: Sequence[CheckedCriterion], task: ScoreTask) -> RubricScore | None:
    """Return the score of answered criteria; None if no criterion with positive points applies."""
    rubric = [each.criterion for each in found]
    answers = [each.answer for each in found]
    return rubric_score(rubric, answers, task.aspect.low, task.aspect.high)


def scores_of_tally(state: JudgeState) -> list[Score]:
    """Return the score of the only round; an edited answer counts, and so does an edited tally."""
    tallies = [turn for turn in state["transcript"] if turn["role"] == "tally"]
    if not tallies:
        return []
    value = tallies[-1]["value"]
    if tallies[-1].get("edited") and isinstance(value, int | float):
        return [value]
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    found = checked(state["transcript"], task)
    result = score_of_checks(found, task) if found else None
    return [result.score] if result else []


def by_tally(state: JudgeState, _settings: ChecklistSettings) -> Decision:
    """Decide by the tally's score; the details list every criterion with its answer.

    Raises:
        UsageError: edited answers leave no criterion with positive points.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    if not state["scores"]:
        raise UsageError(
            "the edited answers leave no criterion with points above 0 that applies: edit the "
            "value of the turn tally:1 as well"
        )
    tally = next(turn for turn in reversed(state["transcript"]) if turn["role"] == "tally")
    found = checked(state["transcript"], task) or []
    result = score_of_checks(found, task)
    if result is not None and not tally.get("edited"):
        tally = cast("Turn", {**tally, "content": tally_words(found, result)})
    met = [each for each in found if each.answer == "yes"]
    unquoted = sum(not each.quotation for each in met)
    criteria = [
        {
            **each.criterion.model_dump(mode="json", exclude_defaults=True),
            "points": each.criterion.points,
            "answer": each.answer,
            "quotation": each.quotation,
        }
        for each in found
    ]
    details: dict[str, Any] = {"criteria": criteria}
    if result is not None:
        details |= {"points": result.points, "possible": result.possible, "share": result.share}
    warnings = [UNQUOTED.of(unquoted=unquoted, met=len(met))] if unquoted else []
    return Decision(state["scores"][-1], tally, details=details, warnings=warnings)


def tally_words(found: Sequence[CheckedCriterion], result: RubricScore) -> str:
    """Return the tally in words: each criterion with its answer and points, then the sum."""
    lines = []
    for each in found:
        points = f"{each.criterion.points:+g}" if each.answer == "yes" else "0"
        outcome = each.answer if each.answer == "not applicable" else f"{each.answer}, {points}"
        quotation = f' ("{each.quotation}")' if each.quotation else ""
        lines.append(f"{each.criterion.criterion}: {outcome}{quotation}")
    lines.append(f"Points: {result.points:g} of {result.possible:g}")
    return "\n".join(lines)
