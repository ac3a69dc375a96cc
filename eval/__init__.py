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
    from .experiments import Sweep, asweep, sweep
    from .experiments.redteam import RedTeam, aredteam, redteam
    from .experiments.versus_runner import Versus, aversus, versus
    from .experiments.whatif import WhatIf, awhatif, whatif
    from .gates.gates import check
    from .metrics import measure
    from .results.agreement import agreement
    from .results.evaluation import Evaluation
    from .results.merge import merge
    from .results.results import Result
    from .run.runner import aevaluate, evaluate

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

_NAMES = {
    "analysis": "Study",
    "datasets": "Dataset load_dataset",
    "engines.ray_engine": "Ray",
    "experiments.versus_runner": "Versus aversus versus",
    "gates.gates": "check",
    "metrics": "measure",
    "experiments.redteam": "RedTeam aredteam redteam",
    "results.agreement": "agreement",
    "results.evaluation": "Evaluation",
    "results.merge": "merge",
    "results.results": "Result",
    "run.runner": "aevaluate evaluate",
    "experiments": "Sweep asweep sweep",
    "experiments.whatif": "WhatIf awhatif whatif",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
