"""Measure a panel on a few labelled items before the whole run: the option ``--pilot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...graphs.engine.given_graphs import judges_of
from ...state.errors import UsageError
from ..run.plan.labels_needed import need_labels
from ..run.plan.plan import Plan
from ..tables.grid import printable
from .runtime import Output, command
from .screens import Step

_VOTING = ("panel", "votes")


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
