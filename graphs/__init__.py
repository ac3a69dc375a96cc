"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them."""

from .calibration import calibrated
from .cascading import cascade
from .repetition import repeated

__all__ = ["calibrated", "cascade", "repeated"]
