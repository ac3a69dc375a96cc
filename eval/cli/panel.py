"""Measure what a panel of judges is worth: the command ``jurygraph panel``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...state.errors import DataError, UsageError
from ..datasets.files import Filter, is_chosen, split_filter
from ..datasets.frames import row_file
from ..datasets.label_reader import parse_label_codes
from ..datasets.reading import ReadingNotice, columns_in
from ..datasets.selection import parse_columns
from ..results.agreement import Resampling, RowsByAspect
from ..results.agreement_columns import FIELDS, ResultColumns
from ..results.run_set import folders_of_runs
from ..statistics.metrics import check_metric
from .option_sets import flag, option
from .runtime import check_confidence, command, console, echo
from .screens import Step, print_next, print_screens
from .waiting import shown_if_slow

if TYPE_CHECKING:
    from ..analysis.loading import LoadedJudge
    from ..analysis.panel_value import Panel

rows_option = partial(option, panel="Rows of files")


@dataclass(frozen=True, kw_only=True)
class PanelOptions:
    """The judges, the reading of files, and the statistics."""

    replies: list[str] | None = option(metavar="FILE|DIR")
    """Take recorded replies as the judges, without calling a model; repeatable. Each judge_model or
    model of a file is a judge."""
    protocol: str = option(metavar="NAME", default="single")
    """Protocol that reads the recorded replies."""
    data: str | None = option(metavar="NAME|FILE")
    """Dataset of the recorded replies, if they have no labels."""
    without: list[str] | None = option(metavar="JUDGE")
    """Leave out this judge; repeatable."""
    worth: float = option(metavar="VOTES", default=0.25)
    """Independent votes that a further member must add to be worth its cost."""
    as_text: bool = flag(name="--json")
    """Print JSON instead of the screen."""
    everything: bool = flag(name="--all")
    """Print all remarks and tables, not only the first screen."""
    columns: list[str] | None = rows_option(metavar="FIELD=COLUMN,...")
    """Columns of your own file to read these fields from, such as
    protocol=judge,winner=verdict,human=gold; repeatable."""
    labels: str | None = rows_option(metavar="VALUE=LABEL,...")
    """What the values in the human column mean, such as "0=1,1=2,2=tie"; name every value."""
    skip_unreadable: bool = flag(panel="Rows of files")
    """Leave out rows with a value that cannot be read, and count them. By default, such a value is
    an error."""
    metric: str | None = option(metavar="NAME", panel="Statistics")
    """Metric of agreement, such as spearman, group_spearman, accuracy or kappa. Default: depends on
    the data."""
    ties: str | None = option(metavar="RULE", panel="Statistics")
    """How human ties count in comparisons: class, left_out or half (right). Default: the dataset's
    rule."""
    votes: str | None = option(metavar="RULE", panel="Statistics")
    """What comparisons are compared with: majority of annotators, or each vote. Default: the
    dataset's rule."""
    resamples: int = option(metavar="N", min=1, max=1_000_000, default=1000, panel="Statistics")
    """Number of bootstrap resamples."""
    confidence: float = option(metavar="P", default=0.95, panel="Statistics")
    """Confidence level of the intervals, between 0 and 1."""
    seed: int = option(metavar="N", min=0, default=0, panel="Statistics")
    """Random seed of the bootstrap and of the cross-fitting."""

    @property
    def measuring(self) -> dict[str, Any]:
        """The settings of agreement that differ from the data's own."""
        return {"metric": self.metric, "ties": self.ties, "votes": self.votes}

    @property
    def resampling(self) -> Resampling:
        """How intervals are computed."""
        return Resampling(self.resamples, self.confidence, self.seed)


def panel(
    sources: list[str] = option(
        "Folders of runs, or files with the results of any judges: rows with item, protocol (the judge), human, and "
        "score or winner. FILE?field=value&field=value chooses rows.",
        metavar="DIR|FILE...",
        default=None,
        is_argument=True,
    ),
    *,
    chosen: PanelOptions,
) -> None:
    """Measure what a panel of judges is worth.

    Takes judges that judged the same labelled items as a panel. Prints how far their errors are
    correlated, how many independent votes the panel is worth, whether its best judge alone is
    better, the best panel for the price, and how many members are worth their cost. The members
    inside one run of an ensemble are a panel, too.

    Before you pay for a panel, judge a few labelled items with some members (run with several
    --model and --sample), and give the folder of this run.

    Exit codes: 0 measured, 2 bad input.
    """
    check_metric(chosen.metric)
    check_confidence(chosen.confidence)
    if chosen.worth <= 0:
        raise UsageError(f"--worth must be above 0, got {chosen.worth:g}")
    given = list(dict.fromkeys(sources or ()))
    if bool(given) == bool(chosen.replies):
        raise UsageError(
            "give folders of runs or files with results, or recorded replies (--replies), but not both"
            if given
            else "nothing to measure: give folders of runs, files with results, or --replies FILE"
        )
    folders = [Path(source) for source in given if Path(source).is_dir()]
    if folders and len(folders) < len(given):
        other = next(source for source in given if not Path(source).is_dir())
        raise UsageError(
            f"{folders[0]} is a folder and {other} is not: give folders of runs, or files with results"
        )
    _check_options(chosen, of_runs=bool(folders), of_replies=bool(chosen.replies))
    with shown_if_slow("measuring the panel"):
        panels, notes = _measured(given, folders, chosen)
    if chosen.as_text:
        plain = {"panels": [one.to_json() for one in panels], "notes": notes}
        echo(json.dumps(plain, indent=2))
        return
    _show(panels, notes, given, folders, chosen)


def _check_options(chosen: PanelOptions, of_runs: bool, of_replies: bool) -> None:
    """Refuse options that do not apply to this kind of judges."""
    of_rows = {
        "--columns": chosen.columns,
        "--labels": chosen.labels,
        "--skip-unreadable": chosen.skip_unreadable,
    }
    asked = next((name for name, value in of_rows.items() if value), None)
    if asked and (of_runs or of_replies):
        raise UsageError(f"{asked} only applies to files with results")
    if chosen.data is not None and not of_replies:
        raise UsageError("--data only applies to recorded replies (--replies)")
    if chosen.protocol != PanelOptions.protocol and not of_replies:
        raise UsageError("--protocol only applies to recorded replies (--replies)")


def _measured(
    given: Sequence[str], folders: Sequence[Path], chosen: PanelOptions
) -> tuple[Sequence[Panel], list[str]]:
    """Measure the panels, and return them with the warnings about all of them."""
    from ..analysis.loading import load_runs
    from ..analysis.panel_sources import panels_of_judges, panels_of_rows

    without = chosen.without or ()
    how = chosen.resampling
    if folders:
        runs, waiting = folders_of_runs(folders)
        judges = load_runs(runs, **chosen.measuring)
        return panels_of_judges(judges, how, without, chosen.worth), [*_notes(judges), *waiting]
    if chosen.replies:
        judges = _replayed(chosen)
        return panels_of_judges(judges, how, without, chosen.worth), _notes(judges)
    collected = _collected(given, chosen)
    name = ", ".join(split_filter(source)[0].name for source in given)
    found = panels_of_rows(collected, name, how, without, chosen.worth, **chosen.measuring)
    return found, []


def _notes(judges: Sequence[LoadedJudge]) -> list[str]:
    from ..report.labels import shown_note

    notes = (judge.manifest.get("note") for judge in judges)
    return list(dict.fromkeys(shown_note(note) for note in notes if note))


def _collected(given: Sequence[str], chosen: PanelOptions) -> dict[str, RowsByAspect]:
    """Read files with results, and collect the rows of each judge.

    A file whose rows name no judge is one judge with the file's name, if there are several files.
    """
    codes = parse_label_codes(chosen.labels) if chosen.labels else {}
    columns = parse_columns(",".join(chosen.columns), FIELDS) if chosen.columns else {}
    collected: dict[str, RowsByAspect] = {}
    for source in given:
        path, only = split_filter(source)
        called = f"{path}, line"
        read = ResultColumns(str(path), columns, codes)
        named = {part for column in columns.values() for part in columns_in(column)}
        used = only.keys() - FIELDS - named
        for place, row in read.renamed(_chosen_rows(path, only, used)):
            name = str(row.get("protocol") or "")
            if not name and len(given) > 1:
                name = source if only else path.name
            if name not in collected:
                collected[name] = RowsByAspect(called, codes, chosen.skip_unreadable)
            collected[name].add(row, place)
        if notice := read.notice():
            warnings.warn(f"{path}: {notice}", ReadingNotice, stacklevel=2)
    for name, rows in collected.items():
        if notice := rows.annotated():
            warnings.warn(f"{name}: {notice}", ReadingNotice, stacklevel=2)
    return collected


def _chosen_rows(
    path: Path, only: Filter, used: Collection[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the chosen rows of a file, without fields that only choose rows.

    Raises:
        UsageError: the filter names a field that no row has.
        DataError: no row is chosen.
    """
    names: dict[str, None] = {}
    count = 0
    for place, row in row_file(path).rows():
        names.update(dict.fromkeys(row))
        if is_chosen(row, only):
            count += 1
            yield place, {name: row[name] for name in row if name not in used}
    if unknown := next((name for name in only if name not in names), None):
        raise UsageError(f"{path}: no field {unknown!r}, only {', '.join(names)}")
    if not count:
        about = "&".join(f"{name}={value}" for name, value in only.items())
        raise DataError(f"{path}: no rows" + (f" with {about}" if only else ""))


_MODEL_FIELDS = ("judge_model", "model")


def _replayed(chosen: PanelOptions) -> list[LoadedJudge]:
    """Read recorded replies as the verdicts of judges, each model of a file as one."""
    from ..analysis.loading import load_evaluations
    from ..run.evaluate import evaluate

    evaluations = {}
    for source in chosen.replies or ():
        for where, model in _each_model(source):
            label = model or Path(where).name
            if label in evaluations:
                label = f"{label} ({Path(split_filter(source)[0]).name})"
            if label in evaluations:
                raise UsageError(f"--replies: two recordings of {label}; choose one of them")
            evaluation = evaluate(cast("Any", chosen.protocol), chosen.data, replies=where)
            evaluations[label] = (chosen.protocol, evaluation)
    return load_evaluations(evaluations, **chosen.measuring)


def _each_model(source: str) -> Iterator[tuple[str, str]]:
    """Yield the recordings in a source, one for each model, with the model's name."""
    path, only = split_filter(source)
    if not path.is_file():
        yield source, ""
        return
    found: dict[tuple[str, str], None] = {}
    fields = {name: value for name, value in only.items() if name != "rule"}
    for _, row in row_file(path).rows():
        if not is_chosen(row, fields):
            continue
        field = next((name for name in _MODEL_FIELDS if row.get(name)), "")
        found.setdefault((field, str(row.get(field) or "")))
    if len(found) < 2:
        yield source, next((model for _, model in found), "")
        return
    for field, model in found:
        if not field:
            raise DataError(f"{path}: some lines name a model and others do not")
        query = "&".join(f"{name}={value}" for name, value in {**only, field: model}.items())
        yield f"{path}?{query}", model


def _show(
    panels: Sequence[Panel],
    notes: Sequence[str],
    given: Sequence[str],
    folders: Sequence[Path],
    chosen: PanelOptions,
) -> None:
    """Print the first screens, the tables if requested, and suggested commands."""
    from ..report.labels import interval_note
    from ..report.panel_tables import panel_screen, panel_tables

    out = console()
    screens = []
    for number, one in enumerate(panels):
        name = f"{one.data}, {one.subject}" if len(panels) > 1 else ""
        screen = panel_screen(one, name, notes if number == 0 else ())
        # Results of the offline judge, or of a replay, are marked and not quoted.
        screens.append(replace(screen, quotable="") if notes else screen)
    print_screens(
        out, screens, chosen.everything, command("panel", *_again(given, chosen), "--all")
    )
    if chosen.everything:
        out.print_grids(panel_tables(panels))
        out.print_line(interval_note(chosen.resampling), "dim")
    print_next(out, list(_next_steps(panels, given, folders, chosen)))


def _next_steps(
    panels: Sequence[Panel], given: Sequence[str], folders: Sequence[Path], chosen: PanelOptions
) -> Iterator[Step]:
    if not chosen.everything:
        yield Step("see the best sub-panels", command("panel", *_again(given, chosen), "--all"))
    weakest = min(
        panels[0].members, key=lambda of: -1.0 if of.agreement.value is None else of.agreement.value
    )
    if panels[0].size > 2:
        without = ("--without", weakest.name)
        yield Step(
            "leave out the weakest judge", command("panel", *_again(given, chosen), *without)
        )
    if folders:
        yield Step("compare the judges", command("report", *folders))
    elif given:
        columns = chosen.columns or ()
        wanted = [word for pair in columns for word in ("--columns", pair)]
        if all("?" not in source for source in given):
            yield Step("see each judge's agreement", command("agree", given[0], *wanted))


def _again(given: Sequence[str], chosen: PanelOptions) -> list[str]:
    """Return the arguments and options that choose the same judges."""
    words = [*given]
    several = {
        "--replies": chosen.replies,
        "--columns": chosen.columns,
        "--without": chosen.without,
    }
    for name, values in several.items():
        words += [word for value in values or () for word in (name, value)]
    single = {"--data": chosen.data, "--metric": chosen.metric}
    for option_name, chosen_value in single.items():
        words += [option_name, chosen_value] if chosen_value else []
    if chosen.protocol != PanelOptions.protocol:
        words += ["--protocol", chosen.protocol]
    if chosen.labels:
        words += ["--labels", chosen.labels]
    return words
