"""Define the axes of a sweep, its cells, and the result of a cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ...state.errors import UsageError
from ..datasets.files import repeated
from ..results.evaluation import Evaluation, UsageTotals

PROTOCOL = "protocol"
MODEL = "model"
PROMPTS = "prompts"
# If shortening makes names equal, the folders are numbered.
NAME_LENGTH = 100

MOST_CELLS = 1000
"""The limit of cells, because each has a folder and a row in every table."""
# Characters that become ``-`` in folder names: the ``:`` and ``?`` of ``openai:gpt-4o?seed=1``,
# slashes and spaces.
_NOT_IN_NAMES = re.compile(r"[^\w.+=-]+")


@dataclass(frozen=True)
class Axis:
    """A setting that varies over a sweep, with its values.

    Attributes:
        name: its name.
        values: the settings for each label in tables, charts and folder names. A setting is the
            name of an option (``inner.n`` for a nested one), ``protocol``, ``model`` (of all
            roles) or ``model.ROLE``.

    >>> axis = Axis.of("n", [1, 2, 3])
    >>> axis.numbers, axis.values["1"]
    ((1.0, 2.0, 3.0), {'n': 1})
    >>> judges = Axis.of("judge", {"one": {"protocol": "single"}, "three": {"protocol": "ensemble", "referees": 3}})
    >>> judges.labels, judges.numbers
    (('one', 'three'), None)
    """

    name: str
    values: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, name: str, values: Iterable[Any] | Mapping[str, Mapping[str, Any]]) -> Axis:
        """Make an axis from a setting's values, or from labels with the settings of each.

        Raises:
            UsageError: no values, or a repeated value.
        """
        if isinstance(values, Mapping):
            pairs = [(label, dict(change)) for label, change in values.items()]
        else:
            pairs = [(_label(name, value), {name: value}) for value in values]
        if not pairs:
            raise UsageError(f"the axis {name} has no values")
        if (label := repeated([label for label, _ in pairs])) is not None:
            raise UsageError(f"the axis {name} has the value {label} twice")
        return cls(name, dict(pairs))

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Parse an axis from a command line: ``KEY=V1,V2,...``, or ``KEY=[...]`` with a JSON list.

        Raises:
            UsageError: invalid syntax.

        >>> Axis.parse("n=1,2").labels
        ('1', '2')
        >>> Axis.parse('roles=["coding", ["critic", "scientist"]]').labels
        ('coding', 'critic+scientist')
        """
        name, equals, listed = text.partition("=")
        name = name.strip()
        if not (name and equals):
            raise UsageError(f"--axis {text!r} is not of the form KEY=V1,V2,...")
        values: list[Any] = [value.strip() for value in listed.split(",")]
        if listed.lstrip().startswith("["):
            try:
                values = json.loads(listed)
            except ValueError as error:
                raise UsageError(f"--axis {name}={listed}: not a JSON list: {error}") from None
        # In ``prompts``, an empty value means the package's own prompts: ``prompts=,my_prompts``.
        elif name != PROMPTS and "" in values:
            raise UsageError(f"--axis {text!r}: a value is empty")
        return cls.of(name, values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its values."""
        return tuple(self.values)

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """Its values as numbers; ``None`` unless all are numbers."""
        try:
            return tuple(float(label) for label in self.labels)
        except ValueError:
            return None


@dataclass(frozen=True)
class Cell:
    """One combination of values.

    Attributes:
        labels: its label on each axis.
        change: its settings, which override those of all cells.
    """

    labels: Mapping[str, str]
    change: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The labels of the cell in one line.

        >>> Cell({"n": "2", "persona": "plain"}).title
        'n=2, persona=plain'
        """
        return ", ".join(f"{axis}={label}" for axis, label in self.labels.items())

    @property
    def folder(self) -> str:
        """The labels as a folder name that is valid on all systems.

        >>> Cell({"model": "openai:gpt-4o?seed=1", "n": "2"}).folder
        'model=openai-gpt-4o-seed=1,n=2'
        """
        parts = (_NOT_IN_NAMES.sub("-", f"{axis}={label}") for axis, label in self.labels.items())
        return ",".join(parts)[:NAME_LENGTH]


Axes = Sequence[Axis] | Mapping[str, Any]
"""Axes, or a mapping from names to values, or from names to labels with their settings."""


def cells(axes: Sequence[Axis]) -> Iterator[Cell]:
    """Yield every combination of the axes' values; the last axis varies fastest.

    Raises:
        UsageError: no axis, a repeated axis, two axes with the same setting, or more than
            ``MOST_CELLS`` cells.

    >>> [cell.title for cell in cells([Axis.of("n", [1, 2]), Axis.of("persona", ["strict", "plain"])])]
    ['n=1, persona=strict', 'n=1, persona=plain', 'n=2, persona=strict', 'n=2, persona=plain']
    """
    if not axes:
        raise UsageError("a sweep needs an axis: --axis KEY=V1,V2,...")
    names = [axis.name for axis in axes]
    if (name := repeated(names)) is not None:
        raise UsageError(f"the axis {name} is given twice")
    if (many := prod(len(axis.values) for axis in axes)) > MOST_CELLS:
        sizes = " x ".join(f"{len(axis.values)} {axis.name}" for axis in axes)
        raise UsageError(
            f"{many:,} cells ({sizes}), of at most {MOST_CELLS:,} in a sweep: leave out values"
        )
    for labels in product(*(axis.values for axis in axes)):
        change: dict[str, Any] = {}
        for axis, label in zip(axes, labels, strict=True):
            # Check here, because values of one axis may change different settings.
            if both := ", ".join(sorted(change.keys() & axis.values[label].keys())):
                raise UsageError(f"{both} is set by the axis {axis.name} and by another one")
            change.update(axis.values[label])
        yield Cell(dict(zip(names, labels, strict=True)), change)


def _label(name: str, value: Any) -> str:
    """Return the label of a value: a model's name, a folder's last part, the members of a list."""
    if name == PROMPTS:
        return Path(value).name if value else "ours"
    # As in JSON and on the command line, where True is ``true``.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "+".join(_label("", member) for member in value)
    if isinstance(value, Mapping):
        members = (f"{key}={_label('', inner)}" for key, inner in value.items())
        return str(value.get("name") or "+".join(members))
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class CellResult:
    """The result of one cell.

    Attributes:
        cell: its labels and settings.
        protocol: the name of its protocol.
        evaluation: its results, like those of any run.
    """

    cell: Cell
    protocol: str
    evaluation: Evaluation

    @property
    def usage(self) -> UsageTotals:
        """The usage of its judgements, including calls that another cell made and paid for."""
        return sum((of.totals for of in self.evaluation.figures.overviews.values()), UsageTotals())
