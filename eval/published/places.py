"""Finding a dataset's files in a folder of one's own, whatever the folder is called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...state.errors import DataError
from .source import Form, Source


@dataclass(frozen=True)
class Found:
    """A form of a dataset, and where its files are.

    Attributes:
        form: how they are read.
        paths: the files, in the form's order; those that it takes where they are there come last.
        place: the file, or the folder that holds them all: enough to find them again.
    """

    form: Form
    paths: tuple[Path, ...]
    place: Path


def find(source: Source, place: str | Path) -> Found:
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


def _candidates(source: Source, place: Path) -> Iterator[tuple[Path, Form]]:
    folders = [place, place / source.name, place / source.name.replace("-", "_")]
    for folder in folders if place.is_dir() else [place.parent]:
        for form in source.forms:
            yield folder, form


def _in_folder(form: Form, folder: Path, wanted: Path | None) -> Found | None:
    for names in _shortened(form.files):
        paths = [_plain_or_compressed(folder / name) for name in names]
        there = [path for path in paths if path is not None]
        if len(there) == len(names) and wanted in (None, there[0]):
            extra = [_plain_or_compressed(folder / name) for name in form.extra]
            single = len(there) == 1
            held = (*there, *(path for path in extra if path is not None))
            return Found(form, held, there[0] if single else folder)
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
