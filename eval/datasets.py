"""Datasets: bundled ones by name, published ones from a folder, files of one's own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from ..state.aspects import ASPECTS, Aspect, find_aspect
from ..state.errors import DataError, UsageError
from ..state.tasks import TaskKind
from . import published
from .files import Row, read_bytes, read_rows
from .items import CompareItem, ScoreItem, parse_item

Labels = Literal["people", "construction", "none"]
Item = ScoreItem | CompareItem


@dataclass(frozen=True)
class Dataset:
    """Items of one kind, in their order.

    Attributes:
        name: as given, without folders.
        kind: ``score`` or ``compare``.
        labels: who made the labels: people, or the construction of the data.
        location: the file.
        lines: in which line of the file each item stands.
        digest: of the file's content; two people with the same digest judged the same items.
        family: prefix of its aspects' full names, such as ``topical-chat``.
    """

    name: str
    kind: TaskKind
    items: tuple[Item, ...]
    labels: Labels
    digest: str
    location: str
    lines: tuple[int, ...] = ()
    family: str = "summeval"

    def aspect_names(self) -> list[str]:
        """Aspects that have labels here, in the order in which they turn up."""
        return list(
            dict.fromkeys(name for item in self.items if isinstance(item, ScoreItem) for name in item.human)
        )

    def first(self, limit: int | None) -> Dataset:
        """The same with its first items only."""
        if limit is None:
            return self
        return Dataset(**{**self.__dict__, "items": self.items[:limit]})


@dataclass(frozen=True)
class Source:
    """A dataset that has a name."""

    name: str
    kind: TaskKind
    summary: str
    labels: Labels
    rows: Callable[[Path], Iterator[Row]] | None = None
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
    content = read_bytes(path)
    rows = source.rows(path) if source and source.rows else read_rows(path, content)
    numbered = tuple(_checked(path, rows, max_characters))
    if not numbered:
        raise DataError(f"{path}: holds no items")
    items = tuple(item for _, item in numbered)
    return Dataset(
        name=source.name if source else path.name,
        kind="compare" if isinstance(items[0], CompareItem) else "score",
        items=items,
        labels=source.labels if source else ("people" if any(item.human for item in items) else "none"),
        digest=hashlib.sha256(content).hexdigest()[:12],
        location=str(path),
        lines=tuple(line for line, _ in numbered),
        family=source.family if source else "summeval",
    )


def _path(name_or_path: str | Path, source: Source | None, data_dir: str | Path | None) -> Path:
    if source is not None:
        return published.find(source.name, data_dir) if source.rows else _BUNDLED / f"{source.name}.jsonl"
    path = Path(name_or_path)
    if not path.exists() and path.suffix == "":
        raise UsageError(f"no dataset or file {str(path)!r}; datasets are {', '.join(SOURCES)}")
    return path


def _checked(path: Path, rows: Iterable[Row], most: int) -> Iterator[tuple[int, Item]]:
    seen: dict[str, int] = {}
    kind: type[Item] | None = None
    for line, row in rows:
        try:
            item = parse_item(row)
        except ValidationError as error:
            raise DataError(f"{path}, line {line}: {explain(error, row)}") from error
        for field, text in item.texts():
            if len(text) > most:
                raise DataError(
                    f"{path}, line {line}: field {field!r} has {len(text):,} characters, more than {most:,}; "
                    "if that is meant, allow more with --max-chars"
                )
        if item.id in seen:
            raise DataError(f"{path}, line {line}: id {item.id!r} stands already in line {seen[item.id]}")
        if kind not in (None, type(item)):
            raise DataError(f"{path}, line {line}: texts to be rated and answers to be compared in one file")
        seen[item.id], kind = line, type(item)
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
    for line, item in zip(dataset.lines, dataset.items, strict=False):
        label = item.label(aspect.name) if isinstance(item, ScoreItem) else None
        if label is not None and not aspect.low <= label <= aspect.high:
            raise DataError(
                f"{dataset.location}, line {line}: field 'human.{aspect.name}' of {item.id!r} is {label:g}, "
                f"off the scale {aspect.low:g} to {aspect.high:g}"
            )
