"""Check before any call that the items have the human labels that a comparison needs."""

from __future__ import annotations

from ....state.errors import UsageError
from .plan import Plan

FEWEST_LABELS = 2
"""With a single label, nothing can be compared."""


def unlabelled(planned: Plan) -> list[str]:
    """Return the aspects with a label for fewer than two of the judged items.

    Without aspects the name is ``comparisons``.

    >>> from jurygraph.eval.run.plan.plan import plan
    >>> unlabelled(plan("single", "demo", aspects=["coherence"], limit=3))
    []
    >>> rain = {"id": "a", "source": "Noon.", "candidate": "Rain."}
    >>> unlabelled(plan("single", [rain], aspects=["summeval/coherence"]))
    ['coherence']
    """
    names: dict[str, str | None] = {aspect.name: aspect.name for aspect in planned.aspects}
    names = names or {"comparisons": None}
    counts = dict.fromkeys(names, 0)
    for item in planned.dataset:
        for name, aspect in names.items():
            counts[name] += item.label(aspect) is not None
    return [name for name, count in counts.items() if count < FEWEST_LABELS]


def labels_missing(planned: Plan, names: list[str]) -> str:
    """Write that the items have no labels for these aspects, and how to name their column."""
    items = "1 item" if len(planned.dataset) == 1 else f"{len(planned.dataset):,} items"
    have = f"{planned.dataset.name} has fewer than {FEWEST_LABELS} human labels for {', '.join(names)} ({items})"
    column = "human" if names == ["comparisons"] else f"human.{names[0]}"
    return f"{have}; if a column of your file has the labels, add --columns {column}=COLUMN"


def note_without_labels(planned: Plan) -> str | None:
    """Write that there will be no agreement, for results that need no labels.

    ``None`` with labels.
    """
    names = unlabelled(planned)
    return (
        f"no agreement with humans will be shown: {labels_missing(planned, names)}"
        if names
        else None
    )


def need_labels(planned: Plan, what: str, instead: str) -> None:
    """Refuse a plan whose result needs human labels that the items do not have.

    Args:
        planned: the run.
        what: the feature that needs the labels, for the message.
        instead: the alternative without labels, as a sentence.

    Raises:
        UsageError: an aspect without labels.
    """
    if names := unlabelled(planned):
        raise UsageError(
            f"{what} needs human labels, but {labels_missing(planned, names)}. {instead}"
        )
