"""Judge datasets, sweep over settings, analyse runs and measure agreement with people; ``cli`` has the commands.

A name is imported when it is first asked for: agreement needs no graph, and a run no analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .analysis import Study as Study
    from .datasets.dataset import Dataset as Dataset
    from .datasets.dataset import load_dataset as load_dataset
    from .engines.ray_engine import Ray as Ray
    from .experiments import Sweep as Sweep
    from .experiments import asweep as asweep
    from .experiments import sweep as sweep
    from .experiments.redteam import RedTeam as RedTeam
    from .experiments.redteam import aredteam as aredteam
    from .experiments.redteam import redteam as redteam
    from .experiments.versus_runner import Versus as Versus
    from .experiments.versus_runner import aversus as aversus
    from .experiments.versus_runner import versus as versus
    from .experiments.whatif import WhatIf as WhatIf
    from .experiments.whatif import awhatif as awhatif
    from .experiments.whatif import whatif as whatif
    from .gates.gates import check as check
    from .metrics import measure as measure
    from .results.agreement import agreement as agreement
    from .results.evaluation import Evaluation as Evaluation
    from .results.merge import merge as merge
    from .results.results import Result as Result
    from .run.runner import aevaluate as aevaluate
    from .run.runner import evaluate as evaluate

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
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
