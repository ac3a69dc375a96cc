"""G-Eval's scorer: a number with nothing round it, and how likely the others were (G-Eval, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..state.errors import UsageError
from ..state.expected_score import Expectation, expected_from_samples, expected_score, score_tokens
from ..state.graph_state import JudgeState
from ..state.settings import GEvalSettings
from ..state.tasks import ScoreTask
from ..state.transcript import Turn
from .agent_runtime import AgentRuntime, Answer, Question
from .models.call import UnsupportedParameterError
from .models.capabilities import LOGPROBS
from .output_schemas import RatingSchema
from .planner import rubric
from .prompt_context import call_metadata, task_of
from .prompt_templates import Prompt

TOP_LOGPROBS = 20
"""As many as the chat completions of OpenAI give."""


@dataclass(frozen=True)
class Weighed:
    """The expected score, what it was weighed from, and what is to be told of it."""

    expectation: Expectation
    turns: Sequence[Turn]
    warnings: Sequence[str]
    details: dict[str, Any]


class NoProbabilitiesError(Exception):
    """Token log-probabilities are not to be had; the message says why. ``turns`` is what was spent on the attempt."""

    def __init__(self, why: str, turns: Sequence[Turn] = ()) -> None:
        super().__init__(why)
        self.turns = turns


async def scorer(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the score, and weigh it by the likelihood of all scores.

    Shown: the task, the criteria, the evaluation steps, the material. Answers with a number alone; the state is
    given its expectation.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    steps = list(runtime.settings.steps) or state["details"]["steps"]
    weighed = await _weigh(_question(task, steps, runtime), task, runtime)
    found = weighed.expectation
    return {
        "transcript": list(weighed.turns),
        "warnings": list(weighed.warnings),
        "scores": [found.value],
        "round": 1,
        "details": {**weighed.details, "distribution": found.by_name, "steps": steps},
    }


def _question(task: ScoreTask, steps: Sequence[str], runtime: AgentRuntime[GEvalSettings]) -> Question:
    prompts, aspect = runtime.prompts, task.aspect
    texts = {"source": task.source, "fact": task.fact, "candidate": task.candidate}
    material = prompts.render("geval/task", aspect=aspect, steps=steps, **texts)
    return Question(
        agent="scorer",
        role="scorer",
        round=1,
        prompt=Prompt(
            system=prompts.render("geval/system"),
            shared=f"{rubric(aspect, prompts)}\n\n{material}",
            own=prompts.render("geval/scorer", aspect=aspect),
        ),
        form=RatingSchema(aspect),
        details=call_metadata(task),
    )


async def _weigh(question: Question, task: ScoreTask, runtime: AgentRuntime[GEvalSettings]) -> Weighed:
    """By token log-probabilities, by samples, or by what the model allows.

    Raises:
        UsageError: log-probabilities are asked for, and are not to be had.
    """
    wish = runtime.settings.weighting
    if wish == "sampling":
        return await _by_samples(question, runtime)
    try:
        return await _by_logprobs(question, task, runtime)
    except NoProbabilitiesError as error:
        if wish == "logprobs":
            raise UsageError(f"weighting=logprobs: {error}; take weighting=sampling, or auto") from error
        weighed = await _by_samples(question, runtime)
        said = f"{error}: the score is the mean of {runtime.settings.samples} samples"
        return replace(weighed, turns=[*error.turns, *weighed.turns], warnings=[*weighed.warnings, said])


async def _by_logprobs(question: Question, task: ScoreTask, runtime: AgentRuntime[GEvalSettings]) -> Weighed:
    model = runtime.model_of(question.role)
    if not model.gives(LOGPROBS):
        raise NoProbabilitiesError(f"{model.label} returns no token log-probabilities")
    asked = replace(question, parameters={LOGPROBS: True, "top_logprobs": TOP_LOGPROBS})
    try:
        answer = await runtime.ask(asked)
    except UnsupportedParameterError as error:
        raise NoProbabilitiesError(f"{model.label} returns no token log-probabilities") from error
    if answer.tokens is None:
        model.drop(LOGPROBS, asked.parameters)
        raise NoProbabilitiesError(f"{model.label} returns no token log-probabilities", [answer.turn])
    found = _expected(answer, task)
    details = {"weighting": "logprobs", "mass_dropped": found.dropped}
    return Weighed(found, [answer.turn], answer.warnings, details)


def _expected(answer: Answer, task: ScoreTask) -> Expectation:
    low, high = task.aspect.low, task.aspect.high
    assert answer.tokens is not None
    assert isinstance(answer.value, float)
    try:
        return expected_score(score_tokens(answer.tokens, answer.value, low, high), low, high)
    except ValueError as error:
        raise NoProbabilitiesError(
            f"token log-probabilities cannot be used: {error}", [answer.turn]
        ) from error


async def _by_samples(question: Question, runtime: AgentRuntime[GEvalSettings]) -> Weighed:
    samples = await runtime.sample(question, runtime.settings.samples)
    found = expected_from_samples(value for turn in samples.read if isinstance(value := turn["value"], float))
    details = {"weighting": "sampling", "samples": len(samples.turns), "unread_samples": samples.unread}
    return Weighed(found, samples.turns, samples.warnings, details)
