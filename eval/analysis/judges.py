"""Define judges and subjects: a judge is a protocol of a run, a subject an aspect of a dataset.

Judge labels are as short as possible while unique, and the same on each dataset.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
    """A subject on which judges are compared: one aspect of one dataset, or its preferences.

    Attributes:
        label: its unique name in this study: the aspect, or ``preference``. If two datasets of the
            study have an aspect with this name, the dataset comes first (``summeval: coherence``).
        data: the dataset's name; if datasets have the same name, with a distinguishing addition.
        digest: the digest of the dataset's content; the same aspect of another dataset is another
            subject.
        aspect: its name; ``None`` for preferences.
        kind: ``score`` or ``compare``.
        low, high: the ends of its scale; ``None`` if the run did not record them.
        labels: the origin of the labels: ``people``, ``construction`` or ``none``.
        rule: how a preference is compared with labels that tie.
        metric: the metric that ranks judges (``leading_metric``, unless the user names another
            one).
        labels_differ: whether there are two different labels. With a single value, or none, nothing
            can agree.
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
    """One protocol of one run.

    Attributes:
        label: its unique name in this study: the protocol. If several runs have that protocol, the
            run's folder follows (``debate (runs/n2)``).
        protocol: its name; a metric's name if no model judged.
        folder: the folder of its run.
        signature: one line with every setting that affects a number.
        models: role to model; empty for a computed metric, which calls no model.
        note: a disclosure for every table with this judge (the offline judge's), if any.
        data, digest: the dataset's name, and the digest of its content.
        subjects: labels of the subjects that it judged, in the order in which they occur.
        wanted: the number of judgements that the run was to make.
        judged, failed, missing: the numbers of judgements with a verdict, without a verdict, and
            not made yet.
        usage: the usage of all judgements, including failed ones.
        left_out: the number of items excluded from judging, by reason.
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
"""The parts of a signature that do not describe the judge.

The label begins with the protocol anyway.
"""
_FIRST = ("models", "replies")
"""The most informative parts, which are tried first."""


class Labelled(NamedTuple):
    """The properties that distinguish a judge.

    Without a folder and a dataset, they describe a method in any run.
    """

    protocol: str
    signature: str
    folder: Path = Path()
    digest: str = ""


def judge_labels(judges: Sequence[Labelled]) -> list[str]:
    """Label each judge by its protocol, and with distinguishing models and settings if needed.

    Equal models and settings on two datasets are one judge with one label. Two such runs on one
    dataset are labelled with the name of the run's folder, or a number, but never with its path.
    """
    parts = []
    named = []
    for judge in judges:
        of_judge = [
            part for part in signature_parts(judge.signature).items() if part[0] not in _OF_DATA
        ]
        parts.append(dict(sorted(of_judge, key=lambda part: part[0] not in _FIRST)))
    for judge, own in zip(judges, parts, strict=True):
        rivals = [
            other for of, other in zip(judges, parts, strict=True) if of.protocol == judge.protocol
        ]
        values = {key: {other[key] for other in rivals if key in other} for key in own}
        words = ", ".join(
            _word(key, own[key], values[key]) for key in _telling(rivals) if key in own
        )
        named.append((judge.protocol, words))
    runs = Counter(zip((judge.digest for judge in judges), named, strict=True))
    labels = []
    taken = Counter[tuple[str, str]]()
    for judge, (protocol, words) in zip(judges, named, strict=True):
        run = judge.folder.name if runs[judge.digest, (protocol, words)] > 1 else ""
        about = ", ".join(filter(None, (words, run)))
        label = f"{protocol} ({about})" if about else protocol
        taken[judge.digest, label] += 1
        # Two folders with one name remain. Their paths are private.
        again = taken[judge.digest, label]
        labels.append(f"{label} #{again}" if again > 1 else label)
    return labels


def _telling(rivals: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the parts that distinguish judges of one protocol, without redundant ones."""
    telling: list[str] = []
    for key in dict.fromkeys(key for parts in rivals for key in parts):
        with_key = {tuple(parts.get(name) for name in (*telling, key)) for parts in rivals}
        if len(with_key) > len({tuple(parts.get(name) for name in telling) for parts in rivals}):
            telling.append(key)
    return telling


def _word(key: str, value: str, values: Collection[str] = ()) -> str:
    """Write a part in a label: a model without its provider, a setting with its name.

    A model's parameters are left out if the rivals' models, which are among the ``values``, differ
    without them.

    >>> _word("models", "*=openai:gpt-4o-mini?temperature=0.0"), _word("n", "2")
    ('gpt-4o-mini', 'n=2')
    """
    if key != "models":
        return f"{key}={value}"
    bare = {re.sub(r"\?[^,]*", "", other) for other in (value, *values)}
    if len(bare) == len({value, *values}):
        value = re.sub(r"\?[^,]*", "", value)
    of_all_roles = value.startswith("*=") and "," not in value
    return value.removeprefix("*=").split(":", 1)[-1] if of_all_roles else value
