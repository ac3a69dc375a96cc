"""Export the verdicts of runs to one file: select runs and texts, and protect existing files."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from ....state.errors import DataError, UsageError
from ...analysis.judges import Labelled, judge_labels
from ...datasets import catalog
from ...datasets.dataset import Data, Dataset, load_again, load_dataset
from ...datasets.items import digest
from ...journal.private_files import whole_file
from ...results.evaluation import Evaluation
from ...results.folder import FILE as MANIFEST
from ...results.folder import read_manifest, stored_results
from ...results.run_set import folders_of_runs
from ...review.review_queue import kept_answers
from .table_files import check_format, write_rows
from .verdict_rows import ExportedRun, columns_for

Runs = str | Path | Evaluation | Sequence[str | Path | Evaluation]
"""One or several runs: folders, folders of several runs, or results of ``evaluate``."""


class Exported(NamedTuple):
    """The result of an export.

    Attributes:
        path: the file.
        rows: the number of its rows.
        failed: the number of rows without a verdict.
        columns: the names of its columns.
        notes: disclosures about the judges, and runs without results.
    """

    path: Path
    rows: int
    failed: int
    columns: tuple[str, ...]
    notes: tuple[str, ...]


def export(
    runs: Runs,
    out: str | Path,
    *,
    turns: bool = False,
    texts: bool = True,
    data: Data | Sequence[Data] = (),
    overwrite: bool = False,
) -> Exported:
    """Write the verdicts of runs to one table.

    There is a row for each item, aspect, protocol and repeat.

    Rows are read and written in batches, so a million verdicts need little memory.

    Args:
        runs: the folder of a run, an ``Evaluation``, or several of them.
        out: the file; its ending (.parquet, .csv or .jsonl) determines the format.
        turns: add the transcripts.
        texts: add the judged texts from the dataset.
        data: datasets that were in memory, or files that have moved since the runs.
        overwrite: replace the file if it exists.

    Raises:
        UsageError: no results, an unknown format, an existing file, or unreadable texts.
        DataError: a line is not a result.

    >>> from tempfile import TemporaryDirectory
    >>> from jurygraph.eval import evaluate
    >>> done = evaluate("single", "demo", aspects=["fluency"], limit=2)
    >>> with TemporaryDirectory() as folder:
    ...     export(done, f"{folder}/verdicts.jsonl").rows
    2
    """
    path = Path(out)
    check_format(path)
    found, waiting = _evaluations(runs)
    _check_target(path, found, overwrite)
    datasets = _datasets(found, data) if texts else [None] * len(found)
    exported = _named(found, datasets)
    kinds = list(dict.fromkeys(run.kind for run in exported))
    columns = columns_for(kinds, texts=texts, turns=turns)
    counted = _Counted(exported, turns)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        write_rows(file, path, columns, counted)
    disclosed = dict.fromkeys(note for run in found if (note := run.manifest.get("note")))
    names = tuple(column.name for column in columns)
    return Exported(path, counted.rows, counted.failed, names, (*disclosed, *waiting))


class _Counted:
    """The rows of all runs, counted while they are read."""

    def __init__(self, runs: Sequence[ExportedRun], turns: bool) -> None:
        self._runs = runs
        self._turns = turns
        self.rows = self.failed = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for run in self._runs:
            for row in run.rows(self._turns):
                self.rows += 1
                self.failed += row["status"] == "failed"
                yield row


def _evaluations(runs: Runs) -> tuple[list[Evaluation], list[str]]:
    """Return each run once, and a sentence for each run of a set that has not started."""
    given = [runs] if isinstance(runs, str | Path | Evaluation) else list(runs)
    if not given:
        raise UsageError("no run given: name the folder of at least one")
    found = list[Evaluation]()
    sentences = list[str]()
    read: set[Path] = set()
    for one in given:
        if isinstance(one, Evaluation):
            found += [run.evaluation for run in one.runs]
            continue
        folders, waiting = folders_of_runs([Path(one)])
        sentences += waiting
        for folder in folders:
            # A folder that is given twice is exported once, even with different spellings.
            if folder.resolve() not in read:
                read.add(folder.resolve())
                found.append(Evaluation(stored_results(folder), read_manifest(folder), folder))
    return found, sentences


def _check_target(path: Path, runs: Sequence[Evaluation], overwrite: bool) -> None:
    """Refuse a file that exists, or that a run needs."""
    target = path.resolve()
    for run in runs:
        if (
            target
            == Path((run.manifest.get("data") or {}).get("location") or "in memory").resolve()
        ):
            raise UsageError(f"{path} is the data of a run: name another file")
        if run.folder is not None and target.parent == run.folder.resolve() and _is_of_run(target):
            raise UsageError(f"{path} is a file of the run itself: name another one")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it")
    if path.exists() and not overwrite:
        raise UsageError(
            f"{path} exists already: name another file, or replace it with --overwrite (overwrite=True)"
        )


def _is_of_run(path: Path) -> bool:
    # The files that runs, reviews and audits write. An export may have any other name in these
    # folders.
    of_run = ("results", "review", "labels", "audit", "log.")
    return path.suffix == ".jsonl" and path.name.startswith(of_run)


def _named(runs: Sequence[Evaluation], datasets: Sequence[Dataset | None]) -> list[ExportedRun]:
    """Label the judges of all runs as in reports."""
    judges = list[tuple[int, str]]()
    told_by = list[Labelled]()
    items: list[array[int]] = []
    for place, run in enumerate(runs):
        signatures: Mapping[str, str] = run.manifest.get("signatures", {})
        protocols = dict.fromkeys(signatures)
        items.append(array("Q"))
        for head in run.heads():
            # A protocol that is missing from the manifest may still have results.
            protocols.setdefault(head["protocol"])
            items[-1].append(digest(head["item"]))
        data_digest = str((run.manifest.get("data") or {}).get("digest", "unknown"))
        for protocol in protocols:
            judges.append((place, protocol))
            told_by.append(
                Labelled(protocol, signatures.get(protocol, ""), run.folder or Path(), data_digest)
            )
    labels = dict(zip(judges, judge_labels(told_by), strict=True))
    names = _names(runs)
    return [
        ExportedRun(
            names[place],
            run,
            {protocol: label for (of, protocol), label in labels.items() if of == place},
            items[place],
            dataset,
            kept_answers(run.folder) if run.folder else {},
        )
        for place, (run, dataset) in enumerate(zip(runs, datasets, strict=True))
    ]


def _names(runs: Sequence[Evaluation]) -> list[str]:
    """Name each run by the last part of its folder, or by the whole path if others end alike."""
    last = [
        run.folder.resolve().name
        if run.folder
        else str((run.manifest.get("data") or {}).get("name"))
        for run in runs
    ]
    return [
        str(run.folder) if run.folder and last.count(name) > 1 else name
        for name, run in zip(last, runs, strict=True)
    ]


# -- the texts


def _datasets(runs: Sequence[Evaluation], data: Data | Sequence[Data]) -> list[Dataset]:
    """Load the dataset of each run, each dataset once.

    Raises:
        UsageError: the data of a run is missing or has changed, or given data belongs to none of
            the runs.
    """
    given = _GivenData(data)
    loaded: dict[str, Dataset] = {}
    datasets = list[Dataset]()
    for run in runs:
        about = run.manifest.get("data") or {}
        # One file can be read in two ways.
        key = repr([about.get(part) for part in ("digest", "columns", "label_codes")])
        if key not in loaded:
            loaded[key] = given.find(about) or _again(run, about)
        datasets.append(loaded[key])
    given.refuse_unused()
    return datasets


def _again(run: Evaluation, about: Mapping[str, Any]) -> Dataset:
    location = about.get("location")
    name = about.get("name")
    problem = ""
    dataset = None
    if not location or not name:
        problem = f"{MANIFEST} does not say where its data was"
    elif location == "in memory":
        problem = f"its data {name} was in memory"
    else:
        try:
            dataset = load_again(about)
        except (UsageError, OSError) as error:
            problem = str(error)
        else:
            if dataset.digest != about.get("digest"):
                problem = f"{location} has changed since the run"
    if problem or dataset is None:
        raise UsageError(
            f"the texts of {run.folder or 'the run'} cannot be exported: {problem}; give the data "
            "with --data (data=), or leave the texts out with --without-texts (texts=False)"
        )
    return dataset


class _GivenData:
    """Data from the caller, for runs whose own data cannot be read from its place."""

    def __init__(self, data: Data | Sequence[Data]) -> None:
        alone = (
            isinstance(data, str | Path | Dataset)
            or not isinstance(data, Sequence)
            or _is_rows(data)
        )
        self._given = cast("list[Data]", [data] if alone else list(cast("Sequence[Data]", data)))
        self._used: set[int] = set()
        self._problems: dict[int, str] = {}

    def find(self, about: Mapping[str, Any]) -> Dataset | None:
        """Return the given data with the content that a manifest describes."""
        for place, one in enumerate(self._given):
            try:
                dataset = _read_as(one, about)
            except DataError as error:
                self._problems[place] = str(error)
                continue
            if dataset.digest == about.get("digest"):
                self._used.add(place)
                return dataset
        return None

    def refuse_unused(self) -> None:
        """Refuse data that no run judged."""
        for place, one in enumerate(self._given):
            if place not in self._used:
                name = (
                    one if isinstance(one, str | Path) else getattr(one, "name", type(one).__name__)
                )
                problem = self._problems.get(
                    place, "none of the runs judged data with this content"
                )
                raise UsageError(f"--data {name}: {problem}")


def _is_rows(data: Sequence[Any]) -> bool:
    return bool(data) and all(isinstance(row, Mapping) for row in data)


def _read_as(one: Data, about: Mapping[str, Any]) -> Dataset:
    """Read given data in the same way as the run read its own data."""
    if not isinstance(one, str | Path) or catalog.find_source(str(one)) is not None:
        return load_dataset(one, max_characters=sys.maxsize)
    known = catalog.find_source(str(about.get("name")))
    if known is not None and known.forms:
        return load_again({**about, "location": str(one)})
    columns = about.get("columns")
    codes = about.get("label_codes")
    return load_dataset(one, max_characters=sys.maxsize, columns=columns, label_codes=codes)
