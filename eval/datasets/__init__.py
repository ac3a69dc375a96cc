"""Load datasets: the texts to be judged, and their labels."""

from .dataset import Data, Dataset, load_dataset
from .items import CompareItem, Item, ScoreItem

__all__ = ["CompareItem", "Data", "Dataset", "Item", "ScoreItem", "load_dataset"]
