"""Sweeps: one dataset judged in every combination of settings, what combinations have in common paid once."""

from .cells import Axis, Cell, CellResult, Value
from .presets import Ablation, ablations, plan_ablation
from .sweep_plan import SweepPlan, plan_sweep
from .sweep_result import Sweep
from .sweep_runner import asweep, carry_out_sweep, sweep

__all__ = [
    "Ablation",
    "Axis",
    "Cell",
    "CellResult",
    "Sweep",
    "SweepPlan",
    "Value",
    "ablations",
    "asweep",
    "carry_out_sweep",
    "plan_ablation",
    "plan_sweep",
    "sweep",
]
