"""Describe the named datasets and find their files on disk.

The datasets of this package are in ``catalog.yaml``. Other packages can register more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, NotRequired

import yaml
from typing_extensions import TypedDict

from ...nodes.common.plugins import Group, load_plugin, plugins
from ...nodes.common.yaml_files import line_in_yaml
from ...state.citations import FAIREVAL, Citation
from ...state.data_files import check_data
from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from . import published_readers
from .files import Row, RowFile

Labels = Literal["people", "construction", "none"]

Rows = Callable[[Sequence[RowFile]], Iterator[Row]]
"""Turns the rows of a format's files, in the order of the format, into fields of items."""


@dataclass(frozen=True)
class DownloadFormat:
    """One layout of a dataset's files on disk.

    Attributes:
        files: the paths of its files inside a folder; each may also be compressed (``.gz``).
        rows: the function that reads them.
        extra: optional further files in the same folder.
    """

    files: tuple[str, ...]
    rows: Rows
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class GitHub:
    """A repository on GitHub and the commit to fetch."""

    repository: str
    commit: str

    @property
    def address(self) -> str:
        """Return the address of its web page."""
        return f"https://github.com/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True)
class HuggingFace:
    """A dataset on the Hugging Face Hub, its revision, and the SHA-256 of each file."""

    repository: str
    revision: str
    sha256: tuple[str, ...]

    @property
    def address(self) -> str:
        """Return the address of its web page."""
        return f"https://huggingface.co/datasets/{self.repository}/tree/{self.revision}"


@dataclass(frozen=True)
class Source:
    """A named dataset.

    Attributes:
        name: its name in this package.
        kind: the kind of task, ``score`` or ``compare``.
        summary: its content in a few words.
        labels: the origin of the labels.
        items: the number of items, if known.
        size: the number of items and their origin, in words.
        licence: the licence that its home states, in short.
        forms: the formats that can be read, the published one first; empty for a bundled dataset.
        home: the place to fetch the published format from; ``None`` for a bundled dataset.
        papers: the papers to cite.
        scale: the scale of its labels, in words.
        family: the prefix of its aspects' full names.
        aspects: the aspects that were rated.
        terms: the terms of use, if they need more words than ``licence``.
        quirks: facts that affect how to interpret results on this dataset.
        rule: the rule for comparing verdicts with labels.
        file: for a dataset of another package: its items as a JSONL, JSON, CSV or Parquet file, or
            a function that creates the file and returns its path.
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
    papers: tuple[Citation, ...] = ()
    family: str = "summeval"
    aspects: tuple[str, ...] = ()
    terms: str = ""
    quirks: tuple[str, ...] = ()
    rule: TiePolicy = DEFAULT_TIE_POLICY
    file: Path | Callable[[], Path] | None = None

    @property
    def is_published(self) -> bool:
        """Whether its files are downloaded or in a user's folder; others come with a package."""
        return bool(self.forms) and self.file is None

    @property
    def wanted(self) -> str:
        """Return the file names of each format, for messages."""
        names = []
        for first, *others in (form.files for form in self.forms):
            names.append(
                f"{first} and {len(others)} more files" if others else PurePosixPath(first).name
            )
        *most, last = names
        return f"{', '.join(most)} or {last}" if most else last


_Column = Literal[
    "annotations",
    "annotator1",
    "annotator2",
    "annotator3",
    "answer_1",
    "answer_2",
    "answers",
    "candidate",
    "category",
    "coherence",
    "complexity",
    "document",
    "empathy",
    "engagement",
    "fact",
    "group",
    "human",
    "id",
    "input",
    "models",
    "question",
    "references",
    "relevance",
    "source",
    "surprise",
    "system",
]
"""Valid names for a published column: a field of an item, or an input of published_readers.py."""


class _Columns(TypedDict):
    columns: NotRequired[dict[_Column, str]]
    optional: NotRequired[dict[_Column, str]]


class _Forms(TypedDict):
    forms: list[_Columns]


class _Mapped(TypedDict):
    datasets: list[_Forms]


class _Catalog(TypedDict):
    """The content of catalog.yaml."""

    datasets: tuple[Source, ...]
    papers: dict[str, Citation]


def _read_catalog() -> dict[str, Source]:
    path = Path(__file__).with_name("catalog.yaml")
    # The C parser takes a tenth of the time, but PyYAML may be built without it.
    catalog = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    mapped = [
        {
            "forms": [
                {name: form[name] for name in ("columns", "optional") if name in form}
                for form in forms
            ]
        }
        for forms in (entry.get("forms", ()) for entry in catalog["datasets"])
    ]
    check_data(path, {"datasets": mapped}, _Mapped, lambda place, _: line_in_yaml(path, place))
    # FairEval's paper is that of a protocol, too.
    papers = catalog["papers"] = {"faireval": asdict(FAIREVAL), **catalog["papers"]}
    for entry in catalog["datasets"]:
        # Unknown names stay here; the check below refuses them and names their line.
        entry["papers"] = [papers.get(name, name) for name in entry.get("papers", ())]
        for form in entry.get("forms", ()):
            given = {}
            if "columns" in form:
                given = {name: form.pop(name, {}) for name in ("columns", "optional")}
            rows = form.get("rows")
            if hasattr(published_readers, str(rows)):
                form["rows"] = partial(getattr(published_readers, rows), **given)
    checked = check_data(path, catalog, _Catalog, lambda place, _: line_in_yaml(path, place))
    return {source.name: source for source in checked["datasets"]}


SOURCES = _read_catalog()
"""The datasets of this package, by name."""

_GROUP: Group = "jurygraph.datasets"


def dataset_names() -> tuple[str, ...]:
    """Return the names of the package's datasets, then those registered by other packages.

    >>> dataset_names()[:2]
    ('demo', 'demo-pairs')
    """
    return tuple(dict.fromkeys([*SOURCES, *plugins(_GROUP)]))


def find_source(name: str) -> Source | None:
    """Find the description of a dataset by name; ``None`` if there is none.

    Raises:
        UsageError: an entry under ``jurygraph.datasets`` cannot be loaded, or is not a ``Source``
            of that name with a file.
    """
    # Other packages cannot redefine a name of the catalogue.
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
        f"{name!r}, registered under {_GROUP}, is not a dataset: {wrong}; "
        "register a Source with a file"
    )


class LocatedFile(NamedTuple):
    """The location of a dataset's files.

    Attributes:
        rows: the function that reads them.
        paths: the files in the order of their format, then the further files that exist.
        place: the file, or the folder that contains all files. It is enough to find them again.
    """

    rows: Rows
    paths: tuple[Path, ...]
    place: Path


def find(source: Source, place: str | Path) -> LocatedFile:
    """Find a dataset's files in a folder, in its subfolder of the dataset's name, or as one file.

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
    published = f"; the files are published at {source.home.address}" if source.home else ""
    raise DataError(
        f"{place}: has no {source.wanted}, which {source.name} is read from (also .gz){published}"
    )


def _in_folder(form: DownloadFormat, folder: Path, wanted: Path | None) -> LocatedFile | None:
    parts = [PurePosixPath(name).parts for name in form.files]
    # Try the published paths first, then without leading folders, for part of a checkout.
    for dropped in range(min(map(len, parts))):
        names = ["/".join(path[dropped:]) for path in parts]
        paths = list(filter(None, (_plain_or_compressed(folder / name) for name in names)))
        # Stop before two files become one, such as the eight ``dataset.json`` of LLMBar.
        is_whole = len(set(names)) == len(names) == len(paths)
        # A file named by the user must be the first of the format; the others are next to it.
        if is_whole and wanted in (None, paths[0]):
            extra = filter(None, (_plain_or_compressed(folder / name) for name in form.extra))
            return LocatedFile(form.rows, (*paths, *extra), paths[0] if len(paths) == 1 else folder)
    return None


def _plain_or_compressed(path: Path) -> Path | None:
    return next(
        (file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None
    )
