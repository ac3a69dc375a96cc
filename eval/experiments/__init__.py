"""Experiments: what several runs, or one run judged again, say together.

Sweeps over combinations of settings (what they have in common is paid once), a protocol beside what the same budget
buys of a single judge (``versus``), debates continued without one of their turns (``whatif``), hostile texts
(``redteam``), and the papers' tables run again (``reproduce``).
"""

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
