"""Name measures, labels and judges in tables, and write the notes below every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import yaml

from ..statistics.metrics import METRICS
from ..tables import Grid

if TYPE_CHECKING:
    from ..analysis import Study
    from ..analysis.judges import Judge, Subject
    from ..statistics.resampling import Resampling

TEXTS = yaml.safe_load(files(__package__).joinpath("table_texts.yaml").read_text(encoding="utf-8"))
"""Titles and notes of tables by name, and sentences."""
MEASURES = {name: metric.title for name, metric in METRICS.items()}
_MANY = 12
"""The largest number of config hashes that a note below a table lists."""
LABELS = {"people": "humans", "construction": "synthetic labels", "none": "no labels"}
"""The names of labels by their origin, for titles such as ``Agreement with humans``."""
HUMANS = LABELS["people"]
"""The name of the row, or of the series in a chart, that holds human labels."""


def config_hash(signature: str) -> str:
    """Return the first digits of a signature's hash: equal hashes, equal configurations.

    >>> config_hash("protocol:debate|n:4")
    '6ca77e'
    """
    # A name may hold half a surrogate pair, which UTF-8 cannot encode.
    return sha256(signature.encode(errors="replace")).hexdigest()[:6]


def config_line(study: Study, judge: Judge) -> str:
    """Write a judge's config hash with the configuration that it stands for, and the metric that leads on its data."""
    return f"#{config_hash(judge.signature)} {judge.label}: {judge.signature}{_ranked_by(study, [judge])}"


def _ranked_by(study: Study, judges: Sequence[Judge]) -> str:
    """Name the metrics that judges are ranked by, after what was run; their hashes are of that alone."""
    leading = {subject.label: MEASURES[subject.metric] for subject in study.subjects}
    named = dict.fromkeys(leading[label] for judge in judges for label in judge.subjects if label in leading)
    return f"; ranked by {', '.join(named)}" if named else ""


def interval_note(how: Resampling) -> str:
    """Write the note on intervals that were made in this way."""
    # Shares and means within groups have a formula, and are not resampled.
    resampled = f"what is resampled: {how.resamples:,} times, seed {how.seed}"
    return f"[ ] {how.confidence:.0%} confidence interval; {resampled}"


def with_notes(study: Study, grid: Grid, full: bool = False) -> Grid:
    """Add to a table of a study the notes on intervals, if any of its values has one, and on what was run.

    Args:
        study: whose table it is.
        grid: the table; any text in it may be a judge's name.
        full: whether to write the whole configuration of each judge in it, for tables that are used apart from the
            report; else all config hashes in a line.
    """
    texts = {cell for row in grid.rows for cell in row if isinstance(cell, str)}
    texts |= {column.name for column in grid.columns} | set(grid.judges)
    judges = [judge for judge in study.judges if judge.label in texts]
    ranked = _ranked_by(study, judges)
    on_intervals = [interval_note(study.resampling)] if grid.has_intervals else []
    if full:
        configs = [config_line(study, judge) for judge in judges]
    elif len(judges) > _MANY:
        configs = [f"config hash: all {len(judges)} are listed at the end{ranked}"]
    else:
        hashes = ", ".join(f"{judge.label} #{config_hash(judge.signature)}" for judge in judges)
        configs = [f"config hash: {hashes}{ranked}"] if judges else []
    return replace(grid, notes=(*on_intervals, *grid.notes, *configs))


def listed(reasons: Mapping[str, int]) -> str:
    """Write reasons with their counts.

    >>> listed({"failed": 1200, "no label": 2})
    '1,200 failed, 2 no label'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)


def left_out_note(reasons: Mapping[str, int], whose: str = "") -> tuple[str, ...]:
    """Write how many rows were left out and why, after whose they are; nothing if none were.

    >>> left_out_note({"failed": 1200}, "debate")
    ('debate: left out 1,200 failed',)
    """
    note = f"left out {listed(reasons)}"
    return (f"{whose}: {note}" if whose else note,) if any(reasons.values()) else ()


def labels_of(subject: Subject) -> str:
    """Name a subject's labels, for titles such as ``agreement with human ratings``."""
    if subject.labels != "people":
        return LABELS.get(subject.labels, LABELS["none"])
    return "human preferences" if subject.kind == "compare" else "human ratings"


def reference_of(subject: Subject) -> str:
    """Return the name of the row, column or series of a subject's labels: not all of them are by humans."""
    return HUMANS if subject.labels == "people" else "labels"
