"""Finds metrics by name and computes them over a dataset."""

from __future__ import annotations

import inspect
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, SupportsFloat
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from ...nodes.common.plugins import Group, load_plugin, plugins
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ..datasets.aspect_choice import choose_aspects
from ..datasets.dataset import Data, Dataset, describe_data, load_dataset
from ..datasets.files import repeated
from ..datasets.items import Item, ScoreItem
from ..journal.private_files import make_private_folder
from ..results.evaluation import Evaluation
from ..results.folder import refuse_file, rename_results, write_manifest
from ..results.results import Result, ResultsFile
from . import reference_metrics
from .reference_metrics import Metric, Scored, number_of

Wanted = str | Metric | Callable[[ScoreItem], SupportsFloat | None]
"""A metric's name, a metric, or any function from an item to a number."""
NO_REFERENCES = "no references"


def measure(
    metrics: str | Sequence[str] | Mapping[str, Wanted],
    data: Data,
    *,
    aspects: Sequence[str] = (),
    limit: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Evaluation:
    """Compute metrics over a dataset of texts, without calling a model.

    Args:
        metrics: names (see ``metric_names``); or a mapping of row names to a name, a ``Metric``, or
            any function from an item to a number.
        data: a dataset, its name, a file or a table in memory, see ``load_dataset``.
        aspects: the aspects with human scores to compare with; default: all that have labels. A
            metric's value is the same for all aspects, unless it distinguishes them.
        limit: use only this many items from the start.
        out: a folder for results and manifest.
        overwrite: replace earlier results in the folder.

    Returns:
        A row for each item, aspect and metric. Items without references are left out if a metric
        needs them, and counted in ``manifest["left_out"]``. If a function fails or returns no
        number, the row contains the reason.

    Raises:
        UsageError: an unknown metric, data that compares answers, or no item with references.

    >>> from jurygraph.eval import Dataset
    >>> item = ScoreItem(id="a", source="", candidate="It rained.", references=("It rained.",), human={"fluency": 5})
    >>> rows = {"rouge-l": "rouge-l", "words": lambda item: len(item.candidate.split())}
    >>> done = measure(rows, Dataset.of("mine", [item]))
    >>> [(result.protocol, result.score) for result in done.results]
    [('rouge-l', 1.0), ('words', 2.0)]
    """
    if not (wanted := _metrics(metrics)):
        raise UsageError(f"no metric given; known are {', '.join(metric_names())}")
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be 1 or more, got {limit}")
    dataset = load_dataset(data)
    if dataset.kind == "compare":
        raise UsageError(f"{dataset.name} compares answers: a metric rates one text at a time")
    chosen = choose_aspects(dataset, aspects)
    dataset = dataset.first(limit)
    folder = Path(out) if out is not None else None
    refuse_file(folder)
    # Compute all values before the first file: a metric without usable items must leave no folder
    # behind.
    left_out = Counter[str]()
    results = tuple(_results(wanted, dataset, [aspect.name for aspect in chosen], left_out))
    for name, without in left_out.items():
        if without == len(dataset):
            raise UsageError(
                f"{name} needs references, but no item of {dataset.name} has any; add a field `references`"
            )
    counted = {name: {NO_REFERENCES: left_out[name]} for name in wanted if left_out[name]}
    manifest = {**_manifest(wanted, dataset, chosen, limit), "left_out": counted}
    if folder is None:
        return Evaluation(results, manifest)
    make_private_folder(folder)
    if overwrite:
        # Before the manifest is written, which refuses a folder with another run.
        rename_results(folder)
    kept = write_manifest(folder, manifest)
    file = ResultsFile(folder)
    for result in results:
        file.add(result)
    return Evaluation(file.finish(result.key for result in results), kept, folder)


def _results(
    metrics: Mapping[str, Metric],
    items: Iterable[Item],
    aspects: Sequence[str],
    left_out: Counter[str],
) -> Iterator[Result]:
    """Yield a row for each item, aspect and metric, and count the left-out items by metric."""
    for item in items:
        # For the type checker: datasets that compare answers were refused.
        assert isinstance(item, ScoreItem)
        for name, metric in metrics.items():
            if metric.needs_references and not item.references:
                left_out[name] += 1
                continue
            scored: Scored = None
            problem = ""
            try:
                # Once for all aspects: most metrics give one value, and metrics with a model are
                # slow.
                scored = metric.score(item, aspects)
            except Exception as error:  # a custom function may raise anything for one text
                problem = f"{type(error).__name__}: {error}"
            for aspect in aspects:
                yield _result(name, item, aspect, scored, problem)


def _metrics(wanted: str | Sequence[str] | Mapping[str, Wanted]) -> dict[str, Metric]:
    if not isinstance(wanted, Mapping):
        named = [
            find_metric(name)
            for name in dict.fromkeys([wanted] if isinstance(wanted, str) else wanted)
        ]
        if twice := repeated(metric.name for metric in named):
            raise UsageError(f"{twice} is given twice; name each differently, from Python")
        return {metric.name: metric for metric in named}
    made = {
        name: find_metric(what) if isinstance(what, str) else what for name, what in wanted.items()
    }
    return {
        name: what if isinstance(what, Metric) else Metric.of(name, what)
        for name, what in made.items()
    }


def _result(name: str, item: ScoreItem, aspect: str, scored: Scored, problem: str) -> Result:
    about: dict[str, Any] = {
        "item": item.id,
        "group": item.group,
        "aspect": aspect,
        "protocol": name,
    }
    known = {**about, "human": item.label(aspect), **item.about(aspect)}
    if not problem:
        try:
            return Result(
                **known, status="ok", score=number_of(scored, aspect), stop_reason="complete"
            )
        except (ValueError, TypeError) as error:
            problem = str(error)
    return Result(**known, status="failed", error=problem)


def _manifest(
    metrics: Mapping[str, Metric], dataset: Dataset, aspects: Sequence[Aspect], limit: int | None
) -> dict[str, Any]:
    """Return a manifest with the fields of a run's, so that reports read both alike."""
    about = f"data:{dataset.name}@{dataset.digest}|aspects:{'+'.join(aspect.name for aspect in aspects)}"
    signed = f"{about}|jurygraph:{version('jurygraph')}"
    return {
        "run": uuid4().hex,
        "signatures": {
            name: f"protocol:{name}|{signed}|{of.signature}" for name, of in metrics.items()
        },
        "note": None,
        "metrics": {name: metric.signature for name, metric in metrics.items()},
        "protocols": {name: {} for name in metrics},
        "models": {name: {} for name in metrics},
        "prompts": {},
        "data": describe_data(dataset),
        "aspects": [aspect.model_dump(mode="json") for aspect in aspects],
        "limit": limit,
        "repeats": 1,
        "versions": {"python": platform.python_version(), "jurygraph": version("jurygraph")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


METRICS: dict[str, Callable[..., Metric]] = {
    name: getattr(reference_metrics, name.replace("-", "_"))
    for name in ("rouge-l", "bleu-4", "bertscore", "moverscore", "bartscore", "unieval", "gptscore")
}
"""The function that creates each metric; the first two are built in, others need packages."""

MakeMetric = Callable[..., Metric]
"""The type of an entry under ``jurygraph.metrics``: a function that returns a ``Metric``.

Its parameters have defaults, and are set after a question mark (``readability?level=2``): a text, a
number or true/false, according to the default.
"""

_GROUP: Group = "jurygraph.metrics"


def metric_names() -> tuple[str, ...]:
    """Return the names of the built-in metrics, then of those that other packages register.

    >>> metric_names()[:2]
    ('rouge-l', 'bleu-4')
    """
    return tuple(dict.fromkeys([*METRICS, *plugins(_GROUP)]))


def find_metric(name: str) -> Metric:
    """Return a metric by its name, or create one from a custom function, ``module:function``.

    Raises:
        UsageError: an unknown metric, parameter or function, or a missing package.

    >>> find_metric("bleu-4").name
    'bleu-4'
    >>> find_metric("math:sqrt").signature
    'function:math.sqrt'
    """
    # ``rouge-l?words=any``: parameters follow as in a URL's query, separated by ``&``.
    known, _, query = name.partition("?")
    if known in metric_names():
        return _made(name, known, [pair.partition("=") for pair in query.split("&") if pair])
    module, colon, called = name.partition(":")
    if not colon:
        known = (
            f"known are {', '.join(metric_names())}, or a function of your own as module:function"
        )
        raise UsageError(f"unknown metric {name!r}; {known}")
    try:
        function = getattr(import_module(module), called)
    except Exception as error:  # importing a user's module may raise anything
        raise UsageError(f"{name}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise UsageError(f"{name}: is not a function")
    return Metric.of(called, function)


def _made(name: str, known: str, pairs: list[tuple[str, str, str]]) -> Metric:
    # A built-in name has priority over another package's.
    builder: MakeMetric = METRICS[known] if known in METRICS else load_plugin(_GROUP, known)
    if not callable(builder):
        raise UsageError(
            f"{known!r}, registered under {_GROUP}, is not a function that makes a metric"
        )
    takes = inspect.signature(builder).parameters
    given: dict[str, Any] = {}
    for key, _, text in pairs:
        if key not in takes:
            raise UsageError(
                f"{name}: {known} has no parameter {key!r}; it has {', '.join(takes) or 'none'}"
            )
        given[key] = _value(name, key, text, takes[key].default)
    made = builder(**given)
    if not isinstance(made, Metric):
        raise UsageError(
            f"{known!r}, registered under {_GROUP}, made a {type(made).__name__}, not a Metric"
        )
    return made


def _value(name: str, key: str, text: str, default: object) -> object:
    """Parse a parameter's value as the type of its default."""
    if not isinstance(default, bool | int | float):
        return text
    try:
        return TypeAdapter(type(default)).validate_strings(text)
    except ValidationError:
        # In Python, True and False are numbers too.
        wanted = "true or false" if isinstance(default, bool) else "a number"
        raise UsageError(f"{name}: {key} must be {wanted}, got {text!r}") from None
