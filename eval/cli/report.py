"""Compare runs in tables, charts and a page with every debate: the command ``jurygraph report``."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from importlib.util import find_spec
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

OUTPUT, STATISTICS, HUMANS = "Output", "Statistics", "Human annotation, for comparison"


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of runs.")],
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write an HTML page with all tables, charts and debates.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.", rich_help_panel=OUTPUT)
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all tables as Markdown.", rich_help_panel=OUTPUT),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write each table to a CSV file in this folder.", rich_help_panel=OUTPUT
        ),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all tables as LaTeX (booktabs).", rich_help_panel=OUTPUT),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the charts as SVG and PDF.", rich_help_panel=OUTPUT),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Print all tables in full, not only the summary.", rich_help_panel=OUTPUT),
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="JUDGE",
            help="Compare the other judges with this one. Default: single, else baseline, else the first.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The correlation of the leaderboard: spearman, pearson or kendall.",
            rich_help_panel=STATISTICS,
        ),
    ] = "spearman",
    resamples: Annotated[
        int, typer.Option(min=1, metavar="N", help="Bootstrap resamples.", rich_help_panel=STATISTICS)
    ] = 1000,
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="Confidence level of intervals.", rich_help_panel=STATISTICS),
    ] = 0.95,
    seed: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Random seed of the bootstrap.", rich_help_panel=STATISTICS),
    ] = 0,
    ties: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="In comparisons, count a human tie as a class, left_out or half right. Default: the dataset's rule.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="In comparisons, compare with the majority of annotators or with each vote. "
            "Default: the dataset's rule.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    without_flagged: Annotated[
        bool,
        typer.Option(
            "--without-flagged",
            help="Leave out items of which a text states a verdict itself, for all judges alike.",
            rich_help_panel=STATISTICS,
        ),
    ] = False,
    human_price: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            min=0,
            help="Cost of one human judgement; adds a row for humans to the cost table.",
            rich_help_panel=HUMANS,
        ),
    ] = None,
    human_minutes: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", min=0, help="Time of one human judgement.", rich_help_panel=HUMANS),
    ] = None,
    annotators: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Annotators who judge each item.", rich_help_panel=HUMANS),
    ] = 1,
) -> None:
    """Compare the judges of one or more runs: agreement with humans, cost, debate diagnostics.

    Prints a summary of one or two screens; --all, the files and the page have every table.

    --html writes one file that opens without a network, with every debate to search and read.
    """
    from ..analysis import People, Study
    from ..report.labels import METRICS
    from ..statistics.resampling import Resampling

    if metric not in METRICS:
        raise UsageError(f"--metric {metric!r} is unknown; it is one of {', '.join(METRICS)}")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence must be between 0 and 1 (0.95 for 95 %), got {confidence:g}")
    if open_page and html is None:
        raise UsageError("--open needs a page to open: write one with --html FILE")
    if figures is not None and find_spec("matplotlib") is None:
        raise UsageError('--figures needs matplotlib: pip install "jurygraph[report]"')
    chosen = list(dict.fromkeys(folders))  # a folder that was named twice counts once
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
        without_flagged=without_flagged,
        ties=ties,
        votes=votes,
    )
    writing = _Writing(study, metric)
    if csv is not None:
        writing.check_csv(csv)
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
    # Printed last, since a reader that closes our output (``| head``) ends the command.
    writing.show(console(), everything)
    if open_page and html is not None:
        webbrowser.open(html.resolve().as_uri())


class _Writing:
    """Writes one study in the formats that were asked for; ``show`` ends with the list of files written."""

    def __init__(self, study: Study, metric: str) -> None:
        self._study, self._metric = study, metric
        self._written: list[str] = []

    def show(self, out: Console, everything: bool) -> None:
        """Print the answer, the tables, then once the notes that hold for all tables."""
        from ..report.headline import answers, headline
        from ..report.labels import config_line, interval_note
        from ..report.sections import grids
        from ..report.summary_tables import summary, without_config
        from ..tables.grid import printable

        for note in self._study.notes:
            out.print(Text(f"Warning: {printable(note)}", style="yellow"), soft_wrap=True)
        out.print(Text(headline(self._study, self._metric), style="bold"), soft_wrap=True)
        for answer in answers(self._study, self._metric):
            out.print(Text(answer), soft_wrap=True)
        out.print()
        tables = grids(self._study, self._metric) if everything else summary(self._study, self._metric)
        for grid in tables:
            out.print(to_lines(without_config(grid), out.width))
            out.print()
        more = (
            []
            if everything
            else [
                "--all or --html FILE adds intervals, pairwise differences, all correlations and diagnostics"
            ]
        )
        for note in (
            *more,
            interval_note(self._study),
            *self._study.leaderboard.notes,
            *self._study.comparison.notes,
            *self._study.matching.notes,
            *map(config_line, self._study.judges),
        ):
            out.print(Text(note, style="dim"), soft_wrap=True)
        for line in self._written:
            out.print(line, soft_wrap=True, markup=False)

    def _grids(self, full: bool = False) -> Iterator[Grid]:
        from ..report.sections import grids

        return grids(self._study, self._metric, full)

    def markdown(self, path: Path) -> None:
        """Write all tables to one Markdown file."""
        from ..tables import to_markdown

        head = "".join(f"> {note}\n\n" for note in self._study.notes)
        self._write(path, head + "\n".join(map(to_markdown, self._grids(full=True))))

    def latex(self, path: Path) -> None:
        """Write all tables to one LaTeX file."""
        from ..tables import to_latex
        from ..tables.grid import printable

        head = "% \\usepackage{booktabs,graphicx}\n" + "".join(
            f"% {printable(note)}\n" for note in self._study.notes
        )
        self._write(path, head + "\n" + "\n".join(map(to_latex, self._grids(full=True))))

    def csv(self, folder: Path) -> None:
        """Write each table to a CSV file of its own."""
        from ..tables import to_csv

        for name, grid in self._csv_files().items():
            self._write(folder / name, to_csv(grid), listed=False)
        self._written.append(f"wrote {folder}/*.csv")

    def check_csv(self, folder: Path) -> None:
        """Check that the tables will be the only ones in their folder.

        Raises:
            UsageError: ``folder`` is named like a file, or holds tables of another report.
        """
        if folder.suffix == ".csv":
            raise UsageError(
                f"--csv {folder} names a file; name a folder, since each table gets a file of its own"
            )
        others = sorted({path.name for path in folder.glob("[0-9][0-9]-*.csv")} - self._csv_files().keys())
        if others:
            raise UsageError(
                f"--csv {folder}: there are tables of another report, such as {others[0]}, which nobody could tell "
                "from the new ones; choose another folder, or delete them"
            )

    def _csv_files(self) -> dict[str, Grid]:
        """Return the tables by the names of their files."""
        from ..report.sections import file_name

        return {
            f"{number:02d}-{file_name(grid.title)}.csv": grid
            for number, grid in enumerate(self._grids(), start=1)
        }

    def figures(self, folder: Path) -> None:
        """Write every chart as SVG and PDF."""
        from ..report.chart_style import save
        from ..report.charts import pictures
        from ..report.sections import file_name

        for picture in pictures(self._study):
            for suffix in (".svg", ".pdf"):
                save(picture.figure, folder / f"{file_name(picture.title)}{suffix}")
        self._written.append(f"wrote {folder}/*.svg, *.pdf")

    def html(self, path: Path, folders: list[Path]) -> None:
        """Write the page with every debate."""
        from ..report.debates import Debates, run_folders
        from ..report.page import write_page
        from ..report.sections import compose
        from ..run.folder import read_manifest

        debates = Debates(run_folders((folder, read_manifest(folder)) for folder in folders))
        title = f"jurygraph: {', '.join(folder.resolve().name for folder in folders)}"
        size = write_page(compose(self._study, self._metric, title), debates, path)
        self._written.append(f"wrote {path}: {len(debates):,} debates, {decimal(size)}")

    def _write(self, path: Path, text: str, listed: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name may hold half a surrogate pair, which UTF-8 cannot encode: it must not cost the whole table.
        path.write_text(text, encoding="utf-8", errors="replace")
        if listed:
            self._written.append(f"wrote {path}")
