"""What a batch is to do: checked as far as it can be before any model is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from langgraph.graph.state import CompiledStateGraph
from pydantic import ValidationError

from ..graphs.inside import everybody, kinds_of
from ..graphs.registry import find_protocol
from ..nodes.panel import Models, Panel
from ..state.aspects import Aspect
from ..state.errors import UsageError
from ..state.settings import DebateSettings, Settings
from .datasets import Dataset, choose_aspects, explain, load_dataset
from .items import Item
from .manifest import describe_run
from .results import Key

Graph = CompiledStateGraph[Any, Any, Any, Any]


class Options(TypedDict, total=False):
    """How a dataset is to be judged.

    Attributes:
        aspects: which aspects to score; default: all that the dataset has labels for.
        settings: settings by name, for all the protocols, such as ``{"n": 2}``.
        models: role to chat model or model name, ``"*"`` for all.
        limit: judge the first so many items only.
        repeats: judge everything so many times.
        out: a folder for results and manifest; one that holds this run already is completed.
    """

    aspects: Sequence[str]
    settings: Mapping[str, Any]
    models: Models | None
    limit: int | None
    repeats: int
    out: str | Path | None


@dataclass(frozen=True)
class Plan:
    """A batch that has been checked and not begun: bad input is told before any call."""

    graphs: Mapping[str, Graph]
    dataset: Dataset
    aspects: Sequence[Aspect]
    repeats: int
    manifest: Mapping[str, Any]
    folder: Path | None = None

    def __len__(self) -> int:
        """How many verdicts are wanted."""
        return len(self.dataset) * max(len(self.aspects), 1) * len(self.graphs) * self.repeats

    def models(self) -> dict[str, str]:
        """Protocol and role to the name of a model, without its parameters."""
        return {
            f"{protocol}.{role}": label.partition("?")[0]
            for protocol, labels in self.manifest["models"].items()
            for role, label in labels.items()
        }

    @property
    def costs_money(self) -> bool:
        """Whether any model but the offline judge is asked."""
        return any(label != "offline" for label in self.models().values())

    def units(self) -> Iterator[tuple[Key, Item, Aspect | None]]:
        """Everything that is to be judged, item by item."""
        for item in self.dataset:
            for aspect in self.aspects or (None,):
                for name in self.graphs:
                    for repeat in range(self.repeats):
                        yield Key(item.id, aspect.name if aspect else None, name, repeat), item, aspect


def plan(protocols: str | Sequence[str], data: str | Path | Dataset, **options: Unpack[Options]) -> Plan:
    """Check everything that can be checked without calling a model.

    Raises:
        UsageError: bad input; says what and where.
    """
    limit, repeats, out = options.get("limit"), options.get("repeats", 1), options.get("out")
    for name, value in (("limit", limit), ("repeats", repeats)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be 1 or more, got {value}")
    dataset = data if isinstance(data, Dataset) else load_dataset(data)
    aspects = choose_aspects(dataset, options.get("aspects", ()))
    graphs, panels = {}, {}
    for name in dict.fromkeys([protocols] if isinstance(protocols, str) else protocols):
        graphs[name], panels[name] = _ready(name, dataset, options.get("settings", {}), options.get("models"))
    shown = dataset.first(limit)
    manifest = describe_run(panels, shown, aspects, limit, repeats)
    return Plan(graphs, shown, aspects, repeats, manifest, Path(out) if out is not None else None)


def _ready(
    name: str, dataset: Dataset, settings: Mapping[str, Any], models: Models | None
) -> tuple[Graph, Panel[Any]]:
    module = find_protocol(name)
    known = module.protocol.settings.model_fields
    if unknown := [key for key in settings if key not in known]:
        raise UsageError(f"{name} has no setting {unknown[0]!r}; it has {', '.join(known)}")
    try:
        builder = module.build(models=models, **settings)
    except ValidationError as error:
        raise UsageError(f"{name}: {explain(error)}") from error
    graph, panel = builder.compile(name=name), builder.panel
    if dataset.kind not in kinds_of(graph):
        raise UsageError(f"{name} takes no {dataset.kind} tasks, and {dataset.name} has nothing else")
    if any(_waits_for_a_person(judge.bound) for judge in everybody(panel)):
        raise UsageError(
            f"{name}: on_unresolved=human pauses for a person, which a batch cannot; "
            "invoke the graph from Python or Studio, or take on_unresolved=tie_breaker"
        )
    panel.check()
    return graph, panel


def _waits_for_a_person(settings: Settings) -> bool:
    return isinstance(settings, DebateSettings) and settings.fallback == "human"
