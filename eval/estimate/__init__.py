"""What a run will take, told before it starts: ``making`` has how, and how far it can be trusted."""

from .figures import Estimate, Part
from .making import aestimate, estimate
from .table import estimate_table

__all__ = ["Estimate", "Part", "aestimate", "estimate", "estimate_table"]
