"""Disclose panels in which one model has all seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def note_on_seats(graphs: Mapping[str, Graph]) -> str:
    """Return a sentence on the judges with one model for all members, or an empty text."""
    found = {
        name: model
        for name, graph in graphs.items()
        for bound_judge in judges_of(graph).values()
        for judge in all_judges(bound_judge)
        for model in _models_in_all_seats(judge)
    }
    if not found:
        return ""
    judges = " and ".join(f"{name} ({redact(model)})" for name, model in found.items())
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
