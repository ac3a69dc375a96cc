"""Name measures, labels and judges in tables, and write the notes below every table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from ..statistics.metrics import DEFAULT, METRICS
from ..statistics.resampling import Statistic
from ..tables import Grid

if TYPE_CHECKING:
    from ..analysis import EvaluationTarget, Judge, LeaderboardEntry, Study

MEASURES = {name: metric.title for name, metric in METRICS.items()}
SHORT = {name: metric.short for name, metric in METRICS.items()}
# Notes that begin with one of these are recognized by it, and left out where they would be repeated.
CONFIG = "config hash: "
INTERVAL = "[ ] "
_MANY = 12
"""The largest number of config hashes that a note below a table lists."""
HUMANS = "humans"
"""The name of the row, or of the series in a chart, that holds human labels."""


def config_hash(signature: str) -> str:
    """Return the first digits of a signature's hash: equal hashes, equal configurations.

    >>> config_hash("protocol:debate|n:4")
    '6ca77e'
    """
    # A name may hold half a surrogate pair, which UTF-8 cannot encode.
    return sha256(signature.encode(errors="replace")).hexdigest()[:6]


def config_line(judge: Judge) -> str:
    """Write a judge's config hash with the configuration that it stands for."""
    return f"#{config_hash(judge.signature)} {judge.label}: {judge.signature}"


def config_notes(study: Study, labels: Iterable[str], full: bool = False) -> tuple[str, ...]:
    """Write the notes on what was run: the judges' config hashes in a line, or their whole configurations."""
    named = {judge.label: judge for judge in study.judges}
    chosen = [named[label] for label in dict.fromkeys(labels) if label in named]
    if full:
        return tuple(config_line(judge) for judge in chosen)
    if len(chosen) > _MANY:
        return (f"{CONFIG}all {len(chosen)} are listed at the end",)
    return (
        (CONFIG + ", ".join(f"{each.label} #{config_hash(each.signature)}" for each in chosen),)
        if chosen
        else ()
    )


def interval_note(study: Study) -> str:
    """Write the note on how intervals were computed."""
    how = study.resampling
    # Shares and means within groups have a formula, and are not resampled.
    resampled = f"what is resampled: {how.resamples:,} times, seed {how.seed}"
    return f"{INTERVAL}{how.confidence:.0%} confidence interval; {resampled}"


def without_idle_notes(grid: Grid) -> Grid:
    """Return a table without the note on intervals, if it has no interval; else as it is."""
    has_intervals = any(
        isinstance(cell, Statistic) and cell.low is not None for row in grid.rows for cell in row
    )
    notes = tuple(note for note in grid.notes if has_intervals or not note.startswith(INTERVAL))
    return replace(grid, notes=notes)


def labels_of(subject: EvaluationTarget) -> str:
    """Name a subject's labels, for titles such as ``agreement with human ratings``."""
    if subject.labels == "people":
        return "human preferences" if subject.kind == "compare" else "human ratings"
    return "synthetic labels" if subject.labels == "construction" else "no labels"


def reference_of(subject: EvaluationTarget) -> str:
    """Return the name of the row, column or series of a subject's labels: not all of them are by humans."""
    return HUMANS if subject.labels == "people" else "labels"


def main_measure(subject: EvaluationTarget, metric: str | None) -> str:
    """Return the metric that judges are ranked by on a subject: the one asked for, else the one of the data."""
    chosen = metric or subject.metric
    return chosen if METRICS[chosen].kind == subject.kind else DEFAULT[subject.kind]


def measure_of(standing: LeaderboardEntry | None, name: str) -> Statistic | None:
    """Return the value of a measure in a leaderboard entry; ``None`` if there is none."""
    return None if standing is None else standing.measures.get(name)


def by_data(study: Study) -> dict[tuple[str, str], list[EvaluationTarget]]:
    """Group the subjects (aspects, or the preference) by their dataset's name and digest."""
    found: dict[tuple[str, str], list[EvaluationTarget]] = {}
    for subject in study.subjects:
        found.setdefault((subject.data, subject.digest), []).append(subject)
    return found


def judges_on(study: Study, data: tuple[str, str]) -> list[Judge]:
    """Return the judges of a dataset, given its name and digest."""
    return [each for each in study.judges if (each.data, each.digest) == data]
