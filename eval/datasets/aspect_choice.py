"""Choose the aspects to judge: the named ones, or those that a dataset has labels for."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from ...nodes.common.yaml_files import read_yaml
from ...state.aspects import ASPECTS, Aspect, find_aspect, full_names
from ...state.checked import listed
from ...state.errors import DataError, UsageError
from .dataset import Dataset
from .files import repeated, unreadable
from .items import ScoreItem
from .reading import ReadingNotice


def choose_aspects(dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
    """Choose the aspects to judge: the named ones, or all known ones with labels in the dataset.

    A name is the name of a known aspect or of a YAML file that defines one. ``Aspect`` objects are
    used unchanged. If several known aspects share a bare name, the one of the dataset's family is
    used. If the family is unknown, dialogues (items with a fact) get the aspects of Topical-Chat,
    and other texts those of SummEval.

    Raises:
        UsageError: an unknown aspect, two of one name, or one that the dataset has no labels for
            although it has others.
        DataError: a label that is off an aspect's scale.
    """
    if isinstance(names, str):
        raise UsageError(f"aspects must be a list of aspects, got {names!r}")
    if dataset.kind == "compare":
        if names:
            raise UsageError(
                f"{dataset.name} compares answers, and --aspect only applies to scores"
            )
        return []
    if not names and not dataset.aspect_names():
        remedy = (
            "name an aspect with --aspect, or a column of labels with --columns human.ASPECT=COLUMN"
        )
        raise UsageError(f"{dataset.name} has no labels that would name its aspects; {remedy}")
    aspects = [_aspect(dataset, name) for name in names or _labelled(dataset)]
    if not names and (
        unknown := [name for name in dataset.aspect_names() if name not in _labelled(dataset)]
    ):
        known = dataset.survey.aspects[unknown[0]]
        own = _own_aspect(unknown[0], known.low, known.high)
        those = (
            f"labels for {', '.join(unknown)} are not used, because there are no criteria for them"
        )
        remedy = f"to judge {unknown[0]}, add --aspect FILE.yaml, a file such as {own}"
        warnings.warn(f"{dataset.location}: {those}; {remedy}", ReadingNotice, stacklevel=2)
    if (twice := repeated([aspect.name for aspect in aspects])) is not None:
        raise UsageError(
            f"two aspects are named {twice}, so their scores would be mixed up: give one"
        )
    for aspect in aspects:
        labels = dataset.survey.aspects.get(aspect.name)
        # Loading has recorded the range. Read the items again only to name the one that is off the
        # scale.
        if labels is not None and not (aspect.low <= labels.low and labels.high <= aspect.high):
            _refuse_labels_off(dataset, aspect)
    return aspects


def aspects_of_each(
    datasets: Sequence[Dataset], names: Sequence[str | Aspect]
) -> list[list[str | Aspect]]:
    """Divide the named aspects among several datasets; each gets those that apply to it.

    Comparisons have no aspects. A dataset with labels is judged only on the aspects that it has
    labels for. An aspect with a family prefix (``summeval/coherence``) goes to the dataset of that
    family, if there is one. A notice names each aspect that does not apply to a dataset.

    Raises:
        UsageError: an aspect applies to no dataset, or no aspect applies to a dataset of scores.
    """
    if isinstance(names, str):
        raise UsageError(f"aspects must be a list of aspects, got {names!r}")
    families = {dataset.family for dataset in datasets}
    divided: list[list[str | Aspect]] = []
    for dataset in datasets:
        left_out: list[str | Aspect] = []
        if dataset.kind == "compare":
            left_out = list(names)
        else:
            left_out = [name for name in names if not _applies(dataset, name, families)]
        own = [name for name in names if name not in left_out]
        if names and not own and dataset.kind == "score":
            has = ", ".join(dataset.aspect_names())
            raise UsageError(
                f"{dataset.name}: none of the given aspects applies; it has labels for {has}"
            )
        divided.append(own)
    for name in names:
        written = name if isinstance(name, str) else name.name
        without = [
            dataset for dataset, own in zip(datasets, divided, strict=True) if name not in own
        ]
        if len(without) == len(datasets):
            has = "; ".join(
                f"{of.name} has {', '.join(of.aspect_names()) or 'comparisons'}" for of in datasets
            )
            raise UsageError(f"the aspect {written} applies to none of the datasets: {has}")
        for dataset in without:
            why = "compares answers" if dataset.kind == "compare" else "has no labels for it"
            notice = f"the aspect {written} does not apply to {dataset.name}, which {why}"
            warnings.warn(notice, ReadingNotice, stacklevel=2)
    return divided


def _applies(dataset: Dataset, name: str | Aspect, families: Collection[str | None]) -> bool:
    if isinstance(name, Aspect) or name.endswith((".yaml", ".yml")):
        return True
    family, _, label = name.rpartition("/")
    if family and family != dataset.family and family in families:
        return False
    has = dataset.aspect_names()
    return not has or name in has or label in has


def check_texts(dataset: Dataset, aspects: Sequence[Aspect]) -> None:
    """Check that all items have the texts that the criteria of the aspects mention.

    Raises:
        DataError: names the first item that lacks one.
    """
    for aspect in aspects:
        for name, word in aspect.needed_texts().items():
            if where := dataset.survey.without.get(name):
                raise DataError(
                    f"{where}: the item has no {name}, but the criteria of {aspect.name} mention it "
                    f"({word!r}); add the column, or set `needs: []` in the aspect's file if they do not "
                    "need it"
                )


def warn_of_names(
    dataset: Dataset, names: Sequence[str | Aspect], aspects: Sequence[Aspect]
) -> None:
    """Warn about ambiguous or unlabelled aspect names in a user's own data.

    There are two warnings. One states which criteria a judge gets for a bare name that several
    benchmarks define differently. The other appears if the data have labels, but none for any
    judged aspect, because a name may be misspelt.
    """
    if dataset.kind == "compare" or dataset.family is not None:
        return
    has = dataset.aspect_names()
    judged = [aspect.name for aspect in aspects]
    notices = list[str]()
    for name, aspect in zip(names or _labelled(dataset), aspects, strict=True):
        if isinstance(name, str) and len(shared := full_names(name)) > 1:
            others = " or ".join(f"`--aspect {full}`" for full in shared if ASPECTS[full] != aspect)
            chosen = next(full for full in shared if ASPECTS[full] == aspect)
            texts = f"a {aspect.source_name} and its {aspect.candidate_name}"
            scale = f"scale {aspect.low:g} to {aspect.high:g}"
            notices.append(f"Rubric for {name}: {chosen} ({texts}, {scale}). For others: {others}")
    if has and not set(judged) & set(has):
        without = f"has labels for {', '.join(has)}, but none for {', '.join(judged)}"
        notices.append(f"{without}, so the scores cannot be compared with labels")
    for notice in notices:
        warnings.warn(f"{dataset.location}: {notice}", stacklevel=2)


def _labelled(dataset: Dataset) -> list[str]:
    """Return the known aspects with labels in a dataset, or all its aspects if none is known."""
    has = dataset.aspect_names()
    bare = {name.rpartition("/")[2] for name in ASPECTS}
    return [name for name in has if name in ASPECTS or name.lower() in bare] or has


def _own_aspect(name: str, low: float, high: float) -> str:
    """Return the content of an aspect file, in one line of YAML."""
    # Means of annotators lie inside the scale, so round outwards. The two ends must differ even if
    # all labels are equal.
    low = math.floor(low)
    high = math.ceil(high)
    low = low if low < high else high - 1
    return f'{{name: {name}, criteria: "WHAT COUNTS", low: {low:g}, high: {high:g}}}'


def _aspect(dataset: Dataset, name: str | Aspect) -> Aspect:
    if isinstance(name, Aspect):
        return name
    if name.endswith((".yaml", ".yml")):
        return aspect_from_file(Path(name))
    has = dataset.aspect_names()
    # The label of "topical-chat/coherence" is usually called "coherence".
    label = name if name in has else name.rpartition("/")[2]
    if has and label not in has:
        raise UsageError(
            f"{dataset.name} has no labels for the aspect {name!r}; it has {listed(has, label)}"
        )
    family = dataset.family or ("topical-chat" if dataset.survey.has_facts else "summeval")
    try:
        # Families share names of aspects, so look in the dataset's own family first.
        aspect = ASPECTS.get(f"{family}/{name}") or find_aspect(name)
    except ValueError as error:
        if label not in has:
            raise UsageError(str(error)) from error
        labels = dataset.survey.aspects[label]
        raise UsageError(
            f"{error}; to judge it, add --aspect FILE.yaml, a file such as "
            f"{_own_aspect(label, labels.low, labels.high)}"
        ) from error
    # Labels are looked up by name: the aspect takes the name as written in the data.
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
    labels = dataset.survey.aspects[aspect.name]
    own = _own_aspect(aspect.name, labels.low, labels.high)
    remedy = " or ".join(
        [*others, f"a YAML file with an aspect of your own (--aspect FILE.yaml), such as {own}"]
    )
    for line, item in dataset.numbered():
        label = item.label(aspect.name) if isinstance(item, ScoreItem) else None
        if label is not None and not aspect.low <= label <= aspect.high:
            raise DataError(
                f"{dataset.location}, {dataset.line_name} {line}: field 'human.{aspect.name}' of "
                f"{item.id!r} is {label:g}, off the scale {aspect.low:g} to {aspect.high:g}; "
                f"for another scale, name {remedy}"
            )
