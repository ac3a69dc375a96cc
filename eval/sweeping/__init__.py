"""Sweeps: one dataset judged in every combination of settings, what combinations have in common paid once."""

from .ablations import ABLATIONS, Ablation, plan_ablation
from .axes import Axis, Cell, Value
from .planning import SweepPlan, plan_sweep
from .result import CellResult, Sweep
from .running import asweep, carry_out_sweep, sweep

__all__ = [
    "ABLATIONS",
    "Ablation",
    "Axis",
    "Cell",
    "CellResult",
    "Sweep",
    "SweepPlan",
    "Value",
    "asweep",
    "carry_out_sweep",
    "plan_ablation",
    "plan_sweep",
    "sweep",
]
