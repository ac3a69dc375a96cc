"""Datasets: bundled ones by name, published ones from a folder, files of one's own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from ..state.aspects import ASPECTS, Aspect, find_aspect
from ..state.errors import DataError, UsageError
from ..state.tasks import TaskKind
from .files import Row, RowFile, read_bytes
from .items import Item, ScoreItem, parse_item
from .published import rows as published
from .survey import Numbered, Reader, Survey, survey

Labels = Literal["people", "construction", "none"]


@dataclass(frozen=True)
class Dataset:
    """Items of one kind, in their order. They stay in their file: iterating reads them again, one at a time.

    Attributes:
        name: as given, without folders.
        kind: ``score`` or ``compare``.
        labels: who made the labels: people, or the construction of the data.
        digest: of the file's content; two people with the same digest judged the same items.
        location: the file.
        survey: what is remembered of all the items of the file.
        read: reads the items, each with the line that it stands in.
        limit: so many of the first items belong to the dataset; ``None``: all.
        family: prefix of its aspects' full names, such as ``topical-chat``.

    >>> rain = ScoreItem(id="a", source="It rained.", candidate="Rain.", human={"fluency": 4})
    >>> data = Dataset.of("mine", [rain])
    >>> len(data), [item.id for item in data], data.aspect_names()
    (1, ['a'], ['fluency'])
    """

    name: str
    kind: TaskKind
    labels: Labels
    digest: str
    location: str
    survey: Survey = field(repr=False, compare=False)
    read: Reader = field(repr=False, compare=False)
    limit: int | None = None
    family: str = "summeval"

    @classmethod
    def of(
        cls, name: str, items: Iterable[Item], *, labels: Labels | None = None, family: str = "summeval"
    ) -> Dataset:
        """A dataset of items in memory; labels are people's unless said otherwise.

        Raises:
            DataError: no items, both kinds, or one id twice.
        """
        held = tuple(items)
        found = survey(lambda: enumerate(held, start=1), name, "item")
        lines = "\n".join(item.model_dump_json() for item in held)
        return cls(
            name=name,
            kind=found.kind,
            labels=labels or ("people" if found.has_labels else "none"),
            digest=hashlib.sha256(lines.encode()).hexdigest()[:12],
            location="in memory",
            survey=found,
            read=lambda: enumerate(held, start=1),
            family=family,
        )

    def __iter__(self) -> Iterator[Item]:
        """Read the items.

        Raises:
            DataError: the file has changed since it was loaded.
        """
        return (item for _, item in self.numbered())

    def __len__(self) -> int:
        return self.survey.count if self.limit is None else min(self.limit, self.survey.count)

    @property
    def items(self) -> tuple[Item, ...]:
        """All items at once. They are held in memory: to go through many, iterate over the dataset."""
        return tuple(self)

    def numbered(self) -> Iterator[Numbered]:
        """The items, each with the line that it stands in."""
        return islice(self.read(), self.limit)

    def aspect_names(self) -> list[str]:
        """Aspects that have labels here, in the order in which they turn up."""
        return [name for name, labels in self.survey.aspects.items() if labels.first < len(self)]

    def first(self, limit: int | None) -> Dataset:
        """The same with its first items only."""
        return self if limit is None else replace(self, limit=min(limit, len(self)))


def find_item(dataset: Dataset, id: str) -> Item | None:
    """The item of an id, or ``None``; the dataset is read as far as that item.

    >>> find_item(load_dataset("demo"), "no such item") is None
    True
    """
    return next((item for item in dataset if item.id == id), None)


@dataclass(frozen=True)
class Source:
    """A dataset that has a name."""

    name: str
    kind: TaskKind
    summary: str
    labels: Labels
    rows: Callable[[RowFile], Iterator[Row]] | None = None
    family: str = "summeval"


_KNOWN = (
    Source(
        "demo",
        "score",
        "texts with candidates spoilt in known ways, written for this package",
        "construction",
    ),
    Source("demo-pairs", "compare", "answers spoilt in known ways, written for this package", "construction"),
    Source(
        "topical-chat",
        "score",
        "Topical-Chat with USR's annotations (Mehri and Eskenazi 2020)",
        "people",
        published.topical_chat,
        "topical-chat",
    ),
    Source(
        "summeval", "score", "SummEval's expert ratings (Fabbri et al. 2021)", "people", published.summeval
    ),
    Source(
        "faireval",
        "compare",
        "Vicuna-80 with FairEval's majority of annotators (Wang et al. 2024)",
        "people",
        published.faireval,
    ),
    Source("llmbar", "compare", "LLMBar and its companions (Zeng et al. 2024)", "people", published.llmbar),
)
SOURCES = {source.name: source for source in _KNOWN}

_BUNDLED = Path(__file__).parent / "data"


MAX_CHARACTERS = 100_000
"""The longest text taken unless said otherwise: longer ones are mostly a wrong column, and cost as much as many."""


def load_dataset(
    name_or_path: str | Path, data_dir: str | Path | None = None, *, max_characters: int = MAX_CHARACTERS
) -> Dataset:
    """Load a dataset and check every row of it.

    Args:
        name_or_path: a known name (see ``SOURCES``) or a JSONL or CSV file.
        data_dir: the folder that holds a published dataset's files.
        max_characters: the longest text that an item may have.

    Raises:
        DataError: a file that cannot be used; names file, line and field.

    >>> load_dataset("demo").kind
    'score'
    """
    source = SOURCES.get(str(name_or_path))
    path = _path(name_or_path, source, data_dir)
    file = RowFile(path)
    read = partial(_items, file, source.rows if source and source.rows else RowFile.rows)
    found = survey(read, str(path), most_characters=max_characters)
    return Dataset(
        name=source.name if source else path.name,
        kind=found.kind,
        labels=source.labels if source else ("people" if found.has_labels else "none"),
        digest=file.digest,
        location=str(path),
        survey=found,
        read=read,
        family=source.family if source else "summeval",
    )


def _path(name_or_path: str | Path, source: Source | None, data_dir: str | Path | None) -> Path:
    if source is not None:
        return published.find(source.name, data_dir) if source.rows else _BUNDLED / f"{source.name}.jsonl"
    path = Path(name_or_path)
    if not path.exists() and path.suffix == "":
        raise UsageError(f"no dataset or file {str(path)!r}; datasets are {', '.join(SOURCES)}")
    return path


def _items(file: RowFile, rows: Callable[[RowFile], Iterator[Row]]) -> Iterator[Numbered]:
    for line, row in rows(file):
        try:
            item = parse_item(row)
        except ValidationError as error:
            raise DataError(f"{file.path}, line {line}: {explain(error, row)}") from error
        yield line, item


# Where a field may be one thing or another, pydantic puts the alternative's name into the path.
_ALTERNATIVE = re.compile(r"[\[(]|^(float|int|str)$")


def explain(error: ValidationError, row: Any = None) -> str:
    """The first thing that pydantic found wrong, as one line: field, fault, value."""
    first = error.errors(include_url=False)[0]
    field = ".".join(part for part in map(str, first["loc"]) if not _ALTERNATIVE.search(part))
    message = first["msg"].removeprefix("Value error, ")
    if not field or first["type"] == "value_error":
        return f"field {field!r}: {message}" if field else message
    if first["type"] == "missing":
        has = f"; there are {', '.join(map(str, row))}" if isinstance(row, dict) else ""
        return f"field {field!r} is missing{has}"
    value = repr(first["input"])
    return f"field {field!r}: {message}, got {value[:80]}{'...' if len(value) > 80 else ''}"


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
                f"{dataset.location}, line {line}: field 'human.{aspect.name}' of {item.id!r} is {label:g}, "
                f"off the scale {aspect.low:g} to {aspect.high:g}"
            )
