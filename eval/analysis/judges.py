"""Define who is compared and on what: each protocol of each run is a judge, each aspect of a dataset a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ...state.tasks import TaskKind
from ..results.evaluation import UsageTotals
from ..statistics.metrics import DEFAULT
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from ..tables import Column


@dataclass(frozen=True)
class EvaluationTarget:
    """Names what judges can be compared on: one aspect of one dataset, or its preferences.

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
        metric: the metric that judges are ranked by (``leading_metric``), unless the user named another one.
        labels_differ: whether there are two labels that differ; with one value alone, or none, nothing can agree.
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
    metric: str = DEFAULT["score"]
    labels_differ: bool = True


@dataclass(frozen=True)
class Judge:
    """Describes one protocol of one run.

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
    judged: Annotated[int, Column("judged")]
    """verdicts"""
    failed: Annotated[int, Column("failed")]
    """judgements without a verdict"""
    missing: int
    usage: UsageTotals
    left_out: Mapping[str, int] = field(default_factory=dict)
    is_metric: bool = False
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
