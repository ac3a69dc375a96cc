"""G-Eval's scorer: a number, weighted by the probabilities of all scores (G-Eval, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..state.aggregation import Expectation, expected_from_samples, expected_score, score_tokens
from ..state.errors import ReplyError, UsageError
from ..state.graph_state import JudgeState
from ..state.settings import GEvalSettings
from ..state.tasks import TEXTS, ScoreTask, is_rubric
from ..state.transcript import Score, Turn
from ..state.verdict_warnings import NO_LOGPROBS, OFF_SCALE
from .evaluation_steps import rubric
from .models.call import UnsupportedParameterError
from .models.capabilities import CHOICES, LOGPROBS
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.output_schemas import RatingSchema
from .runtime.prompt_context import Prompt, call_metadata, task_of, with_all_texts
from .runtime.verdicts import Decision, nearest

TOP_LOGPROBS = 20
"""The maximum that OpenAI's chat completions return."""

NOTABLE = 0.2
MOST_OFF_SCALE = 0.5
"""The probability off the scale from which a warning is given, and above which it is an error."""


class NoProbabilitiesError(Exception):
    """Token log-probabilities are not available; the message gives the reason.

    Attributes:
        turns: the turns of the attempt, whose calls were paid.
    """

    def __init__(self, why: str, turns: Sequence[Turn] = ()) -> None:
        super().__init__(why)
        self.turns = turns


async def scorer(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the score, and compute its expectation over the probabilities of all scores.

    Shown: the task, the criteria, the evaluation steps and the texts. The reply is a number only.
    The setting ``weighting`` chooses the source of the probabilities: log-probabilities, samples,
    or log-probabilities if available.

    Raises:
        UsageError: the setting requires log-probabilities, and the model returns none.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    settings = runtime.settings
    prompts = runtime.prompts
    aspect = task.aspect
    # Steps from the settings have priority. With them, the state has no planner's steps.
    steps = list(settings.steps) or state["details"]["steps"]
    texts = {name: getattr(task, name) for name in TEXTS if name in ScoreTask.model_fields}
    followed = bool(settings.steps) or is_rubric(aspect)
    filled = prompts.render("geval/task", aspect=aspect, steps=steps, rubric=followed, **texts)
    material = with_all_texts(filled, task, "geval/task")
    own = prompts.instruction("geval/scorer", aspect=aspect)
    shared = f"{rubric(aspect, prompts)}\n\n{material}"
    prompt = Prompt(prompts.render("geval/system"), shared, own, media=task.media)
    form = RatingSchema(aspect.low, aspect.high, aspect.name, aspect.choices)
    details = call_metadata(task)
    question = Question("scorer", "scorer", 1, prompt, form, details, {CHOICES: form.choices})
    try:
        weighted = _by_samples if settings.weighting == "sampling" else _by_logprobs
        update = await weighted(question, runtime)
    except NoProbabilitiesError as error:
        if settings.weighting == "logprobs":
            raise UsageError(
                f"weighting=logprobs: {error}; use weighting=sampling or auto"
            ) from error
        update = await _by_samples(question, runtime)
        update["warnings"].append(f"{error}: the score is the mean of {settings.samples} samples")
        # The turn of the attempt stays in the transcript, because it was paid.
        update["transcript"] = [*error.turns, *update["transcript"]]
    update["details"]["steps"] = steps
    return update


def expected_by_round(state: JudgeState) -> list[Score]:
    """Return the expected score from the tokens' probabilities, or the mean of the samples.

    If a human edited the scorer's rating, the probabilities of the original tokens no longer apply.
    """
    turns = [turn for turn in state["transcript"] if turn["role"] == "scorer"]
    values = [value for turn in turns if isinstance(value := turn["value"], int | float)]
    details = state["details"]
    if not values or "expected" not in details:
        return []
    edited = any(turn.get("edited") for turn in turns)
    if details["weighting"] == "logprobs":
        return [values[-1] if edited else details["expected"]]
    # The attempt to get probabilities is also a turn, but not a sample.
    sampled = (turn["value"] for turn in turns if "sample" in turn)
    samples = [value for value in sampled if isinstance(value, int | float)]
    return [expected_from_samples(samples).value if edited else details["expected"]]


def expectation(state: JudgeState, _settings: GEvalSettings) -> Decision:
    """Decide by the expected score; the details contain the distribution."""
    final = state["scores"][-1]
    return Decision(final, nearest(state["transcript"], final), details=state["details"])


async def _by_logprobs(question: Question, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    model = runtime.model_of(question.role)
    scale = question.form.scale
    unavailable = NO_LOGPROBS.of(model=model.label)
    if not model.gives(LOGPROBS):
        raise NoProbabilitiesError(unavailable)
    wanted = {LOGPROBS: True, "top_logprobs": TOP_LOGPROBS}
    asked = replace(question, parameters={**question.parameters, **wanted})
    try:
        answer = await runtime.ask(asked)
    except UnsupportedParameterError as error:
        raise NoProbabilitiesError(unavailable) from error
    turns = [answer.turn]
    warnings = [*answer.warnings]
    rating = answer.turn["value"]
    if answer.tokens is None:
        model.drop(LOGPROBS, asked.parameters)
        # Some servers ignore the parameter silently. It is not sent again.
        raise NoProbabilitiesError(unavailable, turns)
    assert isinstance(rating, float)
    assert scale is not None
    try:
        expected = expected_score(score_tokens(answer.tokens, rating, *scale), *scale)
    except ValueError as error:
        raise NoProbabilitiesError(
            f"token log-probabilities cannot be used: {error}", turns
        ) from error
    off_scale = OFF_SCALE.of(question.who, share=expected.dropped)
    if expected.dropped > MOST_OFF_SCALE:
        if runtime.settings.weighting != "logprobs":
            raise NoProbabilitiesError(off_scale, turns)
        problem = f"{off_scale}: take weighting=auto or weighting=sampling."
        unusable = ReplyError(problem, answer.turn["content"], "off_scale")
        unusable.turn = answer.turn
        raise unusable
    if expected.dropped >= NOTABLE:
        warnings.append(off_scale)
    return _update(expected, turns, warnings, weighting="logprobs", mass_dropped=expected.dropped)


async def _by_samples(question: Question, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    turns, warnings = await runtime.sample(question, runtime.settings.samples)
    values = [value for turn in turns if (value := turn["value"]) is not None]
    counts = {"samples": len(turns), "unread_samples": len(turns) - len(values)}
    expected = expected_from_samples(value for value in values if isinstance(value, float))
    return _update(expected, turns, warnings, weighting="sampling", **counts)


def _update(
    expected: Expectation, turns: list[Turn], warnings: list[str], **details: Any
) -> dict[str, Any]:
    """Return the state update with the expected score and its distribution in the details."""
    details |= {"expected": expected.value, "distribution": expected.by_name}
    return {"transcript": turns, "warnings": warnings, "details": details}
