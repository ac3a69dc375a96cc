"""Provide ready-made sweeps: from presets.yaml, from protocols of other packages, and ``fair``.

A plan states the axes, the kind of data, and the layout of its table and figure. For a custom plan,
make a ``SweepPreset`` and pass it to ``plan_ablation``, or pass its axes to ``sweep``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, Unpack

from ...graphs.engine.registry import DEFAULT, find_protocol, protocols
from ...nodes.common.yaml_files import read_data
from ...state.errors import UsageError
from ...state.protocols import Ablation, total
from ...state.settings import make_settings
from ...state.tasks import TaskKind
from ..datasets.dataset import Data
from ..run.plan.plan import Options, data_and_replies
from .cell_metrics import EXTRAS
from .cells import Axis
from .sweep_plan import SweepPlan, plan_sweep

FAIR = "fair"


@dataclass(frozen=True, kw_only=True)
class SweepPreset(Ablation):
    """A ready-made sweep: an ablation from a protocol's paper.

    Attributes:
        protocol: the protocol of cells whose axes do not set one.
        axes: the settings that vary.
    """

    protocol: str
    axes: tuple[Axis, ...]  # type: ignore[assignment]

    @classmethod
    def of(cls, protocol: str, ablation: Ablation) -> SweepPreset:
        """Make a plan from a protocol's record.

        Raises:
            UsageError: an unknown column.
        """
        if unknown := [extra for extra in ablation.extras if extra not in EXTRAS]:
            raise UsageError(
                f"the plan {ablation.name} of {protocol} has no column {unknown[0]!r}; "
                f"columns are {', '.join(EXTRAS)}"
            )
        axes = tuple(Axis.of(axis, values) for axis, values in ablation.axes.items())
        return cls(**{**vars(ablation), "protocol": protocol, "axes": axes})


@cache
def ablations() -> Mapping[str, SweepPreset]:
    """Collect the ready-made plans by name, from presets.yaml and from other packages.

    ``fair`` is not included, because it depends on the protocol.

    Raises:
        UsageError: two protocols have a plan of the same name, or a plan has an unknown column.

    >>> ablations()["tau"].protocol
    'more'
    """
    bundled = {protocol: plans for protocol, plans in _bundled().items() if protocol != FAIR}
    of_plugins = ((name, module.protocol.ablations) for name, module in protocols().items())
    plans: dict[str, SweepPreset] = {}
    for protocol, its_plans in (*bundled.items(), *of_plugins):
        for ablation in its_plans:
            if other := plans.get(ablation.name):
                raise UsageError(
                    f"the protocols {other.protocol} and {protocol} both have a plan {ablation.name!r}"
                )
            plans[ablation.name] = SweepPreset.of(protocol, ablation)
    return plans


@cache
def _bundled() -> Mapping[str, tuple[Ablation, ...]]:
    """Read presets.yaml."""
    return read_data(Path(__file__).with_name("presets.yaml"), dict[str, tuple[Ablation, ...]])


def fair(protocol: str, kind: TaskKind, settings: Mapping[str, Any] | None = None) -> SweepPreset:
    """Plan a comparison of a protocol with a single judge and an ensemble of equal cost.

    The ensemble makes as many calls as the protocol's longest debate. Its judges do not talk. They
    have the same role, so every smaller ensemble is a part of this one, and ``report`` finds the
    one of equal cost.

    Args:
        protocol: the protocol to compare.
        kind: the kind of data, because comparisons may be judged in both orders.
        settings: the settings of the protocol.

    >>> fair("debate", "score", {"n": 2}).axes[0].labels
    ('single', 'debate', 'ensemble of 5')
    """
    # The first protocol without debate that accepts this kind of task.
    records = ((name, module.protocol) for name, module in protocols().items())
    name, ensemble = next(
        (name, of.ensemble) for name, of in records if of.ensemble and kind in of.kinds
    )
    most = _most_calls(protocol, kind, settings or {})
    of_one = ensemble.settings(1, True)
    size = max(2, ceil(most / _most_calls(name, kind, of_one)))
    judges = {
        ensemble.single: {"protocol": ensemble.single},
        protocol: {"protocol": protocol, **(settings or {})},
        f"{name} of {size}": {"protocol": name, **ensemble.settings(size, True)},
    }
    (ablation,) = _bundled()[FAIR]
    return SweepPreset.of(protocol, replace(ablation, axes={"judge": judges}))


def _most_calls(protocol: str, kind: TaskKind, settings: Mapping[str, Any]) -> int:
    record = find_protocol(protocol).protocol
    bound = make_settings(record.settings, settings, {})
    # Assume one reply per request and no log-probabilities, because models are not known yet and
    # the result is an upper limit.
    return total(record.calls(bound, kind, lambda _role, _what: False).values()).most


def plan_ablation(
    ablation: str | SweepPreset,
    data: Data | None = None,
    axes: Sequence[Axis] = (),
    protocol: str | None = None,
    **options: Unpack[Options],
) -> tuple[SweepPreset, SweepPlan]:
    """Check every cell of a ready-made plan.

    Args:
        ablation: a plan or its name; ``fair`` is made for the protocol.
        data: a dataset, its name, or a file; optional with ``replies``.
        axes: axes that replace those of the same name in the plan, or come before them.
        protocol: a protocol that replaces the plan's own.
        **options: the options of all cells.

    Raises:
        UsageError: invalid input, or data that do not fit the plan; suggests data that fit.

    >>> ablation, planned = plan_ablation("personas", "demo", limit=2)
    >>> [planned_cell.cell.title for planned_cell in planned.cells][:2], ablation.source
    (['persona=plain', 'persona=weak'], 'DEBATE (Kim et al. 2024), Figure 2, middle')
    """
    dataset, _ = data_and_replies(data, options)
    if ablation == FAIR:
        # Remove the settings from the options: they belong to the protocol, and its opponents do
        # not have them.
        ablation = fair(protocol or DEFAULT, dataset.kind, options.pop("settings", None))
    if isinstance(ablation, str) and ablation not in ablations():
        raise UsageError(f"no plan {ablation!r}; plans are {', '.join(ablations())}, {FAIR}")
    chosen = ablations()[ablation] if isinstance(ablation, str) else ablation
    fits = ", ".join(chosen.data)
    if chosen.kind is not None and dataset.kind != chosen.kind:
        wanted = {"compare": "pairs of answers", "score": "texts to be rated"}[chosen.kind]
        raise UsageError(
            f"the plan {chosen.name} is for {wanted}, which {dataset.name} does not have; {fits} do"
        )
    # The first thousand items are enough; a large dataset need not be read completely.
    if chosen.by_category and not any(
        getattr(item, "category", None) for item in islice(dataset, 1000)
    ):
        raise UsageError(
            f"the plan {chosen.name} compares categories of items, but {dataset.name} has none; "
            f"{fits} do"
        )
    given, planned_axes = ({axis.name: axis for axis in listed} for listed in (axes, chosen.axes))
    new = {name: axis for name, axis in given.items() if name not in planned_axes}
    # An axis that replaces one of the plan's has its position; new axes come first and vary
    # slowest.
    varied = tuple({**new, **planned_axes, **given}.values())
    chosen = replace(chosen, axes=varied)
    # With recorded replies and no data, plan the cells from the recording.
    planned = plan_sweep(
        protocol or chosen.protocol, varied, None if data is None else dataset, **options
    )
    return chosen, replace(planned, name=chosen.name)
