"""Compare runs in tables, charts and a page with debates: the command ``jurygraph report``."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal
from rich.text import Text

from ...state.errors import UsageError
from ..results.experiment_result import StoredExperiment, read_experiment
from ..results.folder import FILE as MANIFEST
from ..results.run_set import folders_of_runs
from .option_sets import argument, flag, option
from .runtime import Output, check_confidence, check_file, command, console
from .screens import Step, print_next, print_screens
from .waiting import shown_if_slow

if TYPE_CHECKING:
    from ..analysis import Study
    from ..report.page import Page
    from ..report.sections import TablesOfDataset

MOST_HASHES = 1000
"""The most judges for which a LaTeX table lists the config hash of each."""
output = partial(option, panel="Output")
output_flag = partial(flag, panel="Output")
statistics = partial(option, panel="Statistics")
humans = partial(option, panel="Human annotation, for comparison")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The outputs, the statistics, and the treatment of human labels."""

    html: Path | None = output(metavar="FILE")
    """Write an HTML page with all tables, charts and debates."""
    open_page: bool = output_flag(name="--open")
    """Open the page in a browser."""
    debates: int | None = output(metavar="N", min=0)
    """Put the debates of N verdicts on the page, those most worth reading first. Default: 5000, or
    fewer if the page would exceed 10 MB."""
    markdown: Path | None = output(metavar="FILE")
    """Write all tables as Markdown."""
    csv: Path | None = output(metavar="DIR")
    """Write each table to a CSV file in this folder."""
    latex: Path | None = output(metavar="FILE")
    """Write all tables as LaTeX (booktabs)."""
    figures: Path | None = output(metavar="DIR")
    """Write the charts as SVG and PDF."""
    tables: str | None = output(metavar="NAMES", name="--table")
    """Print and write only these tables, in full, such as leaderboard,comparison; an unknown name
    lists them all."""
    everything: bool = output_flag(name="--all")
    """Print all remarks and tables, not only the first screen."""
    base: str | None = statistics(metavar="JUDGE")
    """Compare the other judges with this one. Default: single, else baseline, else the first."""
    metric: str | None = statistics(metavar="NAME")
    """Metric that ranks judges: spearman, pearson, kendall, the same within groups (group_spearman,
    ...) or over systems (system_spearman, ...), pairwise, system_pairwise, system_soft_pairwise,
    accuracy, kappa or alpha. Default: depends on the data."""
    resamples: int = statistics(metavar="N", min=1, max=1_000_000, default=1000)
    """Number of bootstrap resamples."""
    confidence: float = statistics(metavar="P", default=0.95)
    """Confidence level of the intervals, between 0 and 1."""
    seed: int = statistics(metavar="N", min=0, default=0)
    """Random seed of the bootstrap."""
    ties: str | None = statistics(metavar="RULE")
    """How human ties count in comparisons: class, left_out or half (right). Default: the dataset's
    rule."""
    votes: str | None = statistics(metavar="RULE")
    """What comparisons are compared with: majority of annotators, or each vote. Default: the
    dataset's rule."""
    without_flagged: bool = flag(panel="Statistics")
    """Leave out items with a text that states a verdict of its own, for all judges."""
    eps: float = statistics(metavar="SHARE", default=0.1)
    """Threshold of the score gap analysis (courtroom protocols), as a share of the widest possible
    gap."""
    gap_prior: str = statistics(metavar="A,B", default="1,1")
    """Alpha and beta of the paper's model in the score gap analysis."""
    annotator_epsilon: float = statistics(metavar="SHARE", min=0, default=0.1)
    """Epsilon of the alternative annotator test, how much worse than an annotator a judge may be
    and still replace one: 0.2 for experts, 0.15 for trained annotators, 0.1 for crowd workers."""
    human_price: float | None = humans(metavar="USD", min=0)
    """Cost of one human judgement; adds a row for humans to the cost table."""
    human_minutes: float | None = humans(metavar="MINUTES", min=0)
    """Minutes that one human judgement takes."""
    annotators: int = humans(metavar="N", min=1, default=1)
    """Number of annotators who judge each item."""

    def check(self) -> None:
        """Refuse invalid options before anything is computed or written."""
        from ..statistics.metrics import check_metric

        check_metric(self.metric)
        check_confidence(self.confidence)
        if self.open_page and self.html is None:
            raise UsageError("--open needs a page to open: write one with --html FILE")
        if self.figures is not None and find_spec("matplotlib") is None:
            raise UsageError('--figures needs matplotlib: pip install "jurygraph[report]"')
        for name, path in (
            ("--html", self.html),
            ("--markdown", self.markdown),
            ("--latex", self.latex),
        ):
            check_file(name, path)

    def study(self, folders: Sequence[Path]) -> Study:
        """Analyse the runs."""
        from ..analysis import AnnotatorRates, Study
        from ..statistics.resampling import Resampling

        asked = self.human_price is not None or self.human_minutes is not None
        people = (
            AnnotatorRates(self.human_price, self.human_minutes, self.annotators) if asked else None
        )
        how = Resampling(resamples=self.resamples, confidence=self.confidence, seed=self.seed)
        # These options have the same names in both places.
        names = ("base", "without_flagged", "annotator_epsilon", "eps", "metric", "ties", "votes")
        alike: dict[str, Any] = {name: getattr(self, name) for name in names}
        try:
            alpha, beta = map(float, self.gap_prior.split(","))
        except ValueError:
            alpha = beta = 0.0
        if not (0 < alpha < float("inf") and 0 < beta < float("inf")):
            raise UsageError(
                f"--gap-prior {self.gap_prior!r}: give two numbers above 0, such as 1,1"
            )
        runs, waiting = folders_of_runs(folders)
        with shown_if_slow("computing agreement"):
            study = Study.of(runs, resampling=how, people=people, prior=(alpha, beta), **alike)
        return replace(study, notes=(*study.notes, *waiting))


def report(
    folders: list[Path] = argument("Folders of runs.", "DIR"), *, chosen: ReportOptions
) -> None:
    """Compare judges: agreement with humans, cost, diagnostics.

    Reads one or more runs. Prints a headline, the figures behind it and a sentence to quote; --all,
    the files and the page have every table.

    --html writes one file that opens without a network connection, with debates to search and read:
    all of them, or the 5000 that are most worth reading.
    """
    from ..experiments.finding import findings_of
    from ..report.sections import compose, names_of_tables, tables_by_dataset

    chosen.check()
    names = () if chosen.tables is None else names_of_tables(chosen.tables)
    stored = read_experiment(folders[0]) if len(folders) == 1 else None
    # The folder of an experiment of one run also contains the run, to which these options apply.
    if stored is not None and not (_asked_of_runs(chosen) and (folders[0] / MANIFEST).exists()):
        _report_experiment(console(), folders[0], stored, chosen)
        return
    runs = list(dict.fromkeys(folders))  # count a repeated folder once
    study = chosen.study(runs)
    shown = tables_by_dataset(study, names)
    _check_folders(chosen, {f"{grid.label}.csv" for of in shown for grid in of.grids})
    written = list(_write_files(chosen, study, shown))
    if chosen.html is not None:
        title = f"jurygraph: {', '.join(folder.resolve().name for folder in runs)}"
        page = compose(study, title, [finding.sentence for finding in findings_of(study)])
        written.append(write_page_of(chosen.html, page, runs, chosen.debates))
    # Print last, because a reader that closes our output (``| head``) ends the command.
    _show(console(), study, runs, chosen, shown)
    for line in written:
        console().print_line(line)
    if chosen.tables is None:
        print_next(console(), _next_steps(chosen, runs))
    if chosen.open_page and chosen.html is not None:
        webbrowser.open(chosen.html.resolve().as_uri())


def _report_experiment(
    out: Output, folder: Path, stored: StoredExperiment, chosen: ReportOptions
) -> None:
    """Print the result of an experiment, and write the requested files of it.

    Raises:
        UsageError: an option that applies to runs.
    """
    from ..report.experiment_page import compose_experiment
    from .experiment_screen import print_experiment

    if asked := _asked_of_runs(chosen):
        runs = ", ".join(map(str, stored.runs))
        runs_below = f"; its runs are {runs}" if runs else ""
        raise UsageError(
            f"{asked[0]} applies to runs, and {folder} holds {stored.file}{runs_below}"
        )
    written = ""
    if chosen.html is not None:
        page = compose_experiment(stored, f"jurygraph: {folder.resolve().name}")
        written = write_page_of(chosen.html, page, stored.runs, chosen.debates)
    steps = print_experiment(
        out, folder, stored.screen, stored.grids, stored.runs, everything=chosen.everything
    )
    if written:
        out.print_line(written)
    print_next(out, steps)
    if chosen.open_page and chosen.html is not None:
        webbrowser.open(chosen.html.resolve().as_uri())


_OF_EXPERIMENTS = {"everything", "html", "open_page", "debates"}
"""The options that apply to experiments as well as to runs."""


def _asked_of_runs(chosen: ReportOptions) -> list[str]:
    """Return the given options that apply to runs only."""
    usual = ReportOptions()
    names = {"tables": "table"}
    given = [of for of in fields(chosen) if getattr(chosen, of.name) != getattr(usual, of.name)]
    return [
        f"--{names.get(of.name, of.name).replace('_', '-')}"
        for of in given
        if of.name not in _OF_EXPERIMENTS
    ]


def print_answer(
    out: Output, study: Study, full: bool = False, more: str = "", whole: int | None = None
) -> dict[str, Any]:
    """Print the first screen of each dataset of a study; return all of its sentences as JSON.

    Args:
        out: the console.
        study: the results.
        full: whether to print all remarks.
        more: the command that prints the other remarks.
        whole: the number of items before sampling.
    """
    from ..experiments.finding import findings_of
    from ..report.first_screen import first_screens

    screens = first_screens(study, [finding.sentence for finding in findings_of(study)], whole)
    print_screens(out, screens, full, more)
    # The screen has room for two remarks; the file contains all of them.
    said = [
        f"On {screen.name}: {sentence}" if screen.name else sentence
        for screen in screens
        for sentence in screen.sentences
    ]
    return {"headline": "\n".join(screen.title for screen in screens), "answers": said}


def _show(
    out: Output,
    study: Study,
    folders: Sequence[Path],
    chosen: ReportOptions,
    shown: Sequence[TablesOfDataset],
) -> None:
    """Print the first screens and the requested tables, then the notes for all tables once."""
    from ..report.labels import config_line, interval_note
    from ..report.sections import summaries
    from ..tables.grid import printable

    everything = command("report", *folders, "--all")
    print_answer(out, study, chosen.everything, everything)
    if not (chosen.everything or chosen.tables is not None):
        return
    for of_data in (*(summaries(study) if chosen.everything else ()), *shown):
        if of_data.name:
            out.rule(Text(printable(of_data.name), "bold"), align="left")
        out.print_grids(of_data.grids)
    notes = (
        interval_note(study.resampling),
        *study.leaderboard.notes,
        *study.comparison.notes,
        *study.matching.notes,
        *(config_line(study, judge) for judge in study.judges),
    )
    for note in notes:
        out.print_line(note, "dim")


def _next_steps(chosen: ReportOptions, folders: Sequence[Path]) -> list[Step]:
    """Return suggested commands for features that the command did not use."""
    steps = []
    if not chosen.everything:
        steps.append(Step("see all tables", command("report", *folders, "--all")))
    if chosen.html is None:
        page = command("report", *folders, "--html", "report.html", "--open")
        steps.append(Step("see the page", page))
    if chosen.latex is None and chosen.figures is None:
        paper = command("report", *folders, "--latex", "tables.tex", "--figures", "figures")
        steps.append(Step("write a paper", paper))
    return steps


def _write_files(
    chosen: ReportOptions, study: Study, shown: Sequence[TablesOfDataset]
) -> Iterator[str]:
    """Write the requested files of tables and charts, and yield a line on each."""
    from ..report.labels import with_notes
    from ..report.sections import file_name
    from ..tables import to_csv, to_latex, to_markdown
    from ..tables.formats import markdown_text
    from ..tables.grid import printable

    # These files are read without the report, so each table explains its method.
    noted = [
        (of.name, [with_notes(of.study, grid, full=True) for grid in of.grids]) for of in shown
    ]
    if chosen.markdown is not None:
        text = "".join(f"> {note}\n\n" for note in study.notes)
        for data, grids in noted:
            text += f"## {markdown_text(data)}\n\n" if data else ""
            text += "\n".join([*map(to_markdown, grids), ""])
        yield _write(chosen.markdown, f"{text.rstrip()}\n")
    if chosen.csv is not None:
        for grid in chain.from_iterable(of.grids for of in shown):
            _write(chosen.csv / f"{grid.label}.csv", to_csv(grid))
        yield f"wrote {chosen.csv}/*.csv"
    if chosen.latex is not None:
        notes = "".join(f"% {printable(note)}\n" for note in study.notes)
        lines = [f"% \\usepackage{{booktabs,graphicx}}\n{notes}"]
        # A paper names configurations by their hashes, because a whole signature may contain the
        # address of a model.
        hashed = [
            (of.name, [with_notes(of.study, grid, most=MOST_HASHES) for grid in of.grids])
            for of in shown
        ]
        for data, grids in hashed:
            # Use a comment, because LaTeX moves tables away from headings. Each caption names its
            # dataset.
            lines += [f"% ---- {printable(data)} ----\n"] if data else []
            lines += map(to_latex, grids)
        yield _write(chosen.latex, "\n".join(lines))
    if chosen.figures is not None:
        # Import here, because this needs matplotlib.
        from ..report.chart_style import save
        from ..report.charts import pictures

        for picture in pictures(study):
            for suffix in (".svg", ".pdf"):
                save(picture.figure, chosen.figures / f"{file_name(picture.title)}{suffix}")
        yield f"wrote {chosen.figures}/*.svg, *.pdf"


def write_page_of(
    path: Path, page: Page, folders: Sequence[Path], most_debates: int | None = None
) -> str:
    """Write a page with the debates of its runs, and return a line on it."""
    from ..report.debates import Debates, run_folders
    from ..report.page import write_page
    from ..results.folder import read_manifest

    runs, _ = folders_of_runs(folders)
    debates = Debates(run_folders((folder, read_manifest(folder)) for folder in runs), most_debates)
    size = write_page(page, debates, path)
    count = (
        f"{len(debates):,}" if debates.note is None else f"{len(debates):,} of {debates.total:,}"
    )
    charts = "" if find_spec("matplotlib") else '; for charts: pip install "jurygraph[report]"'
    return f"wrote {path}: {count} verdicts, {decimal(size)}{charts}"


def _write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name may contain a lone surrogate, which UTF-8 cannot encode: do not lose the whole table.
    path.write_text(text, encoding="utf-8", errors="replace")
    return f"wrote {path}"


def _check_folders(chosen: ReportOptions, new: Set[str]) -> None:
    """Check that folders are writable and contain no tables of another report.

    Raises:
        UsageError: a folder has the name of a file, is a file, or has tables of another report.
    """
    from ..report.sections import TABLES

    for name, folder, suffix in (
        ("--csv", chosen.csv, ".csv"),
        ("--figures", chosen.figures, ".svg"),
    ):
        if folder is not None and (folder.suffix == suffix or folder.is_file()):
            raise UsageError(
                f"{name} {folder} names a file; give a folder, since several files are written"
            )
        check_file(name, folder and folder / "any")
    before = {path.name for path in chosen.csv.glob("*.csv")} if chosen.csv else set()
    if others := sorted(name for name in before - new if name.startswith(tuple(TABLES))):
        raise UsageError(
            f"--csv {chosen.csv}: the folder contains tables of another report, such as "
            f"{others[0]}, which would be mixed up with the new ones; "
            "choose another one, or delete them"
        )
