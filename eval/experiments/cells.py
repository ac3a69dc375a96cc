"""Define the axes of a sweep, the cells that are combinations of their values, and the result of a cell."""

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

PROTOCOL, MODEL, PROMPTS = "protocol", "model", "prompts"
# Names that become alike by this cut are numbered when the folders are named.
NAME_LENGTH = 100

MOST_CELLS = 1000
"""The limit of a sweep, since each cell has a folder and a line in every table."""
# What is replaced by ``-`` in names of folders: the ``:`` and ``?`` of ``openai:gpt-4o?seed=1``, a ``/``, a space.
_NOT_IN_NAMES = re.compile(r"[^\w.+=-]+")


@dataclass(frozen=True)
class Axis:
    """Holds a setting that varies over a sweep, with its values.

    Attributes:
        name: its own.
        values: by their labels in tables, charts and folder names, what each of them sets: a setting (``inner.n`` for
            one of those that a setting holds), ``protocol``, ``model`` (of all roles) or ``model.ROLE``.

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
        """Make an axis from a setting's name and values, or from labels and all that is set under each.

        Raises:
            UsageError: no values, or one of them twice.
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
        """Parse an axis from a command line: ``KEY=V1,V2,...``, or ``KEY=[...]`` with a JSON list of values.

        Raises:
            UsageError: a text of neither form.

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
        # An empty value of ``prompts`` stands for the package's own prompts: ``prompts=,my_prompts``.
        elif name != PROMPTS and "" in values:
            raise UsageError(f"--axis {text!r}: a value is empty")
        return cls.of(name, values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its values."""
        return tuple(self.values)

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """Its values as numbers; None unless all of them are numbers."""
        try:
            return tuple(float(label) for label in self.labels)
        except ValueError:
            return None


@dataclass(frozen=True)
class Cell:
    """One combination of values.

    Attributes:
        labels: by axis.
        change: what it sets, on top of what all cells have in common.
    """

    labels: Mapping[str, str]
    change: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The labels of the cell in a line.

        >>> Cell({"n": "2", "persona": "plain"}).title
        'n=2, persona=plain'
        """
        return ", ".join(f"{axis}={label}" for axis, label in self.labels.items())

    @property
    def folder(self) -> str:
        """The labels as the name of a folder that any system takes.

        >>> Cell({"model": "openai:gpt-4o?seed=1", "n": "2"}).folder
        'model=openai-gpt-4o-seed=1,n=2'
        """
        parts = (_NOT_IN_NAMES.sub("-", f"{axis}={label}") for axis, label in self.labels.items())
        return ",".join(parts)[:NAME_LENGTH]


Axes = Sequence[Axis] | Mapping[str, Any]
"""What varies: axes, or the name of each to its values or to labels and what is set under each."""


def cells(axes: Sequence[Axis]) -> Iterator[Cell]:
    """Yield every combination of the axes' values; the last axis varies fastest.

    Raises:
        UsageError: no axis, one given twice, two that set the same, or more than ``MOST_CELLS`` cells.

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
        raise UsageError(f"{many:,} cells ({sizes}), of at most {MOST_CELLS:,} in a sweep: leave out values")
    for labels in product(*(axis.values for axis in axes)):
        change: dict[str, Any] = {}
        for axis, label in zip(axes, labels, strict=True):
            # Only here can this be told: values of one axis may set different things.
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
        evaluation: its results, a run like any other.
    """

    cell: Cell
    protocol: str
    evaluation: Evaluation

    @property
    def usage(self) -> UsageTotals:
        """The usage of its judgements, also where another cell made and paid a call first."""
        return sum((of.totals for of in self.evaluation.figures.overviews.values()), UsageTotals())
