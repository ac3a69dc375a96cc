"""Load a dataset by its name, from a file or from a table in memory, and choose the aspects to judge."""

from __future__ import annotations

import hashlib
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ...state.checked import listed
from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from . import catalog
from .catalog import Labels, LocatedFile, Source, find
from .fetch import fetch
from .files import digest_of
from .frames import Frame, frame_rows, row_file
from .items import DatasetProfile, Item, Numbered, Reader, parse_rows, profile_items
from .reading import ROW_NUMBER, Columns, ReadingNotice, beginning, guess_columns, number_columns
from .selection import Sample, Shard, renamed, sampled, sharded


@dataclass(frozen=True)
class Dataset:
    """Holds items of one kind, in order. They stay in their file: each iteration reads them again, one at a time.

    Attributes:
        name: the name as given, without folders.
        kind: the kind of task, ``score`` or ``compare``.
        labels: the origin of the labels: people, or the construction of the data.
        digest: the digest of the file's content; two people with the same digest judged the same items.
        location: the file, or the folder with the files; with the name, enough to load it again.
        survey: the counts and ranges of all items of the file.
        read: a function that reads the items, each with its line number.
        limit: the number of first items that belong to the dataset; ``None``: all.
        family: the prefix of its aspects' full names, such as ``topical-chat``, where it is known.
        line_name: what an item's number counts: ``line``, ``row`` or ``item``.
        rule: how a comparison is measured against its labels.
        columns: the columns of the file that fields are taken from, where they have other names.
        chosen: which random sample of the file's items it holds; ``None``: all.

    >>> from jurygraph.eval.datasets.items import ScoreItem
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
    survey: DatasetProfile = field(repr=False, compare=False)
    read: Reader = field(repr=False, compare=False)
    limit: int | None = None
    family: str | None = None
    line_name: str = "line"
    rule: TiePolicy = DEFAULT_TIE_POLICY
    columns: Mapping[str, str] = field(default_factory=dict)
    chosen: Sample | None = None

    @classmethod
    def of(
        cls, name: str, items: Iterable[Item], *, labels: Labels | None = None, family: str | None = None
    ) -> Dataset:
        """Make a dataset of items in memory; labels are people's unless said otherwise.

        Raises:
            DataError: no items, both kinds, or one id twice.
        """
        dataset = _in_memory(name, items, "item")
        return replace(dataset, labels=labels or dataset.labels, family=family)

    @classmethod
    def of_frame(
        cls,
        frame: Frame,
        name: str = "frame",
        *,
        labels: Labels | None = None,
        family: str | None = None,
        max_characters: int | None = None,
    ) -> Dataset:
        """Make a dataset of a table in memory: a pandas, polars or Arrow frame, or a list of dicts.

        The columns are the fields of an item; ``human.fluency`` is a column for one aspect. Missing cells (``None``,
        NaN) are as if they were not there. The rows are copied: later changes of the frame have no effect.

        Raises:
            DataError: names row (counted from 1) and field.

        >>> rows = [{"id": 1, "source": "It rained.", "candidate": "Rain.", "human.fluency": 4}]
        >>> Dataset.of_frame(rows).aspect_names()
        ['fluency']
        """
        rows = list(frame_rows(frame))
        first = beginning(rows)
        columns = guess_columns(first, {})
        _tell(name, [], first, columns, {})
        items = (item for _, item in parse_rows(renamed(rows, columns, name), name, "row"))
        dataset = _in_memory(name, items, "row", math.inf if max_characters is None else max_characters)
        return replace(dataset, labels=labels or dataset.labels, family=family)

    def __iter__(self) -> Iterator[Item]:
        """Read the items, one at a time.

        Raises:
            DataError: the file has changed since it was loaded.
        """
        return (item for _, item in self.numbered())

    def __len__(self) -> int:
        return self.survey.count if self.limit is None else min(self.limit, self.survey.count)

    @property
    def items(self) -> tuple[Item, ...]:
        """Read all items into memory; to go through many, iterate over the dataset instead."""
        return tuple(self)

    def numbered(self) -> Iterator[Numbered]:
        """Read the items, each with its line number."""
        return islice(self.read(), self.limit)

    def aspect_names(self) -> list[str]:
        """Return the aspects that have labels here, in the order in which they first occur."""
        # The survey covers the whole file: an aspect whose first label comes after ``limit`` has none here.
        return [name for name, labels in self.survey.aspects.items() if labels.first < len(self)]

    def first(self, limit: int | None) -> Dataset:
        """Return the dataset with its first items only; ``None`` keeps them all."""
        return self if limit is None else replace(self, limit=min(limit, len(self)))

    def sample(self, size: int, seed: int = 0, of_group: int | None = None, spread: bool = True) -> Dataset:
        """Return the dataset with so many items, chosen at random by whole groups; the same seed chooses the same.

        A larger sample with the same seed holds the smaller one. With ``of_group``, at most so many items of a group
        are taken before other groups have had their turn. Categories, and of items without groups also systems, have
        their share of it unless ``spread`` is false.

        Raises:
            UsageError: a size below 1.

        >>> demo = load_dataset("demo")
        >>> [item.id for item in demo.sample(2, seed=1)] == [item.id for item in demo.sample(2, seed=1)]
        True
        """
        if size < 1:
            raise UsageError(f"a sample must have 1 item or more, got {size}")
        read, chosen = sampled(self.numbered, Sample(size, seed, of_group, spread))
        survey = profile_items(read, self.name, self.line_name)
        return replace(self, read=read, survey=survey, limit=None, chosen=chosen)

    def shard(self, shard: Shard) -> Dataset:
        """Return the dataset with the items of one shard only; groups are kept together.

        Raises:
            UsageError: there are more shards than groups, and this one is empty.

        >>> demo = load_dataset("demo")
        >>> [len(demo.shard(Shard(number, 5))) for number in range(1, 6)]
        [23, 22, 23, 22, 18]
        """
        read = partial(sharded, self.numbered, shard)
        if next(read(), None) is None:
            empty = f"shard {shard} of {self.name} is empty"
            raise UsageError(f"{empty}: there are fewer groups of items than shards")
        return replace(self, read=read, survey=profile_items(read, self.name, self.line_name), limit=None)


def _in_memory(name: str, items: Iterable[Item], line_name: str, longest: float = math.inf) -> Dataset:
    # Copied once: the items may come from an iterator, and every pass over the dataset must see the same ones.
    copies = tuple(items)
    read = partial(enumerate, copies, 1)
    survey = profile_items(read, name, line_name, longest)
    content = hashlib.sha256()
    # Item by item, each after a line feed: as one text they would be in memory twice.
    for number, item in enumerate(copies):
        content.update(b"\n" * (number > 0) + item.model_dump_json().encode())
    labels: Labels = "people" if survey.has_labels else "none"
    digest = content.hexdigest()[:12]
    return Dataset(name, survey.kind, labels, digest, "in memory", survey, read, line_name=line_name)


def find_item(dataset: Dataset, id: str) -> Item | None:
    """Find the item with an id, or return ``None``; the dataset is read as far as that item.

    >>> find_item(load_dataset("demo"), "no such item") is None
    True
    """
    return next((item for item in dataset if item.id == id), None)


MAX_CHARACTERS = 100_000
"""Texts with more characters are refused by default: mostly they are a wrong column, and they are dear to judge."""


Data = str | Path | Dataset | Frame
"""Anything that can be judged: a dataset or its name, a file, a table in memory."""


def load_dataset(
    data: Data,
    data_dir: str | Path | None = None,
    *,
    max_characters: int = MAX_CHARACTERS,
    columns: Mapping[str, str] | None = None,
) -> Dataset:
    """Load a dataset and check every row of it.

    Args:
        data: a known name (see ``dataset_names``); a JSONL, JSON, CSV or Parquet file; or a table in memory, see
            ``Dataset.of_frame``.
        data_dir: the folder that holds a published dataset's files, or the file; without it they are fetched
            from where they are published, once.
        max_characters: the longest text that an item may have.
        columns: for a file whose columns have other names: which column each field is taken from.

    Raises:
        DataError: data that cannot be used; names file, line and field.
        UsageError: a name that is not known, or a package that is not installed.

    >>> load_dataset("demo").kind
    'score'
    """
    source = catalog.find_source(str(data)) if isinstance(data, (str, Path)) else None
    if columns and (source or not isinstance(data, (str, Path))):
        why = "a dataset knows its columns, and a data frame's are renamed in the frame"
        raise UsageError(f"--columns (columns=) only applies to a file of your own: {why}")
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, (str, Path)):
        return Dataset.of_frame(data, max_characters=max_characters)
    if source is None:
        return _of_file(Path(data), data_dir, max_characters, columns or {})
    if source.file or not source.forms:
        file = source.file or Path(__file__).parent / "data" / f"{source.name}.jsonl"
        path = file if isinstance(file, Path) else Path(file())
        if not path.is_file():
            raise DataError(f"{path}: the file of the dataset {source.name} does not exist")
        return _loaded(source, _one_file(path), max_characters)
    dataset = _loaded(source, find(source, data_dir or fetch(source)), max_characters)
    # In a folder of the user's own, a part of the dataset will do; what was fetched has to be complete.
    if data_dir is None and source.items not in (None, len(dataset)):
        raise DataError(f"{dataset.location}: holds {len(dataset)} items, but {source.items} were published")
    return dataset


def load_again(name: str, location: str, columns: Mapping[str, str] | None = None) -> Dataset:
    """Load the dataset of a run again, by name, location and columns in its manifest; nothing is fetched.

    Raises:
        DataError: it is not there any more, or never was in a file.
    """
    source = catalog.find_source(name)
    data = name if source else Path(location)
    data_dir = location if source and source.forms else None
    # No limit of characters: the run's own may have been higher than the default, and its texts have passed it.
    return load_dataset(data, data_dir, max_characters=sys.maxsize, columns=columns)


def data_options(described: Mapping[str, Any]) -> list[str]:
    """Return the options with which a command takes the same items, of what a manifest records of them.

    >>> data_options({"name": "demo", "sample": {"size": 8, "seed": 1, "spread": True}})
    ['--data', 'demo', '--sample', '8', '--seed', '1']
    """
    name, location = str(described["name"]), str(described.get("location", "FILE"))
    source, sample = catalog.find_source(name), described.get("sample") or {}
    asked = {"sample": sample.get("size"), "seed": sample.get("seed"), "of-group": sample.get("of_group")}
    given = [
        ("data", name if source else location),
        *([("data-dir", location)] if source and source.forms else []),
        *(("columns", f"{field}={column}") for field, column in (described.get("columns") or {}).items()),
        *((option, str(value)) for option, value in asked.items() if value is not None),
    ]
    return [word for option, value in given for word in (f"--{option}", value)]


def _of_file(path: Path, data_dir: str | Path | None, max_characters: int, columns: Columns) -> Dataset:
    # Without a suffix it was meant as a name, perhaps misspelt; a missing file is reported when it is opened.
    if not path.exists() and path.suffix == "":
        known = listed(catalog.dataset_names(), str(path))
        raise UsageError(f"no dataset or file {str(path)!r}; datasets are {known}")
    if data_dir is not None:
        raise UsageError(f"{path} is a file: --data-dir (data_dir=) only applies to named datasets")
    rows = row_file(path)
    first = beginning(rows.rows())
    read = guess_columns(first, columns)
    try:
        dataset = replace(_loaded(None, _one_file(path, read), max_characters), columns=read)
    except DataError:
        # The first row lacks the field of a misspelt column; that no row has the column is known at the last one only.
        for _ in renamed(row_file(path).rows(), read, str(path)) if columns and path.is_file() else ():
            pass
        raise
    _tell(str(path), rows.form(), first, read, columns)
    return dataset


def _tell(place: str, form: list[str], first: list[dict[str, Any]], read: Columns, given: Columns) -> None:
    """Say how data were read that do not come as they are documented; what the user has said is not repeated."""
    guessed = {field: column for field, column in read.items() if field not in given}
    parts = [
        *([f"read {' '.join(form)}"] if form else []),
        *(f"{field} = {column!r}" for field, column in guessed.items() if column != ROW_NUMBER),
        *(["row numbers as ids"] if guessed.get("id") == ROW_NUMBER else []),
    ]
    hint, labelled = "", any(field.startswith("human") for field in read)
    if len(guessed) > 1 and not labelled and (numbers := number_columns(first, read.values())):
        hint = f"; if {numbers[0]!r} holds human scores, name the aspect: --columns human.ASPECT={numbers[0]}"
    if parts:
        warnings.warn(f"{place}: {', '.join(parts)}{hint}", ReadingNotice, stacklevel=4)


def _one_file(path: Path, columns: Columns | None = None) -> LocatedFile:
    return LocatedFile(lambda files: renamed(files[0].rows(), columns or {}, str(path)), (path,), path)


def _loaded(source: Source | None, located: LocatedFile, max_characters: int) -> Dataset:
    files = [row_file(path, takes_text=source is not None) for path in located.paths]
    place = str(located.place)
    # In a dataset of several files, a line number would not say which file it is of: items are counted instead.
    line_name = files[0].line_name if located.place == located.paths[0] else "item"

    def read() -> Iterator[Numbered]:
        rows = located.rows(files)
        counted = enumerate((row for _, row in rows), start=1) if line_name == "item" else rows
        return parse_rows(counted, place, line_name, columns=source is None)

    survey = profile_items(read, place, line_name, max_characters)
    labels = source.labels if source else "people"
    digests = [file.digest for file in files]  # of what the pass above has read
    return Dataset(
        name=source.name if source else located.place.name,
        kind=survey.kind,
        labels=labels if survey.has_labels else "none",
        digest=digests[0] if len(files) == 1 else digest_of(" ".join(digests)),
        location=str(located.place.absolute()),
        survey=survey,
        read=read,
        family=source.family if source else None,
        line_name=line_name,
        rule=source.rule if source else DEFAULT_TIE_POLICY,
    )


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """Return what a manifest records of the data."""
    return {
        "name": dataset.name,
        "location": dataset.location,
        "digest": dataset.digest,
        "kind": dataset.kind,
        "labels": dataset.labels,
        "rule": asdict(dataset.rule),
        "items": len(dataset),
        **({"columns": dict(dataset.columns)} if dataset.columns else {}),
        **({"sample": dataset.chosen.described()} if dataset.chosen else {}),
    }
