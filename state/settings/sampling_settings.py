"""Define the settings of the two baselines that sample several replies: G-Eval and FairEval."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from ..checked import FilledText, parts
from .base_settings import Samples, Settings
from .referee_settings import PositionSettings


def _steps(value: Any) -> Any:
    """Split a line at semicolons (from a command line) or a text into lines (from a form, which may send null)."""
    return () if value is None else parts(";\n")(value)


Steps = Annotated[tuple[FilledText, ...], BeforeValidator(_steps, json_schema_input_type=list[FilledText])]


class GEvalSettings(Settings):
    """Settings of G-Eval (Liu et al. 2023, section 2).

    >>> GEvalSettings(steps="Read both texts; Give a score").steps
    ('Read both texts', 'Give a score')
    """

    weighting: Literal["auto", "logprobs", "sampling"] = "auto"
    """Where the probabilities of the scores come from: `logprobs` (of tokens), `sampling` (several replies),
    or `auto`: log-probabilities where the model returns them, else samples."""
    samples: Samples = 20
    """How many replies, where they are sampled."""
    steps: Steps = ()
    """The evaluation steps (on a command line: separated by semicolons); none: the planner writes them from
    the aspect's criteria, once a run."""


class FairEvalSettings(PositionSettings):
    """Settings of FairEval (Wang et al. 2024, section 3)."""

    k: Samples = 3
    """How many judgements, evidence first, for each order."""
