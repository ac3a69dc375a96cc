"""The planner: writes the steps of an evaluation from the aspect's criteria (G-Eval, section 2.1).

Code that judges many items opens ``keep_steps_in()`` around them: the planner is then asked once for each aspect
and model, also when many items begin at the same moment.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..state.aspects import Aspect
from ..state.graph_state import JudgeState
from ..state.settings import GEvalSettings
from ..state.tasks import ScoreTask
from .agent_runtime import AgentRuntime, Answer, Question
from .output_schemas import StepsSchema, read_steps
from .prompt_context import call_metadata, task_of
from .prompt_templates import Prompt, Prompts


class PlannedSteps(BaseModel):
    """The steps for one aspect, the label of the model that wrote them, and the key of the planner's prompt."""

    model_config = ConfigDict(frozen=True)

    aspect: str
    model: str
    key: str
    steps: tuple[str, ...]


class EvaluationStepsCache:
    """Evaluation steps by key, each set written once.

    Args:
        known: sets that were written before.
        keep: called with each new set.
    """

    def __init__(
        self, known: Iterable[PlannedSteps] = (), keep: Callable[[PlannedSteps], None] = lambda _: None
    ) -> None:
        self._known = {planned.key: planned for planned in known}
        self._keep = keep
        self._writing: dict[tuple[int, str], asyncio.Lock] = {}

    @property
    def all(self) -> list[PlannedSteps]:
        """All sets in the cache."""
        return list(self._known.values())

    def note(self, planned: PlannedSteps) -> None:
        """Add steps that were written elsewhere; known ones are kept."""
        if planned.key not in self._known:
            self._known[planned.key] = planned
            self._keep(planned)

    async def steps(self, key: str, write: Callable[[], Awaitable[PlannedSteps]]) -> tuple[str, ...]:
        """Return the steps of a key; the first caller has them written, callers at the same time wait for that.

        Where writing fails, the error goes to that caller and the next one that waits tries.
        """
        # An asyncio lock belongs to one event loop, and graphs may run on several.
        async with self._writing.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock()):
            if key not in self._known:
                self._known[key] = planned = await write()
                self._keep(planned)
            return self._known[key].steps


_current_cache: ContextVar[EvaluationStepsCache | None] = ContextVar("_current_cache", default=None)


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
    token = _current_cache.set(cache)
    try:
        yield cache
    finally:
        _current_cache.reset(token)


async def planner(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the evaluation steps, unless the cache of an enclosing ``keep_steps_in`` has them.

    Shown: the task and the aspect's criteria; none of the texts that are judged.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    question = _question(task, runtime.prompts)
    answers: list[Answer] = []

    async def write() -> PlannedSteps:
        answers.append(await runtime.ask(question))
        steps = read_steps(answers[0].turn["content"])
        return PlannedSteps(aspect=task.aspect.name, model=label, key=key, steps=steps)

    label = runtime.model_of("planner").label
    key = _key(label, question.prompt)
    cache = _current_cache.get() or EvaluationStepsCache()
    steps = await cache.steps(key, write)
    # The turn belongs to the item whose planner was asked; the others took nothing.
    update = answers[0].update if answers else {}
    return {**update, "details": {"steps": list(steps)}}


def rubric(aspect: Aspect, prompts: Prompts) -> str:
    """Return task and criteria as both planner and scorer are shown them."""
    return prompts.render("geval/rubric", aspect=aspect, **scale(aspect))


def scale(aspect: Aspect) -> dict[str, str]:
    """Return the ends of an aspect's scale as the templates take them."""
    return {"low": f"{aspect.low:g}", "high": f"{aspect.high:g}"}


def _question(task: ScoreTask, prompts: Prompts) -> Question:
    own = prompts.render("geval/planner", aspect=task.aspect, **scale(task.aspect))
    return Question(
        agent="planner",
        role="planner",
        round=0,
        prompt=Prompt(prompts.render("geval/system"), rubric(task.aspect, prompts), own),
        form=StepsSchema(),
        details=call_metadata(task),
    )


def _key(label: str, prompt: Prompt) -> str:
    text = "\n".join((label, prompt.system, prompt.user))
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
