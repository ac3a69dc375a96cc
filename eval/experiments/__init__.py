"""Experiments with several runs, or with one run that is judged again.

- ``sweep``: combinations of settings; calls that they share are paid once.
- ``versus``: a protocol against other uses of the same budget.
- ``whatif``: debates continued without one of their turns.
- ``redteam``: hostile texts.
- ``bias``: changes that should not affect a verdict.
- ``reproduce``: the papers' tables run again.
"""

from .cells import Axis as Axis
from .presets import SweepPreset as SweepPreset
from .presets import plan_ablation as plan_ablation
from .sweep_plan import asweep as asweep
from .sweep_plan import carry_out_sweep as carry_out_sweep
from .sweep_plan import plan_sweep as plan_sweep
from .sweep_plan import sweep as sweep
from .sweep_result import Sweep as Sweep
