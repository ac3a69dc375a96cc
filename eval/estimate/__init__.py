"""Estimate what a run will take before it starts; ``estimator`` says how, and how far it can be trusted."""

from .estimator import Estimate, Part, aestimate, estimate, estimate_table

__all__ = ["Estimate", "Part", "aestimate", "estimate", "estimate_table"]
