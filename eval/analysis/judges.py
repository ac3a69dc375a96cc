"""Define who is compared and on what: each protocol of each run is a judge, each aspect of a dataset a target."""

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
    """What judges can be compared on: one aspect of one dataset, or its preferences.

    Attributes:
        label: its unique name in this study: the aspect, or ``preference``; with the
            dataset before it (``summeval: coherence``) where two datasets of the study have an aspect of this name.
        data: the dataset's name.
        digest: of the dataset's content; the same aspect of another dataset is another target.
        aspect: its name; ``None`` for preferences.
        kind: ``score`` or ``compare``.
        low, high: the ends of its scale; ``None`` where the run did not record them.
        labels: who made the labels: ``people``, ``construction`` or ``none``.
        rule: how a preference is compared with them where they tie.
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
    """The usage of many judgements, in total and on average; a judgement is one item, aspect and repeat.

    Attributes:
        judgements: how many there were, failed ones included.
        total: the sum of their usages.
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
        label: its unique name in this study: the protocol; with its run's folder
            (``debate (runs/n2)``) where several runs have that protocol.
        protocol: its name; a metric's name where no model judged.
        folder: where its run is.
        signature: one line with every setting that changes a number.
        settings: of the protocol, as the manifest has them.
        models: role to model.
        note: a disclosure for the head of every table about it (the offline judge's), if any.
        data, digest, kind: the dataset's name, its content's digest, and its kind of task.
        subjects: labels of the targets that it judged, in the order in which they occur.
        wanted: judgements the run was to make.
        judged, failed, missing: judgements with a verdict, without one, and those that the run did not reach.
        usage: of all judgements, failed ones included.
        left_out: items that were not to be judged, by reason.
        is_metric: whether it is a computed metric, for which no model was asked.
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
