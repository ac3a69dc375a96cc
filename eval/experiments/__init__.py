"""Experiments with several runs, or with one run that is judged again.

- ``sweep``: combinations of settings; calls that they share are paid once.
- ``versus``: a protocol against other uses of the same budget.
- ``whatif``: debates continued without one of their turns.
- ``redteam``: hostile texts.
- ``bias``: changes that should not affect a verdict.
- ``reproduce``: the papers' tables run again.

A name is imported when it is first asked for: a report states a finding without a graph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cells import Axis
    from .presets import SweepPreset, plan_ablation
    from .sweep_plan import asweep, carry_out_sweep, plan_sweep, sweep
    from .sweep_result import Sweep

__all__ = [
    "Axis",
    "Sweep",
    "SweepPreset",
    "asweep",
    "carry_out_sweep",
    "plan_ablation",
    "plan_sweep",
    "sweep",
]

_MODULES = {
    "Axis": "cells",
    "Sweep": "sweep_result",
    "SweepPreset": "presets",
    "asweep": "sweep_plan",
    "carry_out_sweep": "sweep_plan",
    "plan_ablation": "presets",
    "plan_sweep": "sweep_plan",
    "sweep": "sweep_plan",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
