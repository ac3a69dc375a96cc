"""Label judges: as short as tells them apart, and the same for a judge on each dataset that it judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..results.folder import signature_parts

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
    parts = [_parts(judge.signature) for judge in judges]
    named = []
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


def _parts(signature: str) -> Mapping[str, str]:
    parts = {key: value for key, value in signature_parts(signature).items() if key not in _OF_DATA}
    return dict(sorted(parts.items(), key=lambda part: part[0] not in _FIRST))


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
