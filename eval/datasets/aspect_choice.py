"""Choose what texts are scored for: the aspects that are named, or those that a dataset has labels for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from ...nodes.yaml_files import read_yaml
from ...state.aspects import ASPECTS, Aspect, find_aspect, full_names
from ...state.checked import listed
from ...state.errors import DataError, UsageError
from .dataset import Dataset
from .files import unreadable
from .items import ScoreItem


def choose_aspects(dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
    """Choose the aspects to judge: those named, else all that the dataset has labels for.

    A name is a known aspect's or that of a YAML file with a whole aspect; an aspect stands for itself. Of known
    aspects that share a bare name, the one of the dataset's family is taken; where that is not known, dialogues (items
    with a fact) are rated as Topical-Chat's are and other texts as SummEval's.

    Raises:
        UsageError: an unknown aspect, or one that the dataset has no labels for although it has others.
        DataError: a label that is off an aspect's scale.
    """
    if isinstance(names, str):
        raise UsageError(f"aspects must be a list of aspects, got {names!r}")
    if dataset.kind == "compare":
        if names:
            raise UsageError(f"{dataset.name} compares answers, and --aspect only applies to scores")
        return []
    if not names and not dataset.aspect_names():
        remedy = "name an aspect with --aspect, or a column of labels with --columns human.ASPECT=COLUMN"
        raise UsageError(f"{dataset.name} has no labels that would name its aspects; {remedy}")
    aspects = [_aspect(dataset, name) for name in names or dataset.aspect_names()]
    for aspect in aspects:
        labels = dataset.survey.aspects.get(aspect.name)
        # The range is known from loading: the items are read again only to name the one that is off the scale.
        if labels is not None and not (aspect.low <= labels.low and labels.high <= aspect.high):
            _refuse_labels_off(dataset, aspect)
    return aspects


def warn_of_names(dataset: Dataset, names: Sequence[str | Aspect], aspects: Sequence[Aspect]) -> None:
    """Warn of what names of aspects may mean in a user's own data.

    Said is which wording a judge will be given for each bare name that several benchmarks have for different things;
    and where the data have labels, and none for any aspect that is judged: a misspelt name, perhaps.
    """
    if dataset.kind == "compare" or dataset.family is not None:
        return
    has, judged, notices = dataset.aspect_names(), [aspect.name for aspect in aspects], list[str]()
    for name, aspect in zip(names or has, aspects, strict=True):
        if isinstance(name, str) and len(shared := full_names(name)) > 1:
            others = " or ".join(full for full in shared if ASPECTS[full] != aspect)
            chosen = next(full for full in shared if ASPECTS[full] == aspect)
            texts = f"a {aspect.source_name} and its {aspect.candidate_name}"
            rated = f"is rated as {chosen} ({texts}, on a scale from {aspect.low:g} to {aspect.high:g})"
            notices.append(f"the aspect {name} {rated}; for another wording, name it in full: {others}")
    if has and not set(judged) & set(has):
        without = f"has labels for {', '.join(has)}, but none for {', '.join(judged)}"
        notices.append(f"{without}, so the scores cannot be compared with labels")
    for notice in notices:
        warnings.warn(f"{dataset.location}: {notice}", stacklevel=2)


def _aspect(dataset: Dataset, name: str | Aspect) -> Aspect:
    if isinstance(name, Aspect):
        return name
    if name.endswith((".yaml", ".yml")):
        return aspect_from_file(Path(name))
    has = dataset.aspect_names()
    # Labels of "topical-chat/coherence" are mostly called "coherence".
    label = name if name in has else name.rpartition("/")[2]
    if has and label not in has:
        raise UsageError(f"{dataset.name} has no labels for the aspect {name!r}; it has {listed(has, label)}")
    family = dataset.family or ("topical-chat" if dataset.survey.has_facts else "summeval")
    try:
        # An aspect of the dataset's own family comes first: families have aspects of the same name.
        aspect = ASPECTS.get(f"{family}/{name}") or find_aspect(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    # Labels are found by name: those under ``Coherence`` belong to an aspect of that name.
    return aspect.model_copy(update={"name": label}) if label in has else aspect


def aspect_from_file(path: Path) -> Aspect:
    """Read a whole aspect (name, criteria, low, high, steps) from a YAML file.

    Raises:
        DataError: no such file, no YAML, or no aspect; names the file.
    """
    try:
        return Aspect.model_validate(read_yaml(path))
    except OSError as error:
        raise unreadable(path, error) from error
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise DataError(f"{path}: {'; '.join(str(error).splitlines())}") from error


def _refuse_labels_off(dataset: Dataset, aspect: Aspect) -> None:
    others = [f"--aspect {full}" for full in full_names(aspect.name) if ASPECTS[full] != aspect]
    remedy = " or ".join([*others, "a YAML file with an aspect of your own"])
    for line, item in dataset.numbered():
        label = item.label(aspect.name) if isinstance(item, ScoreItem) else None
        if label is not None and not aspect.low <= label <= aspect.high:
            where = f"{dataset.location}, {dataset.line_name} {line}: field 'human.{aspect.name}'"
            problem = f"of {item.id!r} is {label:g}, off the scale {aspect.low:g} to {aspect.high:g}"
            raise DataError(f"{where} {problem}; for another scale, name {remedy}")
