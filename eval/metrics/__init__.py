"""Compute reference metrics as rows beside the judges: ROUGE-L, BLEU-4, one's own, and others by their packages.

``measure`` computes them over a dataset and gives what a run gives; ``docs/metrics.md`` says how.
"""

from .measuring import METRICS as METRICS
from .measuring import find_metric as find_metric
from .measuring import measure as measure
from .reference_metrics import Metric as Metric
