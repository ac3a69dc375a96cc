"""Who takes part: each protocol of each run is a contender, and what was judged is a subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...state.tasks import TaskKind
from ...state.usage import NO_USAGE, Usage, total_usage
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy


@dataclass(frozen=True)
class EvaluationTarget:
    """What contenders judge, and can be compared on: one aspect of one dataset, or its preferences.

    Attributes:
        label: how it is named in this study, each subject its own way: the aspect, or ``preference``; with the
            dataset before it (``summeval: coherence``) where two datasets of the study have an aspect of this name.
        data: the dataset's name.
        digest: of the dataset's content; the same words of another dataset are another subject.
        aspect: its name; ``None`` for preferences.
        kind: ``score`` or ``compare``.
        low, high: the ends of its scale; ``None`` where the run did not write them down.
        labels: who made the labels: ``people``, ``construction`` or ``none``.
        rule: how a preference is measured against them.
    """

    label: str
    data: str
    digest: str
    aspect: str | None
    kind: TaskKind
    low: float | None = None
    high: float | None = None
    labels: str = "people"
    rule: TiePolicy = DEFAULT_TIE_POLICY


@dataclass(frozen=True)
class UsageTotals:
    """What judging took: totals, and means over the judgements (one judgement: an item, an aspect, a repeat).

    Attributes:
        judgements: how many were asked for and came to an end, failed ones included.
        total: what all of them took.
    """

    judgements: int = 0
    total: Usage = NO_USAGE

    @classmethod
    def of(cls, usages: Iterable[Usage]) -> UsageTotals:
        """Add up the usages of single judgements."""
        each = list(usages)
        return cls(len(each), total_usage(each))

    @property
    def calls_each(self) -> float | None:
        """Model calls a judgement."""
        return self._each(self.total.calls)

    @property
    def tokens_each(self) -> float | None:
        """Tokens a judgement."""
        return self._each(self.total.tokens)

    @property
    def cost_each(self) -> float | None:
        """US dollars a judgement."""
        return self._each(self.total.cost_usd)

    @property
    def seconds_each(self) -> float | None:
        """Seconds a judgement."""
        return self._each(self.total.seconds)

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(self.judgements + other.judgements, self.total + other.total)

    def _each(self, total: float | None) -> float | None:
        return None if total is None or not self.judgements else total / self.judgements


@dataclass(frozen=True)
class Judge:
    """One protocol of one run.

    Attributes:
        label: how it is named in this study, each contender its own way: the protocol; with its run's folder
            (``debate (runs/n2)``) where several runs have that protocol.
        protocol: its name; a metric's name where no model judged.
        folder: where its run is.
        signature: one line with every setting that changes a number.
        settings: of the protocol, as the manifest has them.
        models: role to model.
        note: what must stand at the head of every table about it (the offline judge's disclosure), if anything.
        data, digest, kind: the dataset's name, its content's digest, and its kind of task.
        subjects: labels of what it judged, in the order in which they came up.
        wanted: judgements the run was to make.
        judged, failed, missing: how many have a verdict; have none; are not there at all (the run did not get there).
        bill: what all of it took, failed items included.
        left_out: items that were not to be judged, by reason.
        is_metric: whether no model was ever asked: a computed metric.
    """

    label: str
    protocol: str
    folder: Path
    signature: str
    settings: Mapping[str, Any]
    models: Mapping[str, str]
    note: str | None
    data: str
    digest: str
    kind: TaskKind
    subjects: tuple[str, ...]
    wanted: int
    judged: int
    failed: int
    missing: int
    usage: UsageTotals
    left_out: Mapping[str, int] = field(default_factory=dict)
    is_metric: bool = False
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
