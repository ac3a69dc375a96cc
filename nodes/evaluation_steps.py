"""The planner: writes the steps of an evaluation from the aspect's criteria (G-Eval, section 2.1).

The verdicts of a run share the steps. A run opens a cache, and steps are then requested once per
aspect and model, even if many items begin at the same moment.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..state.aspects import Aspect
from ..state.errors import ModelCallError, ReplyError, TransientCallError, UsageError
from ..state.graph_state import JudgeState
from ..state.planned_steps import PlannedSteps
from ..state.settings import GEvalSettings
from ..state.tasks import ScoreTask, is_rubric
from .common.sync_bridge import set_for_block
from .replies.steps import read_steps
from .runtime.agent_runtime import AgentRuntime, Answer, Question
from .runtime.output_schemas import RatingSchema, StepsSchema, written_choices
from .runtime.prompt_context import (
    Prompt,
    Prompts,
    call_metadata,
    rubric_points,
    score_rules,
    task_of,
)


class EvaluationStepsCache:
    """A cache of evaluation steps by key that has each set written once.

    Args:
        known: sets that already exist.
        keep: called with each new set.
    """

    def __init__(
        self,
        known: Iterable[PlannedSteps] = (),
        keep: Callable[[PlannedSteps], None] = lambda _: None,
    ) -> None:
        self._known = {planned.key: planned for planned in known}
        self._keep = keep
        self._failed: dict[str, ReplyError | ModelCallError] = {}
        self._writing: dict[tuple[int, str], asyncio.Lock] = {}

    @property
    def all(self) -> list[PlannedSteps]:
        """All sets in the cache."""
        return list(self._known.values())

    def note(self, planned: PlannedSteps) -> None:
        """Add steps that were written elsewhere, unless the cache has steps for their key."""
        # Verdicts may already use the known steps, and all verdicts of a run share one set.
        if planned.key not in self._known:
            self._known[planned.key] = planned
            self._keep(planned)

    async def steps(
        self, key: str, write: Callable[[], Awaitable[PlannedSteps]]
    ) -> tuple[str, ...]:
        """Return the steps of a key; the first caller has them written, and the others wait.

        If writing fails permanently, all callers get the error without another attempt: the
        planner's question does not depend on the item, and a run over thousands of items would pay
        for each attempt. After a temporary error (a lost connection, a stop, a spent budget), the
        next caller tries again.

        Raises:
            ReplyError, ModelCallError: the steps could not be written.
        """
        # An asyncio lock belongs to one event loop, and graphs may run on several.
        async with self._writing.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock()):
            if failed := self._failed.get(key):
                raise _without_turn(failed)
            if key not in self._known:
                try:
                    self._known[key] = planned = await write()
                except (ReplyError, ModelCallError) as error:
                    if not isinstance(error, TransientCallError):
                        self._failed[key] = error
                    raise
                self._keep(planned)
            return self._known[key].steps


def _without_turn(error: ReplyError | ModelCallError) -> ReplyError | ModelCallError:
    """Return an equal error for another item, which has not paid for the turn."""
    if not isinstance(error, ReplyError):
        return ModelCallError(str(error))
    other = ReplyError(error.problem, error.reply, error.fault)
    other.agent = error.agent
    other.round = error.round
    return other


open_cache: ContextVar[EvaluationStepsCache | None] = ContextVar("open_cache", default=None)


@contextmanager
def keep_steps_in(cache: EvaluationStepsCache | None = None) -> Iterator[EvaluationStepsCache]:
    """Share evaluation steps between all judgements inside the ``with`` block.

    >>> from jurygraph.graphs import geval
    >>> task = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "fluency"}
    >>> with keep_steps_in() as cache:
    ...     results = geval.graph.batch([{"task": task}] * 3)
    >>> sum(turn["agent"] == "planner" for result in results for turn in result["transcript"]), len(cache.all)
    (1, 1)
    """
    cache = EvaluationStepsCache() if cache is None else cache
    with set_for_block(open_cache, cache):
        yield cache


async def planner(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the evaluation steps, unless the cache of an enclosing ``keep_steps_in`` has them.

    Shown: the task and the aspect's criteria, without the texts to judge.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    prompts = runtime.prompts
    aspect = task.aspect
    label = runtime.model_of("planner").label
    own = prompts.instruction("geval/planner", aspect=aspect, **scale(aspect))
    prompt = Prompt(prompts.render("geval/system"), rubric(aspect, prompts), own)
    question = Question("planner", "planner", 0, prompt, StepsSchema(), call_metadata(task))
    identity = "\n".join((label, *prompt.messages("", "shared_prefix")))
    key = hashlib.sha256(identity.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
    answers: list[Answer] = []

    async def write() -> PlannedSteps:
        answers.append(await runtime.ask(question))
        steps = read_steps(answers[0].turn["content"])
        return PlannedSteps(aspect=aspect.name, model=label, key=key, steps=steps)

    cache = open_cache.get() or EvaluationStepsCache()
    steps = await cache.steps(key, write)
    # The turn belongs to the item whose planner was asked. The others caused no cost.
    update = answers[0].update if answers else {}
    return {**update, "details": {"steps": list(steps)}}


def rubric(aspect: Aspect, prompts: Prompts) -> str:
    """Return the task and the criteria as shown to planner and scorer.

    Raises:
        UsageError: the aspect allows only some of the scale's whole numbers.
    """
    # The expected score weights every whole number of the scale.
    if aspect.choices and set(aspect.choices) != set(RatingSchema(aspect.low, aspect.high).choices):
        raise UsageError(
            f"G-Eval rates on all whole numbers from {aspect.low:g} "
            f"to {aspect.high:g}, but only {written_choices(aspect.choices)} are allowed: "
            "use another protocol, or an aspect without choices"
        )
    criteria = prompts.render(
        "geval/rubric", aspect=aspect, rubric=is_rubric(aspect), **scale(aspect)
    )
    return criteria + rubric_points(aspect, prompts) + score_rules(aspect, prompts)


def scale(aspect: Aspect) -> dict[str, str]:
    """Return the ends of an aspect's scale as template variables."""
    return {"low": f"{aspect.low:g}", "high": f"{aspect.high:g}"}
