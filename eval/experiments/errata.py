"""Errors in the papers' tables and texts, as listed in paper_errata.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from ...nodes.common.yaml_files import read_data
from ...state.checked import listed
from .paper_tables import paper_tables


def _is_table(name: str) -> str:
    if name not in paper_tables():
        raise ValueError(f"there is no table {name!r}; tables are {listed(paper_tables(), name)}")
    return name


@dataclass(frozen=True)
class Erratum:
    """An error in a paper.

    Attributes:
        paper: the paper, and its version if versions differ.
        place: the table, figure or section, and the row or sentence in it.
        printed: the text or number in the paper.
        right: the correct text or number; empty if the paper does not determine it.
        reason: the evidence for the error.
        page: the page in the paper as a single document, or several in the order of the places;
            empty if unknown.
        tables: the names of affected tables in paper_tables.yaml.
    """

    paper: str
    place: str
    printed: str
    right: str
    reason: str
    page: str = ""
    tables: tuple[Annotated[str, AfterValidator(_is_table)], ...] = ()

    def __str__(self) -> str:
        pages = ("pages" if "," in self.page else "page") + f" {self.page}"
        place = f"{self.place} ({pages})" if self.page else self.place
        should_be = f"; should be: {self.right}" if self.right else ""
        return f"{self.paper}, {place}. Printed: {self.printed}{should_be}. {self.reason}"


@cache
def errata() -> tuple[Erratum, ...]:
    """Return all known errors, by paper."""
    return read_data(Path(__file__).with_name("paper_errata.yaml"), tuple[Erratum, ...])


def errata_of(table: str) -> tuple[Erratum, ...]:
    """Return the errors in a table.

    >>> [erratum.right for erratum in errata_of("courtroom-ballot")]
    ['no experiment is printed']
    """
    return tuple(erratum for erratum in errata() if table in erratum.tables)
