"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them."""

from .calibrated import calibrated
from .cascade import cascade
from .repeated import repeated

__all__ = ["calibrated", "cascade", "repeated"]
