"""Check that a dataset has what a paper's table needs, before any model is called.

A table may need labels, groups or categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...nodes.models import prices
from ...state.errors import UsageError
from ...state.tasks import TaskKind
from ..datasets.catalog import Source, find_source
from ..datasets.dataset import Dataset
from ..datasets.items import CompareItem, Item, ScoreItem
from ..results.folder import model_names
from ..statistics.alignment import grouped
from ..statistics.metrics import METRICS
from .cell_metrics import AVERAGE, PREFERENCE
from .paper_tables import PaperTable
from .sweep_plan import SweepPlan

_COMPARES = ("category", "gains", "t-tests", "cost")
"""Measures that need comparisons, in addition to tables with the column ``preference``."""


class UnfillableError(UsageError):
    """No cell of a table can be filled from the given data."""


def check_kind(table: PaperTable, dataset: Dataset) -> None:
    """Refuse pairs of answers for a table on single texts, and the reverse."""
    wanted: TaskKind = (
        "compare" if table.measure in _COMPARES or PREFERENCE in table.columns else "score"
    )
    if dataset.kind != wanted:
        words = {"compare": "pairs of answers", "score": "single texts"}
        raise UsageError(
            f"{table.name} is about {words[wanted]}, but {dataset.name} has "
            f"{words[dataset.kind]}: choose other --data"
        )


def check_fillable(table: PaperTable, planned: SweepPlan) -> tuple[str, ...]:
    """Check that judges can fill cells of a table; return why some columns will stay empty.

    Args:
        table: the paper's table.
        planned: the runs of its judges, which are not started yet.

    Raises:
        UsageError: data of the wrong kind, or an aspect that the table does not have.
        UnfillableError: no cell can be filled; names what is missing and where to get it.
    """
    plan = planned.first
    check_kind(table, plan.dataset)
    judged = [aspect.name for aspect in plan.aspects]
    if others := [name for name in judged if name not in table.columns]:
        raise UsageError(
            f"{table.name} has no column {others[0]!r}; its columns are {', '.join(table.columns)}"
        )
    models = sorted({name for cell in planned.cells for name in model_names(cell.plan.manifest)})
    reasons = _reasons(table, plan.dataset, judged, plan.repeats, models)
    columns = [column for column in table.columns if column != AVERAGE]
    if plan.dataset.kind == "score":
        columns = [column for column in columns if column in judged]
    if all((column, name) in reasons for column in columns for name in table.names):
        why = "; ".join(dict.fromkeys(reasons.values()))
        raise UnfillableError(f"{table.name} cannot be measured on {plan.dataset.location}: {why}")
    notes = [
        f"{column} {name}: stays empty, because {why}" for (column, name), why in reasons.items()
    ]
    if plan.dataset.kind == "score":
        labelled = (AVERAGE, *judged, *plan.dataset.aspect_names())
        if unlabelled := [column for column in table.columns if column not in labelled]:
            empty = "no labels, so these columns stay empty"
            notes.append(f"{', '.join(unlabelled)}: {plan.dataset.name} has {empty}")
        if AVERAGE in table.columns and len(judged) == 1:
            notes.append("average: stays empty, because only one aspect is judged")
        elif AVERAGE in table.columns and len(judged) < len(table.columns) - 1:
            notes.append(f"average: measured here over {', '.join(judged)} only")
    return tuple(notes)


def _reasons(
    table: PaperTable, dataset: Dataset, judged: Sequence[str], repeats: int, models: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return why no judge can have a value, by column and metric."""
    places = [place for place in table.places if place[0] != AVERAGE]
    match table.measure:
        case "cost" if unpriced := [name for name in models if not prices.is_priced(name)]:
            price = "add ?price_in=...&price_out=... to its name, in US$ per million tokens"
            why = f"the price of {unpriced[0]} is unknown; {price}"
            return {place: why for place in places if place[1] == "USD"}
        case "spread" if repeats == 1:
            return dict.fromkeys(places, f"it takes several repeats (--repeats {table.repeats})")
        case "category" | "gains" | "t-tests" if not _telling(dataset, dataset):
            return dict.fromkeys(places, _no_labels(dataset, None))
        case "category":
            labelled = [
                item
                for item in dataset
                if isinstance(item, CompareItem) and _telling([item], dataset)
            ]
            named = {item.category for item in labelled}
            lacking = [place for place in places if place[0] not in named]
            return {place: f"no item with a label has the category {place[0]}" for place in lacking}
        case "agreement":
            return dict(_without_agreement(table, dataset, judged))
    return {}


def _without_agreement(
    table: PaperTable, dataset: Dataset, judged: Sequence[str]
) -> Iterable[tuple[tuple[str, str], str]]:
    for column in (PREFERENCE,) if dataset.kind == "compare" else judged:
        if dataset.kind == "compare":
            if not _telling(dataset, dataset):
                yield from (((column, name), _no_labels(dataset, None)) for name in table.names)
            continue
        labelled = [
            (item.group, label)
            for item in dataset
            if isinstance(item, ScoreItem) and (label := item.label(column)) is not None
        ]
        by_group = grouped(pair for pair in labelled if pair[0] is not None)
        for name in table.names:
            if not labelled:
                yield (column, name), _no_labels(dataset, column)
            elif METRICS[name].within and all(len({*labels}) < 2 for labels in by_group.values()):
                need = f"{METRICS[name].title} needs groups of several texts with different labels"
                yield (
                    (column, name),
                    f"{need}, and {dataset.name} has none for {column} (field `group`)",
                )
            elif len({label for _, label in labelled}) < 2:
                yield (column, name), f"all labels of {dataset.name} for {column} are equal"


def _telling(items: Iterable[Item], dataset: Dataset) -> bool:
    """Return whether any comparison has a label that counts under the dataset's rule for ties."""
    for item in items:
        if not isinstance(item, CompareItem) or item.human is None:
            continue
        given = [
            vote for vote in (item.human if isinstance(item.human, list) else [item.human]) if vote
        ]
        votes: Sequence[str | None] = given if dataset.rule.votes == "each" else [item.label()]
        if any(vote and not (vote == "tie" and dataset.rule.ties == "left_out") for vote in votes):
            return True
    return False


def _no_labels(dataset: Dataset, aspect: str | None) -> str:
    """Explain that a dataset has no labels, and how to get them."""
    of_aspect = f" for {aspect}" if aspect else ""
    none = f"none of its {len(dataset):,} items has a human label{of_aspect} that counts"
    if dataset.labels == "none":
        source = find_source(dataset.name)
        if source is not None and source.home is not None:
            return f"{none}. {_published_labels(source)}"
    elif dataset.chosen is not None or dataset.limit is not None:
        return f"{none}. Other items of {dataset.name} may have labels: raise --limit or --sample"
    field = f"human.{aspect}" if aspect else "human"
    return f"{none}. Add a field `{field}` to the data, or name its column with --columns {field}=COLUMN"


def _published_labels(source: Source) -> str:
    assert source.home is not None
    files = source.forms[0].files
    them = "it" if len(files) == 1 else "them"
    remedy = f"put {them} into the --data-dir, or leave out --data-dir to download {them}"
    return (
        f"The labels of {source.name} are in {', '.join(files)} of {source.home.address}: {remedy}"
    )
