"""Compare runs in tables, charts and a page with debates: the command ``jurygraph report``."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from ...state.errors import UsageError
from ..tables import Grid
from .option_sets import argument, flag, option
from .runtime import Output, check_confidence, check_file, console

if TYPE_CHECKING:
    from ..analysis import Study
    from ..report.page import Page

output, output_flag = partial(option, panel="Output"), partial(flag, panel="Output")
statistics = partial(option, panel="Statistics")
humans = partial(option, panel="Human annotation, for comparison")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is written, by which statistics, and what people are compared as."""

    html: Path | None = output(metavar="FILE")
    """Write an HTML page with all tables, charts and debates."""
    open_page: bool = output_flag(name="--open")
    """Open the page in a browser."""
    debates: int | None = output(metavar="N", min=0)
    """Put the debates of N verdicts on the page, those most worth reading first. Default: 5000, or fewer if the page
    would exceed 10 MB."""
    markdown: Path | None = output(metavar="FILE")
    """Write all tables as Markdown."""
    csv: Path | None = output(metavar="DIR")
    """Write each table to a CSV file in this folder."""
    latex: Path | None = output(metavar="FILE")
    """Write all tables as LaTeX (booktabs)."""
    figures: Path | None = output(metavar="DIR")
    """Write the charts as SVG and PDF."""
    tables: str | None = output(metavar="NAMES", name="--table")
    """Print and write only these tables, in full, such as leaderboard,comparison; an unknown name lists them all."""
    everything: bool = output_flag(name="--all")
    """Print all tables in full, not only the summary."""
    base: str | None = statistics(metavar="JUDGE")
    """Compare the other judges with this one. Default: single, else baseline, else the first."""
    metric: str | None = statistics(metavar="NAME")
    """Metric that ranks judges: spearman, pearson, kendall, the same within groups (group_spearman, ...), accuracy
    or kappa. Default: depends on the data."""
    resamples: int = statistics(metavar="N", min=1, max=1_000_000, default=1000)
    """Number of bootstrap resamples."""
    confidence: float = statistics(metavar="P", default=0.95)
    """Confidence level of the intervals, between 0 and 1."""
    seed: int = statistics(metavar="N", min=0, default=0)
    """Random seed of the bootstrap."""
    ties: str | None = statistics(metavar="RULE")
    """How human ties count in comparisons: class, left_out or half (right). Default: the dataset's rule."""
    votes: str | None = statistics(metavar="RULE")
    """What comparisons are compared with: majority of annotators, or each vote. Default: the dataset's rule."""
    without_flagged: bool = flag(panel="Statistics")
    """Leave out items with a text that states a verdict of its own, for all judges."""
    eps: float = statistics(metavar="SHARE", default=0.1)
    """Threshold of the score gap analysis (courtroom protocols), as a share of the widest possible gap."""
    gap_prior: str = statistics(metavar="A,B", default="1,1")
    """Alpha and beta of the paper's model in the score gap analysis."""
    annotator_epsilon: float = statistics(metavar="SHARE", min=0, default=0.1)
    """Epsilon of the alternative annotator test, how much worse than an annotator a judge may be and still replace one:
    0.2 for experts, 0.15 for trained annotators, 0.1 for crowd workers."""
    human_price: float | None = humans(metavar="USD", min=0)
    """Cost of one human judgement; adds a row for humans to the cost table."""
    human_minutes: float | None = humans(metavar="MINUTES", min=0)
    """Minutes that one human judgement takes."""
    annotators: int = humans(metavar="N", min=1, default=1)
    """Number of annotators who judge each item."""

    def check(self) -> None:
        """Refuse what cannot be, before anything is computed or written."""
        from ..statistics.metrics import check_metric

        check_metric(self.metric)
        check_confidence(self.confidence)
        if self.open_page and self.html is None:
            raise UsageError("--open needs a page to open: write one with --html FILE")
        if self.figures is not None and find_spec("matplotlib") is None:
            raise UsageError('--figures needs matplotlib: pip install "jurygraph[report]"')
        for name, path in (("--html", self.html), ("--markdown", self.markdown), ("--latex", self.latex)):
            check_file(name, path)

    def study(self, folders: Sequence[Path]) -> Study:
        """Analyse the runs."""
        from ..analysis import AnnotatorRates, Study
        from ..statistics.resampling import Resampling

        asked = self.human_price is not None or self.human_minutes is not None
        people = AnnotatorRates(self.human_price, self.human_minutes, self.annotators) if asked else None
        how = Resampling(resamples=self.resamples, confidence=self.confidence, seed=self.seed)
        # These are called alike there.
        names = ("base", "without_flagged", "annotator_epsilon", "eps", "metric", "ties", "votes")
        alike: dict[str, Any] = {name: getattr(self, name) for name in names}
        try:
            alpha, beta = map(float, self.gap_prior.split(","))
        except ValueError:
            alpha = beta = 0.0
        if not (0 < alpha < float("inf") and 0 < beta < float("inf")):
            raise UsageError(f"--gap-prior {self.gap_prior!r}: give two numbers above 0, such as 1,1")
        return Study.of(folders, resampling=how, people=people, prior=(alpha, beta), **alike)


def report(folders: list[Path] = argument("Folders of runs.", "DIR"), *, chosen: ReportOptions) -> None:
    """Compare the judges of one or more runs: agreement with humans, cost, debate diagnostics.

    Prints a summary of one or two screens; --all, the files and the page have every table.

    --html writes one file that opens without a network connection, with debates to search and read: all of them, or
    the 5000 that are most worth reading.
    """
    from ..experiments.finding import findings_of
    from ..report.sections import compose, grids, names_of_tables

    chosen.check()
    names = () if chosen.tables is None else names_of_tables(chosen.tables)
    runs = list(dict.fromkeys(folders))  # a folder that was named twice counts once
    study = chosen.study(runs)
    shown = list(grids(study, names))
    _check_folders(chosen, {f"{grid.label}.csv" for grid in shown})
    written = list(_write_files(chosen, study, shown))
    if chosen.html is not None:
        title = f"jurygraph: {', '.join(folder.resolve().name for folder in runs)}"
        page, findings = compose(study, title), (finding.sentence for finding in findings_of(study))
        page = replace(page, answers=(*page.answers, *findings))
        written.append(write_page_of(chosen.html, page, runs, chosen.debates))
    # Printed last, since a reader that closes our output (``| head``) ends the command.
    _show(console(), study, chosen, shown)
    for line in written:
        console().print_line(line)
    if chosen.open_page and chosen.html is not None:
        webbrowser.open(chosen.html.resolve().as_uri())


def print_answer(out: Output, study: Study, full: bool = False) -> dict[str, Any]:
    """Print the sentences that head a report, in full or in short; return all of them as JSON."""
    from ..experiments.finding import findings_of
    from ..report.headline import answers, headline

    claim, paying = headline(study), [finding.sentence for finding in findings_of(study)]
    out.print_line(claim, "bold")
    for answer in (*answers(study, full), *paying):
        out.print_line(answer)
    # The screen counts the judges that many sentences hold for; a file names them all.
    return {"headline": claim, "answers": [*answers(study, full=True), *paying]}


def _show(out: Output, study: Study, chosen: ReportOptions, shown: Sequence[Grid]) -> None:
    """Print the answer and what makes it doubtful, the tables, then once the notes that hold for all tables."""
    from ..report.labels import config_line, interval_note
    from ..report.study_tables import summary
    from ..tables.grid import printable

    print_answer(out, study, chosen.everything)
    for note in study.notes:
        out.print_line(f"Warning: {printable(note)}", "yellow")
    out.print()
    everything = chosen.everything or chosen.tables is not None
    out.print_grids(shown if everything else summary(study))
    notes = (
        interval_note(study.resampling),
        *study.leaderboard.notes,
        *study.comparison.notes,
        *study.matching.notes,
        *(config_line(study, judge) for judge in study.judges),
    )
    more = "--all or --html FILE adds intervals, pairwise differences, all correlations and diagnostics"
    for note in notes if everything else (more, *notes):
        out.print_line(note, "dim")


def _write_files(chosen: ReportOptions, study: Study, shown: Sequence[Grid]) -> Iterator[str]:
    """Write the files of tables and charts that are wanted, and yield a line on each."""
    from ..report.labels import with_notes
    from ..report.sections import file_name
    from ..tables import to_csv, to_latex, to_markdown
    from ..tables.grid import printable

    # These files are read apart from the report: each table says how it was made.
    noted = [with_notes(study, grid, full=True) for grid in shown]
    if chosen.markdown is not None:
        head = "".join(f"> {note}\n\n" for note in study.notes)
        yield _write(chosen.markdown, head + "\n".join(map(to_markdown, noted)))
    if chosen.csv is not None:
        for grid in shown:
            _write(chosen.csv / f"{grid.label}.csv", to_csv(grid))
        yield f"wrote {chosen.csv}/*.csv"
    if chosen.latex is not None:
        notes = "".join(f"% {printable(note)}\n" for note in study.notes)
        packages = f"% \\usepackage{{booktabs,graphicx}}\n{notes}"
        yield _write(chosen.latex, "\n".join([packages, *map(to_latex, noted)]))
    if chosen.figures is not None:
        # Here, since they import matplotlib.
        from ..report.chart_style import save
        from ..report.charts import pictures

        for picture in pictures(study):
            for suffix in (".svg", ".pdf"):
                save(picture.figure, chosen.figures / f"{file_name(picture.title)}{suffix}")
        yield f"wrote {chosen.figures}/*.svg, *.pdf"


def write_page_of(path: Path, page: Page, folders: Sequence[Path], most_debates: int | None = None) -> str:
    """Write a page with the debates of its runs, and return a line on it."""
    from ..report.debates import Debates, run_folders
    from ..report.page import write_page
    from ..results.folder import read_manifest

    debates = Debates(run_folders((folder, read_manifest(folder)) for folder in folders), most_debates)
    size = write_page(page, debates, path)
    count = f"{len(debates):,}" if debates.note is None else f"{len(debates):,} of {debates.total:,}"
    charts = "" if find_spec("matplotlib") else '; for charts: pip install "jurygraph[report]"'
    return f"wrote {path}: {count} verdicts, {decimal(size)}{charts}"


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name may hold half a surrogate pair, which UTF-8 cannot encode: it must not cost the whole table.
    path.write_text(text, encoding="utf-8", errors="replace")
    return f"wrote {path}"


def _check_folders(chosen: ReportOptions, new: Set[str]) -> None:
    """Check that folders can be written to, and that tables will not stand between those of another report.

    Raises:
        UsageError: a folder is named like a file, is one, or holds tables of another report.
    """
    from ..report.sections import TABLES

    for name, folder, suffix in (("--csv", chosen.csv, ".csv"), ("--figures", chosen.figures, ".svg")):
        if folder is not None and (folder.suffix == suffix or folder.is_file()):
            raise UsageError(f"{name} {folder} names a file; give a folder, since several files are written")
        check_file(name, folder and folder / "any")
    before = {path.name for path in chosen.csv.glob("*.csv")} if chosen.csv else set()
    if others := sorted(name for name in before - new if name.startswith(tuple(TABLES))):
        mixed = f"tables of another report, such as {others[0]}, which would be mixed up with the new ones"
        raise UsageError(f"--csv {chosen.csv}: the folder holds {mixed}; choose another one, or delete them")
