"""Datasets, batches, sweeps, studies and agreement with people; the command line is in ``cli``.

What is here is loaded when it is first asked for: agreement needs no graph, and a run no study. Only ``agreement`` is
there from the beginning, since its module has the same name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .agreement import agreement

if TYPE_CHECKING:
    from .datasets import Dataset, load_dataset
    from .evaluation import Evaluation
    from .metrics import measure
    from .results import Result
    from .runner import aevaluate, evaluate
    from .study import Study
    from .sweeping import Sweep, asweep, sweep

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
    "Evaluation": "evaluation",
    "Result": "results",
    "Study": "study",
    "Sweep": "sweeping",
    "aevaluate": "runner",
    "asweep": "sweeping",
    "evaluate": "runner",
    "load_dataset": "datasets",
    "measure": "metrics",
    "sweep": "sweeping",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
