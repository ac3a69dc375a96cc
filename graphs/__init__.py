"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them."""

from .calibration import calibrated

__all__ = ["calibrated"]
