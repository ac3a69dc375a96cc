"""Write tables: a ``Grid`` holds the values of a table, and each format lays it out."""

from .formats import to_csv, to_latex, to_lines, to_markdown, to_rich
from .grid import CellValue, Column, Grid, columns_of, fields_of, share_column, text_column, value_at

__all__ = [
    "CellValue",
    "Column",
    "Grid",
    "columns_of",
    "fields_of",
    "share_column",
    "text_column",
    "to_csv",
    "to_latex",
    "to_lines",
    "to_markdown",
    "to_rich",
    "value_at",
]
