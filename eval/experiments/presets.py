"""Make ready-made plans of sweeps: presets.yaml, those that protocols of other packages bring, and ``fair``.

A plan says what varies, on which kind of data, and how its table and figure are laid out. To write one's own, make a
``SweepPreset`` and pass it to ``plan_ablation``, or give its axes to ``sweep``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, Unpack

from pydantic import TypeAdapter

from ...graphs.registry import DEFAULT, find_protocol, protocols
from ...nodes.yaml_files import read_yaml
from ...state.errors import UsageError
from ...state.protocols import Ablation, total
from ...state.settings import make_settings
from ...state.tasks import TaskKind
from ..datasets.dataset import Data
from ..plan.plan import Options, data_and_replies
from .cell_metrics import EXTRAS
from .cells import Axis
from .sweep_plan import SweepPlan, plan_sweep

FAIR = "fair"


@dataclass(frozen=True, kw_only=True)
class SweepPreset(Ablation):
    """A ready-made sweep: the ablation of a protocol's paper, made ready to run.

    Attributes:
        protocol: of cells whose axes name none.
        axes: what varies.
    """

    protocol: str
    axes: tuple[Axis, ...]  # type: ignore[assignment]

    @classmethod
    def of(cls, protocol: str, ablation: Ablation) -> SweepPreset:
        """Make a plan of what a protocol's record says.

        Raises:
            UsageError: it wants a column that there is not.
        """
        if unknown := [extra for extra in ablation.extras if extra not in EXTRAS]:
            plan = f"the plan {ablation.name} of {protocol}"
            raise UsageError(f"{plan} has no column {unknown[0]!r}; columns are {', '.join(EXTRAS)}")
        axes = tuple(Axis.of(axis, values) for axis, values in ablation.axes.items())
        return cls(**{**vars(ablation), "protocol": protocol, "axes": axes})


@cache
def ablations() -> Mapping[str, SweepPreset]:
    """Collect the ready-made plans by name: those of presets.yaml, then those that other packages' protocols bring.

    ``fair`` comes on top, and depends on the protocol.

    Raises:
        UsageError: two protocols have a plan of the same name, or one wants a column that there is not.

    >>> ablations()["tau"].protocol
    'more'
    """
    bundled = {protocol: plans for protocol, plans in _bundled().items() if protocol != FAIR}
    of_plugins = ((name, module.protocol.ablations) for name, module in protocols().items())
    plans: dict[str, SweepPreset] = {}
    for protocol, its_plans in (*bundled.items(), *of_plugins):
        for ablation in its_plans:
            if other := plans.get(ablation.name):
                both = f"the protocols {other.protocol} and {protocol}"
                raise UsageError(f"{both} both have a plan {ablation.name!r}")
            plans[ablation.name] = SweepPreset.of(protocol, ablation)
    return plans


@cache
def _bundled() -> Mapping[str, tuple[Ablation, ...]]:
    """Read presets.yaml."""
    plans = read_yaml(Path(__file__).with_name("presets.yaml"))
    # Checked like any input: lists become tuples, and a misspelt field is refused.
    return TypeAdapter(dict[str, tuple[Ablation, ...]]).validate_python(plans, extra="forbid")


def fair(protocol: str, kind: TaskKind, settings: Mapping[str, Any] | None = None) -> SweepPreset:
    """Plan a protocol beside a single judge, and beside an ensemble that takes as many calls as its longest debate.

    Judges of an ensemble do not talk. They have the same role, so that every smaller ensemble is inside this one:
    ``report`` finds the one of equal cost.

    Args:
        protocol: what is to be compared.
        kind: of the data, since a comparison may be held in both orders.
        settings: of the protocol.

    >>> fair("debate", "score", {"n": 2}).axes[0].labels
    ('single', 'debate', 'ensemble of 5')
    """
    # The first protocol of judges who do not talk that takes this kind of task.
    records = ((name, module.protocol) for name, module in protocols().items())
    name, ensemble = next((name, of.ensemble) for name, of in records if of.ensemble and kind in of.kinds)
    most, of_one = _most_calls(protocol, kind, settings or {}), ensemble.settings(1, True)
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
    # As if models gave one reply a request and no log-probabilities: they are not known yet, and most is asked for.
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
        ablation: a plan, or the name of one; ``fair`` is made for the protocol.
        data: a dataset, its name, or a file; may be left out where there are ``replies``.
        axes: take the place of the plan's axes of the same name, or come before them.
        protocol: instead of the plan's own.
        **options: what all cells have in common.

    Raises:
        UsageError: bad input; data that the plan is not for: names data that fits.

    >>> ablation, planned = plan_ablation("personas", "demo", limit=2)
    >>> [planned_cell.cell.title for planned_cell in planned.cells][:2], ablation.source
    (['persona=plain', 'persona=weak'], 'DEBATE (Kim et al. 2024), Figure 2, middle')
    """
    dataset, _ = data_and_replies(data, options)
    if ablation == FAIR:
        # Taken out of the options: the settings are the protocol's, and the judges beside it do not have them.
        ablation = fair(protocol or DEFAULT, dataset.kind, options.pop("settings", None))
    if isinstance(ablation, str) and ablation not in ablations():
        raise UsageError(f"no plan {ablation!r}; plans are {', '.join(ablations())}, {FAIR}")
    chosen = ablations()[ablation] if isinstance(ablation, str) else ablation
    fits, plan = ", ".join(chosen.data), f"the plan {chosen.name}"
    if chosen.kind is not None and dataset.kind != chosen.kind:
        wanted = {"compare": "pairs of answers", "score": "texts to be rated"}[chosen.kind]
        raise UsageError(f"{plan} is for {wanted}, which {dataset.name} does not have; {fits} do")
    # The first thousand items tell; a large dataset need not be read to its end.
    if chosen.by_category and not any(getattr(item, "category", None) for item in islice(dataset, 1000)):
        raise UsageError(f"{plan} compares categories of items, but {dataset.name} has none; {fits} do")
    given, planned_axes = ({axis.name: axis for axis in listed} for listed in (axes, chosen.axes))
    new = {name: axis for name, axis in given.items() if name not in planned_axes}
    # An axis that replaces one of the plan's keeps its place; new ones come first, and so vary slowest.
    varied = tuple({**new, **planned_axes, **given}.values())
    chosen = replace(chosen, axes=varied)
    # Where only recorded replies were given, they and not their dataset are what the cells are planned from.
    planned = plan_sweep(protocol or chosen.protocol, varied, None if data is None else dataset, **options)
    return chosen, replace(planned, name=chosen.name)
