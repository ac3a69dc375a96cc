"""Datasets, batches, sweeps, studies and agreement with people; the command line is in ``cli``."""

from .agreement import agreement
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
