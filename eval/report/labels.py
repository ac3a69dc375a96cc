"""How measures and contenders are called in tables, and what stands under every one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from ..analysis import EvaluationTarget, Judge, LeaderboardEntry, Study
from ..statistics.resampling import Statistic
from ..tables import Grid

MEASURES = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "accuracy": "accuracy",
    "kappa": "Cohen's kappa",
}
SHORT = {"pearson": "r", "spearman": "rho", "kendall": "tau", "accuracy": "accuracy", "kappa": "kappa"}
METRICS = ("pearson", "spearman", "kendall")
SIGNED = "signed "
INTERVAL = "[ ] "
_MANY = 12
"""Marks that a line under a table has room for."""
LABELS = {"people": "people", "construction": "labels by construction", "none": "no labels"}


def mark(signature: str) -> str:
    """A short name of a signature, to be found again in the list of them: equal marks, equal signatures.

    >>> mark("protocol:debate|n:4")
    '6ca77e'
    """
    return sha256(signature.encode(errors="replace")).hexdigest()[:6]


def signed(judge: Judge) -> str:
    """A contender's signature with its mark."""
    return f"#{mark(judge.signature)} {judge.label}: {judge.signature}"


def signatures(study: Study, labels: Iterable[str], full: bool = False) -> tuple[str, ...]:
    """The note under a table that says what was run: marks in a line, or each signature whole."""
    named = {judge.label: judge for judge in study.judges}
    chosen = [named[label] for label in dict.fromkeys(labels) if label in named]
    if full:
        return tuple(signed(judge) for judge in chosen)
    if len(chosen) > _MANY:
        return (f"{SIGNED}as listed at the end, all {len(chosen)}",)
    return (SIGNED + ", ".join(f"{each.label} #{mark(each.signature)}" for each in chosen),) if chosen else ()


def interval_note(study: Study) -> str:
    """How intervals were made."""
    how = study.resampling
    return (
        f"{INTERVAL}{how.confidence:.0%} interval from {how.resamples:,} bootstrap resamples, seed {how.seed}"
    )


def without_idle_notes(grid: Grid) -> Grid:
    """The same table; how intervals were made is left out where it has none."""
    has_intervals = any(
        isinstance(cell, Statistic) and cell.low is not None for row in grid.rows for cell in row
    )
    notes = tuple(note for note in grid.notes if has_intervals or not note.startswith(INTERVAL))
    return replace(grid, notes=notes)


def main_measure(subject: EvaluationTarget, metric: str) -> str:
    """The measure that a subject's contenders are ordered by."""
    return "accuracy" if subject.kind == "compare" else metric


def measure_of(standing: LeaderboardEntry | None, name: str) -> Statistic | None:
    """A standing's figure, if there is one."""
    return None if standing is None else standing.measures.get(name)


def by_data(study: Study) -> dict[tuple[str, str], list[EvaluationTarget]]:
    """The subjects of each dataset (by name and digest), in order."""
    found: dict[tuple[str, str], list[EvaluationTarget]] = {}
    for subject in study.subjects:
        found.setdefault((subject.data, subject.digest), []).append(subject)
    return found


def judges_on(study: Study, data: tuple[str, str]) -> list[Judge]:
    """Who judged a dataset."""
    return [each for each in study.judges if (each.data, each.digest) == data]
