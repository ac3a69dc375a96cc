"""What a run will take, told before it starts: ``making`` has how, and how far it can be trusted."""

from .estimator import Estimate, Part, aestimate, estimate, estimate_table

__all__ = ["Estimate", "Part", "aestimate", "estimate", "estimate_table"]
