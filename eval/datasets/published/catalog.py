"""Describe the datasets that have a name, with their homes and formats, and find their files on a disk.

Those of this package are in ``catalog.yaml``; other packages register further ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import yaml
from pydantic import TypeAdapter

from ....nodes.plugins import Group, load_plugin, plugins
from ....state.errors import DataError, UsageError
from ....state.tasks import TaskKind
from ...statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from ..files import Row, RowFile
from . import readers

Labels = Literal["people", "construction", "none"]

Rows = Callable[[Sequence[RowFile]], Iterator[Row]]
"""Turns the rows of a format's files, given in the format's order, into items' fields."""


@dataclass(frozen=True)
class DownloadFormat:
    """Describes one way in which a dataset lies on a disk.

    Attributes:
        files: the paths of its files below a folder; each may also be compressed (``.gz``).
        rows: the function that reads them.
        extra: further files beside them, read only if they are there.
    """

    files: tuple[str, ...]
    rows: Rows
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class GitHub:
    """Names a repository on GitHub and the commit whose files are taken."""

    repository: str
    commit: str

    @property
    def address(self) -> str:
        """Return the address of its page for people."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True)
class HuggingFace:
    """Names a dataset on the Hugging Face Hub, the revision taken, and the SHA-256 that the Hub states of each file."""

    repository: str
    revision: str
    sha256: tuple[str, ...]

    @property
    def address(self) -> str:
        """Return the address of its page for people."""
        return f"https://huggingface.co/datasets/{self.repository}/tree/{self.revision}"


@dataclass(frozen=True)
class Paper:
    """Holds what to cite for a dataset.

    Attributes:
        cite: authors and year.
        title: the title of the paper.
        bibtex: the BibTeX entry.
    """

    cite: str
    title: str
    bibtex: str


@dataclass(frozen=True)
class Source:
    """Describes a dataset that has a name.

    Attributes:
        name: its name in this package.
        kind: the kind of task, ``score`` or ``compare``.
        summary: its content in a few words.
        labels: the origin of the labels.
        items: the number of items, where that is known.
        size: the number of items in words, with what they are made of.
        licence: the licence that its home states, in short.
        forms: the formats it is read from, the published one first; empty for a bundled dataset.
        home: the place that the published format is fetched from; ``None`` for a bundled dataset.
        papers: the papers to cite.
        scale: the scale of its labels, in words.
        family: the prefix of its aspects' full names.
        aspects: the aspects that are rated.
        terms: the terms of use, where they take more words than ``licence``.
        quirks: facts to know before trusting a figure made from it.
        rule: how a comparison is measured against its labels.
        file: for a dataset that another package registers: its items as a JSONL, JSON, CSV or Parquet file, or a
            function that puts the file on the disk and gives its path.
    """

    name: str
    kind: TaskKind
    summary: str
    labels: Labels
    items: int | None
    size: str
    licence: str
    scale: str
    forms: tuple[DownloadFormat, ...] = ()
    home: GitHub | HuggingFace | None = None
    papers: tuple[Paper, ...] = ()
    family: str = "summeval"
    aspects: tuple[str, ...] = ()
    terms: str = ""
    quirks: tuple[str, ...] = ()
    rule: TiePolicy = DEFAULT_TIE_POLICY
    file: Path | Callable[[], Path] | None = None

    @property
    def wanted(self) -> str:
        """Name the files of each format, for messages."""
        names = []
        for first, *others in (form.files for form in self.forms):
            names.append(f"{first} and {len(others)} more files" if others else PurePosixPath(first).name)
        *most, last = names
        return f"{', '.join(most)} or {last}" if most else last


def _read_catalog() -> dict[str, Source]:
    text = Path(__file__).with_name("catalog.yaml").read_text(encoding="utf-8")
    # The parser in C takes a tenth of the time; PyYAML may have been built without it.
    catalog = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for entry in catalog["datasets"]:
        entry["papers"] = [catalog["papers"][name] for name in entry.get("papers", ())]
        for form in entry.get("forms", ()):
            names = ("columns", "optional") if "columns" in form else ()
            given = {name: form.pop(name, {}) for name in names}
            form["rows"] = partial(getattr(readers, form["rows"]), **given)
    # Extra keys are refused: a misspelt one would be left out without a word.
    sources = TypeAdapter(tuple[Source, ...]).validate_python(catalog["datasets"], extra="forbid")
    return {source.name: source for source in sources}


SOURCES = _read_catalog()
"""The datasets of this package, by name."""

_GROUP: Group = "jurygraph.datasets"


def dataset_names() -> tuple[str, ...]:
    """Return the names of the package's datasets, then of those that other packages register.

    >>> dataset_names()[:2]
    ('demo', 'demo-pairs')
    """
    return tuple(dict.fromkeys([*SOURCES, *plugins(_GROUP)]))


def find_source(name: str) -> Source | None:
    """Find the description of a dataset by its name; ``None`` if no dataset has it.

    Raises:
        UsageError: what a package registers under ``jurygraph.datasets`` cannot be loaded, or is no ``Source`` of
            that name with a file.
    """
    # A name of the catalogue stays what it is, whatever another package registers under it.
    if name in SOURCES or name not in plugins(_GROUP):
        return SOURCES.get(name)
    source = load_plugin(_GROUP, name)
    if not isinstance(source, Source):
        wrong = f"it is a {type(source).__name__}"
    elif source.name != name:
        wrong = f"its name is {source.name!r}"
    elif source.file is None:
        wrong = "it has no file"
    else:
        return source
    raise UsageError(
        f"{name!r}, registered under {_GROUP}, is not a dataset: {wrong}; register a Source with a file"
    )


class LocatedFile(NamedTuple):
    """Holds the places of a dataset's files.

    Attributes:
        rows: the function that reads them.
        paths: the files in their format's order, then those of its further files that are there.
        place: the file, or the folder that holds them all: enough to find them again.
    """

    rows: Rows
    paths: tuple[Path, ...]
    place: Path


def find(source: Source, place: str | Path) -> LocatedFile:
    """Find a dataset's files in a folder, in a folder below it with the dataset's name, or as the one file named.

    Raises:
        DataError: they are not there.
    """
    place = Path(place)
    folders = [place, place / source.name, place / source.name.replace("-", "_")]
    for folder, form in product(folders if place.is_dir() else [place.parent], source.forms):
        if located := _in_folder(form, folder, None if place.is_dir() else place):
            return located
    if place.is_file():
        raise DataError(f"{place}: {source.name} is read from {source.wanted}, not from this file")
    if not place.is_dir():
        raise DataError(f"{place}: there is no such folder")
    raise DataError(f"{place}: holds no {source.wanted}, which {source.name} is read from (also .gz)")


def _in_folder(form: DownloadFormat, folder: Path, wanted: Path | None) -> LocatedFile | None:
    parts = [PurePosixPath(name).parts for name in form.files]
    # First as published, then without leading folders: a part of a checkout does as well.
    for dropped in range(min(map(len, parts))):
        names = ["/".join(path[dropped:]) for path in parts]
        paths = list(filter(None, (_plain_or_compressed(folder / name) for name in names)))
        # Not so short that two files become one, such as the eight ``dataset.json`` of LLMBar.
        is_whole = len(set(names)) == len(names) == len(paths)
        # A file that the user named has to be the first of the format: the others are found beside it.
        if is_whole and wanted in (None, paths[0]):
            extra = filter(None, (_plain_or_compressed(folder / name) for name in form.extra))
            return LocatedFile(form.rows, (*paths, *extra), paths[0] if len(paths) == 1 else folder)
    return None


def _plain_or_compressed(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)
