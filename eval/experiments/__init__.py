"""Experiments: what several runs, or one run judged again, say together.

Sweeps over combinations of settings (what they have in common is paid once), a protocol beside what the same budget
buys of a single judge (``versus``), debates continued without one of their turns (``whatif``), hostile texts
(``redteam``), and the papers' tables run again (``reproduce``).
"""

from .cells import Axis as Axis
from .presets import SweepPreset as SweepPreset
from .presets import plan_ablation as plan_ablation
from .sweep_plan import asweep as asweep
from .sweep_plan import carry_out_sweep as carry_out_sweep
from .sweep_plan import plan_sweep as plan_sweep
from .sweep_plan import sweep as sweep
from .sweep_result import Sweep as Sweep
