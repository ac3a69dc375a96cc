"""Datasets, batches and agreement with people; the command line is in ``cli``."""

from .agreement import agreement
from .datasets import Dataset, load_dataset
from .evaluation import Evaluation
from .results import Result
from .runner import aevaluate, evaluate

__all__ = ["Dataset", "Evaluation", "Result", "aevaluate", "agreement", "evaluate", "load_dataset"]
