"""Judge datasets, sweep over settings, analyse runs and measure agreement with people; ``cli`` has the commands.

A name is imported when it is first asked for: agreement needs no graph, and a run no analysis. Only ``agreement`` is
imported at once, since its module has the same name: a later import of the module would replace the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .agreement import agreement

if TYPE_CHECKING:
    from .analysis import Study
    from .datasets.dataset import Dataset, load_dataset
    from .metrics import measure
    from .run.evaluation import Evaluation
    from .run.results import Result
    from .runner import aevaluate, evaluate
    from .sweeps import Sweep, asweep, sweep

__all__ = [
    "Dataset",
    "Evaluation",
    "Result",
    "Study",
    "Sweep",
    "aevaluate",
    "agreement",
    "asweep",
    "evaluate",
    "load_dataset",
    "measure",
    "sweep",
]

_MODULES = {
    "Dataset": "datasets",
    "Evaluation": "run.evaluation",
    "Result": "run.results",
    "Study": "analysis",
    "Sweep": "sweeps",
    "aevaluate": "runner",
    "asweep": "sweeps",
    "evaluate": "runner",
    "load_dataset": "datasets",
    "measure": "metrics",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
