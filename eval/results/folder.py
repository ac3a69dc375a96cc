"""The folder of a run with its lock, and reading, writing and comparing of its run.json."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from ...state.errors import DataError, UsageError
from ...state.planned_steps import PlannedSteps
from ..journal.private_files import PRIVATE, make_private_folder, whole_file
from .config import RunConfig
from .results import FILE as RESULTS
from .results import ResultsFile, StoredResults, first_fault

JOURNAL = "journal.sqlite"
SHARED_JOURNAL = "calls.sqlite"
"""The journal of several runs that share their calls, in the folder above theirs."""


@contextmanager
def locked_folder(folder: Path | None, what: str = "run") -> Iterator[Path]:
    """Hold the lock of a folder, so that no other process runs in it; create one if needed."""
    if folder is None:
        with TemporaryDirectory(prefix="jurygraph-") as temporary:
            yield Path(temporary)
        return
    make_folder(folder)
    try:
        lock = FileLock(folder / f"{what}.lock", mode=PRIVATE, blocking=False).acquire()
    except Timeout:
        in_use = (
            f"{folder} is in use by another {what}; wait for it to end, or choose another --out"
        )
        raise UsageError(in_use) from None
    with lock:
        yield folder


def make_folder(folder: Path) -> None:
    """Create a folder for results, if there is none.

    Raises:
        UsageError: a file has this name.
    """
    refuse_file(folder)
    make_private_folder(folder)


def refuse_file(out: Path | None) -> None:
    """Raise a UsageError if the path for a results folder is not a folder."""
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: --out takes a folder")


@contextmanager
def shared_calls(folder: Path | None, what: str, config: RunConfig) -> Iterator[RunConfig]:
    """Lock the folder of several runs that share their calls, and yield the config for each.

    Args:
        folder: the folder above theirs; ``None`` stores the calls in a temporary one.
        what: the kind of the runs, such as ``sweep``.
        config: has the location of the journal, if it is not in the folder.

    Raises:
        UsageError: a file has this name, or another process uses the folder.
    """
    with locked_folder(folder, what) as place:
        yield replace(config, journal=config.journal or place / SHARED_JOURNAL)


FILE = "run.json"
RUN_SET = "runs.json"
"""The description of the runs in a folder with several runs (``run_set.py``)."""
STEPS = TypeAdapter(list[PlannedSteps])


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest to the run's folder, or continue the existing run; return the manifest.

    A resumed run keeps its id, its date and its evaluation steps. It may have more items or repeats
    than before.

    Raises:
        UsageError: the folder contains another run; the message lists the differences.
    """
    before = check_manifest(folder, manifest)
    now = {**manifest, **{name: before[name] for name in _OF_THE_FIRST_START if name in before}}
    write_whole(folder / FILE, now)
    return now


def run_of_shards(folder: Path, manifest: Mapping[str, Any], *, begin_anew: bool = False) -> str:
    """Return the id of the run that a shard belongs to, from the manifest above the shards.

    The first shard to start writes that manifest, which is the shard's without ``shard``.

    Args:
        folder: the shard's folder.
        manifest: the shard's manifest.
        begin_anew: whether to begin another run if that manifest belongs to another one, or to one
            that this shard was already part of. Shards that begin again later join the new run.

    Raises:
        UsageError: there is another run.
    """
    whole = {name: value for name, value in manifest.items() if name != "shard"}
    mine = read_manifest(folder)["run"] if (folder / FILE).exists() else None
    with FileLock(folder.parent / "shards.lock", mode=PRIVATE):
        above = read_manifest(folder.parent) if (folder.parent / FILE).exists() else None
        if above is not None:
            is_done = above["run"] == mine or any(
                differences(above["signatures"], whole["signatures"])
            )
            if not (begin_anew and is_done):
                _refuse_other_run(folder.parent, above, whole)
                return str(above["run"])
        elif mine and not begin_anew:
            # In earlier versions, each shard had its own id.
            whole["run"] = mine
        write_whole(folder.parent / FILE, whole)
        return str(whole["run"])


_OF_THE_FIRST_START = ("run", "fresh", "created", "steps")
_OTHERWISE = "choose another --out, or start a new run in this one with --overwrite"


def check_manifest(folder: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that a folder contains no other run; return its manifest, or an empty one.

    Raises:
        UsageError: it contains another run, or an unknown one.
    """
    if not (folder / FILE).exists():
        if (folder / RUN_SET).exists():
            raise UsageError(
                f"{folder} holds several runs, described in {RUN_SET}: choose another --out"
            )
        if (folder / RESULTS).exists():
            raise UsageError(f"{folder} holds {RESULTS}, but {FILE} is missing: {_OTHERWISE}")
        return {}
    try:
        before = read_manifest(folder)
    except DataError as error:
        raise DataError(f"{error}: restore the original file, {_OTHERWISE}") from error
    _refuse_other_run(folder, before, manifest)
    return before


def rename_results(folder: Path) -> None:
    """Rename the files of a folder's run, if any.

    Its journal stays, so that its calls can be reused.
    """
    present = [folder / name for name in (RESULTS, FILE) if (folder / name).exists()]
    try:
        created = str(read_manifest(folder)["created"]).replace(":", "")
    except (DataError, KeyError):
        created = "unknown"
    # The files of one run get the same mark, to show that they belong together: its date, or with a
    # number.
    for mark in chain([created], (f"{created}.{number}" for number in count(2))):
        renamed = [path.with_name(f"{path.stem}.{mark}{path.suffix}") for path in present]
        if not any(path.exists() for path in renamed):
            for path, new in zip(present, renamed, strict=True):
                path.replace(new)
            return


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run.

    Raises:
        DataError: the folder has none, or it cannot be read.
    """
    path = folder / FILE
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        inside = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
        elsewhere = f"; there are runs in its folders {', '.join(inside)}" if inside else ""
        raise DataError(f"{folder}: holds no run ({FILE}: {error.strerror}){elsewhere}") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("signatures"), dict):
        raise DataError(f"{path}: not the manifest of a run")
    return manifest


def model_names(manifest: Mapping[str, Any], *protocols: str) -> tuple[str, ...]:
    """Return the models of a run or of some of its protocols, without parameters and duplicates.

    >>> model_names({"models": {"debate": {"scorer": "openai:gpt-4o?seed=1", "critic": "openai:gpt-4o"}}})
    ('openai:gpt-4o',)
    """
    chosen = (manifest["models"][name] for name in protocols or manifest.get("models", ()))
    return tuple(
        dict.fromkeys(label.partition("?")[0] for by_role in chosen for label in by_role.values())
    )


def results_of(folder: Path) -> ResultsFile:
    """Return the file of a run's results, which refuses scores that are off its scales.

    Raises:
        DataError: the manifest cannot be read; without one, no scale is known.
    """
    manifest = read_manifest(folder) if (folder / FILE).exists() else {}
    # Metrics have their own scales.
    aspects = () if "metrics" in manifest else manifest.get("aspects") or ()
    return ResultsFile(folder, aspects)


def stored_results(folder: Path) -> StoredResults:
    """Return the results of a run that has begun.

    Raises:
        DataError: the folder has no run, or no results; the message says where they are if the run
            is in shards.
    """
    # Raises an error that names the folders with runs, if this one has none.
    read_manifest(folder)
    results = results_of(folder)
    if not results.path.exists():
        holds = f"{folder}: holds {FILE} but no {results.path.name}"
        if any((shard / FILE).exists() for shard in folder.glob("shard-*-of-*")):
            raise DataError(
                f"{holds}: its verdicts are in shards; first run jurygraph merge {folder} --out {folder}"
            )
        raise DataError(f"{holds}: nothing was judged in it")
    return results.read()


def read_steps(folder: Path) -> list[PlannedSteps]:
    """Read the evaluation steps of the run so far.

    Raises:
        DataError: the folder has no run, or its steps cannot be read.
    """
    try:
        return STEPS.validate_python(read_manifest(folder).get("steps", []))
    except ValidationError as error:
        raise DataError(f"{folder / FILE}: {first_fault(error, 'steps')}") from error


def keep_steps(folder: Path, planned: PlannedSteps) -> None:
    """Add evaluation steps to the manifest, so that a resumed run uses them too."""
    manifest = read_manifest(folder)
    manifest["steps"] = [*manifest.get("steps", []), planned.model_dump(mode="json")]
    write_whole(folder / FILE, manifest)


def write_whole(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest as JSON, completely or not at all: a killed run leaves the old one."""
    with whole_file(path) as file:
        file.write(json.dumps(manifest, ensure_ascii=False, indent=2).encode() + b"\n")


def _refuse_other_run(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    was, is_now = (
        f"shard {run['shard']}" if run.get("shard") else "no shard" for run in (old, new)
    )
    remedy = _OTHERWISE.capitalize()
    if was != is_now:
        raise UsageError(f"{folder} belongs to another run: it is {was}, not {is_now}. {remedy}")
    if unlike := list(differences(old["signatures"], new["signatures"])):
        if any("base_url=" in part for part in unlike):
            moved = "The same model at another address? Add &identity=OLD_ADDRESS to its name"
            remedy = f"{moved}. Else {_OTHERWISE}"
        raise UsageError(f"{folder} belongs to another run: {'; '.join(unlike)}. {remedy}")


_SERVERS = re.compile(r"[?&]base_url=(?:[^,&|]+,(?=\w+://))+[^,&|]*")


def differences(
    old: Mapping[str, str], new: Mapping[str, str], without: Container[str] = ()
) -> Iterator[str]:
    """Yield the differences between signatures: protocols, and parts except ``without``."""
    if old.keys() != new.keys():
        yield f"it is of {', '.join(old)}, not of {', '.join(new)}"
    for protocol in (name for name in old if name in new):
        before = signature_parts(old[protocol])
        now = signature_parts(new[protocol])
        for part in dict.fromkeys([*before, *now]):
            was = before.get(part, "not set")
            becomes = now.get(part, "not set")
            # It makes no difference which of several servers of a model answers.
            if part not in without and _SERVERS.sub("", was) != _SERVERS.sub("", becomes):
                yield f"{protocol}: {part} was {was}, is {becomes}"


def signature_parts(signed: str) -> dict[str, str]:
    """Return the parts of a signature by name."""
    # For example "protocol:debate|data:demo@3f2a|n:2"; a value may itself contain a colon, as in
    # model names.
    return {name: value for name, _, value in (part.partition(":") for part in signed.split("|"))}
