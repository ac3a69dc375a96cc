"""What a sweep came to, written into its folder: tables for papers and programs, figures for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..export import to_csv, to_latex, to_markdown
from ..export.grid import Grid
from ..figures.style import save
from .ablations import Ablation
from .drawing import category_figure, figures
from .extras import EXTRAS
from .measuring import AVERAGE
from .result import Sweep
from .tables import aspect_grid, category_grid, cell_grid, pivot_grid

TABLES, FIGURES = "tables", "figures"
FORMATS: Mapping[str, Callable[[Grid], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
DRAWN = ("svg", "png", "pdf")


def grids(sweep: Sweep, ablation: Ablation | None = None) -> dict[str, Grid]:
    """The tables of a sweep by name: ``cells``, ``aspects`` if several, ``paper`` if the source has another shape."""
    extras = [EXTRAS[name] for name in ablation.extras] if ablation else []
    title = f"{ablation.name}: {ablation.question}" if ablation else "Agreement by cell"
    found = {"cells": cell_grid(sweep, title, extras)}
    if any(place.subject == AVERAGE for each in sweep.measured() for place in each.figures):
        found["aspects"] = aspect_grid(sweep)
    if ablation and ablation.by_category:
        found["paper"] = category_grid(sweep, f"As in {ablation.source}")
    elif ablation and ablation.across:
        found["paper"] = pivot_grid(sweep, ablation.across, f"As in {ablation.source}")
    return found


def write_tables(sweep: Sweep, folder: Path, ablation: Ablation | None = None) -> list[Path]:
    """Write all tables in all forms; gives the files."""
    written = []
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name, grid in grids(sweep, ablation).items():
        for suffix, form in FORMATS.items():
            path = folder / TABLES / f"{name}.{suffix}"
            path.write_text(form(grid), encoding="utf-8")
            written.append(path)
    return written


def write_figures(sweep: Sweep, folder: Path, ablation: Ablation | None = None) -> list[Path]:
    """Draw all figures in all forms; gives the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    drawn = figures(sweep, ablation.along if ablation else None)
    if drawn and ablation and ablation.by_category:
        drawn["categories"] = category_figure(sweep)
    return [
        save(figure, folder / FIGURES / f"{name}.{suffix}")
        for name, figure in drawn.items()
        for suffix in DRAWN
    ]
