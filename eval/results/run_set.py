"""``runs.json``: the runs of a folder for which one command judged several datasets or models.

Each combination of a dataset and a model is a complete run with its own folder, which separates the
kinds, aspects, equal item ids and numbers of datasets. The runs share one id, one journal of calls
and one budget.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...state.errors import DataError, UsageError
from .folder import FILE as MANIFEST
from .folder import RUN_SET as FILE
from .folder import write_whole
from .results import FILE as RESULTS

Models = Mapping[str, Mapping[str, str]]
"""The model of each role by protocol, as in a manifest."""


@dataclass(frozen=True)
class RecordedRun:
    """One run of a set.

    Attributes:
        folder: the name of its folder.
        dataset: the title of its dataset in this set: its name, or more if names are equal.
        model: the title of its models in this set; empty if there is one choice of models.
        data: the name of its dataset; ``digest`` and ``location`` are the manifest's.
        models: the model of each role by protocol.
    """

    folder: str
    dataset: str
    model: str
    data: str
    digest: str
    location: str
    models: Models = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Any], dataset: str = "", model: str = "") -> RecordedRun:
        """Return the description of a manifest's run, which has no folder yet."""
        data = manifest["data"]
        name = dataset or data["name"]
        return cls(
            "", name, model, data["name"], data["digest"], data["location"], manifest["models"]
        )

    @property
    def title(self) -> str:
        """The dataset, and the model if there are several."""
        return ", ".join(filter(None, (self.dataset, self.model)))

    def is_of(self, other: RecordedRun) -> bool:
        """Return whether both judge the same data with the same models.

        A changed file is still the same dataset: the signatures of the runs differ, and the run is
        refused.
        """
        same_data = (self.data, self.location) == (
            other.data,
            other.location,
        ) and self.location != "in memory"
        return self.has_models_of(other) and (self.digest == other.digest or same_data)

    def has_models_of(self, other: RecordedRun) -> bool:
        """Return whether the protocols that both have use the same models; others differ anyway."""
        common = self.models.keys() & other.models.keys()
        return all(self.models[name] == other.models[name] for name in common)


@dataclass(frozen=True)
class RunSet:
    """The runs of one folder.

    Attributes:
        run: the id that all runs share; the journal counts calls by it.
        created: when the first of them began.
        fresh: whether runs that have not begun yet ignore earlier replies, as the first start
            requested.
        runs: the runs, in the given order.
    """

    run: str
    created: str
    runs: tuple[RecordedRun, ...]
    fresh: bool = False

    @classmethod
    def begin(cls, run: str, runs: Iterable[RecordedRun], *, fresh: bool = False) -> RunSet:
        """Return the description of a new set."""
        return cls(run, datetime.now(UTC).isoformat(timespec="seconds"), tuple(runs), fresh)

    def write(self, folder: Path) -> None:
        """Write the description to the folder."""
        write_whole(folder / FILE, asdict(self))


def read_run_set(folder: Path) -> RunSet | None:
    """Read the description of the runs in a folder; ``None`` if it is not a folder of several runs.

    Raises:
        DataError: the description cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        runs = tuple(RecordedRun(**of_run) for of_run in fields.pop("runs"))
        return RunSet(runs=runs, **fields)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"{path}: not a description of runs ({type(error).__name__}: {error}); choose another --out"
        ) from error


def folders_of_runs(folders: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Replace each folder of several runs by the folders of these runs.

    Returns:
        the folders, and a sentence for each run without results, whose folder is left out.

    Raises:
        UsageError: no run of a set has results yet.
    """
    expanded = list[Path]()
    sentences = list[str]()
    for folder in folders:
        recorded = read_run_set(folder)
        if recorded is None:
            expanded.append(folder)
            continue
        begun = [run for run in recorded.runs if _has_begun(folder / run.folder)]
        if not begun:
            raise UsageError(
                f"{folder}: none of its runs has results yet; repeat the command that began it"
            )
        expanded += [folder / run.folder for run in begun]
        waiting = (run for run in recorded.runs if run not in begun)
        sentences += [
            f"{run.title}: not judged yet; repeat the command to judge it" for run in waiting
        ]
    return expanded, sentences


def _has_begun(folder: Path) -> bool:
    # A run in shards only has the manifest. Its readers ask the user to merge the shards.
    return (folder / RESULTS).exists() or (folder / MANIFEST).exists()


def folder_name(data: str, model: str, taken: Collection[str]) -> str:
    """Return a portable and unused name for the folder of a run.

    >>> folder_name("mine.csv", "", []), folder_name("mine.jsonl", "", ["mine"])
    ('mine', 'mine-jsonl')
    >>> folder_name("demo", "openai:gpt-4o?seed=1", [])
    'demo,openai-gpt-4o-seed=1'
    """
    of_model = f",{_plain(model)}" if model else ""
    stem = _plain(data.partition(".")[0]) or "data"
    whole = _plain(data.replace(".", "-"))
    known = {name.lower() for name in taken}
    names = [f"{stem}{of_model}", f"{whole}{of_model}"]
    names += [f"{whole}{of_model}~{number}" for number in range(2, len(known) + 3)]
    return next(name for name in names if name.lower() not in known)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.+=-]+", "-", name)[:80]


# Everything that a run, its review and its audit write except journal and log, also after renaming.
_OF_A_RUN = (
    "results*.jsonl",
    "review*.jsonl",
    "labels*.jsonl",
    "audit*.jsonl",
    "batches",
    "run.*.json",
)


def move_run(folder: Path, below: Path) -> None:
    """Move the files of a run into a subfolder; its journal stays, because the other runs share it.

    The manifest goes last: if it is still in the folder, the move was interrupted and is repeated.
    """
    below.mkdir(exist_ok=True)
    for pattern in _OF_A_RUN:
        for path in folder.glob(pattern):
            path.replace(below / path.name)
    (folder / MANIFEST).replace(below / MANIFEST)
