"""Ask G-Eval's scorer for a number, and weight it by the probabilities of all scores (G-Eval, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..state.aggregation import Expectation, expected_from_samples, expected_score, score_tokens
from ..state.errors import ReplyError, UsageError
from ..state.graph_state import JudgeState
from ..state.settings import GEvalSettings
from ..state.tasks import ScoreTask, is_rubric
from ..state.transcript import Score, Turn
from ..state.verdict_warnings import NO_LOGPROBS, OFF_SCALE
from .agent_runtime import AgentRuntime, Answer, Question
from .models.call import UnsupportedParameterError
from .models.capabilities import CHOICES, LOGPROBS
from .output_schemas import RatingSchema
from .planner import rubric
from .prompt_context import Prompt, call_metadata, task_of
from .verdicts import Decision, nearest

TOP_LOGPROBS = 20
"""The most that OpenAI's chat completions return."""

NOTABLE, MOST_OFF_SCALE = 0.2, 0.5
"""The share of probability off the scale that is warned of, and that above which the rest says nothing of the score."""


@dataclass(frozen=True)
class WeightedScore:
    """Hold the expected score, and the turns, warnings and details that go into the state with it."""

    expectation: Expectation
    turns: Sequence[Turn]
    warnings: Sequence[str]
    details: dict[str, Any]


class NoProbabilitiesError(Exception):
    """Raised where token log-probabilities are not available; the message says why.

    Attributes:
        turns: the turns of the attempt, whose calls were paid.
    """

    def __init__(self, why: str, turns: Sequence[Turn] = ()) -> None:
        super().__init__(why)
        self.turns = turns


async def scorer(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the score, and put its expectation over the probabilities of all scores into the details.

    Shown: the task, the criteria, the evaluation steps, the texts. Answers with a number alone.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    # Steps from the settings go first; with them, the graph has no planner's steps in its state.
    steps = list(runtime.settings.steps) or state["details"]["steps"]
    weighted = await _weighted_score(_question(task, steps, runtime), task, runtime)
    expected = weighted.expectation
    about = {"expected": expected.value, "distribution": expected.by_name, "steps": steps}
    details, warnings = {**weighted.details, **about}, list(weighted.warnings)
    return {"transcript": list(weighted.turns), "warnings": warnings, "details": details}


def expected_by_round(state: JudgeState) -> list[Score]:
    """Return the expected score: of the tokens' probabilities, or the mean of the samples.

    A number that a person has put in place of the scorer's rating is not weighted by the tokens of that rating.
    """
    turns = [turn for turn in state["transcript"] if turn["role"] == "scorer"]
    values = [value for turn in turns if isinstance(value := turn["value"], int | float)]
    details = state["details"]
    if not values or "expected" not in details:
        return []
    edited = any(turn.get("edited") for turn in turns)
    if details["weighting"] == "logprobs":
        return [values[-1] if edited else details["expected"]]
    # The attempt to get probabilities is a turn, too, but not a sample.
    sampled = (turn["value"] for turn in turns if "sample" in turn)
    samples = [value for value in sampled if isinstance(value, int | float)]
    return [expected_from_samples(samples).value if edited else details["expected"]]


def expectation(state: JudgeState, _settings: GEvalSettings) -> Decision:
    """Take the expected score; the scorer's words are a number, so the distribution is told with it."""
    final = state["scores"][-1]
    turn = nearest([turn for turn in state["transcript"] if turn["role"] == "scorer"], final)
    return Decision(final, turn, details=state["details"])


def _question(task: ScoreTask, steps: Sequence[str], runtime: AgentRuntime[GEvalSettings]) -> Question:
    prompts, aspect = runtime.prompts, task.aspect
    form = RatingSchema(aspect.low, aspect.high, aspect.name)
    texts = {"source": task.source, "fact": task.fact, "candidate": task.candidate}
    followed = bool(runtime.settings.steps) or is_rubric(aspect)
    material = prompts.render("geval/task", aspect=aspect, steps=steps, rubric=followed, **texts)
    shared = f"{rubric(aspect, prompts)}\n\n{material}"
    own = prompts.instruction("geval/scorer", aspect=aspect)
    prompt = Prompt(prompts.render("geval/system"), shared, own, media=task.media)
    return Question("scorer", "scorer", 1, prompt, form, call_metadata(task), {CHOICES: form.choices})


async def _weighted_score(
    question: Question, task: ScoreTask, runtime: AgentRuntime[GEvalSettings]
) -> WeightedScore:
    """Weight the score as the setting ``weighting`` says: by log-probabilities, by samples, or by what is available.

    Raises:
        UsageError: the setting asks for log-probabilities, and the model returns none.
    """
    weighting = runtime.settings.weighting
    if weighting == "sampling":
        return await _by_samples(question, runtime)
    try:
        return await _by_logprobs(question, task, runtime)
    except NoProbabilitiesError as error:
        if weighting == "logprobs":
            raise UsageError(f"weighting=logprobs: {error}; use weighting=sampling or auto") from error
        weighted = await _by_samples(question, runtime)
        reason = f"{error}: the score is the mean of {runtime.settings.samples} samples"
        # The turn of the attempt stays in the transcript: it was paid.
        return replace(weighted, turns=[*error.turns, *weighted.turns], warnings=[*weighted.warnings, reason])


async def _by_logprobs(
    question: Question, task: ScoreTask, runtime: AgentRuntime[GEvalSettings]
) -> WeightedScore:
    model = runtime.model_of(question.role)
    if not model.gives(LOGPROBS):
        raise NoProbabilitiesError(NO_LOGPROBS.of(model=model.label))
    wanted = {LOGPROBS: True, "top_logprobs": TOP_LOGPROBS}
    asked = replace(question, parameters={**question.parameters, **wanted})
    try:
        answer = await runtime.ask(asked)
    except UnsupportedParameterError as error:
        raise NoProbabilitiesError(NO_LOGPROBS.of(model=model.label)) from error
    if answer.tokens is None:
        model.drop(LOGPROBS, asked.parameters)
        # Some servers ignore the parameter without a word; it is not sent again.
        raise NoProbabilitiesError(NO_LOGPROBS.of(model=model.label), [answer.turn])
    expected, warnings = _expected(answer, task), answer.warnings
    told = OFF_SCALE.of(question.who, share=expected.dropped)
    if expected.dropped > MOST_OFF_SCALE and runtime.settings.weighting == "logprobs":
        problem = f"{told}: take weighting=auto or weighting=sampling."
        off_scale = ReplyError(problem, answer.turn["content"], "off_scale")
        off_scale.turn = answer.turn
        raise off_scale
    if expected.dropped > MOST_OFF_SCALE:
        raise NoProbabilitiesError(told, [answer.turn])
    if expected.dropped >= NOTABLE:
        warnings = (*warnings, told)
    details = {"weighting": "logprobs", "mass_dropped": expected.dropped}
    return WeightedScore(expected, [answer.turn], warnings, details)


def _expected(answer: Answer, task: ScoreTask) -> Expectation:
    low, high = task.aspect.low, task.aspect.high
    assert answer.tokens is not None
    rating = answer.turn["value"]
    assert isinstance(rating, float)
    try:
        return expected_score(score_tokens(answer.tokens, rating, low, high), low, high)
    except ValueError as error:
        why = f"token log-probabilities cannot be used: {error}"
        raise NoProbabilitiesError(why, [answer.turn]) from error


async def _by_samples(question: Question, runtime: AgentRuntime[GEvalSettings]) -> WeightedScore:
    samples = await runtime.sample(question, runtime.settings.samples)
    turns, values = samples.turns, [value for turn in samples.turns if (value := turn["value"]) is not None]
    details = {"weighting": "sampling", "samples": len(turns), "unread_samples": len(turns) - len(values)}
    expected = expected_from_samples(value for value in values if isinstance(value, float))
    return WeightedScore(expected, turns, samples.warnings, details)
