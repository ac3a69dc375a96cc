"""``run.json``: all that a second person needs to run the same thing, and to tell that it was the same."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from ..graphs.registry import find_protocol
from ..nodes.bound_judge import Panel
from ..nodes.models.loaded_model import LoadedModel
from ..nodes.offline import DISCLOSURE
from ..nodes.planner import PlannedSteps
from ..nodes.prompt_templates import Prompts
from ..state.aspects import Aspect
from ..state.errors import DataError, UsageError
from ..state.settings import Settings
from .datasets import Dataset
from .replay.recording import Recording
from .results import FILE as RESULTS

FILE = "run.json"
_STEPS = TypeAdapter(list[PlannedSteps])
_PACKAGES = (
    "jurygraph",
    "langgraph",
    "langchain-core",
    "langchain-openai",
    "langchain-google-genai",
    "pydantic",
)


def describe_run(
    panels: Mapping[str, Panel[Any]],
    dataset: Dataset,
    aspects: Sequence[Aspect],
    limit: int | None,
    repeats: int,
    recording: Recording | None = None,
) -> dict[str, Any]:
    """The manifest of a run, as plain JSON."""
    signatures = {name: signature(name, panel, dataset, aspects, recording) for name, panel in panels.items()}
    return {
        "run": uuid4().hex,
        "signatures": signatures,
        "note": recording.note if recording else _note(panels),
        **({"replies": recording.described()} if recording else {}),
        "protocols": {name: panel.bound.model_dump(mode="json") for name, panel in panels.items()},
        "models": {name: _models(panel) for name, panel in panels.items()},
        "prompts": {name: _prompts_digest(name, panel.bound) for name, panel in panels.items()},
        "data": describe_data(dataset),
        "aspects": [aspect.model_dump(mode="json") for aspect in aspects],
        "limit": limit,
        "repeats": repeats,
        "versions": {"python": platform.python_version(), **_versions()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """What a manifest says of the data."""
    return {
        "name": dataset.name,
        "location": dataset.location,
        "digest": dataset.digest,
        "kind": dataset.kind,
        "labels": dataset.labels,
        "rule": dataset.rule.described(),
        "items": len(dataset),
    }


def _note(panels: Mapping[str, Panel[Any]]) -> str | None:
    offline = any("offline" in _models(panel).values() for panel in panels.values())
    return DISCLOSURE if offline else None


def signature(
    name: str,
    panel: Panel[Any],
    dataset: Dataset,
    aspects: Sequence[Aspect],
    recording: Recording | None = None,
) -> str:
    """One line that holds every setting that changes a number, as sacreBLEU prints one."""
    bound = panel.bound
    settings = bound.model_dump(mode="json", exclude={"models", "prompts"}, exclude_none=True)
    parts = {
        "protocol": name,
        "data": f"{dataset.name}@{dataset.digest}",
        **({"rule": rule} if (rule := dataset.rule.signature) else {}),
        "aspects": "+".join(aspect.name for aspect in aspects) or "-",
        **{key: str(value).lower() for key, value in settings.items()},
        "models": ",".join(f"{role}={label}" for role, label in _models(panel).items()),
        "prompts": _prompts_digest(name, bound),
        **({"replies": recording.signature} if recording else {}),
        "version": _versions()["jurygraph"],
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Put the manifest into the run's folder, or take up the run that is there; gives back what holds from now on.

    A run that is taken up keeps its id, its date and its evaluation steps; more items or repeats may be wanted.

    Raises:
        UsageError: the folder holds another run; names what differs.
    """
    before = check_manifest(folder, manifest)
    now = {**manifest, **{name: before[name] for name in _OF_THE_FIRST_START if name in before}}
    _write(folder / FILE, now)
    return now


_OF_THE_FIRST_START = ("run", "fresh", "created", "steps")
_OTHERWISE = "choose another --out, or have what is there make way with --replace"


def check_manifest(folder: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """See that a folder holds no other run; gives the manifest that is there, empty where there is none.

    Raises:
        UsageError: it does, or it cannot be told.
    """
    if not (folder / FILE).exists():
        if (folder / RESULTS).exists():
            raise UsageError(f"{folder} holds {RESULTS} but no {FILE}, which says of what: {_OTHERWISE}")
        return {}
    try:
        before = read_manifest(folder)
    except DataError as error:
        raise DataError(f"{error}: put back the one that it was, {_OTHERWISE}") from error
    _refuse_other_run(folder, before, manifest)
    return before


def make_way(folder: Path) -> None:
    """Rename the files of the run that is in a folder, if any; its journal stays, calls are calls."""
    there = [folder / name for name in (RESULTS, FILE) if (folder / name).exists()]
    for mark in _marks(folder) if there else ():
        renamed = [path.with_name(f"{path.stem}.{mark}{path.suffix}") for path in there]
        if not any(path.exists() for path in renamed):
            for path, new in zip(there, renamed, strict=True):
                path.replace(new)
            return


def _marks(folder: Path) -> Iterator[str]:
    """What tells the files of an earlier run from those of others: its date, and a number where that does not do."""
    try:
        created = str(read_manifest(folder)["created"]).replace(":", "")
    except (DataError, KeyError):
        created = "unknown"
    yield created
    yield from (f"{created}.{number}" for number in count(2))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        DataError: the folder holds none, or it cannot be read.
    """
    path = folder / FILE
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{folder}: holds no run ({FILE}: {error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("signatures"), dict):
        raise DataError(f"{path}: no manifest of a run")
    return manifest


def read_steps(folder: Path) -> list[PlannedSteps]:
    """The evaluation steps that were written in the run so far.

    Raises:
        DataError: the folder holds no run, or its steps cannot be read.
    """
    try:
        return _STEPS.validate_python(read_manifest(folder).get("steps", []))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, ("steps", *problem["loc"])))
        raise DataError(f"{folder / FILE}: {where}: {problem['msg']}") from error


def keep_steps(folder: Path, planned: PlannedSteps) -> None:
    """Add evaluation steps to the manifest; whoever completes the run uses them again."""
    manifest = read_manifest(folder)
    manifest["steps"] = [*manifest.get("steps", []), planned.model_dump(mode="json")]
    _write(folder / FILE, manifest)


def _write(path: Path, manifest: Mapping[str, Any]) -> None:
    """All or nothing: a run that is killed leaves the manifest that it had."""
    fresh = path.with_suffix(".tmp")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    fresh.replace(path)


def _refuse_other_run(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    differences = list(_differences(old["signatures"], new["signatures"]))
    if differences:
        raise UsageError(
            f"{folder} belongs to another run: {'; '.join(differences)}. {_OTHERWISE.capitalize()}"
        )


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """What differs between signatures: who judges, and each part of those that are in both."""
    if old.keys() != new.keys():
        yield f"it is of {', '.join(old)}, not of {', '.join(new)}"
    for protocol in (name for name in old if name in new):
        before, now = _parts(old[protocol]), _parts(new[protocol])
        for part in dict.fromkeys([*before, *now]):
            was, becomes = before.get(part, "not there"), now.get(part, "not there")
            if was != becomes:
                yield f"{protocol}: {part} was {was}, is {becomes}"


def _parts(signed: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition(":") for part in signed.split("|"))}


def _models(panel: Panel[Any]) -> dict[str, str]:
    return {
        role: model.label if isinstance(model, LoadedModel) else str(model)
        for role, model in panel.chosen().items()
    }


def _prompts_digest(name: str, settings: Settings) -> str:
    return Prompts.load(settings.prompts).digest(*find_protocol(name).protocol.prompts)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
