"""The first screen of a dataset: headline, table, evidence, sentence to quote, two warnings.

``run``, ``try``, ``report`` and the page show it. All other remarks are in ``others``.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ..analysis import Study
from ..analysis.judges import Judge
from ..analysis.study import incomplete
from ..statistics.metrics import METRICS
from ..tables.grid import Column, Grid, fields_of, printable, text_column
from ..tables.screen import FirstScreen
from . import headline, unlabelled
from .labels import shown_note
from .ranked_dataset import RankedDataset, capital, ranked_datasets
from .remarks import incompleteness, price, remarks

MOST_WARNINGS = 2
"""The maximum number of warnings on the first screen; the report has all."""
MOST_ROWS = 8
"""The maximum number of rows in the table of the first screen; the report has all."""


def first_screens(
    study: Study, findings: Iterable[str] = (), whole: int | None = None
) -> list[FirstScreen]:
    """Compose the first screen of each dataset of a study.

    Args:
        study: the results.
        findings: sentences on whether debates pay, which come before the other remarks.
        whole: the number of items from which the judged items were drawn.
    """
    parts = study.by_dataset
    # The remarks on a dataset give more details on these.
    remarked = {note for judge in study.judges for note in incomplete(judge)}
    said = [f"{finding.removesuffix('.')}." for finding in findings]
    screens = []
    for number, part in enumerate(parts):
        # Remarks on the whole study appear once.
        notes = (
            [shown_note(note) for note in study.notes if note not in remarked]
            if number == 0
            else []
        )
        datasets = ranked_datasets(part)
        if not datasets:
            screens.append(
                FirstScreen("", "Nothing was judged yet", Grid("", (), ()), warnings=tuple(notes))
            )
            continue
        name = datasets[0].name if len(parts) > 1 else ""
        screens.append(_of_dataset(datasets[0], notes, [] if number else said, name, whole))
    return screens


def _of_dataset(
    dataset: RankedDataset, notes: list[str], findings: list[str], name: str, whole: int | None
) -> FirstScreen:
    title = sample_title(dataset, whole)
    priced = ""
    if dataset.has_labels:
        table = _agreement_table(dataset, title)
        found = remarks(dataset)
        full = remarks(dataset, full=True)
        claim, evidence, quotable = (
            of(dataset) for of in (headline.claim, headline.evidence, headline.quotable)
        )
        priced = price(dataset)
    else:
        table = unlabelled.table(dataset, title)
        found = full = incompleteness(dataset)
        claim, evidence, quotable = (
            of(dataset) for of in (unlabelled.claim, unlabelled.evidence, unlabelled.quotable)
        )
    # The offline judge is not a language model, so there is nothing to report about one.
    quotable = "" if any(judge.note for judge in dataset.judges) else quotable
    shown = [*notes, *(remark.text(most=1) for remark in found if remark.is_warning)]
    warnings = shown[:MOST_WARNINGS]
    # A warning that only counts judges or aspects is repeated in full.
    rest = [text for remark in full if (text := remark.text()) not in warnings]
    more = [*notes[MOST_WARNINGS:], *findings, *rest, *filter(None, [priced])]
    names = tuple(judge.label for judge in dataset.judges)
    return FirstScreen(
        name=name,
        headline=printable(claim if claim.startswith(names) else capital(claim)),
        table=table,
        evidence=printable(evidence),
        quotable=printable(quotable),
        warnings=tuple(map(printable, warnings)),
        others=tuple(map(printable, more)),
    )


def _agreement_table(dataset: RankedDataset, title: str) -> Grid:
    """Make the table of the judges, the best first, with the leading metric, calls and cost."""
    metric = METRICS[dataset.measure]
    columns = (
        text_column(title, of=attrgetter("label")),
        Column(f"agreement ({metric.short})", 2, of=dataset.figure),
        *fields_of(
            attrgetter("usage"),
            calls_each=Column("calls", digits=1),
            cost_each=Column("cost", form="money"),
        ),
    )
    judges = dataset.best_first
    if len(judges) <= MOST_ROWS + 1:
        return Grid.from_records("", columns, judges)
    note = f"{len(judges) - MOST_ROWS} more judges: report --all"
    return Grid.from_records("", columns, judges[:MOST_ROWS], [note])


def sample_title(dataset: RankedDataset, whole: int | None = None) -> str:
    """Write the title: the number of items, the dataset and the aspect."""
    most = max(dataset.judges, key=_items, default=None)
    items = _items(most) if most else 0
    count = f"{items:,} of {whole:,}" if whole and whole != items else f"{items:,}"
    noun = ("comparison" if dataset.compares else "text") + ("" if items == 1 else "s")
    aspects = [subject.aspect for subject in dataset.subjects if subject.aspect]
    on = (
        f", {aspects[0]}"
        if len(aspects) == 1
        else f", mean of {len(aspects)} aspects"
        if aspects
        else ""
    )
    if not dataset.has_labels and len(aspects) > 1:
        on = ""
    return f"{count} {noun} of {dataset.name}{on}"


def _items(judge: Judge) -> int:
    items = (judge.manifest.get("data") or {}).get("items")
    if isinstance(items, int):
        return items
    return judge.wanted // max(1, len(judge.subjects))
