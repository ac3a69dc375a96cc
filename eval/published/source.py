"""What is known of a dataset that has a name: its facts, its homes, and the forms in which it lies on a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from ...state.tasks import TaskKind
from ..files import Row, RowFile
from ..rules import USUAL, Rule

Labels = Literal["people", "construction", "none"]

Rows = Callable[[Sequence[RowFile]], Iterator[Row]]
"""Makes items' fields of the rows of a form's files, which come in the form's order."""


@dataclass(frozen=True)
class Form:
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
    """

    name: str
    kind: TaskKind
    summary: str
    labels: Labels
    items: int | None
    size: str
    licence: str
    scale: str
    forms: tuple[Form, ...] = ()
    home: GitHub | HuggingFace | None = None
    papers: tuple[Paper, ...] = ()
    family: str = "summeval"
    aspects: tuple[str, ...] = ()
    terms: str = ""
    quirks: tuple[str, ...] = ()
    rule: Rule = USUAL

    @property
    def wanted(self) -> str:
        """The files that one of its forms needs, for messages."""
        *most, last = [_shown(form.files) for form in self.forms]
        return f"{', '.join(most)} or {last}" if most else last


def _shown(files: tuple[str, ...]) -> str:
    first, *others = files
    return f"{first} and {len(others)} more files" if others else PurePosixPath(first).name
