"""``run.json``: all that a second person needs to run the same thing, and to tell that it was the same."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..graphs.registry import find_protocol
from ..nodes.models import LoadedModel
from ..nodes.offline import DISCLOSURE
from ..nodes.panel import Panel
from ..nodes.planner import PlannedSteps
from ..nodes.prompting import Prompts
from ..state.aspects import Aspect
from ..state.errors import DataError, UsageError
from ..state.settings import Settings
from .datasets import Dataset

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
) -> dict[str, Any]:
    """The manifest of a run, as plain JSON."""
    signatures = {name: signature(name, panel, dataset, aspects) for name, panel in panels.items()}
    offline = any("offline" in _models(panel).values() for panel in panels.values())
    return {
        "signatures": signatures,
        "note": DISCLOSURE if offline else None,
        "protocols": {name: panel.bound.model_dump(mode="json") for name, panel in panels.items()},
        "models": {name: _models(panel) for name, panel in panels.items()},
        "prompts": {name: _prompts_digest(name, panel.bound) for name, panel in panels.items()},
        "data": {
            "name": dataset.name,
            "location": dataset.location,
            "digest": dataset.digest,
            "kind": dataset.kind,
            "labels": dataset.labels,
            "items": len(dataset.items),
        },
        "aspects": [aspect.model_dump(mode="json") for aspect in aspects],
        "limit": limit,
        "repeats": repeats,
        "versions": {"python": platform.python_version(), **_versions()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def signature(name: str, panel: Panel[Any], dataset: Dataset, aspects: Sequence[Aspect]) -> str:
    """One line that holds every setting that changes a number, as sacreBLEU prints one."""
    bound = panel.bound
    settings = bound.model_dump(mode="json", exclude={"models", "prompts"}, exclude_none=True)
    parts = {
        "protocol": name,
        "data": f"{dataset.name}@{dataset.digest}",
        "aspects": "+".join(aspect.name for aspect in aspects) or "-",
        **{key: str(value).lower() for key, value in settings.items()},
        "models": ",".join(f"{role}={label}" for role, label in _models(panel).items()),
        "prompts": _prompts_digest(name, bound),
        "version": _versions()["jurygraph"],
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Put the manifest into the run's folder.

    Raises:
        UsageError: the folder holds another run; names what differs.
    """
    path = folder / FILE
    if path.exists():
        _refuse_other_run(folder, read_manifest(folder), manifest)
        return
    _write(path, manifest)


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
    if not isinstance(manifest, dict) or "signatures" not in manifest:
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
    fresh.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    fresh.replace(path)


def _refuse_other_run(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before, now = ({**m["signatures"], "repeats": m["repeats"], "limit": m["limit"]} for m in (old, new))
    differences = [
        f"{key}: it has {before.get(key)!r}, now {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    ]
    if differences:
        raise UsageError(f"{folder} belongs to another run; choose another --out. {'; '.join(differences)}")


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
