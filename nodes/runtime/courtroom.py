"""Shared by the courtroom protocols: the six criteria, prompts, and reading of points and turns.

In this order: asking an agent; ``read_points`` (the points on each criterion in a judge's reply);
the turns that each agent is shown; the schemas that request 1 to 20 points on each criterion. The
package adds up the points of a JSON reply. In a text reply, the judge states each total itself, as
in the paper, and these totals count.

A task with more than two answers has them in the list ``answers`` (``graphs/wrappers/court.py``).
Its templates are in the folder ``court``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from ...state.errors import ReplyError, UsageError
from ...state.graph_state import JudgeState
from ...state.media import Media
from ...state.panels import without_failed
from ...state.settings import REPLY_LIMITS
from ...state.tasks import shown_fields
from ...state.transcript import Score, Turn
from ..common.delimiters import fence
from ..models.capabilities import LIMIT
from ..replies.own_words import own_words, plain
from ..replies.several import read_choice, read_scores
from .agent_runtime import AgentRuntime, Question
from .output_schemas import (
    OutputSchema,
    PairSchema,
    ScoreSchema,
    TextSchema,
    Value,
    VoteSchema,
    number,
    object_schema,
    prose,
    read_number,
    read_words,
)
from .prompt_context import Instruction, Prompts, discussion, task_of, with_all_texts


class Criterion(NamedTuple):
    """One of the six criteria on which each answer gets points.

    Attributes:
        name: its name.
        meaning: its meaning, for the prompt.
    """

    name: str
    meaning: str


CRITERIA = (
    Criterion("Relevance", "it keeps to the question."),
    Criterion("Accuracy", "what it says is right, and rests on credible sources."),
    Criterion("Depth", "it analyses thoroughly, and the case for it is complete."),
    Criterion("Clarity", "it is clearly put, and one thing follows from another."),
    Criterion("Reasoning", "its reasons are strong, and facts support them."),
    Criterion(
        "Answering the opponent", "it stands up to what the other side has to say, and meets it."
    ),
)
CRITERIA_WITHOUT_OPPONENT = (
    *CRITERIA[:-1],
    Criterion("Answering objections", "it stands up to what can be said against it, and meets it."),
)
"""The six criteria for a judge if there are no advocates."""

LOWEST = 1
HIGHEST = 20
"""The fewest and the most points on one criterion."""
LOWEST_TOTAL = LOWEST * len(CRITERIA)
HIGHEST_TOTAL = HIGHEST * len(CRITERIA)
SIDES = (1, 2)


def answers_of(state: JudgeState) -> int:
    """Return the number of answers in a case.

    >>> answers_of({"task": {"answer_1": "Yes.", "answer_2": "No."}})
    2
    >>> answers_of({"task": {"answers": ["Yes.", "No.", "Perhaps."]}})
    3
    """
    return len(state["task"].get("answers") or SIDES)


def is_rating(state: JudgeState) -> bool:
    """Return whether the task is to rate one text, which MORE's teams argue about."""
    return bool(state["task"]["kind"] == "score")


async def ask_in_court(
    state: JudgeState,
    runtime: AgentRuntime[Any],
    agent: str,
    own: Instruction,
    record: Iterable[Turn] | None = (),
    form: OutputSchema | None = None,
    **details: Any,
) -> dict[str, Any]:
    """Ask an agent, and warn if its points do not add up to its totals.

    Its prompt contains the case, the criteria and the record as for all agents, then its own
    instruction.

    Args:
        state: the graph's state.
        runtime: settings, prompts and models.
        agent: the agent's name, which begins with its role.
        own: its own instruction.
        record: the turns that it is shown, failed ones excepted; None for a judge without other agents.
        form: the form of the reply; plain text by default.
        details: metadata of the call, whose scale is that of totals by default; ``round`` is the
            round of the turn, by default the state's.
    """
    prompts = runtime.prompts
    alone = record is None
    case, media = _case(state, prompts, alone)
    shared = [case]
    if turns := without_failed(record or ()):
        shared.append(prompts.render("courtroom/log", turns=turns))
    prompt = discussion(media, prompts, shared, own, alone)
    role = agent.partition("_")[0]
    asked = form or TextSchema()
    round = details.pop("round", state["round"])
    about = {"kind": "compare", "low": LOWEST_TOTAL, "high": HIGHEST_TOTAL, **details}
    parameters: dict[str, Any] = {}
    if isinstance(asked, SeveralTotalsSchema):
        limit = REPLY_LIMITS["*"] + TOKENS_A_FURTHER_ANSWER * (asked.answers - len(SIDES))
        if runtime.model_of(role, agent).is_limited_by_default:
            parameters = {LIMIT: limit}
    answer = await runtime.ask(Question(agent, role, round, prompt, asked, about, parameters))
    differ = sums_that_differ(answer.turn) if isinstance(asked, _ByPoints) else []
    return {**answer.update, "warnings": [*answer.warnings, *differ]}


TOKENS_A_FURTHER_ANSWER = 256
"""The further tokens of a judge's reply for each answer after the second: reasons and points."""


def _case(state: JudgeState, prompts: Prompts, alone: bool) -> tuple[str, Media]:
    """Return the case in words, which all agents share, and its images and files.

    Raises:
        UsageError: a replaced template leaves out one of the texts.
    """
    values: dict[str, Any] = {
        "low": LOWEST,
        "high": HIGHEST,
        "total_low": LOWEST_TOTAL,
        "total_high": HIGHEST_TOTAL,
        "criteria": CRITERIA_WITHOUT_OPPONENT if alone else CRITERIA,
    }
    if answers_of(state) > len(SIDES):
        texts = {name: text for name, text in state["task"].items() if name != "kind"}
        texts["answers"] = tuple(texts["answers"])
        shown = prompts.render("court/case", **values, **texts)
        labelled = {f"answer {at}": text for at, text in enumerate(texts["answers"], start=1)}
        labelled |= {name: text for name, text in texts.items() if isinstance(text, str)}
        for label, text in labelled.items():
            if fence(label, text) not in shown:
                raise UsageError(f"template court/case.md does not show the {label} of the case")
        return shown, {}
    task = task_of(state)
    # The task's own scale is not that of a courtroom.
    values = {**{name: getattr(task, name) for name in shown_fields(type(task))}, **values}
    shown = prompts.render("courtroom/case", **values, debated=not alone)
    return with_all_texts(shown, task, "courtroom/case"), task.media


def totals_so_far(scores: Sequence[Score]) -> str:
    """Return earlier totals round by round, for a prompt.

    >>> totals_so_far([[95.0, 87.0], [90.0, 91.5]])
    '(95, 87), (90, 91.5)'
    """
    rounds = [totals for totals in scores if isinstance(totals, list)]
    return ", ".join(f"({', '.join(f'{total:g}' for total in totals)})" for totals in rounds)


def mean_totals(scores: Sequence[Score]) -> list[float]:
    """Return the mean of each answer's totals over all rounds.

    >>> mean_totals([[90, 80], [70, 60]]), mean_totals([[90, 80, 6]])
    ([80.0, 70.0], [90.0, 80.0, 6.0])
    """
    rounds = [totals for totals in scores if isinstance(totals, list)]
    return [sum(of_answer) / len(rounds) for of_answer in zip(*rounds, strict=True)]


def rounds_and_totals(state: JudgeState, rounds: int) -> dict[str, Any]:
    """Return the template variables for the course of the debate: round, rounds, earlier totals."""
    return {"round": state["round"], "rounds": rounds, "totals": totals_so_far(state["scores"])}


def side_of_agent(agent: str) -> int:
    """Return the answer that an agent of this name speaks for, 0 for neither.

    >>> side_of_agent("advocate_2_3"), side_of_agent("aggregator_1"), side_of_agent("judge")
    (2, 1, 0)
    """
    _, *numbers = agent.split("_")
    return int(numbers[0]) if numbers else 0


Points = list[list[float] | None]
"""The six points of each answer in the order of the criteria, or None if one is missing."""
# Judges' names for the criteria, in the order of ``CRITERIA``.
_CALLED = (
    re.compile("relevan"),  # relevance, relevancy, relevant
    re.compile("accura"),  # accuracy, accurate
    re.compile("depth|complete"),  # depth, completeness
    re.compile("clarity|clear"),  # clarity, clearness
    re.compile("reason|logic|factual"),  # reasoning, logic, factual support
    re.compile(
        "opponent|objection|rebut|other side"
    ),  # answering the opponent, objections, rebuttal
)
_NUMBER = r"(\d{1,3}(?:\.\d{1,2})?)(?: ?/ ?20)?"
# _LINE matches ``- **2. Accuracy: [17, 12]``; its groups are the criterion and the text after the
# colon. _ONE matches ``18`` and ``18/20``, but not the beginning of ``1805`` or ``18.55.2``.
_LINE = re.compile(r"[^\w\n]{0,12}(?:\d{1,2}[.)] ?)?[^\w\n]{0,4}([A-Za-z][^:=\n]{0,80})[:=](.*)")
_ONE = re.compile(rf"[^\w\[(]{{0,6}}{_NUMBER}(?![\d.]?\d)")
# _POINTS_ALONE matches ``: [25, 3]``, ``: 25`` and ``: 25, because``, but not ``: 90% of it`` and
# ``: 150 words are enough``.
_POINTS_ALONE = re.compile(rf"[:=]\W*{_NUMBER}(?:\W*$| ?[,;)\]|]| because| points?\b| - )")
_HEADING = re.compile(
    r"\W{0,8}(?:answer|advocate|side|assistant) ?(\d{1,2})\b\W{0,8}", re.IGNORECASE
)


@lru_cache
def _list_of_points(answers: int) -> re.Pattern[str]:
    """Return the pattern of the points of all answers: ``[18, 15]``, ``(18/20; 15/20)``."""
    return re.compile(rf"\W{{0,6}}[\[(] ?{' ?[,;|] ?'.join([_NUMBER] * answers)} ?[\])]")


def read_points(reply: str, side: int | None = None, answers: int = len(SIDES)) -> Points:
    """Read the points of each answer, from lines such as ``Relevance: [18, 15]``.

    Single numbers can also be listed under a heading for each answer.

    Args:
        reply: the raw reply; quoted text does not count.
        side: the answer for lines with a single number, until a heading names one.
        answers: the number of answers.

    >>> read_points("Relevance: [18, 15]\\nAccuracy: [17, 12]")
    [None, None]
    """
    stated = {
        (answer, criterion): value
        for _, answer, criterion, value in _stated_points(reply, side, answers)
    }
    # A missing criterion counts as 0, which is below the scale and so fails the check.
    of_answers = [
        [stated.get((answer, at), 0) for at in range(len(CRITERIA))]
        for answer in range(1, answers + 1)
    ]
    return [
        points if all(LOWEST <= value <= HIGHEST for value in points) else None
        for points in of_answers
    ]


def _stated_points(
    reply: str, side: int | None, answers: int
) -> Iterator[tuple[str, int, int, float]]:
    """Yield each line with points, with the answer, the criterion's number, and the points."""
    points_of_all = _list_of_points(answers)
    for line in own_words(plain(reply)).splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and 1 <= int(heading[1]) <= answers:
            side = int(heading[1])
        elif stated := _LINE.match(line):
            label = stated[1].casefold()
            points = stated[2]
            criterion = next(
                (at for at, called in enumerate(_CALLED) if called.search(label)), None
            )
            if criterion is None:
                continue
            if listed := points_of_all.match(points):
                for answer in range(1, answers + 1):
                    yield line, answer, criterion, float(listed[answer])
            elif side and (single := _ONE.match(points)):
                yield line, side, criterion, float(single[1])


def sums_that_differ(turn: Turn) -> list[str]:
    """Return a warning for each answer whose points do not add up to the total that counts.

    Answers with missing points get no warning.

    >>> from ...state.transcript import turn_without_model
    >>> lines = "\\n".join(f"{word}: [10, 9]" for word in ("Relevance", "Accuracy", "Depth", "Clarity", "Reasoning"))
    >>> sums_that_differ(turn_without_model(1, "judge", "judge", f"{lines}\\nObjections: [10, 9]", [61.0, 54.0]))
    ['judge, round 1: the points of answer 1 add up to 60, not to the total of 61 that is stated and counts']
    """
    value = turn["value"]
    # For one defence, the points of the other side are None, so its copy of the total is not
    # compared.
    totals = value if isinstance(value, list) else [value] * len(SIDES)
    points = read_points(turn["content"], side_of_agent(turn["agent"]), len(totals))
    return [
        f"{turn['agent']}, round {turn['round']}: the points of answer {answer} add up to {sum(stated):g}, not to the "
        f"total of {total:g} that is stated and counts"
        for answer, (stated, total) in enumerate(zip(points, totals, strict=True), start=1)
        if stated is not None and isinstance(total, int | float) and abs(sum(stated) - total) > 1e-6
    ]


def turns_of_round(state: JudgeState, role: str, round: int) -> list[Turn]:
    """Return a role's turns of one round."""
    return [turn for turn in state["transcript"] if turn["role"] == role and turn["round"] == round]


def presented_defences(state: JudgeState, round: int) -> list[Turn]:
    """Return the defences that the judge is shown: aggregated, else selected, else all."""
    defences = without_failed(turns_of_round(state, "advocate", round))
    picked = selected_advocates(state, round)
    best = [turn for turn in defences if turn["agent"] in picked]
    return turns_of_round(state, "aggregator", round) or best or defences


def selected_advocates(state: JudgeState, round: int) -> list[str]:
    """Return the advocates with the best defences of their sides (``aggregate=best``), or none.

    Among equal totals, the first one's advocate is selected.
    """
    # judge_1_2 scored the defence of advocate_1_2.
    return [turn["agent"].replace("judge", "advocate", 1) for turn in best_rulings(state, round)]


def best_rulings(state: JudgeState, round: int) -> list[Turn]:
    """Return each side's best turn among the turns that score one defence.

    The highest total is best. On a rating, the second side argues for a low score.
    """
    best = []
    for side, turns in zip(SIDES, rulings_by_side(state, round), strict=True):
        if turns:
            lowest_is_best = is_rating(state) and side == SIDES[-1]
            best.append(min(turns, key=total_of) if lowest_is_best else max(turns, key=total_of))
    return best


def rulings_by_side(state: JudgeState, round: int) -> list[list[Turn]]:
    """Return, for each side, the turns that score one of its defences alone."""
    rulings = turns_of_round(state, "judge", round)
    return [[turn for turn in rulings if side_of_agent(turn["agent"]) == side] for side in SIDES]


def total_of(turn: Turn) -> float:
    """Return the total that a judge of one defence gave; on a rating, the score of the text."""
    value = turn["value"]
    assert isinstance(value, int | float), "the judge of one defence gives one number"
    return value


def record_of(state: JudgeState, side: int, round: int) -> list[Turn]:
    """Return the turns that a team may read in a round.

    These are its own turns, the judge's, and the defences of the other side that the judge was
    shown in earlier rounds.
    """
    earlier = (turn for number in range(1, round) for turn in presented_defences(state, number))
    public = {(turn["agent"], turn["round"]) for turn in earlier}
    own = {0, side}
    return [
        turn
        for turn in state["transcript"]
        if side_of_agent(turn["agent"]) in own or (turn["agent"], turn["round"]) in public
    ]


_POINTS = ScoreSchema(LOWEST, HIGHEST)
_WORDS = [criterion.name.partition(" ")[0].lower() for criterion in CRITERIA]


@dataclass(frozen=True)
class _ByPoints(ScoreSchema):
    """Request points on every criterion, which are added up for each answer.

    ``feedback`` also requests some words to each advocate, and ``explained`` the reasons why one
    answer is better.
    """

    feedback: bool = False
    explained: bool = False

    @property
    def names(self) -> list[str]:
        """The JSON fields of the points: by criterion, and by answer if there are several."""
        # The suffix separates the criterion ``reasoning`` from the reasons.
        return [f"{word}_points" for word in _WORDS]

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        asked_for = ("reasoning", "feedback") if self.feedback else ("reasoning",)
        # Feedback that repeats the reasoning word for word is included once.
        lines = [*filter(None, dict.fromkeys(read_words(fields, key) for key in asked_for))]
        # A reply without these fields states its totals, like a text reply.
        if any(name in fields for name in self.names):
            points = [read_number(fields, name, _POINTS, raw) for name in self.names]
            sides = len(points) // len(CRITERIA)
            of_sides = [points[side::sides] for side in range(sides)]
            criteria = CRITERIA_WITHOUT_OPPONENT if self.explained else CRITERIA
            for criterion, *given in zip(criteria, *of_sides, strict=True):
                shown = ", ".join(f"{value:g}" for value in given)
                lines.append(f"{criterion.name}: {f'[{shown}]' if sides > 1 else shown}")
            totals = [sum(of_side) for of_side in of_sides]
            of_answers = {f"score_{answer}": total for answer, total in enumerate(totals, start=1)}
            fields = {"score": totals[0], **of_answers}
        return super().from_fields({**fields, "reasoning": "\n".join(lines)}, raw)

    def from_text(self, text: str) -> Value:
        # The side of a single number does not matter here. Lines that repeat a shown text do not
        # count.
        answers = max(len(SIDES), len(self.names) // len(CRITERIA))
        for line, _, criterion, points in _stated_points(text, 1, answers):
            off_scale = not LOWEST <= points <= HIGHEST and _POINTS_ALONE.search(line)
            if off_scale and self.shown.place_of(line) is None:
                stated = f"The points for {CRITERIA[criterion].name} are {points:g}"
                problem = f"{stated}, which is off the scale {LOWEST} to {HIGHEST}."
                raise ReplyError(problem, text, "off_scale")
        return super().from_text(text)

    def limits(self) -> dict[str, Any]:
        points = {"lowest": LOWEST, "highest": HIGHEST, "names": self.names}
        return {
            **super().limits(),
            **points,
            "feedback": self.feedback,
            "explained": self.explained,
        }


class TotalsSchema(_ByPoints, PairSchema):
    """Request points for each answer on every criterion; the value is the two totals."""

    template: ClassVar[str] = "courtroom/form_totals"

    @property
    def names(self) -> list[str]:
        return [f"{word}_{side}" for word in _WORDS for side in SIDES]

    def schema(self) -> dict[str, Any]:
        return _totals_reply(self)


@dataclass(frozen=True)
class SeveralScoresSchema(ScoreSchema):
    """Request a score for each of several answers.

    Attributes:
        answers: the number of answers.
    """

    answers: int = field(kw_only=True)
    name: ClassVar[str] = "scores"

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        numbers = range(1, self.answers + 1)
        labels = {f"score_{answer}": f"Score of answer {answer}" for answer in numbers}
        return self._from_numbers(fields, labels, raw)

    def from_text(self, text: str) -> Value:
        return read_scores(text, self.answers, self.low, self.high, shown=self.shown)


@dataclass(frozen=True)
class SeveralTotalsSchema(_ByPoints, SeveralScoresSchema):
    """Request points for each of several answers on every criterion; the value is their totals."""

    template: ClassVar[str] = "court/form_totals"

    @property
    def names(self) -> list[str]:
        return [f"{word}_{side}" for word in _WORDS for side in range(1, self.answers + 1)]

    def schema(self) -> dict[str, Any]:
        return _totals_reply(self)

    def limits(self) -> dict[str, Any]:
        return {**super().limits(), "answers": self.answers}


def _totals_reply(form: _ByPoints) -> dict[str, Any]:
    words = {"reasoning": prose("For each criterion, why each answer earns its points.")}
    if form.feedback:
        words["feedback"] = prose("Feedback for each advocate, up to 50 words each.")
    points = {name: number(LOWEST, HIGHEST) for name in form.names}
    return object_schema("judgement_reply" if form.feedback else "totals_reply", **words, **points)


@dataclass(frozen=True)
class ChoiceSchema(VoteSchema):
    """Request a vote for one of several answers; the value is its number, such as ``"3"``.

    Attributes:
        answers: the number of answers.
    """

    answers: int = field(kw_only=True)
    template: ClassVar[str] = "court/form_vote"

    @property
    def numbers(self) -> list[str]:
        """The numbers of the answers."""
        return [str(answer) for answer in range(1, self.answers + 1)]

    def schema(self) -> dict[str, Any]:
        winner = {"type": "string", "enum": self.numbers, "description": "The best answer."}
        return object_schema("vote_reply", reasoning=prose("Reasons, briefly."), winner=winner)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        winner = str(fields.get("winner", "")).strip()
        if winner not in self.numbers:
            problem = f"The field winner is not a number from 1 to {self.answers}."
            raise ReplyError(problem, raw, "missing")
        return f"{read_words(fields, 'reasoning')}\nVote: {winner}".strip(), winner

    def from_text(self, text: str) -> Value:
        return read_choice(text, self.answers, shown=self.shown)

    def limits(self) -> dict[str, Any]:
        return {"answers": self.answers}


class TotalSchema(_ByPoints):
    """Request the points of one defence on every criterion; the value is their total."""

    template: ClassVar[str] = "courtroom/form_total"

    def schema(self) -> dict[str, Any]:
        reasons = prose("For each criterion, why the defence earns its points.")
        points = {name: number(LOWEST, HIGHEST) for name in self.names}
        return object_schema("total_reply", reasoning=reasons, **points)
