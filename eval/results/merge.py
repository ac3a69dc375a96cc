"""Merges the folders of shards, or of other parts of one run, into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from ...state.errors import DataError, UsageError
from ...state.planned_steps import PlannedSteps
from ..datasets.dataset import load_again
from ..datasets.selection import Shard
from ..journal.private_files import make_private_folder, whole_file
from .folder import (
    FILE,
    differences,
    read_manifest,
    read_steps,
    refuse_file,
    results_of,
    write_manifest,
)
from .results import FILE as RESULTS
from .results import Key, ResultsFile
from .run_set import RecordedRun, folder_name, read_run_set


class Merged(NamedTuple):
    """The outcome of a merge.

    Attributes:
        judged: the number of verdicts.
        failed: the number of items without a verdict, each with a reason.
        missing: the shards without a folder.
    """

    judged: int
    failed: int
    missing: tuple[Shard, ...]


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Merge folders into one that behaves as if one process had judged everything.

    Args:
        folders: parts of one run: shards, or runs of the same configuration over different items; a
            folder with only shards represents these.
        out: a new folder, or one that an earlier merge has written.

    Raises:
        UsageError: the folders are not parts of one run, two have the same result, or ``out`` has
            other content.
        DataError: a folder has no run.
    """
    parts = {
        part: read_manifest(part) for folder in dict.fromkeys(folders) for part in _parts(folder)
    }
    if not parts:
        raise UsageError("nothing to merge: name the folders of the shards")
    missing = _check_parts(parts)
    first = next(iter(parts.values()))
    manifest = {name: value for name, value in first.items() if name not in ("shard", "steps")}
    steps = [planned.model_dump(mode="json") for planned in _steps(parts)]
    merged = [str(part["run"]) for part in parts.values()]
    # All shards below one folder are the same run, so that budgets apply when the merged folder is
    # resumed.
    manifest |= {"run": merged[0] if len(set(merged)) == 1 else uuid4().hex, "merged": merged}
    _check_out(out, parts)
    make_private_folder(out)
    write_manifest(out, manifest | ({"steps": steps} if steps else {}))
    results = _joined(parts, out)
    stored = results.finish(_in_order(manifest, results))
    failed = len(stored) - len(results.ok_keys())
    return Merged(len(stored) - failed, failed, missing)


def merge_run_sets(folders: Sequence[Path], out: Path) -> dict[Path, Merged]:
    """Merge as ``merge`` does; for folders with several runs, merge the parts of each run.

    Returns:
        the outcome for each run, by its folder.

    Raises:
        UsageError: as ``merge``; or only some of the folders have several runs.
    """
    sets = {folder: read_run_set(folder) for folder in dict.fromkeys(folders)}
    found = {folder: run_set for folder, run_set in sets.items() if run_set is not None}
    if not found:
        return {out: merge(folders, out)}
    if alone := [folder for folder in sets if folder not in found]:
        raise UsageError(
            f"{next(iter(found))} holds several runs, {alone[0]} does not: merge them separately"
        )
    refuse_file(out)
    first = next(iter(found.values()))
    # Another start may have had more of the runs.
    recorded = list(first.runs)
    for run_set in found.values():
        recorded += [run for run in run_set.runs if not any(run.is_of(known) for known in recorded)]
    merged: dict[Path, Merged] = {}
    kept: list[RecordedRun] = []
    for run in recorded:
        name = folder_name(run.data, run.model, [other.folder for other in kept])
        parts = [
            folder / part.folder
            for folder, run_set in found.items()
            for part in run_set.runs
            if part.is_of(run) and (folder / part.folder).exists()
        ]
        kept.append(replace(run, folder=run.folder if out in found else name))
        if parts:
            merged[out / kept[-1].folder] = merge(parts, out / kept[-1].folder)
    ids = {run_set.run for run_set in found.values()}
    replace(first, run=first.run if len(ids) == 1 else uuid4().hex, runs=tuple(kept)).write(out)
    return merged


def _parts(folder: Path) -> list[Path]:
    """Return the shards below a folder without results; otherwise the folder."""
    shards = sorted(shard.parent for shard in folder.glob(f"shard-*-of-*/{FILE}"))
    return [folder] if (folder / RESULTS).exists() or not shards else shards


def _check_parts(parts: Mapping[Path, Mapping[str, Any]]) -> tuple[Shard, ...]:
    """Check that all are parts of one run; return the missing shards."""
    shards: dict[Shard, Path] = {}
    (first, of_first), *others = parts.items()
    for folder, manifest in others:
        if unlike := list(differences(of_first["signatures"], manifest["signatures"])):
            raise UsageError(f"{first} and {folder} are not parts of one run: {'; '.join(unlike)}")
    for folder, manifest in parts.items():
        if (number_of := manifest.get("shard")) is None:
            continue
        shard = Shard.parse(number_of)
        if shard in shards:
            raise UsageError(
                f"{shards[shard]} and {folder} are both shard {shard}: name one of them"
            )
        if other := next((earlier for earlier in shards if earlier.of != shard.of), None):
            raise UsageError(
                f"{shards[other]} is shard {other}, {folder} is shard {shard}: counts differ"
            )
        shards[shard] = folder
    of = next(iter(shards)).of if shards else 0
    return tuple(shard for number in range(1, of + 1) if (shard := Shard(number, of)) not in shards)


def _check_out(out: Path, parts: Mapping[Path, Mapping[str, Any]]) -> None:
    refuse_file(out)
    if out.resolve() in {folder.resolve() for folder in parts}:
        raise UsageError(f"{out} is itself one of the folders to merge: choose another --out")
    if (out / FILE).exists() or (out / RESULTS).exists():
        before = read_manifest(out)
        of_first = next(iter(parts.values()))
        # A run that was resumed in the folder has its own manifest, and may have judged other
        # items. The manifest of shards below the folder has no results next to it.
        is_of_shards = before["run"] == of_first["run"] and not (out / RESULTS).exists()
        differs = any(differences(before["signatures"], of_first["signatures"]))
        if differs or not ("merged" in before or is_of_shards):
            raise UsageError(
                f"{out} holds another run, or was resumed after a merge: choose another --out"
            )
        (out / RESULTS).unlink(missing_ok=True)
        (out / FILE).unlink()


def _steps(parts: Mapping[Path, Mapping[str, Any]]) -> Iterator[PlannedSteps]:
    """Yield the evaluation steps of all parts, which must agree to make scores comparable."""
    planned = {folder: {steps.key: steps for steps in read_steps(folder)} for folder in parts}
    for (first, mine), (second, others) in combinations(planned.items(), 2):
        if unlike := [key for key in mine.keys() & others.keys() if mine[key] != others[key]]:
            raise UsageError(
                f"{first} and {second} were judged by different evaluation steps for "
                f"{mine[unlike[0]].aspect}: give all shards one --journal, or the setting "
                "steps=..."
            )
    yield from {key: steps for by_key in planned.values() for key, steps in by_key.items()}.values()


def _joined(parts: Mapping[Path, Mapping[str, Any]], out: Path) -> ResultsFile:
    """Write the results of all parts one after the other."""
    seen = 0
    with whole_file(out / RESULTS) as file:
        for folder in parts:
            results = results_of(folder).read()
            seen += len(results)
            file.writelines(line for _, line in results.lines())
    joined = ResultsFile(out)
    if twice := seen - len(joined.read()):
        (out / RESULTS).unlink()
        raise UsageError(
            f"{twice} verdicts are in more than one of the folders: name each shard once"
        )
    return joined


def _in_order(manifest: Mapping[str, Any], results: ResultsFile) -> list[Key]:
    """Return the keys of all results, in the order of the dataset if it can still be read."""
    data = manifest["data"]
    keys = results.keys()
    try:
        dataset = load_again(data)
        places = {item.id: place for place, item in enumerate(dataset)}
    except DataError:
        return keys
    # Stable: the results of one item are already together, in the order of one process.
    return sorted(keys, key=lambda key: places.get(key.item, len(places)))
