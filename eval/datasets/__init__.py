"""Load datasets: the texts to be judged, and their labels."""

from .dataset import Data as Data
from .dataset import Dataset as Dataset
from .dataset import load_dataset as load_dataset
from .items import CompareItem as CompareItem
from .items import Item as Item
from .items import ScoreItem as ScoreItem
