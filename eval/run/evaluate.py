"""Evaluation of datasets from Python: ``evaluate``, and ``aevaluate`` for async code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, Unpack, cast

from ...graphs.engine.options import AnyJudges
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.runtime.bound_judge import Models
from ..datasets.dataset import Data, Dataset
from ..results.config import RunLimits
from ..results.evaluation import Evaluation
from ..results.run_set import read_run_set
from .calls.call_pipeline import RunContext
from .plan.plan import JudgingOptions, Options, divided, plan
from .plan.run_set_plan import RunSetPlan, plan_run_set
from .run_set_runner import execute_run_set
from .runner import Engine, execute

OneOfSeveral: TypeAlias = str | Path | Dataset
SeveralData: TypeAlias = (
    list[str] | list[Path] | list[Dataset] | list[OneOfSeveral] | tuple[OneOfSeveral, ...]
)
"""Several datasets, their names, or files. A list of dicts is one table."""


class RunOptions(JudgingOptions, RunLimits, total=False):
    """All options of a run: for its plan, and for its execution.

    Attributes:
        models: role to chat model or model name, ``"*"`` for all; a list of several such choices
            judges everything with each of them.
        engine: distributes the run over several processes; ``None`` means this process alone.
    """

    models: Models | list[Any] | tuple[Any, ...] | None
    engine: Engine | None


def evaluate(
    protocols: AnyJudges, data: Data | SeveralData | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """Judge a dataset, or several, also from a notebook; ``aevaluate`` is the same for async code.

    Args:
        protocols: the name of a protocol, or a graph with the same input and output, compiled or
            not; several of these; or a dict that maps names for the results to them. A graph has
            the settings and models that it was built with. Calls of other packages' graphs are not
            in the journal, and do not count towards limits.
        data: a dataset, its name, a file or a table in memory, see ``load_dataset``; with
            ``replies`` it may be left out. A list of datasets, names and files judges each of them.
        **options: see ``Options`` (what is judged) and ``RunConfig`` (limits, and where replies are
            stored). A list of ``models`` judges with each of them. Limits apply to everything
            together.

    Returns:
        the outcome. For several datasets or models it is ``Evaluations``, whose ``runs`` are the
        outcomes of each combination.

    Raises:
        UsageError: bad input, reported before any call.

    >>> done = evaluate("debate", "demo", aspects=["consistency"], limit=4)
    >>> len(done.results), done.failed
    (4, ())
    >>> evaluate("single", ["demo", "demo-pairs"], limit=4)
    <Evaluations: 2 runs>
    demo (score):
      single, coherence: 4 judged, 0 failed, mean 3.12
      single, consistency: 4 judged, 0 failed, mean 2.25
      single, fluency: 4 judged, 0 failed, mean 4.88
      single, relevance: 4 judged, 0 failed, mean 4.12
    demo-pairs (compare):
      single: 4 judged, 0 failed
    """
    return run_blocking(aevaluate(protocols, data, **options))


async def aevaluate(
    protocols: AnyJudges, data: Data | SeveralData | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """Judge a dataset, or several, from async code; arguments and errors as for ``evaluate``."""
    return await _evaluate(protocols, data, options)


async def _evaluate(
    protocols: AnyJudges, data: Data | SeveralData | None, options: Mapping[str, Any]
) -> Evaluation:
    config, wanted, others = divided(options, "engine")
    engine: Engine | None = others.get("engine")
    if engine is not None:
        engine.check_judges(protocols)
    context = RunContext(config)
    models: Any = wanted.get("models")
    is_several = _is_list_of_data(data) or isinstance(models, list | tuple)
    # Planning reads files and compiles graphs, which would block the caller's event loop.
    if is_several or _holds_several(wanted.get("out")):
        run_set = await asyncio.to_thread(_plan_several, protocols, data, wanted)
        done = await execute_run_set(run_set, context, engine)
        return done if is_several else done.runs[0].evaluation
    planned = await asyncio.to_thread(plan, protocols, cast("Data | None", data), **wanted)
    return await execute(planned, context, engine)


def _plan_several(
    protocols: AnyJudges, data: Data | SeveralData | None, options: Options
) -> RunSetPlan:
    without: dict[str, Any] = {name: value for name, value in options.items() if name != "models"}
    models: Any = options.get("models")
    datasets: list[Any] = list(cast("SeveralData", data)) if _is_list_of_data(data) else [data]
    choices = list(models) if isinstance(models, list | tuple) else [models]
    return plan_run_set(protocols, [one for one in datasets if one is not None], choices, **without)


def _is_list_of_data(data: object) -> bool:
    """Return whether this is a list of datasets; a list of dicts is one table."""
    return isinstance(data, list | tuple) and len(data) > 0 and not isinstance(data[0], Mapping)


def _holds_several(out: str | Path | None) -> bool:
    return out is not None and read_run_set(Path(out)) is not None
