"""Sweeps: one dataset judged in every combination of settings, what combinations have in common paid once."""

from .cells import Axis, Cell, CellResult, Value
from .presets import SweepPreset, ablations, plan_ablation
from .sweep_plan import SweepPlan, plan_sweep
from .sweep_result import Sweep
from .sweep_runner import asweep, carry_out_sweep, sweep

__all__ = [
    "Axis",
    "Cell",
    "CellResult",
    "Sweep",
    "SweepPlan",
    "SweepPreset",
    "Value",
    "ablations",
    "asweep",
    "carry_out_sweep",
    "plan_ablation",
    "plan_sweep",
    "sweep",
]
