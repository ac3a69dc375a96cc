"""Compare runs in tables, charts and a page with debates: the command ``jurygraph report``."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from ...state.errors import UsageError
from ..tables import Grid, to_lines
from .option_sets import flag, option, takes_options
from .runtime import Output, check_confidence, console

if TYPE_CHECKING:
    from ..analysis import Study

output, output_flag = partial(option, panel="Output"), partial(flag, panel="Output")
statistics = partial(option, panel="Statistics")
humans = partial(option, panel="Human annotation, for comparison")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is written, by which statistics, and what people are compared as."""

    html: Path | None = output("Write an HTML page with all tables, charts and debates.", "FILE")
    open_page: bool = output_flag("Open the page in a browser.", name="--open")
    debates: int | None = output(
        "Put the debates of N verdicts on the page, those worth reading first. "
        "Default: 5000, or fewer that keep it below 10 MB.",
        "N",
        min=0,
    )
    markdown: Path | None = output("Write all tables as Markdown.", "FILE")
    csv: Path | None = output("Write each table to a CSV file in this folder.", "DIR")
    latex: Path | None = output("Write all tables as LaTeX (booktabs).", "FILE")
    figures: Path | None = output("Write the charts as SVG and PDF.", "DIR")
    tables: str | None = output(
        "Print and write only these tables in full, such as leaderboard,comparison; a wrong name lists all.",
        "NAMES",
        name="--table",
    )
    everything: bool = output_flag("Print all tables in full, not only the summary.", name="--all")
    base: str | None = statistics(
        "Compare the other judges with this one. Default: single, else baseline, else the first.", "JUDGE"
    )
    metric: str | None = statistics(
        "What judges are ranked by: spearman, pearson, kendall, the same within groups (group_spearman, ...), "
        "accuracy or kappa. Default: what belongs to the data.",
        "NAME",
    )
    resamples: int = statistics("Bootstrap resamples.", "N", min=1, default=1000)
    confidence: float = statistics("Confidence level of intervals.", "P", default=0.95)
    seed: int = statistics("Random seed of the bootstrap.", "N", min=0, default=0)
    ties: str | None = statistics(
        "In comparisons, count a human tie as a class, left_out or half right. Default: the dataset's rule.",
        "RULE",
    )
    votes: str | None = statistics(
        "In comparisons, compare with the majority of annotators or with each vote. Default: the dataset's rule.",
        "RULE",
    )
    without_flagged: bool = flag(
        "Leave out items of which a text states a verdict itself, for all judges alike.", panel="Statistics"
    )
    human_price: float | None = humans(
        "Cost of one human judgement; adds a row for humans to the cost table.", "USD", min=0
    )
    human_minutes: float | None = humans("Time of one human judgement.", "MINUTES", min=0)
    annotators: int = humans("Annotators who judge each item.", "N", min=1, default=1)

    def check(self) -> None:
        """Refuse what cannot be, before anything is computed or written."""
        from ..statistics.metrics import METRICS

        if self.metric not in (None, *METRICS):
            raise UsageError(f"--metric {self.metric!r} is unknown; it is one of {', '.join(METRICS)}")
        check_confidence(self.confidence)
        if self.open_page and self.html is None:
            raise UsageError("--open needs a page to open: write one with --html FILE")
        if self.figures is not None and find_spec("matplotlib") is None:
            raise UsageError('--figures needs matplotlib: pip install "jurygraph[report]"')
        for name, path in (("--html", self.html), ("--markdown", self.markdown), ("--latex", self.latex)):
            _check_file(name, path)

    def study(self, folders: Sequence[Path]) -> Study:
        """Analyse the runs."""
        from ..analysis import People, Study
        from ..statistics.resampling import Resampling

        asked = self.human_price is not None or self.human_minutes is not None
        return Study.of(
            folders,
            base=self.base,
            resampling=Resampling(resamples=self.resamples, confidence=self.confidence, seed=self.seed),
            people=People(self.human_price, self.human_minutes, self.annotators) if asked else None,
            without_flagged=self.without_flagged,
            metric=self.metric,
            ties=self.ties,
            votes=self.votes,
        )


@takes_options()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of runs.")],
    chosen: ReportOptions,
) -> None:
    """Compare the judges of one or more runs: agreement with humans, cost, debate diagnostics.

    Prints a summary of one or two screens; --all, the files and the page have every table.

    --html writes one file that opens without a network, with debates to search and read: all of them, or the
    5000 that are most worth reading.
    """
    from ..report.sections import names_of_tables

    chosen.check()
    names = () if chosen.tables is None else names_of_tables(chosen.tables)
    runs = list(dict.fromkeys(folders))  # a folder that was named twice counts once
    writing = _Writing(chosen.study(runs), chosen.metric, names)
    writing.check_folders(chosen.csv, chosen.figures)
    for write, path in (
        (writing.markdown, chosen.markdown),
        (writing.csv, chosen.csv),
        (writing.latex, chosen.latex),
        (writing.figures, chosen.figures),
    ):
        if path is not None:
            write(path)
    if chosen.html is not None:
        writing.html(chosen.html, runs, chosen.debates)
    # Printed last, since a reader that closes our output (``| head``) ends the command.
    writing.show(console(), chosen.everything)
    if chosen.open_page and chosen.html is not None:
        webbrowser.open(chosen.html.resolve().as_uri())


class _Writing:
    """Writes one study in the formats that were asked for; ``show`` ends with the list of files written."""

    def __init__(self, study: Study, metric: str | None, names: Sequence[str]) -> None:
        self._study, self._metric, self._names = study, metric, names
        self._written: list[str] = []

    def show(self, out: Output, everything: bool) -> None:
        """Print the answer and what makes it doubtful, the tables, then once the notes that hold for all tables."""
        from ..report.headline import answers, headline
        from ..report.labels import config_line, interval_note
        from ..report.summary_tables import summary, without_config
        from ..tables.grid import printable

        out.print_line(headline(self._study, self._metric), "bold")
        for answer in (*answers(self._study, self._metric, everything), *self._findings()):
            out.print_line(answer)
        for note in self._study.notes:
            out.print_line(f"Warning: {printable(note)}", "yellow")
        out.print()
        everything = everything or bool(self._names)
        tables = self._grids() if everything else summary(self._study, self._metric)
        for grid in tables:
            out.print(to_lines(without_config(grid), out.width))
            out.print()
        if not everything:
            out.print_line(
                "--all or --html FILE adds intervals, pairwise differences, all correlations and diagnostics",
                "dim",
            )
        for note in (
            interval_note(self._study),
            *self._study.leaderboard.notes,
            *self._study.comparison.notes,
            *self._study.matching.notes,
            *(config_line(self._study, judge) for judge in self._study.judges),
        ):
            out.print_line(note, "dim")
        for line in self._written:
            out.print_line(line)

    def _findings(self) -> list[str]:
        """Say whether debates pay, where the runs hold as dear judges who do not talk."""
        from ..equal_budget.finding import findings_of

        return [finding.sentence for finding in findings_of(self._study)]

    def _grids(self, full: bool = False) -> Iterator[Grid]:
        from ..report.sections import grids

        return grids(self._study, self._metric, full, self._names)

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

    def check_folders(self, csv: Path | None, figures: Path | None) -> None:
        """Check that folders can be written to, and that tables will not stand between those of another report.

        Raises:
            UsageError: a folder is named like a file, is one, or holds tables of another report.
        """
        from ..report.sections import TABLES

        for name, folder, suffix in (("--csv", csv, ".csv"), ("--figures", figures, ".svg")):
            if folder is not None and (folder.suffix == suffix or folder.is_file()):
                raise UsageError(f"{name} {folder} names a file; name a folder, for it gets several files")
            _check_file(name, folder and folder / "any")
        tables = (
            {path.name for path in csv.glob("*.csv") if path.name.startswith(tuple(TABLES))} if csv else set()
        )
        if others := sorted(tables - self._csv_files().keys()):
            raise UsageError(
                f"--csv {csv}: there are tables of another report, such as {others[0]}, which nobody could tell "
                "from the new ones; choose another folder, or delete them"
            )

    def _csv_files(self) -> dict[str, Grid]:
        """Return the tables by the names of their files."""
        return {f"{grid.label}.csv": grid for grid in self._grids()}

    def figures(self, folder: Path) -> None:
        """Write every chart as SVG and PDF."""
        from ..report.chart_style import save
        from ..report.charts import pictures
        from ..report.sections import file_name

        for picture in pictures(self._study):
            for suffix in (".svg", ".pdf"):
                save(picture.figure, folder / f"{file_name(picture.title)}{suffix}")
        self._written.append(f"wrote {folder}/*.svg, *.pdf")

    def html(self, path: Path, folders: list[Path], most: int | None) -> None:
        """Write the page, with so many debates."""
        from ..report.debates import Debates, run_folders
        from ..report.page import write_page
        from ..report.sections import compose
        from ..results.folder import read_manifest

        debates = Debates(run_folders((folder, read_manifest(folder)) for folder in folders), most)
        title = f"jurygraph: {', '.join(folder.resolve().name for folder in folders)}"
        page = compose(self._study, self._metric, title)
        size = write_page(replace(page, answers=(*page.answers, *self._findings())), debates, path)
        shown = f"{len(debates):,}" if debates.note is None else f"{len(debates):,} of {debates.total:,}"
        charts = "" if find_spec("matplotlib") else '; no charts, for which: pip install "jurygraph[report]"'
        self._written.append(f"wrote {path}: {shown} verdicts, {decimal(size)}{charts}")

    def _write(self, path: Path, text: str, listed: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name may hold half a surrogate pair, which UTF-8 cannot encode: it must not cost the whole table.
        path.write_text(text, encoding="utf-8", errors="replace")
        if listed:
            self._written.append(f"wrote {path}")


def _check_file(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed or written."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; give the name of a file")
    if (inside := next((parent for parent in path.parents if parent.exists()), None)) and not inside.is_dir():
        raise UsageError(f"{option} {path}: {inside} is a file, so that nothing can be written in it")
