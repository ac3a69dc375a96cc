"""The steps of an experiment: its input is checked, then it is carried out and its result stored.

An experiment is one file in this folder and one in ``eval/cli``. The file here has:

- a subclass of ``ExperimentResult``: the figures, the first screen and the tables. ``jurygraph
  report`` shows them from the file that it writes;
- a subclass of ``Experiment`` (of ``OneRun`` if all judgements are one run), and a function
  ``plan_...`` that checks the input and returns it;
- two entry points, one for ordinary and one for async code, which call ``planned_and_done``.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...state.errors import UsageError
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.experiment_result import ExperimentResult
from ..run.calls.call_pipeline import RunContext
from ..run.plan.plan import Options, Plan, count_judged
from ..run.runner import check_run, execute

Done = TypeVar("Done", bound=ExperimentResult)


class Experiment(ABC, Generic[Done]):
    """An experiment whose input is checked, and which is not started yet."""

    @abstractmethod
    def check(self, config: RunConfig) -> None:
        """Check that the experiment can be carried out with this config; nothing is called.

        Raises:
            UsageError: a limit that cannot be applied, or a folder with another run.
        """

    @abstractmethod
    async def carry_out(self, context: RunContext) -> Done:
        """Make the judgements within the budget, and return and store the result.

        Judgements that exist in the folder from an earlier start are not made again.
        """


@dataclass(frozen=True)
class OneRun(Experiment[Done]):
    """An experiment whose judgements are all one run.

    Attributes:
        plan: the run.
    """

    plan: Plan

    def check(self, config: RunConfig) -> None:
        """Check the run and its folder."""
        check_run(self.plan, config)
        count_judged(self.plan, config)

    async def carry_out(self, context: RunContext) -> Done:
        """Carry out the run, and measure and store the result."""
        return self.result(await execute(self.plan, context)).write()

    @abstractmethod
    def result(self, evaluation: Evaluation) -> Done:
        """Measure the result from the verdicts of the run, which may have stopped early."""


async def planned_and_done(plan: Callable[[], Experiment[Done]], config: RunConfig) -> Done:
    """Check the input of an experiment, and carry it out.

    Args:
        plan: checks the input and returns the experiment.
        config: the limits.
    """
    # In a thread, because planning reads the dataset and would block the event loop.
    planned = await asyncio.to_thread(plan)
    return await planned.carry_out(RunContext(config))


def refuse_other_runs(experiment: str, options: Options) -> None:
    """Refuse options of ordinary runs that would change what an experiment compares.

    Args:
        experiment: the name of the experiment.
        options: the options of its runs.

    Raises:
        UsageError: repeats, replies or a shard.

    >>> refuse_other_runs("bias", {"repeats": 3})
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: bias judges each item once, by a model: leave out repeats, replies and shards
    """
    if options.get("repeats", 1) != 1 or options.get("replies") is not None or options.get("shard"):
        raise UsageError(
            f"{experiment} judges each item once, by a model: leave out repeats, replies and shards"
        )
