"""Write the answer of some runs in sentences: which judge agrees best, by what, by how much, and how sure that is.

The same sentences end ``run`` and head ``report`` and its page. What they may claim is shown, with judges of a known
kind, in docs/promises.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis import Study
from ..analysis.judges import Judge
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_UNITS
from ..tables import Column
from ..tables.grid import in_words, printable, written
from .labels import MEASURES
from .ranked_dataset import (
    MANY,
    LeadOverRunnerUp,
    RankedDataset,
    capital,
    named,
    ranked_datasets,
    turned,
    value,
)
from .remarks import remarks

_FEW_ASPECTS = 2
"""So many aspects a claim gives reasons for; it counts the others."""


def headline(study: Study, metric: str | None) -> str:
    """Write the answer: a line with a claim for each dataset, no stronger than the tests of the comparison allow."""
    claims = [(dataset, claim(dataset)) for dataset in ranked_datasets(study, metric)]
    if len(claims) == 1:
        # With a capital, unless it begins with a judge's name.
        text, names = claims[0][1], tuple(judge.label for judge in study.judges)
        return printable(text if text.startswith(names) else capital(text))
    return "\n".join(printable(f"{dataset.name}: {text}") for dataset, text in claims)


def answers(study: Study, metric: str | None, full: bool = False) -> Iterator[str]:
    """Write for each dataset the figures behind its claim, and what the claim does not say of its judges.

    Args:
        study, metric: as for ``headline``.
        full: whether to write all of it of every judge and aspect; else what there is much of is counted.
    """
    datasets = ranked_datasets(study, metric)
    for dataset in datasets:
        where = f"On {dataset.name}: " if len(datasets) > 1 else ""
        if sentences := " ".join(f"{sentence}." for sentence in remarks(dataset, full)):
            yield printable(where + sentences)


def caveats(study: Study) -> tuple[str, ...]:
    """Write the notes of the comparison, which make the answer less certain."""
    return tuple(f"Caution: {note.removesuffix('.')}." for note in study.comparison.notes)


def subtitle(study: Study) -> str:
    """Write what the report covers: datasets, judges, verdicts."""
    judges = len({judge.label for judge in study.judges})
    data = ", ".join(dict.fromkeys(subject.data for subject in study.subjects)) or "nothing judged"
    verdicts = sum(judge.judged for judge in study.judges)
    failed = sum(judge.failed for judge in study.judges)
    missing = f", {failed:,} failed" if failed else ""
    return f"{data} · {judges} {'judge' if judges == 1 else 'judges'} · {verdicts:,} verdicts{missing}"


def claim(dataset: RankedDataset) -> str:
    """Write what can be said of the judge that ranks first, or why nothing can."""
    if not dataset.ranked:
        constant = [judge for judge in dataset.judges if dataset.constant(judge)]
        # Where labels are all alike, too, that a judge says the same of every item speaks neither for nor against it.
        if not constant or not dataset.labels_differ:
            reasons = dataset.unmeasured or ["no judge has a figure on every aspect"]
            more = len(reasons) - _FEW_ASPECTS
            and_others = f"; nor have {more} more aspects" if more > 0 else ""
            labels = "synthetic" if dataset.subjects[0].labels == "construction" else "human"
            why = "; ".join(reasons[:_FEW_ASPECTS])
            return f"no judge can be compared with {labels} labels here: {why}{and_others}"
        says = "says" if len(constant) == 1 else "say"
        return f"no judge agrees with {dataset.whom}: {named(constant)} always {says} the same"
    best, *others = dataset.ranked
    figure, measure = dataset.figure(best), MEASURES[dataset.measure]
    leads = [dataset.lead(best, other) for other in others]
    # Judges that give whole groups one score may have few groups in common, and another order in these.
    unsure = any(lead and lead.difference.low is None for lead in leads[:1])
    if figure.low is None or unsure or any(lead and lead.few for lead in leads):
        return _without_claim(dataset)
    sure = [judge for judge in dataset.ranked if dataset.beats_chance(judge)]
    if best not in sure:
        return _chancy(dataset, sure)
    if not others:
        figures = f"{measure} {_figure(dataset, best)}"
        return f"{best.label} {_agrees(dataset, '')} significantly better than chance: {figures}"
    return _contradiction(dataset) or _lead(dataset)


def _chancy(dataset: RankedDataset, sure: Sequence[Judge]) -> str:
    """Write that the judge that ranks first cannot be told from chance, and which one can."""
    best, measure = dataset.ranked[0], MEASURES[dataset.measure]
    figures = _figure(dataset, best)
    if not sure:
        why = f"the highest {measure} is {figures}, of {best.label}"
        if not dataset.compares and (dataset.figure(best).high or 0.0) < 0:
            why += ", significantly below 0, as where a low label means good"
        return f"no judge agrees with {dataset.whom} significantly better than chance: {why}"
    highest = f"the highest {measure}, {figures} of {best.label}, cannot be told from chance"
    can = f"that of {sure[0].label}, {_figure(dataset, sure[0])}, can"
    return f"no judge can be said to agree best with {dataset.whom}: {highest}; {can}"


def _agrees(dataset: RankedDataset, most: str) -> str:
    """Write that a judge agrees: a correlation tells of order alone, an accuracy of each verdict."""
    if dataset.compares:
        return f"agrees {most and 'best '}with {dataset.whom}"
    return f"ranks {most and 'most '}like {dataset.whom}"


def _figure(dataset: RankedDataset, judge: Judge) -> str:
    """Write what a judge is ranked by, of preferences with kappa beside it."""
    beside = dataset.companion(judge, "kappa") if dataset.compares else None
    return f"{in_words(dataset.figure(judge))}{f' (kappa {in_words(beside)})' if beside else ''}"


def _without_claim(dataset: RankedDataset) -> str:
    """Write the figures of too few units, without a claim, and how many would settle which judge is better."""
    best, *others = dataset.ranked
    units, measure = dataset.units(best), MEASURES[dataset.measure]
    if units is not None and units < FEWEST_UNITS:
        noun = dataset.unit_name
        of = f"1 {noun[:-1]} is" if units == 1 else f"{units} {noun} are"
        why = f"{of} too few to claim anything"
    elif dataset.figure(best).low is not None:
        scarce = "groups in which all rank the items" if METRICS[dataset.measure].within else "rows in common"
        why = f"the judges have too few {scarce} to claim anything"
    elif len(dataset.subjects) > 1:
        why = "aspects with labels on different items have no interval of their average"
    else:
        why = "nothing can be claimed without an interval"
    figures = [f"{of.label}'s {measure} is {value(dataset.figure(of))}" for of in dataset.ranked[:MANY]]
    needed = dataset.lead(best, others[0]) if others else None
    # Of groups in common nobody can say how many more groups would bring.
    would = _would_tell(dataset, needed, ", at this difference") if (units or 0) < FEWEST_UNITS else ""
    return f"{why}: {'; '.join(figures)}{would}"


def _would_tell(dataset: RankedDataset, lead: LeadOverRunnerUp | None, more: str = "") -> str:
    # So many may be there already, and not tell: those in which a judge gives all items one score do not count.
    if lead is None or lead.needed is None or lead.needed <= (dataset.units(dataset.ranked[0]) or 0):
        return ""
    return f"; about {_rounded(lead.needed)} {dataset.unit_name} would tell the two apart{more}"


def _contradiction(dataset: RankedDataset) -> str:
    """Write what the companion of the metric says against its order; empty where it says nothing.

    It does where another judge agrees significantly better than the first by the companion: kappa beside accuracy,
    groups beside rows.
    """
    best, companion = dataset.ranked[0], METRICS[dataset.measure].companion
    if companion is None:
        return ""
    leads = [(other, dataset.lead(other, best, companion)) for other in dataset.ranked[1:]]
    against = [(other, lead) for other, lead in leads if lead and lead.holds]
    if not against:
        return ""
    # The one whose lead by the companion is the largest.
    rival, lead = max(against, key=lambda one: one[1].difference.value or 0.0)
    own = dataset.lead(best, rival)
    figures = f"by {MEASURES[dataset.measure]} {best.label} is ahead{_by(own)}"
    figures += f", by {MEASURES[companion]} {rival.label}{_by(lead)}"
    if dataset.compares or own is None or not own.holds:
        return f"{best.label} ranks first by {MEASURES[dataset.measure]}, but not by {MEASURES[companion]}: {figures}"
    # Both orders are significant: they measure two abilities.
    within, over = (best, rival) if METRICS[dataset.measure].within else (rival, best)
    return f"{over.label} ranks sources, {within.label} ranks the candidates of a source: {figures}"


def _lead(dataset: RankedDataset) -> str:
    """Write what the lead of the first of several judges comes to."""
    best = dataset.ranked[0]
    same = dataset.same_as(best)
    who = " and ".join([best.label, *(judge.label for judge in same)])
    others = [judge for judge in dataset.ranked[1:] if judge not in same]
    measure, figure = MEASURES[dataset.measure], _figure(dataset, best)
    if not others:
        each = f"each {_agrees(dataset, '')} significantly better than chance, {measure} {figure}"
        return f"{who} give the same verdict on every row, so there is no difference: {each}"
    alike = ", which give the same verdict on every row," if same else ""
    leads = [(other, dataset.lead(best, other)) for other in others]
    open_to = [other for other, lead in leads if lead is None or not lead.holds]
    (second, lead), *_ = leads
    over = _by(lead, second.label)
    if not open_to:
        agree = _agrees(dataset, "most")
        if same:
            agree = agree.replace("ranks", "rank", 1).replace("agrees", "agree", 1)
        return f"{who}{alike} {agree}: {measure} {figure},{over}"
    ranks = f"{who}{alike} {'rank' if same else 'ranks'} first by {measure}, {figure}"
    if second in open_to:
        return f"{ranks}, and that may be chance:{over}{_would_tell(dataset, lead)}"
    return f"{ranks},{over}; but {named(open_to)} may be as good"


def _by(lead: LeadOverRunnerUp | None, above: str = "") -> str:
    """Write a lead with its interval and how sure it is, after a space."""
    if lead is None:
        return f" without a row in common{above and f' with {above}'}"
    by = f" {in_words(lead.difference)}{above and f' above {above}'}"
    if above and (lead.difference.value or 0.0) < 0:
        # Each judge's own figure is of all groups that it ranks; a difference is of those that both rank.
        by = f" {in_words(turned(lead.difference))} below {above} in the groups that both rank"
    if lead.p is None:
        return f"{by} (no p-value)"
    p = written(lead.p, Column("p", form="p")).text
    return f"{by} (Holm-adjusted p {p if p.startswith('<') else f'= {p}'})"


def _rounded(number: int) -> str:
    """Write a number that is known roughly: two digits of it.

    >>> _rounded(1234), _rounded(87)
    ('1,200', '87')
    """
    return f"{int(float(f'{number:.2g}')):,}"
