"""Metrics by name; parameters as a model's are given: ``bertscore?lang=de``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...state.errors import UsageError
from . import neural, overlap
from .metric import Metric

METRICS: dict[str, Callable[..., Metric]] = {
    "rouge-l": overlap.rouge_l,
    "bleu-4": overlap.bleu_4,
    "bertscore": neural.bertscore,
    "moverscore": neural.moverscore,
    "bartscore": neural.bartscore,
    "unieval": neural.unieval,
    "gptscore": neural.gptscore,
}
"""What makes each metric. The first two are built in; the others need packages of their own."""


def find_metric(name: str) -> Metric:
    """A metric by its name, or a function of one's own as ``module:function``.

    Raises:
        UsageError: no such metric, parameter or function, or a package that is not there.

    >>> find_metric("bleu-4").name
    'bleu-4'
    >>> find_metric("math:sqrt").signature
    'function:math.sqrt'
    """
    known, _, query = name.partition("?")
    if known in METRICS:
        return _made(name, known, [pair.partition("=") for pair in query.split("&") if pair])
    if ":" in name:
        return _own(name)
    raise UsageError(
        f"unknown metric {name!r}; known are {', '.join(METRICS)}, or a function of your own as module:function"
    )


def _made(name: str, known: str, pairs: list[tuple[str, str, str]]) -> Metric:
    builder = METRICS[known]
    takes = inspect.signature(builder).parameters
    given: dict[str, Any] = {}
    for key, _, text in pairs:
        if key not in takes:
            raise UsageError(f"{name}: {known} has no parameter {key!r}; it has {', '.join(takes) or 'none'}")
        given[key] = _value(name, key, text, takes[key].default)
    return builder(**given)


def _value(name: str, key: str, text: str, default: object) -> object:
    """A parameter's value, of the kind that its default is."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{name}: {key} must be true or false, got {text!r}")
        return text.lower() == "true"
    if isinstance(default, int):
        if not text.isdigit():
            raise UsageError(f"{name}: {key} must be a number, got {text!r}")
        return int(text)
    return text


def _own(name: str) -> Metric:
    module, _, called = name.partition(":")
    try:
        function = getattr(import_module(module), called)
    except Exception as error:  # whatever goes wrong in somebody's own module
        raise UsageError(f"{name}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise UsageError(f"{name}: is no function")
    return Metric.of(called, function)
