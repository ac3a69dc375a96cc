"""The evaluation steps of an aspect, as a run stores them (G-Eval, section 2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PlannedSteps(BaseModel):
    """The steps for one aspect, the label of the model that wrote them, and the prompt's key."""

    model_config = ConfigDict(frozen=True)

    aspect: str
    model: str
    key: str
    steps: tuple[str, ...]
