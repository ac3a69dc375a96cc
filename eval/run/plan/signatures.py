"""The manifest of a run, and its signature: one line with every setting that changes a number."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from ....graphs.engine.base import Graph
from ....graphs.engine.given_graphs import described, judges_of
from ....graphs.engine.wrapper import all_judges
from ....nodes.common.plugins import installed_version
from ....nodes.models.capabilities import is_limited_by_default
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.models.model_chains import identity_of_name
from ....nodes.runtime.bound_judge import BoundJudge
from ....nodes.runtime.prompt_context import Prompts
from ....state.aspects import ASPECTS, Aspect
from ....state.redaction import redact_all
from ....state.settings import PAPERS, REPLY_LIMITS, ModelSpec, Settings
from ....state.verdict_warnings import DISCLOSURE, LOCAL_DISCLOSURE
from ...datasets.dataset import Dataset, describe_data
from ...datasets.selection import Sample
from ..replay.recording import Recording
from .seats import note_on_seats, panels_of_one_model


def describe_run(
    graphs: Mapping[str, Graph],
    dataset: Dataset,
    aspects: Sequence[Aspect],
    limit: int | None,
    repeats: int,
    recording: Recording | None = None,
) -> dict[str, Any]:
    """Create the manifest of a run, as plain JSON."""
    signatures = {
        name: signature(name, graph, dataset, aspects, recording) for name, graph in graphs.items()
    }
    models = {name: _models(graph) for name, graph in graphs.items()}
    named = {name for by_role in models.values() for name in by_role.values()}
    own = any(name.partition("?")[0] == "local" and "model_path=" not in name for name in named)
    notes = {DISCLOSURE: "offline" in named, LOCAL_DISCLOSURE: own}
    note = (
        recording.note
        if recording
        else " ".join(text for text, applies in notes.items() if applies)
    )
    # Recorded replies may come from other models.
    panels = {} if recording else panels_of_one_model(graphs)
    return {
        # A run that resumes has the id of its first start (`write_manifest`).
        "run": uuid4().hex,
        "signatures": redact_all(signatures),
        "note": note or None,
        **({"seats": note_on_seats(panels), "one_model_panels": panels} if panels else {}),
        **({"replies": recording.described()} if recording else {}),
        # A model's address may contain a password, and its parameters a key.
        "protocols": {name: redact_all(described(graph)) for name, graph in graphs.items()},
        "models": {name: redact_all(by_role) for name, by_role in models.items()},
        "reply_limits": {name: _reply_limits(graph) for name, graph in graphs.items()},
        "prompts": {name: _prompts_digest(graph) for name, graph in graphs.items()},
        **({"own_prompts": reworded} if (reworded := _own_prompts(graphs)) else {}),
        "data": describe_data(dataset),
        "aspects": [aspect.model_dump(mode="json") for aspect in aspects],
        "limit": limit,
        "repeats": repeats,
        "versions": {"python": platform.python_version(), **package_versions()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def signature(
    name: str,
    graph: Graph,
    dataset: Dataset,
    aspects: Sequence[Aspect],
    recording: Recording | None = None,
) -> str:
    """Return one line with every setting that changes a number, like the one of sacreBLEU."""
    own = judges_of(graph).get("")
    # A graph is identified by its hash.
    settings = _settings(own.bound) if own else {"graph": described(graph)["graph"]}
    judges = tuple(all_judges(own)) if own else ()
    digests = dict.fromkeys(judge.source_digest for judge in judges if judge.source_digest)
    by_default = any(isinstance(limit, dict) for limit in _reply_limits(graph).values())
    limits = ",".join(f"{form}={limit}" for form, limit in REPLY_LIMITS.items())
    parts: list[tuple[str, str | None]] = [
        ("protocol", own.protocol if own else name),
        # The files that define a judge and those inside it, which no package version identifies.
        ("file", "+".join(digests) or None),
        ("data", f"{dataset.name}@{dataset.digest}"),
        ("rule", dataset.rule.signature or None),
        # The settings that decide which texts of the file are judged; not their number, so that a
        # run can be extended.
        ("columns", ",".join("=".join(pair) for pair in dataset.columns.items()) or None),
        ("labels", ",".join("=".join(pair) for pair in dataset.label_codes.items()) or None),
        ("empty", dataset.empty if dataset.empty != "refuse" else None),
        (
            "sample",
            _written_sample(dataset.chosen) if dataset.chosen else None,
        ),
        ("aspects", "+".join(map(_named_aspect, aspects)) or "-"),
        *((setting, _written(value)) for setting, value in settings.items()),
        # Their names are a setting; this is what the models are told about them.
        ("tools", "+".join(_tool_digests(judges)) or None),
        ("max_tokens", limits if by_default else None),
        ("models", ",".join(f"{role}={label}" for role, label in _models(graph).items())),
        ("prompts", _prompts_digest(graph)),
        ("replies", recording.signature if recording else None),
        ("version", package_versions()["jurygraph"]),
    ]
    # Each name occurs once: a default limit of replies replaces the setting.
    known = {key: value for key, value in parts if value is not None}
    return "|".join(f"{key}:{value}" for key, value in known.items())


def _written_sample(sample: Sample) -> str:
    spread = " spread" * sample.spread
    labelled = " labelled" * (sample.labelled is not None)
    return f"seed {sample.seed}{spread}{labelled}"


def _tool_digests(judges: Sequence[BoundJudge[Any]]) -> list[str]:
    toolboxes = (judge.toolbox(judge.bound) for judge in judges)
    return list(dict.fromkeys(toolbox.digest for toolbox in toolboxes if toolbox is not None))


def _settings(bound: Settings) -> dict[str, Any]:
    """Return the settings of a signature.

    Models and prompts have parts of their own. Newer settings occur only if they were changed.
    """
    without = {"models", "prompts", *bound.unchanged_newer}
    return bound.model_dump(mode="json", exclude=without, exclude_none=True)


def _written(value: Any) -> str:
    """Write a setting's value: true and false as in JSON, texts unchanged.

    Texts may differ only in capitals.
    """
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{name!r}: {_written(inner)}" for name, inner in value.items()) + "}"
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named_aspect(aspect: Aspect) -> str:
    """Name an aspect; a user-defined one with a digest of its criteria, scale and steps."""
    digest = sha256(aspect.model_dump_json().encode(errors="replace")).hexdigest()[:12]
    return aspect.name if aspect in ASPECTS.values() else f"{aspect.name}@{digest}"


UNKNOWN = "unknown"
"""The model of a graph without a judge of this package."""


def _models(graph: Graph) -> dict[str, str]:
    chosen = _chosen(graph).items()
    labels = {
        role: m.label if isinstance(m, LoadedModel) else str(m.identified) for role, m in chosen
    }
    return labels or {"*": UNKNOWN}


def _chosen(graph: Graph) -> dict[str, ModelSpec | LoadedModel]:
    """Return the model of each role, under the role's name after the place of its judge."""
    chosen = [(place, bound_judge.chosen()) for place, bound_judge in judges_of(graph).items()]
    return {
        f"{place}.{role}".lstrip("."): model for place, own in chosen for role, model in own.items()
    }


def _reply_limits(graph: Graph) -> dict[str, Any]:
    """Return the token limit of a reply by role: a number, the default by form, or ``None``.

    It is ``None`` if this package sets no limit.
    """
    limits: dict[str, Any] = {}
    for role, model in _chosen(graph).items():
        if isinstance(model, LoadedModel):
            identity = model.identity
            by_default = model.is_limited_by_default
        else:
            identity = identity_of_name(model)
            by_default = is_limited_by_default(identity)
        # A model object has its parameters in a separate part.
        given = {**identity.get("parameters", {}), **identity}
        limits[role] = dict(REPLY_LIMITS) if by_default else given.get("max_tokens") or None
    return limits


def _prompts_digest(graph: Graph) -> str:
    """Hash a judge's templates; for a wrapper, also the own templates of protocols inside."""
    digests = []
    for bound_judge in judges_of(graph).values():
        own, *inside = all_judges(bound_judge)
        for judge in (own, *(nested for nested in inside if nested.record.templates is not None)):
            named = f"{PAPERS}@" if judge.bound.prompts == PAPERS else ""
            prompts = _prompts_of(judge)
            digests.append(f"{named}{prompts.digest(*judge.record.prompts_of(judge.bound))}")
    return "+".join(dict.fromkeys(digests)) or "-"


def _prompts_of(judge: BoundJudge[Any]) -> Prompts:
    return Prompts.load(judge.bound.prompts, judge.record.templates, judge.bound.fences)


def _own_prompts(graphs: Mapping[str, Graph]) -> dict[str, list[dict[str, Any]]]:
    """Describe the templates that replace bundled ones, by judge: folder, digest and names.

    The folder is without its path, which is of no use on another machine.
    """
    described: dict[str, list[dict[str, Any]]] = {}
    for name, graph in graphs.items():
        for bound_judge in judges_of(graph).values():
            for judge in all_judges(bound_judge):
                prompts = _prompts_of(judge)
                names = [
                    template
                    for template in sorted(prompts.replaced)
                    if template.partition("/")[0] in judge.record.prompts_of(judge.bound)
                ]
                if names:
                    digest = prompts.digest(*judge.record.prompts_of(judge.bound))
                    folder = Path(str(judge.bound.prompts)).name
                    entry = {"folder": folder, "digest": digest, "templates": names}
                    if entry not in described.setdefault(name, []):
                        described[name].append(entry)
    return described


@cache
def package_versions() -> Mapping[str, str]:
    """Return the versions of this package and of its main dependencies, by name."""
    own = "jurygraph langgraph langchain-core langchain-openai langchain-google-genai pydantic"
    return {package: installed_version(package) for package in own.split()}
