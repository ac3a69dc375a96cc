"""The protocols, one file each: ``from jurygraph.graphs import debate``; and wrappers that take any of them."""

from .calibrated import calibrated
from .cascade import cascade
from .refine import refine
from .repeated import repeated
from .review import review

__all__ = ["calibrated", "cascade", "refine", "repeated", "review"]
