"""Define what the agents of the courtroom protocols share: the six criteria, prompts, reading of points and turns.

First how an agent is asked, then ``read_points`` (the points on each criterion in a judge's reply), then the turns
of the transcript that each agent is shown, then the schemas that ask for points on the six criteria, from 1 to 20 each.
The software adds them up to totals; as text, the judge states each total itself, as in the paper, and those count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ..state.errors import ReplyError
from ..state.graph_state import JudgeState
from ..state.transcript import Score, Turn
from ..state.word_files import words_beside
from .agent_runtime import AgentRuntime, Question
from .output_schemas import (
    OutputSchema,
    PairSchema,
    ScoreSchema,
    TextSchema,
    Value,
    number,
    object_schema,
    prose,
    read_number,
    read_words,
)
from .prompt_context import Instruction, discussion, task_of
from .replies.own_words import own_words, plain


class Criterion(NamedTuple):
    """Name one of the six criteria on which each answer is given points, and its meaning for the prompt."""

    name: str
    meaning: str


_COURT = words_beside(__file__)
CRITERIA = tuple(Criterion(about["name"], about["meaning"]) for about in _COURT["criteria"])
CRITERIA_WITHOUT_OPPONENT = (*CRITERIA[:-1], Criterion(**_COURT["criteria"][-1]["alone"]))
"""The six criteria as a judge is shown them where nobody argues for either answer."""

LOWEST, HIGHEST = 1, 20
"""The fewest and the most points on one criterion."""
LOWEST_TOTAL, HIGHEST_TOTAL = LOWEST * len(CRITERIA), HIGHEST * len(CRITERIA)
SIDES = (1, 2)


async def ask_in_court(
    state: JudgeState,
    runtime: AgentRuntime[Any],
    agent: str,
    own: Instruction,
    record: Iterable[Turn] | None = (),
    form: OutputSchema | None = None,
    **details: Any,
) -> dict[str, Any]:
    """Ask an agent, and warn where the points that it states do not add up to its totals.

    It is shown case, criteria and record as all agents see them, then its own instruction.

    Args:
        state: the graph's state.
        runtime: settings, prompts and models.
        agent: the agent's name, which begins with its role.
        own: its own instruction.
        record: the turns that it is shown; None for a judge who is alone, and is told of nobody else.
        form: what it is to answer; by default in words.
        details: metadata of the call, whose scale is that of totals unless it says otherwise; ``round`` is that of
            the turn, by default the state's.
    """
    task, prompts, alone = task_of(state), runtime.prompts, record is None
    values: dict[str, Any] = {name: getattr(task, name) for name in type(task).model_fields}
    values |= {"low": LOWEST, "high": HIGHEST, "total_low": LOWEST_TOTAL, "total_high": HIGHEST_TOTAL}
    values |= {"debated": not alone, "criteria": CRITERIA_WITHOUT_OPPONENT if alone else CRITERIA}
    shared = [prompts.render("courtroom/case", **values)]
    if turns := list(record or ()):
        shared.append(prompts.render("courtroom/log", turns=turns))
    prompt = discussion(task, prompts, shared, own, alone)
    role, asked, round = agent.partition("_")[0], form or TextSchema(), details.pop("round", state["round"])
    about = {"kind": "compare", "low": LOWEST_TOTAL, "high": HIGHEST_TOTAL, **details}
    answer = await runtime.ask(Question(agent, role, round, prompt, asked, about))
    differ = sums_that_differ(answer.turn) if isinstance(asked, _ByPoints) else []
    return {**answer.update, "warnings": [*answer.warnings, *differ]}


def totals_so_far(scores: Sequence[Score]) -> str:
    """Return earlier totals round by round, for a prompt.

    >>> totals_so_far([[95.0, 87.0], [90.0, 91.5]])
    '(95, 87), (90, 91.5)'
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return ", ".join(f"({first:g}, {second:g})" for first, second in pairs)


def rounds_and_totals(state: JudgeState, rounds: int) -> dict[str, Any]:
    """Return what the templates are given of the debate's course: this round, of how many, and earlier totals."""
    return {"round": state["round"], "rounds": rounds, "totals": totals_so_far(state["scores"])}


def side_of_agent(agent: str) -> int:
    """Return the answer that an agent of this name speaks for, 0 for neither.

    >>> side_of_agent("advocate_2_3"), side_of_agent("aggregator_1"), side_of_agent("judge")
    (2, 1, 0)
    """
    _, *numbers = agent.split("_")
    return int(numbers[0]) if numbers else 0


Points = list[list[float] | None]
"""For each answer its six points in the order of the criteria, or None where one is missing."""
# The words by which judges call the criteria, in the order of ``CRITERIA``.
_CALLED = [re.compile(about["called"]) for about in _COURT["criteria"]]
_NUMBER = r"(\d{1,3}(?:\.\d{1,2})?)(?: ?/ ?20)?"
# _LINE matches ``- **2. Accuracy: [17, 12]``; its groups are the criterion and what follows the colon. _PAIR matches
# ``[18, 15]`` and ``(18/20; 15/20)``. _ONE matches ``18`` and ``18/20``, but no beginning of ``1805`` or ``18.55.2``.
_LINE = re.compile(r"[^\w\n]{0,12}(?:\d{1,2}[.)] ?)?[^\w\n]{0,4}([A-Za-z][^:=\n]{0,80})[:=](.*)")
_PAIR = re.compile(rf"\W{{0,6}}[\[(] ?{_NUMBER} ?[,;|] ?{_NUMBER} ?[\])]")
_ONE = re.compile(rf"[^\w\[(]{{0,6}}{_NUMBER}(?![\d.]?\d)")
# Matches ``: [25, 3]``, ``: 25`` and ``: 25, because``, but not ``: 90% of it`` and ``: 150 words are enough``.
_POINTS_ALONE = re.compile(rf"[:=]\W*{_NUMBER}(?:\W*$| ?[,;)\]|]| because| points?\b| - )")
_HEADING = re.compile(r"\W{0,8}(?:answer|advocate|side|assistant) ?([12])\b\W{0,8}", re.IGNORECASE)


def read_points(reply: str, side: int | None = None) -> Points:
    """Read the points of each answer, from lines such as ``Relevance: [18, 15]``, or under a heading for each answer.

    Args:
        reply: the raw reply; what it quotes does not count.
        side: the answer that lines with a single number are about, until a heading names one.

    >>> read_points("Relevance: [18, 15]\\nAccuracy: [17, 12]")
    [None, None]
    """
    stated = {(answer, criterion): value for _, answer, criterion, value in _stated_points(reply, side)}
    # A missing criterion counts as 0, which is below the lowest number of points and so fails the check.
    of_sides = [[stated.get((answer, at), 0) for at in range(len(CRITERIA))] for answer in SIDES]
    return [points if all(LOWEST <= value <= HIGHEST for value in points) else None for points in of_sides]


def _stated_points(reply: str, side: int | None) -> Iterator[tuple[str, int, int, float]]:
    """Yield each line that states points, with the answer, the number of the criterion, and the points."""
    for line in own_words(plain(reply)).splitlines():
        if heading := _HEADING.fullmatch(line):
            side = int(heading[1])
        elif stated := _LINE.match(line):
            label, points = stated[1].casefold(), stated[2]
            criterion = next((at for at, called in enumerate(_CALLED) if called.search(label)), None)
            if criterion is None:
                continue
            if pair := _PAIR.match(points):
                yield from ((line, answer, criterion, float(pair[answer])) for answer in SIDES)
            elif side and (single := _ONE.match(points)):
                yield line, side, criterion, float(single[1])


def sums_that_differ(turn: Turn) -> list[str]:
    """Warn of each answer whose points do not add up to its total, which counts; points not all stated are no fault.

    >>> from ..state.transcript import turn_without_model
    >>> lines = "\\n".join(f"{word}: [10, 9]" for word in ("Relevance", "Accuracy", "Depth", "Clarity", "Reasoning"))
    >>> sums_that_differ(turn_without_model(1, "judge", "judge", f"{lines}\\nObjections: [10, 9]", [61.0, 54.0]))
    ['judge, round 1: the points of answer 1 add up to 60, not to the total of 61 that is stated and counts']
    """
    value = turn["value"]
    # Of one defence, the points of the other side are None, so that its copy of the total is compared with nothing.
    totals = value if isinstance(value, list) else [value] * len(SIDES)
    points = read_points(turn["content"], side_of_agent(turn["agent"]))
    return [
        f"{turn['agent']}, round {turn['round']}: the points of answer {answer} add up to {sum(stated):g}, not to the "
        f"total of {total:g} that is stated and counts"
        for answer, stated, total in zip(SIDES, points, totals, strict=True)
        if stated is not None and isinstance(total, int | float) and abs(sum(stated) - total) > 1e-6
    ]


def turns_of_round(state: JudgeState, role: str, round: int) -> list[Turn]:
    """Return a role's turns of one round."""
    return [turn for turn in state["transcript"] if turn["role"] == role and turn["round"] == round]


def presented_defences(state: JudgeState, round: int) -> list[Turn]:
    """Return the defences that the judge is shown: the aggregated ones, else the selected ones, else all."""
    defences = turns_of_round(state, "advocate", round)
    picked = selected_advocates(state, round)
    best = [turn for turn in defences if turn["agent"] in picked]
    return turns_of_round(state, "aggregator", round) or best or defences


def selected_advocates(state: JudgeState, round: int) -> list[str]:
    """Return the advocates whose defences scored best of their sides (``aggregate=best``), or none.

    Of equal totals the first one's advocate is selected.
    """
    # judge_1_2 scored the defence of advocate_1_2.
    return [turn["agent"].replace("judge", "advocate", 1) for turn in best_rulings(state, round)]


def best_rulings(state: JudgeState, round: int) -> list[Turn]:
    """Return, of the turns that score one defence each, the one with the highest total of each side."""
    return [max(turns, key=total_of) for turns in rulings_by_side(state, round) if turns]


def rulings_by_side(state: JudgeState, round: int) -> list[list[Turn]]:
    """Return, for each side, the turns that score one of its defences alone."""
    rulings = turns_of_round(state, "judge", round)
    return [[turn for turn in rulings if side_of_agent(turn["agent"]) == side] for side in SIDES]


def total_of(turn: Turn) -> float:
    """Return the total that a judge of one defence gave."""
    value = turn["value"]
    assert isinstance(value, int | float), "a TotalSchema reads one number"
    return value


def record_of(state: JudgeState, side: int, round: int) -> list[Turn]:
    """Return the turns that a team may read in a round.

    These are its own, the judge's, and the defences with which the other side came before the judge in earlier rounds.
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
    """Ask for points on every criterion, which are added up for each answer.

    ``feedback`` asks for some words to each advocate as well, ``explained`` for why one answer is better.
    """

    # The fields of the points; ``reasoning`` alone would be both a criterion and the reasons.
    names: ClassVar[list[str]] = [f"{word}_points" for word in _WORDS]

    feedback: bool = False
    explained: bool = False

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        asked_for = ("reasoning", "feedback") if self.feedback else ("reasoning",)
        # Feedback that repeats the reasoning word for word is kept once.
        lines = [*filter(None, dict.fromkeys(read_words(fields, key) for key in asked_for))]
        # A reply that has none of the fields states its totals, as one in text does.
        if any(name in fields for name in self.names):
            points = [read_number(fields, name, _POINTS, raw) for name in self.names]
            sides = len(points) // len(CRITERIA)
            of_sides = [points[side::sides] for side in range(sides)]
            criteria = CRITERIA_WITHOUT_OPPONENT if self.explained else CRITERIA
            for criterion, *given in zip(criteria, *of_sides, strict=True):
                shown = ", ".join(f"{value:g}" for value in given)
                lines.append(f"{criterion.name}: {f'[{shown}]' if sides > 1 else shown}")
            totals = [sum(of_side) for of_side in of_sides]
            fields = {"score": totals[0], "score_1": totals[0], "score_2": totals[-1]}
        return super().from_fields({**fields, "reasoning": "\n".join(lines)}, raw)

    def from_text(self, text: str) -> Value:
        # The side of a single number does not matter here; a line of a text that the judge was shown is that text's.
        for line, _, criterion, points in _stated_points(text, side=1):
            off_scale = not LOWEST <= points <= HIGHEST and _POINTS_ALONE.search(line)
            if off_scale and self.shown.place_of(line) is None:
                stated = f"The points for {CRITERIA[criterion].name} are {points:g}"
                problem = f"{stated}, which is off the scale {LOWEST} to {HIGHEST}."
                raise ReplyError(problem, text, "off_scale")
        return super().from_text(text)

    def limits(self) -> dict[str, Any]:
        points = {"lowest": LOWEST, "highest": HIGHEST, "names": self.names}
        return {**super().limits(), **points, "feedback": self.feedback, "explained": self.explained}


class TotalsSchema(_ByPoints, PairSchema):
    """Ask for points for each answer on every criterion; the value is the two totals."""

    template: ClassVar[str] = "courtroom/form_totals"
    names: ClassVar[list[str]] = [f"{word}_{side}" for word in _WORDS for side in SIDES]

    def schema(self) -> dict[str, Any]:
        words = {"reasoning": prose("For each criterion, why each answer earns its points.")}
        if self.feedback:
            words["feedback"] = prose("Feedback for each advocate, up to 50 words each.")
        points = {name: number(LOWEST, HIGHEST) for name in self.names}
        return object_schema("judgement_reply" if self.feedback else "totals_reply", **words, **points)


class TotalSchema(_ByPoints):
    """Ask for the points of one defence on every criterion; the value is their total."""

    template: ClassVar[str] = "courtroom/form_total"

    def schema(self) -> dict[str, Any]:
        reasons = prose("For each criterion, why the defence earns its points.")
        points = {name: number(LOWEST, HIGHEST) for name in self.names}
        return object_schema("total_reply", reasoning=reasons, **points)
