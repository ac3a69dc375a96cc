"""Datasets: what is to be judged, and what people said of it."""

from .dataset import Data, Dataset, load_dataset
from .items import CompareItem, Item, ScoreItem

__all__ = ["CompareItem", "Data", "Dataset", "Item", "ScoreItem", "load_dataset"]
