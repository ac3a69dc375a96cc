"""Measure a panel on a few labelled items before the whole run: the option ``--pilot``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from ...graphs.engine.given_graphs import judges_of
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ..datasets.aspect_choice import aspects_of_each, choose_aspects
from ..datasets.dataset import Dataset
from ..datasets.reading import ReadingNotice
from ..datasets.selection import Sample, has_labels
from ..run.plan.labels_needed import FEWEST_LABELS, need_labels
from ..run.plan.plan import Plan
from ..tables.grid import printable
from .runtime import Output, command
from .screens import Step

_VOTING = ("panel", "votes")
ITEMS_OF_GROUP = 2
"""The most items of a group in a pilot.

Two have a ranking, and few items in many groups say more than many in few.
"""
_NAMED = 3
"""The most items that a message names; it counts the others."""


def pilots_of(datasets: Sequence[Dataset], aspects: Sequence[str], pilot: Sample) -> list[Dataset]:
    """Draw a pilot of each dataset, from the items with a human label for each judged aspect.

    A notice names the items without labels, and says if there are fewer labelled items than wanted.

    Args:
        datasets: all items.
        aspects: the named aspects.
        pilot: the sample.

    Raises:
        UsageError: fewer than two items of a dataset have labels.
    """
    named: list[list[str | Aspect]] = [[*aspects]]
    if len(datasets) > 1:
        named = aspects_of_each(datasets, aspects)
    drawn = []
    for dataset, own in zip(datasets, named, strict=True):
        names = [aspect.name for aspect in choose_aspects(dataset, own)]
        first_lacking: list[str] = []
        have = 0
        for item in dataset:
            if has_labels(item, names):
                have += 1
            elif len(first_lacking) < _NAMED:
                first_lacking.append(item.id)
        lacking = len(dataset) - have
        label = f"a human label for {' and '.join(names)}" if names else "a human label"
        if have < FEWEST_LABELS:
            column = f"human.{names[0]}" if names else "human"
            remedy = f"if a column of your file has the labels, add --columns {column}=COLUMN"
            if len(names) > 1:
                remedy = f"name one aspect, such as --aspect {names[0]}; {remedy}"
            raise UsageError(
                f"--pilot needs human labels, but {have} of {len(dataset):,} items of "
                f"{dataset.name} have {label}; {remedy}. Leave out --pilot."
            )
        if lacking:
            more = f" and {lacking - _NAMED:,} more" if lacking > _NAMED else ""
            _notice(
                dataset,
                f"the pilot leaves out {lacking:,} of {len(dataset):,} items, which do not "
                f"have {label}: {', '.join(first_lacking)}{more}",
            )
        if have < pilot.size:
            _notice(
                dataset,
                f"the pilot has {have:,} items instead of {pilot.size:,}, because no more have "
                f"{label}",
            )
        drawn.append(dataset.drawn(pilot._replace(labelled=tuple(names))))
    return drawn


def _notice(dataset: Dataset, text: str) -> None:
    warnings.warn(f"{dataset.name}: {text}", ReadingNotice, stacklevel=2)


def check_pilot(plans: Sequence[Plan]) -> None:
    """Check before any call that a pilot has a panel to measure, and labels to measure it with.

    Args:
        plans: the planned runs, one for each dataset and model.

    Raises:
        UsageError: one judge without members, or items without labels.
    """
    for planned in plans:
        need_labels(planned, "--pilot", "Leave out --pilot.")
        data = planned.dataset.location
        on_data = [other for other in plans if other.dataset.location == data]
        judges = [name for other in on_data for name in other.graphs]
        if len(judges) < 2 and not any(map(_has_members, on_data)):
            raise UsageError(
                f"--pilot measures the members of a panel, but {judges[0]} is one judge: give "
                "several models (--model, repeatable) or protocols, or a panel such as ensemble"
            )


def _has_members(planned: Plan) -> bool:
    """Return whether a planned judge has several voting members and asks all of them."""
    return any(
        record.role_kinds.get(role) in _VOTING and size > 1
        for graph in planned.graphs.values()
        for judge in judges_of(graph).values()
        if "decided" not in getattr(judge.bound, "stop", ())
        for record in [judge.record]
        for role, size in record.agents(judge.bound).items()
    )


def print_members_worth(out: Output, folder: Path) -> list[Step]:
    """Print how many members are worth their cost, and return the next steps.

    A pilot that cannot be measured was paid for, so the reason is printed and is not an error.
    """
    from ..analysis.loading import load_runs
    from ..analysis.panel_sources import panels_of_judges
    from ..report.panel_tables import members_worth
    from ..results.agreement import Resampling
    from ..results.run_set import folders_of_runs

    try:
        folders, _ = folders_of_runs([folder])
        panels = panels_of_judges(load_runs(folders), Resampling())
    except UsageError as error:
        out.print_line(printable(f"The pilot shows no panel: {error}"), "yellow")
        return []
    for panel in panels:
        name = f"{panel.data}, {panel.subject}: " if len(panels) > 1 else ""
        out.print_line(printable(f"{name}{members_worth(panel)}"))
    return [Step("see the panel of the pilot", command("panel", folder, "--all"))]
