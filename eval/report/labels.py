"""Name metrics, labels and judges in tables, and write the notes below every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from ...state.verdict_warnings import DISCLOSURE, EARLIER_DISCLOSURE
from ..statistics.metrics import METRICS
from ..tables import Grid

if TYPE_CHECKING:
    from ..analysis import Study
    from ..analysis.judges import Judge, Subject
    from ..statistics.resampling import Resampling

MEASURES = {name: metric.title for name, metric in METRICS.items()}
_MANY = 12
"""The largest number of config hashes that a note below a table lists."""
LABELS = {"people": "humans", "construction": "synthetic labels", "none": "no labels"}
"""The names of labels by their origin, for titles such as ``Agreement with humans``."""
DEMO_MODE = f"{DISCLOSURE} Pass --model to use one."
"""The disclosure of the offline judge on a screen or a page."""
HUMANS = LABELS["people"]
"""The name of the row or chart series with human labels."""


def config_hash(signature: str) -> str:
    """Return the first digits of a signature's hash. Equal hashes mean equal configurations.

    >>> config_hash("protocol:debate|n:4")
    '6ca77e'
    """
    # A name may contain a lone surrogate, which UTF-8 cannot encode.
    return sha256(signature.encode(errors="replace")).hexdigest()[:6]


def shown_note(note: str) -> str:
    """Return a run's note for a screen, in current words if an earlier version wrote it.

    >>> shown_note(EARLIER_DISCLOSURE) == shown_note(DISCLOSURE) == DEMO_MODE
    True
    """
    return note.replace(EARLIER_DISCLOSURE, DISCLOSURE).replace(DISCLOSURE, DEMO_MODE)


def config_line(study: Study, judge: Judge) -> str:
    """Write a judge's config hash with its configuration and the leading metric of its data."""
    which = f"#{config_hash(judge.signature)} {judge.label}: {judge.signature}"
    return f"{which}{_ranked_by(study, [judge])}{_worded(judge)}"


def prompts_of(judge: Judge) -> str:
    """Name the sets of prompts that replaced bundled ones in a run; empty if there were none."""
    sets = (judge.manifest.get("own_prompts") or {}).get(judge.protocol) or ()
    return ", ".join(
        f"{own['folder']} ({len(own['templates'])} templates, digest {own['digest']})"
        if len(own["templates"]) > 1
        else f"{own['folder']} ({own['templates'][0]}, digest {own['digest']})"
        for own in sets
    )


def _worded(judge: Judge) -> str:
    return f"; prompts from {named}" if (named := prompts_of(judge)) else ""


def _ranked_by(study: Study, judges: Sequence[Judge]) -> str:
    """Name the metrics that rank the judges.

    Config hashes do not include them.
    """
    leading = {subject.label: MEASURES[subject.metric] for subject in study.subjects}
    named = dict.fromkeys(
        leading[label] for judge in judges for label in judge.subjects if label in leading
    )
    return f"; ranked by {', '.join(named)}" if named else ""


def interval_note(how: Resampling) -> str:
    """Write the note on how these intervals were computed."""
    bootstrap = (
        f"others: bootstrap over groups or items ({how.resamples:,} resamples, seed {how.seed})"
    )
    formulas = "shares: Wilson; means within groups: Student over groups"
    return f"Brackets: {100 * how.confidence:.4g} % confidence interval; {formulas}; {bootstrap}"


def with_notes(study: Study, grid: Grid, full: bool = False, most: int = _MANY) -> Grid:
    """Add the notes on intervals and on the judges' configurations to a table of a study.

    The note on intervals is added only if a value has an interval.

    Args:
        study: the study of the table.
        grid: the table; any text in it may be a judge's name.
        full: whether to write the whole configuration of each judge, for tables that are used
            without the report. Otherwise a line lists all config hashes.
        most: the maximum number of judges whose config hashes are listed. With more, they are at
            the end of a report.
    """
    texts = {cell for row in grid.rows for cell in row if isinstance(cell, str)}
    texts |= {column.name for column in grid.columns} | set(grid.judges)
    judges = [judge for judge in study.judges if judge.label in texts]
    ranked = _ranked_by(study, judges)
    on_intervals = [interval_note(study.resampling)] if grid.has_intervals else []
    if full:
        configs = [config_line(study, judge) for judge in judges]
    elif len(judges) > most:
        configs = [f"config hash: all {len(judges)} are listed at the end{ranked}"]
    else:
        hashes = ", ".join(f"{judge.label} #{config_hash(judge.signature)}" for judge in judges)
        configs = [f"config hash: {hashes}{ranked}"] if judges else []
    listed_here = judges if len(judges) <= most else []
    hashes_only = tuple(dict.fromkeys(config_hash(judge.signature) for judge in listed_here))
    return replace(grid, notes=(*on_intervals, *grid.notes, *configs), configs=hashes_only)


def listed(reasons: Mapping[str, int]) -> str:
    """Write reasons with their counts.

    >>> listed({"failed": 1200, "no label": 2})
    '1,200 failed, 2 no label'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)


def left_out_note(reasons: Mapping[str, int], whose: str = "") -> tuple[str, ...]:
    """Write how many rows were left out and why, after ``whose``; nothing if none were.

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
    """Return the name of the row, column or series of a subject's labels.

    Not all labels are by humans.
    """
    return HUMANS if subject.labels == "people" else "labels"
