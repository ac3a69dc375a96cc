"""Sweeps: one dataset judged in every combination of settings, what combinations have in common paid once."""

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
