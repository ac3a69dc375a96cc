"""The planner: writes the steps of an evaluation from the aspect's criteria (G-Eval, section 2.1).

A run that judges many items opens one ``EvaluationStepsCache`` around them: the planner is then asked once
for each aspect and model, also when many items begin at the same moment.
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
    """One set of steps: what they are for, who wrote them, and the key of what the planner was asked."""

    model_config = ConfigDict(frozen=True)

    aspect: str
    model: str
    key: str
    steps: tuple[str, ...]


class EvaluationStepsCache:
    """Steps that are written once and kept.

    Args:
        known: those that were written before.
        keep: told of each set when it is new.
    """

    def __init__(
        self, known: Iterable[PlannedSteps] = (), keep: Callable[[PlannedSteps], None] = lambda _: None
    ) -> None:
        self._known = {planned.key: planned for planned in known}
        self._keep = keep
        self._writing: dict[tuple[int, str], asyncio.Lock] = {}

    @property
    def all(self) -> list[PlannedSteps]:
        """The sets so far."""
        return list(self._known.values())

    def note(self, planned: PlannedSteps) -> None:
        """Take up steps that were written elsewhere."""
        if planned.key not in self._known:
            self._known[planned.key] = planned
            self._keep(planned)

    async def steps(self, key: str, write: Callable[[], Awaitable[PlannedSteps]]) -> tuple[str, ...]:
        """The steps of that key; the first who asks has them written, the others wait.

        If that fails, the next in line tries.
        """
        # A lock belongs to one event loop.
        async with self._writing.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock()):
            if key not in self._known:
                self._known[key] = planned = await write()
                self._keep(planned)
            return self._known[key].steps


_open_book: ContextVar[EvaluationStepsCache | None] = ContextVar("_open_book", default=None)


@contextmanager
def keep_steps_in(book: EvaluationStepsCache | None = None) -> Iterator[EvaluationStepsCache]:
    """Have all judgements inside share their evaluation steps.

    >>> from jurygraph.graphs import geval
    >>> task = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "fluency"}
    >>> with keep_steps_in() as book:
    ...     results = geval.graph.batch([{"task": task}] * 3)
    >>> sum(turn["agent"] == "planner" for result in results for turn in result["transcript"]), len(book.all)
    (1, 1)
    """
    book = EvaluationStepsCache() if book is None else book
    token = _open_book.set(book)
    try:
        yield book
    finally:
        _open_book.reset(token)


async def planner(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the evaluation steps, unless a book is open that holds them.

    Shown: the task and the aspect's criteria, no text that is to be judged.
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
    book = _open_book.get() or EvaluationStepsCache()
    steps = await book.steps(key, write)
    update = answers[0].update if answers else {}
    return {**update, "details": {"steps": list(steps)}}


def rubric(aspect: Aspect, prompts: Prompts) -> str:
    """Task and criteria, as planner and scorer see them."""
    return prompts.render("geval/rubric", aspect=aspect, **scale(aspect))


def scale(aspect: Aspect) -> dict[str, str]:
    """The ends of an aspect's scale in words."""
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
