"""court: a courtroom for two or more answers, with an advocate for each (courtroom paper, A.4).

    prepare -> advocate x answers -> judge --jury--> juror x 5 -> conclude
                    ^                 |  |                            ^
                    +--another_round--+  +------------no_jury---------+

``court()`` is SAMRE (section 3.2) for any number of answers; the paper names such a court as future
work. It takes the input of ``ranked``, and its output begins with the same fields. Each answer has
one advocate. In each round, the judge gives every answer a total of 6 to 120, and feedback. The
rounds end if the same answer is strictly ahead in two successive rounds. Then each juror votes for
one answer.

The answer with the most votes wins. If several have equally many, the one of them with the highest
mean total wins. If these are equal too, there is no winner. Without jurors, or with fewer valid
votes than the quorum, the highest mean total wins. For two answers, calls and winner are those of
``samre``.

Stop reasons: ``agreement``, or ``max_rounds``.

Model calls: (answers + 1) x R + jurors, where R is the number of rounds (2 to 4 by default).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NotRequired, Unpack

from langgraph.graph import END, START
from pydantic import Field
from typing_extensions import TypedDict

from ...nodes.advocate import lone_advocate
from ...nodes.common.server_rules import check_size
from ...nodes.courtroom_judge import judge_of_round, points_by_round
from ...nodes.juror import backgrounds_of, juror
from ...nodes.models.prices import listed_window
from ...nodes.replies.shown import verdict_warnings
from ...nodes.runtime.agent_runtime import AgentRuntime
from ...nodes.runtime.bound_judge import Models
from ...nodes.runtime.courtroom import SIDES, Points, answers_of, mean_totals
from ...nodes.runtime.prompt_context import Prompts
from ...state.checked import Checked, FilledText, OptionalText
from ...state.citations import COURTROOM
from ...state.errors import UsageError
from ...state.graph_state import JudgeState, merge_turns
from ...state.panels import reasons_of_missing, votes_needed
from ...state.protocol_facts import SAMRE_FACTS
from ...state.protocols import CallRange, CallsByRole, Can, Protocol, exactly
from ...state.settings import CourtSettings, SamreSettings
from ...state.tasks import TaskKind, parse_task
from ...state.transcript import Score, Turn, usage_of_turns
from ...state.verdict_warnings import NO_QUORUM, NO_VOTE, repeated_words
from ..engine.base import FanOut, ProtocolGraph, each
from ..engine.options import Bound, CommonOptions
from ..engine.panel_rules import PanelRules
from .ranked import MOST_ANSWERS


class CourtOptions(CommonOptions, total=False):
    """The settings of a court."""

    max_rounds: int
    jurors: int
    backgrounds: str | Sequence[str]
    quorum: Literal["majority", "all"] | int


class CourtInput(TypedDict):
    """The input: a question, its answers, and the optional texts of a compare task.

    ``criteria`` are refused, because a court has six criteria of its own.
    """

    question: str
    answers: list[str]
    context: NotRequired[str | None]
    reference: NotRequired[str | None]
    criteria: NotRequired[list[str] | None]


class Hearing(TypedDict):
    """How the court came to its outcome.

    ``score_by_round`` has the total of each answer in each round, and ``mean_scores`` their means.
    ``criteria`` has the points on the six criteria behind each total, or None if one is missing.
    ``votes`` has the number of votes for each answer; it is None without jurors. ``missing`` are
    the jurors without a vote, with the reasons. ``explained_by`` is the id of the turn whose words
    are the ``explanation``. ``usage`` has calls, tokens, cost and seconds.
    """

    stop_reason: Literal["agreement", "max_rounds"]
    rounds: int
    score_by_round: list[Score]
    mean_scores: list[float]
    criteria: list[Points]
    votes: list[int] | None
    missing: dict[str, str]
    explanation: str
    explained_by: str | None
    warnings: list[str]
    usage: dict[str, Any]


class CourtOutput(TypedDict):
    """The outcome, everything about the hearing, and the transcript."""

    winner: Annotated[
        int | None,
        Field(description="The number of the answer that wins, from 1; None: none."),
    ]
    ranking: Annotated[list[int], Field(description="The numbers of the answers, the best first.")]
    points: Annotated[
        list[float],
        Field(description="What decides, for each answer: its votes, or its mean total."),
    ]
    why: str
    hearing: Hearing
    transcript: Annotated[list[Turn], merge_turns]


class CourtState(JudgeState, CourtInput, CourtOutput):
    """The state during the hearing; ``task`` has the checked input."""


class CourtGraph(ProtocolGraph[SamreSettings]):
    """The graph of a court, with an input and an output of its own."""

    state_class = CourtState
    output_class = CourtOutput


class SeveralAnswers(Checked):
    """A question with several answers, checked.

    >>> SeveralAnswers(question="Why?", answers=["Rain.", "Snow.", "Wind."]).answers
    ('Rain.', 'Snow.', 'Wind.')
    """

    called: ClassVar[str] = "the input of a court"

    question: FilledText
    """The question that all answers reply to."""
    answers: tuple[FilledText, ...] = Field(min_length=2, max_length=MOST_ANSWERS)
    """The answers."""
    context: OptionalText = None
    """Further texts for judging the answers, if any."""
    reference: OptionalText = None
    """A correct answer to compare with, if there is one."""


def calls(settings: CourtSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count the calls of a court for as many answers as possible, for the limits of a server."""
    rounds = CallRange(min(2, settings.max_rounds), settings.max_rounds)
    return {
        "advocate": rounds * MOST_ANSWERS,
        "judge": rounds,
        "juror": exactly(settings.jurors),
    }


PROTOCOL = Protocol(
    name="court",
    summary="an advocate for each of several answers, a judge and a jury",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, appendix A.4",
    citation=COURTROOM,
    kinds=("compare",),
    roles=("advocate", "judge", "juror"),
    settings=CourtSettings,
    prompts=("shared", "courtroom", "court"),
    calls=calls,
    role_kinds=SAMRE_FACTS.role_kinds,
    input_schema=CourtInput,
)
"""The record of the court. It is not a registered protocol, because its task has several answers."""


def leader_of(totals: Score) -> int | None:
    """Return the number of the answer that is strictly ahead; None if several are equally good.

    >>> leader_of([90, 95, 80]), leader_of([95, 95, 80])
    (2, None)
    """
    assert isinstance(totals, list), "the judge of a court gives a total to each answer"
    highest = max(totals)
    return totals.index(highest) + 1 if totals.count(highest) == 1 else None


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Return whether the same answer is strictly ahead in the last two rounds.

    >>> rounds_agree([[90, 80, 70], [80, 79, 60]]), rounds_agree([[90, 80, 70], [80, 80, 60]])
    (True, False)
    """
    leaders = [leader_of(totals) for totals in scores[-2:]]
    return len(leaders) == 2 and leaders[0] is not None and leaders[0] == leaders[1]


class CourtDecision(NamedTuple):
    """The decision of a court.

    Attributes:
        winner: the number of the winning answer, from 1; None without one.
        ranking: the numbers of all answers, the best first, equal ones in input order.
        points: what decides, for each answer: its votes, or its mean total.
        why: the reason in words.
    """

    winner: int | None
    ranking: list[int]
    points: list[float]
    why: str


def decided(means: Sequence[float], votes: Sequence[int] | None) -> CourtDecision:
    """Decide between answers: by votes, and among equals by the mean totals.

    Args:
        means: the mean total of each answer.
        votes: the number of votes for each answer; None if the means alone decide.

    >>> decided([90, 80, 85], [2, 2, 1])
    CourtDecision(winner=1, ranking=[1, 2, 3], points=[2, 2, 1], why='it has the most votes and the highest mean total')
    >>> decided([90, 80, 90], None).why
    'several answers have the same mean total'
    """
    numbers = range(1, len(means) + 1)
    if votes is None:
        first = [*numbers]
        why = "it has the highest mean total"
    else:
        first = [number for number in numbers if votes[number - 1] == max(votes)]
        why = "it has the most votes and the highest mean total"
    highest = max(means[number - 1] for number in first)
    # Means of the same totals, added in another order, differ in the last bits of a float.
    best = [at for at in first if math.isclose(means[at - 1], highest, rel_tol=1e-9)]
    if len(first) == 1:
        why = "it has the most votes"
    elif len(best) > 1:
        of_votes = "" if votes is None else "equally many votes and "
        why = f"several answers have {of_votes}the same mean total"
    points: list[float] = [*(means if votes is None else votes)]
    ranking = sorted(numbers, key=lambda at: (-points[at - 1], -means[at - 1]))
    return CourtDecision(best[0] if len(best) == 1 else None, ranking, points, why)


async def prepare(state: CourtState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Check the input before any model call, and clear the rest of the state.

    Raises:
        UsageError: invalid input (the message names the field), criteria, texts that exceed a
            model's context, or replaced templates that this number of answers does not use.
    """
    if state.get("criteria") is not None:
        raise UsageError(
            "criteria do not apply to a court, which has six of its own: leave them out"
        )
    names = ("question", "answers", "context", "reference")
    given = {name: state.get(name) for name in names if state.get(name) is not None}
    case = SeveralAnswers.model_validate(given)
    check_size("characters", case)
    check_templates(runtime.prompts, len(case.answers))
    check_context(case, runtime)
    task: dict[str, Any] = {"kind": "compare", **case.model_dump(mode="json")}
    if len(case.answers) == len(SIDES):
        # Two answers are a task of SAMRE, and get its prompts and forms.
        answers = task.pop("answers")
        task |= {f"answer_{at}": answer for at, answer in enumerate(answers, start=1)}
        task = parse_task(task).model_dump(mode="json")
    twice = [
        f"answer {number} is the same as answer {case.answers.index(answer) + 1}"
        for number, answer in enumerate(case.answers, start=1)
        if case.answers.index(answer) + 1 < number
    ]
    # A reused thread has the values of its last run. An input that is left out this time must not
    # come from there.
    cleared = dict.fromkeys(("transcript", "details", "warnings", "round"))
    outcome = dict.fromkeys(("winner", "ranking", "points", "why", "hearing"))
    begun: dict[str, Any] = {**cleared, **outcome, **dict.fromkeys(names)}
    begun |= {"task": task, "orders": [1], "scores": []}
    if twice:
        begun["details"] = {"same_answers": twice}
    return begun


def check_context(case: SeveralAnswers, runtime: AgentRuntime[SamreSettings]) -> None:
    """Check that the texts alone fit the context of every model, as far as it is known.

    Raises:
        UsageError: they do not.
    """
    texts = [case.question, *case.answers, case.context or "", case.reference or ""]
    tokens = sum(map(len, texts)) // CHARACTERS_PER_TOKEN
    for model in runtime.models.values():
        window = model.serving.context or listed_window(model.label)
        if window is not None and tokens > window:
            raise UsageError(
                f"the question and the {len(case.answers)} answers have about {tokens:,} tokens, but "
                f"the context of {model.label} has {window:,}: use fewer or shorter answers, or a "
                "model with a larger context"
            )


CHARACTERS_PER_TOKEN = 4
"""The approximate number for English. A prompt also has the debate, so it is longer than the texts."""


def check_templates(prompts: Prompts, answers: int) -> None:
    """Check that no template was replaced that this number of answers does not use.

    Raises:
        UsageError: there is one.
    """
    names = ("advocate_alone", "case", "form_totals", "form_vote", "judge", "juror_vote")
    of_two = {f"courtroom/{name}" for name in names}
    of_more = {name for name in prompts.sources if name.startswith("court/")}
    if answers == len(SIDES):
        used = of_two
        unused = of_more
    else:
        used = of_more
        unused = of_two
    if (ignored := unused & prompts.replaced.keys()) and not used & prompts.replaced.keys():
        raise UsageError(
            f"template {min(ignored)}.md is not used for {answers} answers, "
            f"whose templates are {', '.join(sorted(used))}: replace one of these as well"
        )


def advocates(state: JudgeState, _settings: CourtSettings) -> list[str]:
    """Return the advocates of all answers, who open a round at the same time."""
    return [f"advocate_{number}" for number in range(1, answers_of(state) + 1)]


def jurors(_state: JudgeState, settings: CourtSettings) -> list[str]:
    """Return all jurors, who vote at the same time."""
    return [*backgrounds_of(settings)]


def begin(_state: JudgeState, _settings: SamreSettings) -> str:
    """Route to the advocates without a condition."""
    return "begin_round"


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """Return whether another round follows, or the jury votes, if there is one."""
    if not rounds_agree(state["scores"]) and state["round"] < settings.max_rounds:
        return "another_round"
    return "jury" if settings.jurors else "no_jury"


async def conclude(state: CourtState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Count the votes and make the outcome; no model is called."""
    settings = runtime.settings
    turns = state["transcript"]
    means = mean_totals(state["scores"])
    votes: list[int] | None = None
    counted: list[int] | None = None
    warnings: list[str] = []
    # After an edited turn, the jury may have voted again.
    ballots = {turn["agent"]: turn for turn in turns if turn["role"] == "juror"}
    if settings.jurors:
        given = [turn["value"] for turn in ballots.values()]
        votes = [given.count(str(number)) for number in range(1, len(means) + 1)]
        needed = votes_needed(settings.quorum, settings.jurors)
        if sum(votes) >= needed:
            counted = votes
        else:
            warnings = [
                NO_QUORUM.of(
                    votes=sum(votes), jurors=settings.jurors, needed=needed, quorum=settings.quorum
                )
            ]
    missing = reasons_of_missing(turns)
    warnings = [*state["warnings"], *repeated_words(turns), *warnings]
    warnings += verdict_warnings(_texts_of(state["task"]))
    warnings += [NO_VOTE.of(agent, problem=reason) for agent, reason in missing.items()]
    warnings += state["details"].get("same_answers", ())
    outcome = decided(means, counted)
    agreeing = [turn for turn in ballots.values() if turn["value"] == str(outcome.winner)]
    rulings = [turn for turn in turns if turn["role"] == "judge"]
    # A juror that voted for the winner explains the outcome, otherwise the judge's last ruling.
    turn = agreeing[0] if counted and agreeing else rulings[-1]
    hearing = Hearing(
        stop_reason="agreement" if rounds_agree(state["scores"]) else "max_rounds",
        rounds=len(state["scores"]),
        score_by_round=state["scores"],
        mean_scores=means,
        criteria=points_by_round(state),
        votes=votes,
        missing=missing,
        explanation=turn["content"],
        explained_by=turn["id"],
        # Each turn of a model repeats its warnings.
        warnings=[*dict.fromkeys(warnings)],
        usage=usage_of_turns(turns).flat(),
    )
    return {**outcome._asdict(), "hearing": hearing}


def _texts_of(task: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the texts of a case by the names under which agents are shown them."""
    answers = task.get("answers") or [task[f"answer_{side}"] for side in SIDES]
    others = {name: task.get(name) for name in ("question", "context", "reference")}
    return others | {f"answer {at}": answer for at, answer in enumerate(answers, start=1)}


def court(
    settings: Bound[CourtSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CourtOptions],
) -> ProtocolGraph[SamreSettings]:
    """Build the graph of a court for 2 to 20 answers, not compiled.

    Arguments and errors as for ``debate.build``. Of SAMRE's settings, ``max_rounds``, ``jurors``,
    ``backgrounds`` (a list) and ``quorum`` apply. The others are refused.

    >>> outcome = court(jurors=3).compile().invoke({"question": "When did the bridge open?",
    ...     "answers": ["No idea.", "The bridge opened in 1932.", "When did the bridge open?"]})
    >>> outcome["winner"], outcome["hearing"]["votes"], outcome["hearing"]["stop_reason"]
    (2, [0, 3, 0], 'agreement')
    """
    graph = CourtGraph(PROTOCOL, CourtSettings, settings, models, fields)
    graph.agent("prepare", prepare)
    graph.add_edge(START, "prepare")
    graph.agents("advocate", lone_advocate, then="judge")
    graph.agent("judge", judge_of_round)
    # Without the quorum, the mean totals decide.
    jury = PanelRules[SamreSettings](lambda settings: settings.quorum, is_required=False)
    graph.agents("juror", juror, then="conclude", quorum=jury)
    graph.agent("conclude", conclude, END)
    argue = each("advocate", advocates)
    opening: dict[str, str | FanOut] = {"begin_round": argue}
    graph.route("prepare", begin, opening)
    ways: dict[str, str | FanOut] = {"another_round": argue, "jury": each("juror", jurors)}
    graph.route("judge", after_judge, {**ways, "no_jury": "conclude"})
    return graph
