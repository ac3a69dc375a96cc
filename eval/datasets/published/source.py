"""Describe a named dataset, its home and formats, and find its files on a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Literal

from ....state.errors import DataError
from ....state.tasks import TaskKind
from ...statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from ..files import Row, RowFile

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
        *most, last = [_shown(form.files) for form in self.forms]
        return f"{', '.join(most)} or {last}" if most else last


def _shown(files: tuple[str, ...]) -> str:
    first, *others = files
    return f"{first} and {len(others)} more files" if others else PurePosixPath(first).name


@dataclass(frozen=True)
class LocatedFile:
    """Holds a format of a dataset and the places of its files.

    Attributes:
        form: the format, which says how the files are read.
        paths: the files in the format's order, then those of its further files that are there.
        place: the file, or the folder that holds them all: enough to find them again.
    """

    form: DownloadFormat
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
    for names in _shortened(form.files):
        paths = list(filter(None, (_plain_or_compressed(folder / name) for name in names)))
        # A file that the user named has to be the first of the format: the others are found beside it.
        if len(paths) == len(names) and wanted in (None, paths[0]):
            extra = filter(None, (_plain_or_compressed(folder / name) for name in form.extra))
            return LocatedFile(form, (*paths, *extra), paths[0] if len(paths) == 1 else folder)
    return None


def _shortened(files: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the paths as published, then without their leading folders: a part of a checkout does as well."""
    parts = [PurePosixPath(name).parts for name in files]
    for dropped in range(min(map(len, parts))):
        names = ["/".join(path[dropped:]) for path in parts]
        # Not so short that two files become one, such as the eight ``dataset.json`` of LLMBar.
        if len(set(names)) == len(names):
            yield names


def _plain_or_compressed(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)
