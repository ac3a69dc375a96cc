"""Judge datasets, sweep over settings, analyse runs and measure agreement with people; ``cli`` has the commands.

A name is imported when it is first asked for: agreement needs no graph, and a run no analysis.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import agreement
    from .analysis import Study
    from .datasets.dataset import Dataset, load_dataset
    from .engines.ray_engine import Ray
    from .gates import check
    from .metrics import measure
    from .run.evaluation import Evaluation
    from .run.merge import merge
    from .run.results import Result
    from .runner import aevaluate, evaluate
    from .sweeps import Sweep, asweep, sweep

__all__ = [
    "Dataset",
    "Evaluation",
    "Ray",
    "Result",
    "Study",
    "Sweep",
    "aevaluate",
    "agreement",
    "asweep",
    "check",
    "evaluate",
    "load_dataset",
    "measure",
    "merge",
    "sweep",
]

_MODULES = {
    "Dataset": "datasets",
    "Evaluation": "run.evaluation",
    "Ray": "engines.ray_engine",
    "Result": "run.results",
    "Study": "analysis",
    "Sweep": "sweeps",
    "aevaluate": "runner",
    "asweep": "sweeps",
    "check": "gates",
    "evaluate": "runner",
    "load_dataset": "datasets",
    "measure": "metrics",
    "merge": "run.merge",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps ``agreement`` the function: importing the module of that name would put the module in its place."""

    @property
    def agreement(self) -> Any:
        return import_module(".agreement", __name__).agreement

    @agreement.setter
    def agreement(self, module: ModuleType) -> None:
        """Leave it as it is: this is Python, telling the package of a module that was imported."""


sys.modules[__name__].__class__ = _Package
