"""Reference metrics as rows next to the judges: ROUGE-L, BLEU-4, custom and third-party ones.

``measure`` computes them over a dataset and returns the same as a run. ``docs/metrics.md``
describes them.
"""

from .measuring import METRICS as METRICS
from .measuring import find_metric as find_metric
from .measuring import measure as measure
from .reference_metrics import Metric as Metric
