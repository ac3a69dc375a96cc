"""Compose the first screen of ``versus``: the answer and its main evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.equal_cost import Currency
from ..report.headline import p_in_words
from ..report.labels import shown_note
from ..report.ranked_dataset import capital
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, is_few
from ..tables.grid import Column, Grid, share_column, text_column, written
from ..tables.screen import FirstScreen
from .cell_metrics import AVERAGE
from .finding import Contest, Finding, budgets_in_words

MOST_WARNINGS = 2


@dataclass(frozen=True)
class Compared:
    """The protocol, data and metric of a comparison.

    Attributes:
        protocol: its label.
        data: the dataset's name.
        unit: the currency of the budgets.
        metric: the metric of the differences; ``None`` if nothing was compared.
        is_complete: whether each opponent has verdicts.
    """

    protocol: str
    data: str
    unit: Currency
    metric: str | None
    is_complete: bool


def versus_screen(
    what: Compared,
    finding: Finding,
    findings: Mapping[str, Finding],
    contests: Sequence[Contest],
    notes: Sequence[str],
) -> FirstScreen:
    """Compose the first screen of a comparison at equal spending.

    Args:
        what: the protocol, the data, the metric.
        finding: whether it pays, over all aspects.
        findings: whether it pays on each aspect.
        contests: the comparison with each opponent, on each subject and on average.
        notes: warnings and explanations.
    """
    protocol = what.protocol
    data = what.data
    metric = what.metric
    subjects = dict.fromkeys(contest.subject for contest in contests)
    main = AVERAGE if AVERAGE in subjects else next(iter(subjects), "")
    shown = [contest for contest in contests if contest.subject == main]
    known = (
        metric is not None and bool(shown) and all(one.difference.low is not None for one in shown)
    )
    # If a run is missing, the sentence of the finding names it.
    evidence = finding.sentence
    quotable = ""
    if known and what.is_complete and metric is not None:
        evidence = _evidence(what, shown, metric, finding)
        quotable = _quotable(what, shown, METRICS[metric].title, finding)
    elif shown and what.is_complete and metric is not None and _are_few(shown):
        evidence = _evidence_of_few(what, shown, metric)
    told = [shown_note(note) for note in notes]
    of_aspects = [
        f"{subject}: {of.sentence.removesuffix('.')}." for subject, of in findings.items()
    ]
    return FirstScreen(
        name="",
        headline=_headline(protocol, finding, shown),
        table=_table(protocol, data, shown, metric),
        evidence=evidence if evidence.endswith(".") else f"{evidence}.",
        # Results of the offline judge or a tiny model are not worth reporting.
        quotable="" if notes else quotable,
        warnings=tuple(told[:MOST_WARNINGS]),
        others=(*told[MOST_WARNINGS:], *(of_aspects if len(of_aspects) > 1 else ())),
    )


def _headline(protocol: str, finding: Finding, contests: Sequence[Contest]) -> str:
    if finding.answer == "undecided" and len(contests) == 1 and contests[0].budget != "equal":
        return f"No clear winner between {protocol} and {contests[0].opponent}"
    match finding.answer:
        case "better for more":
            return f"{protocol} agrees better but spends more"
        case "worse for less":
            return f"{protocol} agrees less well but spends less"
        case "undecided":
            return f"Undecided whether {protocol} pays"
    return f"{protocol} {finding.answer}"


def _table(protocol: str, data: str, contests: Sequence[Contest], metric: str | None) -> Grid:
    if not contests or metric is None:
        return Grid("", (), ())
    items = min(contest.items for contest in contests)
    on = "" if contests[0].subject == "preference" else f", {contests[0].subject}"
    columns = (
        text_column(f"{items:,} items of {data}{on}"),
        Column(f"agreement ({METRICS[metric].short})", 2),
        share_column("spent"),
        Column("difference", 2),
    )
    own = (protocol, contests[0].protocol, 1.0, None)
    rows = ((one.title, one.other, one.ratio, one.difference) for one in contests)
    return Grid("", columns, (own, *rows))


def _evidence(what: Compared, contests: Sequence[Contest], metric: str, finding: Finding) -> str:
    first = contests[0]
    groups = "" if first.clusters == first.items else f" in {first.clusters:,} groups"
    over = f"{capital(METRICS[metric].title)} over {finding.items:,} items{groups}"
    against = _against(what, contests)
    text = f"{over}, {budgets_in_words(contests, what.unit)}: {against}."
    return (
        f"{text} At least {finding.needed:,} items would be needed to decide."
        if finding.needed
        else text
    )


def _are_few(contests: Sequence[Contest]) -> bool:
    """Return whether there are values, but too few groups for an interval."""
    return all(is_few(one.clusters) and one.difference.value is not None for one in contests)


def _against(what: Compared, contests: Sequence[Contest]) -> str:
    return "; ".join(
        f"{_difference(one)} against {one.title}{one.spent_in_words(what.unit)}" for one in contests
    )


def _evidence_of_few(what: Compared, contests: Sequence[Contest], metric: str) -> str:
    first = contests[0]
    against = "; ".join(
        f"difference {_text(one.difference.value)} against {one.title}{one.spent_in_words(what.unit)}"
        for one in contests
    )
    budgets = budgets_in_words(contests, what.unit)
    groups = f"{first.clusters:,} groups, or items without a group"
    needed = f"too few to decide: at least {FEWEST_CLUSTERS} are needed"
    return f"{capital(METRICS[metric].title)} {budgets}: {against}. {groups}, are {needed}."


def _quotable(what: Compared, contests: Sequence[Contest], metric: str, finding: Finding) -> str:
    verb = {
        "pays": "agreed better with the annotators than",
        "does not pay": "did not agree better with the annotators than",
        "better for more": "agreed better with the annotators than",
        "worse for less": "agreed less well with the annotators than",
    }.get(finding.answer, "did not differ significantly in its agreement with the annotators from")
    opponents = " and ".join(one.title for one in contests)
    figures = _against(what, contests)
    budgets = budgets_in_words(contests, what.unit)
    return (
        f"On {finding.items:,} items of {what.data}, {what.protocol} {verb} {opponents} {budgets}"
        f" ({metric}: {figures}; Holm-adjusted)."
    )


def _difference(contest: Contest) -> str:
    apart = contest.difference
    p = f", p {p_in_words(contest.p)}" if contest.p is not None else ""
    return f"difference {_text(apart.value)}, 95 % CI {_text(apart.low)} to {_text(apart.high)}{p}"


def _text(value: float | None) -> str:
    return written(Statistic(value), Column("", 2)).text
