"""Choosing what to judge a dataset on: aspects that it has labels for, named ones, and those of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from ..state.aspects import ASPECTS, Aspect, find_aspect
from ..state.errors import DataError, UsageError
from .datasets import Dataset, explain
from .files import read_bytes
from .items import ScoreItem


def choose_aspects(dataset: Dataset, names: Sequence[str]) -> list[Aspect]:
    """The aspects to judge: those named, else all that the dataset has labels for.

    A name is a known aspect's or that of a YAML file with a whole aspect.

    Raises:
        UsageError: an unknown aspect, or one that the dataset has no labels for although it has others.
        DataError: a label that is off an aspect's scale.
    """
    if dataset.kind == "compare":
        if names:
            raise UsageError(f"{dataset.name} compares answers: --aspect means nothing there")
        return []
    if not names and not dataset.aspect_names():
        raise UsageError(f"{dataset.name} has no labels to take aspects from; name one with --aspect")
    aspects = [_aspect(dataset, name) for name in names or dataset.aspect_names()]
    for aspect in aspects:
        _check_labels(dataset, aspect)
    return aspects


def _aspect(dataset: Dataset, name: str) -> Aspect:
    if name.endswith((".yaml", ".yml")):
        return _aspect_from_file(Path(name))
    bare = name.rpartition("/")[2]
    has = dataset.aspect_names()
    if has and bare not in has:
        raise UsageError(f"{dataset.name} has no labels for the aspect {name!r}; it has {', '.join(has)}")
    try:
        return ASPECTS.get(f"{dataset.family}/{name}") or find_aspect(name)
    except ValueError as error:
        raise UsageError(f"{error}; or the name of a YAML file (name, criteria, low, high, steps)") from error


def _aspect_from_file(path: Path) -> Aspect:
    try:
        return Aspect.model_validate(yaml.safe_load(read_bytes(path)))
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise DataError(f"{path}: {explain(error)}") from error


def _check_labels(dataset: Dataset, aspect: Aspect) -> None:
    labels = dataset.survey.aspects.get(aspect.name)
    if labels is None or (aspect.low <= labels.low and labels.high <= aspect.high):
        return
    for line, item in dataset.numbered():
        label = item.label(aspect.name) if isinstance(item, ScoreItem) else None
        if label is not None and not aspect.low <= label <= aspect.high:
            raise DataError(
                f"{dataset.location}, {dataset.unit} {line}: field 'human.{aspect.name}' of {item.id!r} is {label:g}, "
                f"off the scale {aspect.low:g} to {aspect.high:g}"
            )
