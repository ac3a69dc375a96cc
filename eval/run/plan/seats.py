"""Disclose panels in which one model has all seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....graphs.engine.base import Graph
from ....graphs.engine.given_graphs import judges_of
from ....graphs.engine.wrapper import all_judges
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.runtime.bound_judge import BoundJudge
from ....state.redaction import redact
from ....state.settings import ModelSpec

_WITHOUT_DISCLOSURE = ("offline", "local")
"""Models of this package, which have a disclosure of their own."""


def panels_of_one_model(graphs: Mapping[str, Graph]) -> dict[str, list[str]]:
    """Return the judges with one model for all members: the models of their panels, by name."""
    found: dict[str, list[str]] = {}
    for name, graph in graphs.items():
        for bound_judge in judges_of(graph).values():
            for judge in all_judges(bound_judge):
                for model in map(redact, _models_in_all_seats(judge)):
                    # A wrapper may have several panels.
                    if model not in found.setdefault(name, []):
                        found[name].append(model)
    return {name: models for name, models in found.items() if models}


def note_on_seats(panels: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence on the judges with one model for all members, or an empty text.

    >>> note_on_seats({"ensemble": ["openai:gpt-4o-mini"]})
    "One model has all seats of ensemble (openai:gpt-4o-mini), so the members' errors are correlated by construction."
    """
    if not panels:
        return ""
    judges = " and ".join(f"{name} ({', '.join(models)})" for name, models in panels.items())
    return f"One model has all seats of {judges}, so the members' errors are correlated by construction."


def _models_in_all_seats(judge: BoundJudge[Any]) -> Iterator[str]:
    """Yield the model of each panel of a judge that has the same one in all its seats."""
    record = judge.record
    chosen = judge.chosen()
    for role, size in record.agents(judge.bound).items():
        if record.role_kinds.get(role) not in ("panel", "votes") or size < 2:
            continue
        seats = (f"{role}_{number}" for number in range(1, size + 1))
        models = {_name(chosen.get(seat, chosen.get(role, chosen["*"]))) for seat in seats}
        if len(models) == 1 and not models & set(_WITHOUT_DISCLOSURE):
            yield models.pop()


def _name(model: ModelSpec | LoadedModel) -> str:
    """Return a model's name without its parameters, which do not make it another model."""
    return model.name if isinstance(model, ModelSpec) else model.label.partition("?")[0]
