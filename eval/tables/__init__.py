"""Tables: a ``Grid`` contains the values of a table, and each format renders it."""

from .formats import to_csv, to_latex, to_lines, to_markdown, to_rich
from .grid import Column, Grid, text_column

__all__ = [
    "Column",
    "Grid",
    "text_column",
    "to_csv",
    "to_latex",
    "to_lines",
    "to_markdown",
    "to_rich",
]
