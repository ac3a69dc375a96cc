"""What is known of a named dataset: homes, forms, where it lies on a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from ....state.errors import DataError
from ....state.tasks import TaskKind
from ...statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from ..files import Row, RowFile

Labels = Literal["people", "construction", "none"]

Rows = Callable[[Sequence[RowFile]], Iterator[Row]]
"""Makes items' fields of the rows of a form's files, which come in the form's order."""


@dataclass(frozen=True)
class DownloadFormat:
    """One way in which a dataset lies on a disk.

    Attributes:
        files: their paths below a folder; of each, the compressed one (``.gz``) does as well.
        rows: reads them.
        extra: files beside them that are read where they are there.
    """

    files: tuple[str, ...]
    rows: Rows
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class GitHub:
    """Files of a repository on GitHub, as they were at one commit."""

    repository: str
    commit: str

    @property
    def address(self) -> str:
        """Where people find it."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True)
class HuggingFace:
    """Files of a dataset on the Hugging Face Hub at one revision, each with the SHA-256 that the Hub states."""

    repository: str
    revision: str
    sha256: tuple[str, ...]

    @property
    def address(self) -> str:
        """Where people find it."""
        return f"https://huggingface.co/datasets/{self.repository}/tree/{self.revision}"


@dataclass(frozen=True)
class Paper:
    """What to cite.

    Attributes:
        cite: authors and year.
        title: of the paper.
        bibtex: the entry.
    """

    cite: str
    title: str
    bibtex: str


@dataclass(frozen=True)
class Source:
    """A dataset that has a name.

    Attributes:
        name: what it is called here.
        kind: what its items are.
        summary: what it is, in a few words.
        labels: who made them.
        items: how many there are, where that is known.
        size: the same for people, with what the items are made of.
        licence: as its home states it, in short.
        forms: the published one first; empty for a bundled dataset.
        home: where the published form is fetched from; ``None`` for a bundled dataset.
        papers: what to cite.
        scale: of its labels, for people.
        family: prefix of its aspects' full names.
        aspects: what is rated.
        terms: of use, where they take more words.
        quirks: what one should know before trusting a figure made from it.
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
        """The files that one of its forms needs, for messages."""
        *most, last = [_shown(form.files) for form in self.forms]
        return f"{', '.join(most)} or {last}" if most else last


def _shown(files: tuple[str, ...]) -> str:
    first, *others = files
    return f"{first} and {len(others)} more files" if others else PurePosixPath(first).name


@dataclass(frozen=True)
class LocatedFile:
    """A form of a dataset, and where its files are.

    Attributes:
        form: how they are read.
        paths: the files, in the form's order; those that it takes where they are there come last.
        place: the file, or the folder that holds them all: enough to find them again.
    """

    form: DownloadFormat
    paths: tuple[Path, ...]
    place: Path


def find(source: Source, place: str | Path) -> LocatedFile:
    """A dataset's files: in a folder, one folder below it that is called like the dataset, or the one file named.

    Raises:
        DataError: they are not there.
    """
    place = Path(place)
    for folder, form in _candidates(source, place):
        if found := _in_folder(form, folder, None if place.is_dir() else place):
            return found
    if place.is_file():
        raise DataError(f"{place}: {source.name} is read from {source.wanted}, and this is none of them")
    if not place.is_dir():
        raise DataError(f"{place}: there is no such folder")
    raise DataError(f"{place}: holds no {source.wanted}, which {source.name} is read from (also .gz)")


def _candidates(source: Source, place: Path) -> Iterator[tuple[Path, DownloadFormat]]:
    folders = [place, place / source.name, place / source.name.replace("-", "_")]
    for folder in folders if place.is_dir() else [place.parent]:
        for form in source.forms:
            yield folder, form


def _in_folder(form: DownloadFormat, folder: Path, wanted: Path | None) -> LocatedFile | None:
    for names in _shortened(form.files):
        paths = [_plain_or_compressed(folder / name) for name in names]
        there = [path for path in paths if path is not None]
        if len(there) == len(names) and wanted in (None, there[0]):
            extra = [_plain_or_compressed(folder / name) for name in form.extra]
            single = len(there) == 1
            held = (*there, *(path for path in extra if path is not None))
            return LocatedFile(form, held, there[0] if single else folder)
    return None


def _shortened(files: tuple[str, ...]) -> Iterator[list[str]]:
    """The paths as published, and without the folders that they begin with: a part of a checkout does as well."""
    parts = [PurePosixPath(name).parts for name in files]
    for dropped in range(min(map(len, parts))):
        names = ["/".join(path[dropped:]) for path in parts]
        if len(set(names)) == len(names):
            yield names


def _plain_or_compressed(path: Path) -> Path | None:
    for one in (path, path.with_name(f"{path.name}.gz")):
        if one.is_file():
            return one
    return None
