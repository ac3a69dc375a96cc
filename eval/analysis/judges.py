"""Define who is compared and on what: each protocol of each run is a judge, each aspect of a dataset a subject.

Judges are labelled as short as tells them apart, and the same on each dataset that they judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from ...state.tasks import TaskKind
from ..results.evaluation import UsageTotals
from ..results.folder import signature_parts
from ..statistics.metrics import DEFAULT
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy
from ..tables import Column


@dataclass(frozen=True)
class Subject:
    """Names what judges can be compared on: one aspect of one dataset, or its preferences.

    Attributes:
        label: its unique name in this study: the aspect, or ``preference``; with the
            dataset before it (``summeval: coherence``) where two datasets of the study have an aspect of this name.
        data: the dataset's name.
        digest: of the dataset's content; the same aspect of another dataset is another subject.
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
        models: role to model; empty of a computed metric, for which no model was asked.
        note: a disclosure for the head of every table about it (the offline judge's), if any.
        data, digest: the dataset's name, and its content's digest.
        subjects: labels of the subjects that it judged, in the order in which they occur.
        wanted: judgements the run was to make.
        judged, failed, missing: judgements with a verdict, without one, and those that the run did not reach.
        usage: of all judgements, failed ones included.
        left_out: items that were not to be judged, by reason.
    """

    label: str
    protocol: str
    folder: Path
    signature: str
    models: Mapping[str, str]
    note: str | None
    data: str
    digest: str
    subjects: tuple[str, ...]
    wanted: int
    judged: Annotated[int, Column("judged")]
    """verdicts"""
    failed: Annotated[int, Column("failed")]
    """judgements without a verdict"""
    missing: int
    usage: UsageTotals
    left_out: Mapping[str, int] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


_OF_DATA = ("protocol", "data", "rule", "columns", "sample", "aspects")
"""The parts of a signature that say nothing of the judge: its protocol begins the label anyway."""
_FIRST = ("models", "replies")
"""The parts that are tried first, since they say most."""


class Labelled(NamedTuple):
    """Holds what a judge is told by; without a folder and a dataset it stands for a method, whatever run it is of."""

    protocol: str
    signature: str
    folder: Path = Path()
    digest: str = ""


def judge_labels(judges: Sequence[Labelled]) -> list[str]:
    """Label each judge by its protocol; where that is not enough, with the model and the settings that tell it apart.

    Equal models and settings on two datasets are one judge, and have one label. Two runs of them on one dataset have
    the name of the run's folder, or a number, never its path.
    """
    parts, named = [], []
    for judge in judges:
        of_judge = [part for part in signature_parts(judge.signature).items() if part[0] not in _OF_DATA]
        parts.append(dict(sorted(of_judge, key=lambda part: part[0] not in _FIRST)))
    for judge, own in zip(judges, parts, strict=True):
        rivals = [other for of, other in zip(judges, parts, strict=True) if of.protocol == judge.protocol]
        words = ", ".join(_word(key, own[key]) for key in _telling(rivals) if key in own)
        named.append((judge.protocol, words))
    runs = Counter(zip((judge.digest for judge in judges), named, strict=True))
    labels, taken = [], Counter[tuple[str, str]]()
    for judge, (protocol, words) in zip(judges, named, strict=True):
        run = judge.folder.name if runs[judge.digest, (protocol, words)] > 1 else ""
        about = ", ".join(filter(None, (words, run)))
        label = f"{protocol} ({about})" if about else protocol
        taken[judge.digest, label] += 1
        # Two folders of one name are left: where they lie is nobody's business.
        again = taken[judge.digest, label]
        labels.append(f"{label} #{again}" if again > 1 else label)
    return labels


def _telling(rivals: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the parts that tell judges of one protocol apart; none that tells no more than those before it."""
    telling: list[str] = []
    for key in dict.fromkeys(key for parts in rivals for key in parts):
        with_key = {tuple(parts.get(name) for name in (*telling, key)) for parts in rivals}
        if len(with_key) > len({tuple(parts.get(name) for name in telling) for parts in rivals}):
            telling.append(key)
    return telling


def _word(key: str, value: str) -> str:
    """Write a part in a label: a model without its provider, a setting with its name.

    >>> _word("models", "*=openai:gpt-4o-mini"), _word("n", "2")
    ('gpt-4o-mini', 'n=2')
    """
    if key != "models":
        return f"{key}={value}"
    of_all_roles = value.startswith("*=") and "," not in value
    return value.removeprefix("*=").split(":", 1)[-1] if of_all_roles else value
