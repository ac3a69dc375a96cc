"""Judge datasets, sweep over settings, analyse runs and measure agreement with people; ``cli`` has the commands.

A name is imported when it is first asked for: agreement needs no graph, and a run no analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis import Study
    from .datasets.dataset import Dataset, load_dataset
    from .engines.ray_engine import Ray
    from .equal_budget.versus_result import Versus
    from .equal_budget.versus_runner import aversus, versus
    from .gates.gates import check
    from .metrics import measure
    from .red_team.redteam import RedTeam, aredteam, redteam
    from .results.agreement import agreement
    from .results.evaluation import Evaluation
    from .results.merge import merge
    from .results.results import Result
    from .run.runner import aevaluate, evaluate
    from .sweeps import Sweep, asweep, sweep
    from .what_if import WhatIf, awhatif, whatif

__all__ = [
    "Dataset",
    "Evaluation",
    "Ray",
    "RedTeam",
    "Result",
    "Study",
    "Sweep",
    "Versus",
    "WhatIf",
    "aevaluate",
    "agreement",
    "aredteam",
    "asweep",
    "aversus",
    "awhatif",
    "check",
    "evaluate",
    "load_dataset",
    "measure",
    "merge",
    "redteam",
    "sweep",
    "versus",
    "whatif",
]

_MODULES = {
    "Dataset": "datasets",
    "Evaluation": "results.evaluation",
    "Ray": "engines.ray_engine",
    "RedTeam": "red_team.redteam",
    "Result": "results.results",
    "Study": "analysis",
    "Sweep": "sweeps",
    "Versus": "equal_budget.versus_result",
    "WhatIf": "what_if",
    "aevaluate": "run.runner",
    "agreement": "results.agreement",
    "aredteam": "red_team.redteam",
    "asweep": "sweeps",
    "aversus": "equal_budget.versus_runner",
    "awhatif": "what_if",
    "check": "gates.gates",
    "evaluate": "run.runner",
    "load_dataset": "datasets",
    "measure": "metrics",
    "merge": "results.merge",
    "redteam": "red_team.redteam",
    "sweep": "sweeps",
    "versus": "equal_budget.versus_runner",
    "whatif": "what_if",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
