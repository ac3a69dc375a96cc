"""``jurygraph report``: runs side by side, in tables, drawings, and a page with every debate."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from ...state.errors import UsageError
from ..tables import Grid, to_lines
from .runtime import console

if TYPE_CHECKING:
    from ..analysis import Study

FIGURES, NUMBERS = "Where to", "Which figures"


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with every debate.", rich_help_panel=FIGURES),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page that was written.", rich_help_panel=FIGURES)
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tables as Markdown.", rich_help_panel=FIGURES),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a CSV file a table.", rich_help_panel=FIGURES),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tables for LaTeX (booktabs).", rich_help_panel=FIGURES),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the drawings as SVG and PDF.", rich_help_panel=FIGURES),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all tables, in detail.", rich_help_panel=FIGURES)
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="PROTOCOL",
            help="Whom the others are compared with; default: single, else baseline, else the first.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="spearman, pearson or kendall.", rich_help_panel=NUMBERS)
    ] = "spearman",
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples.", rich_help_panel=NUMBERS)
    ] = 1000,
    confidence: Annotated[float, typer.Option(help="Of intervals.", rich_help_panel=NUMBERS)] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of resamples.", rich_help_panel=NUMBERS)] = 0,
    ties: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Of comparisons, what a human tie is: class, left_out or half; default: the data's own rule.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Whether people's majority counts, or each of their votes: majority or each; likewise.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    human_price: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            min=0,
            help="What a person's judgement costs: gives people a row.",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
    human_minutes: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", min=0, help="What it takes a person.", rich_help_panel=NUMBERS),
    ] = None,
    annotators: Annotated[
        int, typer.Option(min=1, help="How many people judge each item.", rich_help_panel=NUMBERS)
    ] = 1,
) -> None:
    """Compare the protocols of one or more runs: agreement with people, cost, and what the debates did.

    Prints what fits on a screen or two; files and the page have everything, as has --all.
    With --html, one file that opens without network: tables, drawings, and every debate, to be searched and read.
    """
    from ..analysis import People, Study
    from ..report.labels import METRICS
    from ..statistics.resampling import Resampling

    if metric not in METRICS:
        raise UsageError(f"--metric {metric!r} is not one of {', '.join(METRICS)}")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g} is not between 0 and 1: 0.95 stands for 95%")
    if open_page and html is None:
        raise UsageError("--open opens the page: say with --html FILE where to write it")
    chosen = list(dict.fromkeys(folders))
    people = (
        People(human_price, human_minutes, annotators)
        if human_price is not None or human_minutes is not None
        else None
    )
    study = Study.of(
        chosen,
        base=base,
        resampling=Resampling(resamples=resamples, confidence=confidence, seed=seed),
        people=people,
        ties=ties,
        votes=votes,
    )
    writing = _Writing(study, metric)
    for path, write in (
        (markdown, writing.markdown),
        (csv, writing.csv),
        (latex, writing.latex),
        (figures, writing.figures),
    ):
        if path is not None:
            write(path)
    if html is not None:
        writing.html(html, chosen)
    # Whoever reads only the head of what is printed has the files all the same.
    writing.show(console(), everything)
    if open_page and html is not None:
        webbrowser.open(html.resolve().as_uri())


class _Writing:
    """One study, written down in the forms that were asked for; what was written is told at the end of ``show``."""

    def __init__(self, study: Study, metric: str) -> None:
        self._study, self._metric = study, metric
        self._written: list[str] = []

    def show(self, out: Console, everything: bool) -> None:
        """Print the tables, then once what holds for all of them: how intervals were made, and what was run."""
        from ..report.labels import interval_note, signed
        from ..report.sections import grids
        from ..report.summary_tables import summary, without_marks

        for note in self._study.notes:
            out.print(Text(f"! {note}", style="yellow"), soft_wrap=True)
        tables = grids(self._study, self._metric) if everything else summary(self._study, self._metric)
        for grid in tables:
            out.print(to_lines(without_marks(grid), out.width))
            out.print()
        more = (
            [] if everything else ["intervals, all pairs, all correlations, diagnostics: --all, --html FILE"]
        )
        for note in (
            *more,
            interval_note(self._study),
            *self._study.leaderboard.notes,
            *self._study.comparison.notes,
            *self._study.matching.notes,
            *map(signed, self._study.judges),
        ):
            out.print(Text(note, style="dim"), soft_wrap=True)
        for line in self._written:
            out.print(line, soft_wrap=True, markup=False)

    def _grids(self, full: bool = False) -> Iterator[Grid]:
        from ..report.sections import grids

        return grids(self._study, self._metric, full)

    def markdown(self, path: Path) -> None:
        """All tables in one Markdown file."""
        from ..tables import to_markdown

        head = "".join(f"> {note}\n\n" for note in self._study.notes)
        self._write(path, head + "\n".join(map(to_markdown, self._grids(full=True))))

    def latex(self, path: Path) -> None:
        """All tables in one LaTeX file."""
        from ..tables import to_latex
        from ..tables.grid import printable

        head = "% \\usepackage{booktabs,graphicx}\n" + "".join(
            f"% {printable(note)}\n" for note in self._study.notes
        )
        self._write(path, head + "\n" + "\n".join(map(to_latex, self._grids(full=True))))

    def csv(self, folder: Path) -> None:
        """A CSV file a table.

        Raises:
            UsageError: the name of a file, not of a folder.
        """
        if folder.suffix == ".csv":
            raise UsageError(f"--csv {folder} is the name of a file: there is one a table, so name a folder")
        from ..report.sections import file_name
        from ..tables import to_csv

        for number, grid in enumerate(self._grids(), start=1):
            self._write(folder / f"{number:02d}-{file_name(grid.title)}.csv", to_csv(grid), told=False)
        self._written.append(f"wrote {folder}/*.csv")

    def figures(self, folder: Path) -> None:
        """Every drawing as SVG and PDF."""
        from ..report.chart_style import save
        from ..report.charts import pictures
        from ..report.sections import file_name

        for picture in pictures(self._study):
            for suffix in (".svg", ".pdf"):
                save(picture.figure, folder / f"{file_name(picture.title)}{suffix}")
        self._written.append(f"wrote {folder}/*.svg, *.pdf")

    def html(self, path: Path, folders: list[Path]) -> None:
        """The page with every debate."""
        from ..report.debates import Debates, run_folders
        from ..report.page import write_page
        from ..report.sections import compose
        from ..run.folder import read_manifest

        debates = Debates(run_folders((folder, read_manifest(folder)) for folder in folders))
        title = f"jurygraph: {', '.join(folder.resolve().name for folder in folders)}"
        size = write_page(compose(self._study, self._metric, title), debates, path)
        self._written.append(f"wrote {path}: {len(debates):,} debates, {decimal(size)}")

    def _write(self, path: Path, text: str, told: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
        if told:
            self._written.append(f"wrote {path}")
