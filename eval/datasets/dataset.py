"""Load a dataset by name, from a file or from a table in memory."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...state.checked import listed
from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from . import catalog
from .annotator_columns import merged
from .catalog import Labels, LocatedFile, Source, find
from .fetch import fetch
from .files import digest_of
from .frames import Frame, frame_rows, row_file
from .items import (
    DatasetProfile,
    Empty,
    Item,
    MissingTextError,
    Numbered,
    Reader,
    has_repeated,
    parse_rows,
    profile_items,
)
from .label_reader import NO_CODES, LabelCodes
from .layouts import Layout, laid_out, layouts_of
from .reading import (
    BETTER,
    LOOKED_AT,
    ROW_NUMBER,
    Columns,
    ReadingNotice,
    beginning,
    guess_columns,
    kind_of_mapping,
)
from .selection import Sample, Shard, renamed, sampled, sharded
from .unused_columns import unreadable_winners, unused_columns


@dataclass(frozen=True)
class Dataset:
    """Items of one kind, in order.

    The items stay in their file. Each iteration reads them again, one at a time.

    Attributes:
        name: the name as given, without folders.
        kind: the kind of task, ``score`` or ``compare``.
        labels: the origin of the labels: people, or the construction of the data.
        digest: the digest of the file's content. Equal digests mean that the same items were
            judged.
        location: the file, or the folder with the files. Name and location are enough to load it
            again.
        survey: the counts and ranges of all items of the file.
        read: a function that reads the items, each with its line number.
        limit: the number of first items that belong to the dataset; ``None``: all.
        family: the prefix of its aspects' full names, such as ``topical-chat``, if known.
        line_name: the unit of an item's number: ``line``, ``row`` or ``item``.
        rule: the rule for comparing verdicts with labels.
        columns: the column of each field whose column has another name.
        label_codes: the label for each value of the file, if labels are coded.
        empty: the treatment of an empty candidate or answer in the file.
        chosen: the random sample of the file's items; ``None``: all.

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
    label_codes: LabelCodes = field(default_factory=dict)
    empty: Empty = "refuse"
    chosen: Sample | None = None

    @classmethod
    def of(
        cls,
        name: str,
        items: Iterable[Item],
        *,
        labels: Labels | None = None,
        family: str | None = None,
    ) -> Dataset:
        """Make a dataset of items in memory; the labels come from people by default.

        Raises:
            DataError: no items, both kinds, or one id twice.
        """
        dataset, _ = _in_memory(name, enumerate(items, start=1), "item")
        return replace(dataset, labels=labels or dataset.labels, family=family)

    @classmethod
    def of_frame(  # noqa: PLR0913
        cls,
        frame: Frame,
        name: str = "frame",
        *,
        labels: Labels | None = None,
        family: str | None = None,
        max_characters: int | None = None,
        columns: Columns | None = None,
        label_codes: LabelCodes = NO_CODES,
        empty: Empty = "refuse",
    ) -> Dataset:
        """Make a dataset of a table in memory: a pandas, polars or Arrow frame, or a list of dicts.

        The columns are the fields of an item; ``human.fluency`` is a column for one aspect. Missing
        cells (``None``, NaN) are ignored. The rows are copied, so later changes of the frame have
        no effect. For ``columns``, ``label_codes`` and ``empty``, see ``load_dataset``.

        Raises:
            DataError: names row (counted from 1) and field.

        >>> rows = [{"id": 1, "source": "It rained.", "candidate": "Rain.", "human.fluency": 4}]
        >>> Dataset.of_frame(rows).aspect_names()
        ['fluency']
        """
        rows = list(frame_rows(frame))
        given = columns or {}
        layouts = layouts_of(rows[:LOOKED_AT], "row")
        rows = list(laid_out(rows, layouts, "row"))
        first = beginning(rows)
        read = guess_columns(first, given, label_codes)
        seen: dict[str, None] = {}
        fields = renamed(rows, read, name, seen)
        items = list(
            parse_rows(
                fields, name, "row", codes=label_codes, kind=kind_of_mapping(read), empty=empty
            )
        )
        longest = math.inf if max_characters is None else max_characters
        dataset, notices = _in_memory(name, items, "row", longest, merge=_may_be_merged(layouts))
        notices = [*notices, *_about_empty(dataset.survey)]
        unused = unused_columns(dataset.kind, seen, read, first, label_codes)
        _tell(name, [], layouts, read, given, [*notices, unused.words(in_frame=True)])
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
        """Read all items into memory; to process many items, iterate over the dataset instead."""
        return tuple(self)

    def numbered(self) -> Iterator[Numbered]:
        """Read the items, each with its line number."""
        return islice(self.read(), self.limit)

    def aspect_names(self) -> list[str]:
        """Return the aspects that have labels in this dataset, in order of first occurrence."""
        # The survey covers the whole file; the first label of an aspect may come after ``limit``.
        return [name for name, labels in self.survey.aspects.items() if labels.first < len(self)]

    def first(self, limit: int | None) -> Dataset:
        """Return the dataset with its first items only; ``None`` returns all."""
        return self if limit is None else replace(self, limit=min(limit, len(self)))

    def sample(
        self,
        size: int,
        seed: int = 0,
        of_group: int | None = None,
        spread: bool = True,
        shuffled: bool = True,
    ) -> Dataset:
        """Return a random sample of the dataset, drawn by whole groups and reproducible by seed.

        A larger sample with the same seed contains the smaller one. ``of_group`` limits the items
        that are drawn from a group before other groups have had their turn. They are drawn at
        random within the group; ``shuffled=False`` takes them in the order of the file, as earlier
        versions did. The sample is spread over categories, and over systems for items without
        groups, in proportion to their share of the data, unless ``spread`` is false.

        Raises:
            UsageError: a size below 1.

        >>> demo = load_dataset("demo")
        >>> [item.id for item in demo.sample(2, seed=1)] == [item.id for item in demo.sample(2, seed=1)]
        True
        """
        return self.drawn(Sample(size, seed, of_group, spread, shuffled and of_group is not None))

    def drawn(self, sample: Sample) -> Dataset:
        """Return a random sample of the dataset, such as one that a manifest describes.

        Raises:
            UsageError: a size below 1.
            DataError: items with labels are wanted, and there are none.
        """
        if sample.size < 1:
            raise UsageError(f"a sample must have 1 item or more, got {sample.size}")
        read, chosen = sampled(self.numbered, sample)
        survey = profile_items(read, self.name, self.line_name)
        return replace(self, read=read, survey=survey, limit=None, chosen=chosen)

    def shard(self, shard: Shard) -> Dataset:
        """Return the items of one shard; groups are not divided.

        Raises:
            UsageError: there are more shards than groups, so this one is empty.

        >>> demo = load_dataset("demo")
        >>> [len(demo.shard(Shard(number, 5))) for number in range(1, 6)]
        [23, 22, 23, 22, 18]
        """
        read = partial(sharded, self.numbered, shard)
        if next(read(), None) is None:
            raise UsageError(
                f"shard {shard} of {self.name} is empty: there are fewer groups of items than shards"
            )
        return replace(
            self, read=read, survey=profile_items(read, self.name, self.line_name), limit=None
        )


def _in_memory(
    name: str,
    numbered: Iterable[Numbered],
    line_name: str,
    longest: float = math.inf,
    merge: bool = False,
) -> tuple[Dataset, Sequence[str]]:
    """Make a dataset of items in memory; ``merge`` merges rows of several annotators.

    Returns:
        the dataset, and notices of merged rows and empty answers.
    """
    # Copy once: the items may come from an iterator, and every pass must see the same ones.
    copies = tuple(numbered)
    read: Reader = partial(iter, copies)
    notices: Sequence[str] = ()
    if merge:
        read, survey, notices = _merged(read, name, line_name, longest)
        copies = tuple(read())
        read = partial(iter, copies)
    else:
        survey = profile_items(read, name, line_name, longest)
    content = hashlib.sha256()
    # Hash item by item, each after a line feed; one joined text would double the memory.
    for place, (_, item) in enumerate(copies):
        content.update(b"\n" * (place > 0) + item.model_dump_json().encode())
    labels: Labels = "people" if survey.has_labels else "none"
    digest = content.hexdigest()[:12]
    return Dataset(
        name, survey.kind, labels, digest, "in memory", survey, read, line_name=line_name
    ), notices


def _about_empty(survey: DatasetProfile) -> list[str]:
    """Report how many items have an empty answer, if any."""
    if not survey.empty:
        return []
    have = "1 item has" if survey.empty == 1 else f"{survey.empty:,} items have"
    return [f"{have} an empty candidate or answer, which is judged and shown as empty"]


def _may_be_merged(layouts: Sequence[Layout]) -> bool:
    """Return whether the layouts allow rows of several annotators of one item."""
    return not any(layout.gather for layout in layouts)


def _merged(
    read: Reader, name: str, line_name: str, longest: float
) -> tuple[Reader, DatasetProfile, Sequence[str]]:
    """Check all items and merge the rows of several annotators.

    Returns:
        the reader of the merged items, their profile, and notices.
    """
    identities = array("Q")
    survey = profile_items(read, name, line_name, longest, identities)
    if not has_repeated(identities):
        return read, survey, ()
    together = merged(read, identities, name, line_name)
    return together.read, profile_items(together.read, name, line_name), together.notices


def find_item(dataset: Dataset, id: str) -> Item | None:
    """Find the item with an id, or return ``None``; reading stops at that item.

    >>> find_item(load_dataset("demo"), "no such item") is None
    True
    """
    return next((item for item in dataset if item.id == id), None)


MAX_CHARACTERS = 100_000
"""Longer texts are refused by default: they usually come from a wrong column and cost a lot."""


Data = str | Path | Dataset | Frame
"""Any input that can be judged: a dataset or its name, a file, or a table in memory."""


def load_dataset(
    data: Data,
    data_dir: str | Path | None = None,
    *,
    max_characters: int = MAX_CHARACTERS,
    columns: Mapping[str, str] | None = None,
    label_codes: LabelCodes | None = None,
    empty: Empty | None = None,
) -> Dataset:
    """Load a dataset and check every row of it.

    Args:
        data: a known name (see ``dataset_names``); a JSONL, JSON, CSV or Parquet file; or a table
            in memory, see ``Dataset.of_frame``.
        data_dir: the folder or file with a published dataset. Without it, the dataset is downloaded
            once. Other datasets refuse it.
        max_characters: the longest text that an item may have.
        columns: the column for each field, if the columns of a file have other names.
        label_codes: the label for each value, if the labels of a file are coded, such as
            ``{"0": "1", "1": "2", "2": "tie"}`` for winners counted from 0.
        empty: ``refuse`` makes an empty candidate or answer an error, ``judge`` has it judged and
            shown as empty. The default is ``refuse`` for your own data and ``judge`` for named
            datasets.

    Raises:
        DataError: data that cannot be used; names file, line and field.
        UsageError: an unknown name, a missing package, or an argument that does not apply to these
            data.

    >>> load_dataset("demo").kind
    'score'
    """
    source = catalog.find_source(str(data)) if isinstance(data, (str, Path)) else None
    known = source or isinstance(data, Dataset)
    if columns and known:
        raise UsageError(
            "--columns (columns=) only applies to a file or data frame of your own: "
            "a dataset knows its columns"
        )
    if label_codes and known:
        raise UsageError(
            "--labels (label_codes=) only applies to a file or data frame of your own: "
            "the labels of a dataset are known"
        )
    if data_dir is not None and not isinstance(data, (str, Path)):
        raise UsageError("data_dir= does not apply to data in memory: leave it out")
    if isinstance(data, Dataset):
        if empty:
            raise UsageError(
                "--empty (empty=) does not apply to a dataset that is loaded: leave it out"
            )
        return data
    if not isinstance(data, (str, Path)):
        return Dataset.of_frame(
            data,
            max_characters=max_characters,
            columns=columns,
            label_codes=label_codes or NO_CODES,
            empty=empty or "refuse",
        )
    if source is None:
        return _of_file(
            Path(data),
            data_dir,
            max_characters,
            columns or {},
            label_codes or {},
            empty or "refuse",
        )
    return load_source(source, data_dir, max_characters, empty or "judge")


def load_again(about: Mapping[str, Any]) -> Dataset:
    """Load the dataset of a run again from its manifest (``describe_data``), without a download.

    Raises:
        DataError: it no longer exists, or was never in a file.
    """
    name = about["name"]
    location = about["location"]
    source = catalog.find_source(name)
    data_dir = location if source and source.is_published else None
    # No limit of characters: the texts passed the limit of the run, which may have been higher.
    if source is None:
        columns = about.get("columns") or {}
        codes = about.get("label_codes") or {}
        # The user was told how the file is read when the run began.
        return _of_file(
            Path(location),
            None,
            sys.maxsize,
            columns,
            codes,
            about.get("empty", "refuse"),
            tell=False,
        )
    return load_source(source, data_dir, sys.maxsize, "judge", tell=False)


def item_of_run(about: Mapping[str, Any], id: str) -> Item:
    """Find a judged item again from the manifest of its run (``describe_data``).

    In a file with a JSON object in each line, only lines that contain the id are parsed, because
    checking all of millions of items would take minutes.

    Raises:
        DataError: the data no longer exists or has changed since the run.
    """
    item = _item_in_lines(about, id)
    if item is not None:
        return item
    dataset = load_again(about)
    item = find_item(dataset, id) if dataset.digest == about["digest"] else None
    if item is None:
        raise DataError(f"{about['location']}: has changed since the run")
    return item


def _item_in_lines(about: Mapping[str, Any], id: str) -> Item | None:
    """Return an item from a file with a JSON object in each line; None if it must be read whole."""
    path = Path(about["location"])
    columns = about.get("columns") or {}
    is_plain = json.dumps(id) == f'"{id}"' and columns.get("id") != ROW_NUMBER
    if catalog.find_source(about["name"]) or not is_plain or not path.is_file():
        return None
    rows = row_file(path)
    if not rows.has_object_lines or rows.current_digest() != about["digest"]:
        return None
    where = f"{path}, {rows.line_name}"
    # A layout may make an item from several rows.
    if layouts_of([*islice(rows.rows(), LOOKED_AT)], where):
        return None
    having = renamed(rows.rows_with(id), columns, str(path), None, rows.line_name)
    codes = about.get("label_codes") or {}
    items = parse_rows(
        having,
        str(path),
        rows.line_name,
        codes=codes,
        kind=kind_of_mapping(columns),
        empty=about.get("empty", "refuse"),
    )
    return next((item for _, item in items if item.id == id), None)


def data_options(described: Mapping[str, Any]) -> list[str]:
    """Return the command options that select the items recorded in a manifest.

    >>> data_options({"name": "demo", "sample": {"size": 8, "seed": 1, "spread": True}})
    ['--data', 'demo', '--sample', '8', '--seed', '1']
    """
    name = str(described["name"])
    location = str(described.get("location", "FILE"))
    source = catalog.find_source(name)
    sample = described.get("sample") or {}
    codes: LabelCodes = described.get("label_codes") or {}
    asked = {
        # A pilot is a sample of labelled items.
        "pilot" if "labelled" in sample else "sample": sample.get("size"),
        "seed": sample.get("seed"),
        "of-group": sample.get("of_group"),
    }
    given = [
        ("data", name if source else location),
        *([("data-dir", location)] if source and source.is_published else []),
        *(
            ("columns", f"{field}={column}")
            for field, column in (described.get("columns") or {}).items()
        ),
        *([("labels", ",".join(map("=".join, codes.items())))] if codes else []),
        *([("empty", described["empty"])] if described.get("empty") else []),
        *((option, str(value)) for option, value in asked.items() if value is not None),
    ]
    return [word for option, value in given for word in (f"--{option}", value)]


def load_source(
    source: Source,
    data_dir: str | Path | None = None,
    max_characters: int = MAX_CHARACTERS,
    empty: Empty = "judge",
    *,
    tell: bool = True,
) -> Dataset:
    """Load a dataset from its description, which need not be registered under its name.

    Args:
        source: the description.
        data_dir: as for ``load_dataset``.
        max_characters: as for ``load_dataset``.
        empty: as for ``load_dataset``.
        tell: whether to report how the rows were read.

    Raises:
        DataError: its file does not exist or cannot be read.
        UsageError: ``data_dir`` for a dataset that comes with a package.

    >>> len(load_source(catalog.SOURCES["demo"]))
    108
    """
    if not source.is_published:
        if data_dir is not None:
            origin = "a package" if source.file else "jurygraph"
            raise UsageError(
                f"--data-dir (data_dir=) does not apply to {source.name}, which comes with {origin}: "
                "leave it out"
            )
        file = source.file or Path(__file__).parent / "data" / f"{source.name}.jsonl"
        path = file if isinstance(file, Path) else Path(file())
        if not path.is_file():
            raise DataError(f"{path}: the file of the dataset {source.name} does not exist")
        located = _one_file(path)
    else:
        located = find(source, data_dir or fetch(source))
    dataset, notices = _loaded(source, located, max_characters, empty=empty)
    # A user's folder may contain part of the dataset; a download must be complete.
    if source.is_published and data_dir is None and source.items not in (None, len(dataset)):
        raise DataError(
            f"{dataset.location}: contains {len(dataset)} items, but {source.items} were published"
        )
    if tell:
        _tell(source.name, [], [], {}, {}, notices)
    return dataset


def _of_file(  # noqa: PLR0913
    path: Path,
    data_dir: str | Path | None,
    max_characters: int,
    columns: Columns,
    codes: LabelCodes,
    empty: Empty,
    *,
    tell: bool = True,
) -> Dataset:
    # Without a suffix it is probably a misspelt dataset name. A missing file with a suffix is
    # reported when it is opened.
    if not path.exists() and path.suffix == "":
        known = listed(catalog.dataset_names(), str(path))
        raise UsageError(f"no dataset or file {str(path)!r}; datasets are {known}")
    if data_dir is not None:
        raise UsageError(f"{path} is a file: --data-dir (data_dir=) only applies to named datasets")
    rows = row_file(path)
    numbered = [*islice(rows.rows(), LOOKED_AT)]
    where = f"{path}, {rows.line_name}"
    layouts = layouts_of(numbered, where)
    first = [row for _, row in laid_out(numbered, layouts, where)]
    seen: dict[str, None] = {}
    try:
        read = guess_columns(first, columns, codes)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    try:
        located = LocatedFile(
            lambda files: renamed(
                laid_out(files[0].rows(), layouts, where), read, str(path), seen, rows.line_name
            ),
            (path,),
            path,
        )
        loaded, notices = _loaded(
            None,
            located,
            max_characters,
            codes,
            kind_of_mapping(read),
            empty,
            merge=_may_be_merged(layouts),
        )
        dataset = replace(loaded, columns=read, label_codes=codes, empty=empty)
    except DataError as error:
        # A misspelt column is certain only after the last row, so read all rows before reporting
        # the field that the first row lacks.
        for _ in (
            renamed(
                laid_out(row_file(path).rows(), layouts, where),
                read,
                str(path),
                None,
                rows.line_name,
            )
            if columns and path.is_file()
            else ()
        ):
            pass
        if isinstance(error, MissingTextError):
            # A user who names the text columns can also name the label column in the same step.
            unused = unused_columns("compare", dict.fromkeys(chain(*first)), read, first, codes)
            whole = (row for _, row in laid_out(row_file(path).rows(), layouts, where))
            more = unused.offered() or unreadable_winners(whole, read, codes)
            raise MissingTextError(f"{error}. {more}" if more else str(error)) from None
        raise
    if tell:
        unused = unused_columns(dataset.kind, seen, read, first, codes)
        _tell(str(path), rows.form(), layouts, read, columns, [*notices, unused.words()])
    return dataset


def _tell(
    place: str,
    form: list[str],
    layouts: Sequence[Layout],
    read: Columns,
    given: Columns,
    more: Iterable[str],
) -> None:
    """Report how data in an undocumented form were read, without repeating the user's options.

    Args:
        place: the name of the file.
        form: its encoding and separator, where these are unusual.
        layouts: the layouts of its rows.
        read: the columns that fields were taken from.
        given: the columns that the user named.
        more: further sentences, on merged rows and on unused columns.
    """
    guessed = {field: column for field, column in read.items() if field not in given}
    parts = [
        *([f"read {' '.join(form)}"] if form else []),
        *(layout.words for layout in layouts),
        *(
            f"{field} = {column!r}"
            for field, column in guessed.items()
            if column not in (ROW_NUMBER, field)
        ),
        *(
            ["the answer with the higher score wins, equal scores are a tie"]
            if BETTER in guessed.get("human", "")
            else []
        ),
        *(["row numbers as ids"] if guessed.get("id") == ROW_NUMBER else []),
    ]
    for sentence in (", ".join(parts), *more):
        if sentence:
            warnings.warn(f"{place}: {sentence}", ReadingNotice, stacklevel=4)


def _one_file(path: Path) -> LocatedFile:
    return LocatedFile(lambda files: files[0].rows(), (path,), path)


def _loaded(  # noqa: PLR0913
    source: Source | None,
    located: LocatedFile,
    max_characters: int,
    codes: LabelCodes = NO_CODES,
    kind: TaskKind | None = None,
    empty: Empty | None = None,
    *,
    merge: bool = False,
) -> tuple[Dataset, Sequence[str]]:
    """Load a dataset from its files; ``merge`` merges rows of several annotators.

    Returns:
        the dataset, and notices of merged rows and empty answers.
    """
    files = [row_file(path, takes_text=source is not None) for path in located.paths]
    place = str(located.place)
    # In a dataset of several files, a line number does not identify the file, so count items.
    line_name = files[0].line_name if located.place == located.paths[0] else "item"

    def read() -> Iterator[Numbered]:
        rows = located.rows(files)
        counted = enumerate((row for _, row in rows), start=1) if line_name == "item" else rows
        return parse_rows(
            counted, place, line_name, columns=source is None, codes=codes, kind=kind, empty=empty
        )

    reader: Reader = read
    notices: Sequence[str] = ()
    if merge:
        reader, survey, notices = _merged(read, place, line_name, max_characters)
    else:
        survey = profile_items(read, place, line_name, max_characters)
    notices = [*notices, *_about_empty(survey)]
    labels = source.labels if source else "people"
    digests = [file.digest for file in files]  # known only after the pass above
    dataset = Dataset(
        name=source.name if source else located.place.name,
        kind=survey.kind,
        labels=labels if survey.has_labels else "none",
        digest=digests[0] if len(files) == 1 else digest_of(" ".join(digests)),
        location=str(located.place.absolute()),
        survey=survey,
        read=reader,
        family=source.family if source else None,
        line_name=line_name,
        rule=source.rule if source else DEFAULT_TIE_POLICY,
    )
    return dataset, notices


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """Return the description of the data for a manifest."""
    return {
        "name": dataset.name,
        "location": dataset.location,
        "digest": dataset.digest,
        "kind": dataset.kind,
        "labels": dataset.labels,
        "rule": asdict(dataset.rule),
        "items": len(dataset),
        **({"columns": dict(dataset.columns)} if dataset.columns else {}),
        **({"label_codes": dict(dataset.label_codes)} if dataset.label_codes else {}),
        **({"empty": dataset.empty} if dataset.empty != "refuse" else {}),
        **({"sample": dataset.chosen.described()} if dataset.chosen else {}),
    }
