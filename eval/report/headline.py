"""Write the headline of a report, its evidence, and a sentence that a paper may quote.

The same sentences end ``run``, ``try`` and ``sweep`` and begin ``report`` and its page.
docs/promises.md shows the sentences for simulated judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..analysis.judges import Judge
from ..results.agreement import Agreement, PreferenceAgreement
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, is_few
from ..statistics.sample import POWER
from ..tables.grid import Column, written
from .answer import Answer, Outcome, answer_of, too_few
from .labels import MEASURES
from .ranked_dataset import ALL_ALIKE, LeadOverRunnerUp, RankedDataset, capital, named, symbol_of

DIGITS = 2
"""Decimals of a figure on the first screen; tables have three."""
_SMALL = 0.01
"""Below this value, a difference is written with one more decimal."""
NOTHING_LOST = 0.01
"""Up to this share of rows without a verdict of some judge, the evidence does not count them."""
_FEW = 2
"""The maximum number of aspects that a sentence names; it counts the others."""


def claim(dataset: RankedDataset) -> str:
    """Write the headline in one of a few shapes: at most twelve words, without numbers."""
    answer = answer_of(dataset)
    whom = dataset.whom
    match answer.outcome:
        case Outcome.BEST:
            text = _best_claim(answer, whom)
        case Outcome.UNCLEAR | Outcome.TWO_ABILITIES:
            first, second = answer.judges
            text = f"No clear winner between {first.label} and {second.label}"
        case Outcome.AGREES:
            text = f"{answer.judges[0].label} agrees with {whom}"
        case Outcome.IDENTICAL:
            text = f"{named(answer.judges)} gave identical verdicts"
        case Outcome.NONE:
            text = f"No judge agrees with {whom}"
        case Outcome.CONSTANT:
            text = _constant_claim(dataset, answer.judges)
        case Outcome.TOO_FEW:
            text = _too_few_claim(dataset, answer)
        case Outcome.UNMEASURED:
            text = "Agreement cannot be computed here"
            if not any(judge.judged for judge in dataset.judges):
                text = "Every judgement failed" if _failed(dataset) else "Nothing was judged yet"
    return text


def _best_claim(answer: Answer, whom: str) -> str:
    best, *same = answer.judges[:-1]
    if same:
        return f"{named([best, *same])}, with identical verdicts, agree best with {whom}"
    return f"{best.label} agrees best with {whom}"


def _failed(dataset: RankedDataset) -> bool:
    return any(judge.failed for judge in dataset.judges)


def _constant_claim(dataset: RankedDataset, judges: Sequence[Judge]) -> str:
    verdicts = {entry.always for judge in judges for entry in dataset.entries(judge)}
    if len(judges) == 1 and dataset.compares:
        return f"{judges[0].label} gave every comparison the same verdict"
    if len(judges) == 1 and len(verdicts) == 1:
        return f"{judges[0].label} gave every item {next(iter(verdicts)):g}, so its agreement cannot be computed"
    if len(judges) == 1:
        return f"{judges[0].label} gave every item of an aspect one verdict"
    return f"Agreement cannot be computed: {named(judges)} gave constant verdicts"


class _Withheld(NamedTuple):
    """A judge's agreement on an aspect that has no interval in spite of many groups or items."""

    judge: Judge
    aspect: str | None
    agreement: Agreement

    @property
    def varies(self) -> bool:
        """Whether labels and verdicts vary; if so, most rows are in few groups."""
        agreement = self.agreement
        if isinstance(agreement, PreferenceAgreement):
            return True
        return agreement.variation > 0 and is_few(agreement.effective / agreement.variation)


def _withheld(dataset: RankedDataset, answer: Answer) -> list[_Withheld]:
    """Return the agreements of the named judges that lack an interval for their rows' values."""
    if too_few(dataset) or METRICS[dataset.measure].unit != "rows":
        return []
    return [
        _Withheld(judge, subject.aspect, agreement)
        for judge in answer.judges
        for subject in dataset.subjects
        for agreement in dataset.agreements_on(judge, subject)
        if is_few(agreement.effective) and not is_few(agreement.units)
    ]


def _too_few_claim(dataset: RankedDataset, answer: Answer) -> str:
    if withheld := _withheld(dataset, answer):
        if any(of.varies for of in withheld):
            cause = "Groups differ too much in size"
        else:
            cause = "Verdicts or labels vary too little"
        if len(answer.judges) > 1:
            return f"{cause} to say which judge is better"
        return f"{cause} to judge {answer.judges[0].label}"
    if too_few(dataset):
        scarce = dataset.cluster_name
    elif METRICS[dataset.measure].unit == "systems":
        scarce = "systems"
    elif METRICS[dataset.measure].within:
        scarce = "shared groups"
    else:
        scarce = "shared items"
    if len(answer.judges) > 1:
        return f"Too few {scarce} to say which judge is better"
    return f"Too few {scarce} to say whether {answer.judges[0].label} agrees with {dataset.whom}"


def evidence(dataset: RankedDataset) -> str:
    """Write the evidence: metric, values, difference, units, and how many units are needed."""
    answer = answer_of(dataset)
    match answer.outcome:
        case Outcome.BEST | Outcome.UNCLEAR:
            text = _evidence_of_two(dataset, answer)
        case Outcome.TWO_ABILITIES:
            text = f"{_abilities(dataset, answer)} {_evidence_of_two(dataset, answer)}"
        case Outcome.AGREES | Outcome.IDENTICAL:
            judge = answer.judges[0]
            chance = dataset.chance(judge)
            p = (
                f", p {p_in_words(chance.adjusted)} against chance"
                if chance and chance.adjusted is not None
                else ""
            )
            text = f"{_figure(dataset, judge)}{_over(dataset)}{p}.{kappa_of(dataset, judge)}"
        case Outcome.NONE:
            text = _evidence_of_chance(dataset, answer.judges[0])
        case Outcome.CONSTANT:
            text = f"{_rows_of(dataset)}The labels differ and the verdicts do not."
        case Outcome.TOO_FEW:
            text = _evidence_of_few(dataset, answer)
        case Outcome.UNMEASURED:
            text = _why_unmeasured(dataset) if any(judge.judged for judge in dataset.judges) else ""
    return text


def _abilities(dataset: RankedDataset, answer: Answer) -> str:
    first, second = answer.judges
    items, groups = (first, second) if METRICS[dataset.measure].within else (second, first)
    return f"{groups.label} separates groups better, {items.label} separates the items of a group better."


def _evidence_of_two(dataset: RankedDataset, answer: Answer) -> str:
    # If judges have identical verdicts, the last judge named is the first that differs.
    first = answer.judges[0]
    second = answer.judges[-1]
    text = _two_figures(dataset, first, second)
    text += f"; {_difference(dataset, answer.lead)}" if answer.lead else "; no row in common"
    text = f"{text}."
    if answer.against is not None:
        companion = METRICS[dataset.measure].companion or ""
        text += f" By {MEASURES[companion]} {second.label} is ahead: {_difference(dataset, answer.against)}."
    if answer.outcome is Outcome.UNCLEAR and not dataset.beats_chance(first):
        text += f" {first.label} is {_against_chance(dataset, first)}"
        text += f"; {second.label} is better than chance." if dataset.beats_chance(second) else "."
    if answer.outcome is Outcome.UNCLEAR and answer.against is None:
        text += _needed(dataset, answer.lead, "to separate them")
    others = len(dataset.ranked) - len(answer.judges)
    if answer.outcome is Outcome.BEST and others > 0:
        more = "1 other judge is" if others == 1 else f"{others} other judges are"
        text += f" {more} further behind."
    return text + kappa_of(dataset, first)


def _two_figures(dataset: RankedDataset, first: Judge, second: Judge) -> str:
    metric, (one, other) = (
        dataset.symbol,
        (_value(dataset.figure(judge)) for judge in (first, second)),
    )
    return f"{metric} {one} ({first.label}) against {other} ({second.label}){_over(dataset)}"


def _difference(dataset: RankedDataset, lead: LeadOverRunnerUp) -> str:
    """Write a difference with its interval and its p-value."""
    apart = lead.difference
    # Two decimals would hide the sign of a very small difference.
    digits = DIGITS if abs(apart.value or 0.0) >= _SMALL else DIGITS + 1
    text = f"difference {_value(apart, digits)}{_interval(dataset, apart, digits)}"
    return f"{text}, p {p_in_words(lead.p)}" if lead.p is not None else text


def _evidence_of_chance(dataset: RankedDataset, best: Judge) -> str:
    chance = dataset.chance(best)
    figure = dataset.own_figure(best)
    highest = f", the highest of {len(dataset.ranked)} judges" if len(dataset.ranked) > 1 else ""
    text = f"{dataset.symbol} {_value(figure)} ({best.label}{highest}){_interval(dataset, figure)}{_over(dataset)}"
    tested = METRICS[dataset.measure].against_chance
    if chance and tested != dataset.measure:
        text += f"; {symbol_of(tested)} {_value(chance.tested)}{_interval(dataset, chance.tested)}"
    return f"{text}: {_against_chance(dataset, best)}."


def _against_chance(dataset: RankedDataset, judge: Judge) -> str:
    """Write that a judge is not better than chance, with the p-value if it is known."""
    chance = dataset.chance(judge)
    if chance is None or chance.adjusted is None:
        return "not better than chance"
    tested = sum(
        1 for other in dataset.judges if (of := dataset.chance(other)) and of.p is not None
    )
    adjusted = f", Holm-adjusted over {tested} judges" if tested > 1 else ""
    p = f"(p {p_in_words(chance.adjusted)}{adjusted})"
    if is_below_chance(dataset, judge):
        return f"significantly below chance {p}, as where a low label means good"
    return f"not significantly better than chance {p}"


def is_below_chance(dataset: RankedDataset, judge: Judge) -> bool:
    """Whether a judge's scores contradict the labels significantly."""
    chance = dataset.chance(judge)
    return chance is not None and not dataset.compares and (chance.tested.high or 0.0) < 0


def _evidence_of_few(dataset: RankedDataset, answer: Answer) -> str:
    if withheld := _withheld(dataset, answer):
        return _evidence_withheld(dataset, answer, withheld)
    of_systems = METRICS[dataset.measure].unit == "systems"
    alone = len(dataset.subjects) > 1 or len(answer.judges) < 2
    if not too_few(dataset) and not alone and not of_systems:
        return _evidence_without_overlap(dataset, answer)
    figures = [f"{judge.label} {_value(dataset.figure(judge))}" for judge in answer.judges]
    text = f"{dataset.symbol}: {', '.join(figures)}{_over(dataset)}."
    if of_systems:
        return f"{text} Metrics over systems have no interval, because none is reliable."
    if too_few(dataset):
        lead = answer.lead if len(answer.judges) > 1 else None
        needed = max(FEWEST_CLUSTERS, lead.needed if lead and lead.needed else 0)
        are = f"{_rounded(needed)} {dataset.cluster_name}"
        purpose = " to separate them" if len(answer.judges) > 1 else ""
        return f"{text} At least {are} would be needed{purpose}."
    if len(dataset.subjects) > 1:
        rows = {(of.n, of.units) for of in dataset.agreements(answer.judges[0])}
        reason = ": the aspects are labelled on different items" if len(rows) > 1 else ""
        return f"{text} No interval of the mean{reason}."
    return f"{text} The agreement has no interval."


def _evidence_withheld(
    dataset: RankedDataset, answer: Answer, withheld: Sequence[_Withheld]
) -> str:
    """Write the figures, and why many groups or items count as few."""
    own = ", ".join(f"{judge.label} {_value(dataset.own_figure(judge))}" for judge in answer.judges)
    averaged = len(dataset.subjects) > 1
    parts = []
    for varies, reason in (
        (False, "most verdicts or labels are the same"),
        (True, "most rows are in few groups"),
    ):
        counted = [
            f"for {of.judge.label}{f' on {of.aspect}' if averaged else ''}, "
            f"{of.agreement.units:,} {dataset.cluster_name} count as {of.agreement.effective:.1f}"
            for of in withheld
            if of.varies is varies
        ]
        if counted:
            more = f"; {len(counted) - _FEW} more" if averaged and len(counted) > _FEW else ""
            named_here = counted[:_FEW] if averaged else counted
            parts.append(f"{reason}: {'; '.join(named_here)}{more}")
    reasons = ". ".join(map(capital, parts))
    if averaged:
        return f"{dataset.symbol}: {own}{_over(dataset)}. No interval of the mean. {reasons}."
    return f"{dataset.symbol}: {own}. {reasons}."


def _evidence_without_overlap(dataset: RankedDataset, answer: Answer) -> str:
    """Write how judges agree on their own items, because they share too few."""
    figures = []
    for judge in answer.judges:
        chance = dataset.chance(judge)
        rows = (
            f" over {chance.rows:,} {dataset.unit(chance.rows)}" if chance and chance.rows else ""
        )
        figures.append(f"{judge.label} {_value(dataset.own_figure(judge))}{rows}")
    shared = (
        "groups in which both rank the items"
        if METRICS[dataset.measure].within
        else f"{dataset.unit(2)}"
    )
    return f"{dataset.symbol} on each judge's own: {', '.join(figures)}. The judges share too few {shared}."


def _why_unmeasured(dataset: RankedDataset) -> str:
    reasons = dataset.unmeasured or ["No judge has a figure on every aspect"]
    more = len(reasons) - _FEW
    others = f" The same holds for {more} more aspects." if more > 0 else ""
    return f"{'. '.join(reasons[:_FEW])}.{others}"


def quotable(dataset: RankedDataset) -> str:
    """Write a sentence that a paper may quote; empty if there is nothing to report."""
    answer = answer_of(dataset)
    match answer.outcome:
        case Outcome.BEST:
            text = _quoted_lead(dataset, answer)
        case Outcome.UNCLEAR | Outcome.TWO_ABILITIES:
            text = _quoted_tie(dataset, answer)
        case Outcome.AGREES | Outcome.IDENTICAL:
            text = _quoted_agreement(dataset, answer)
        case Outcome.NONE:
            text = _quoted_chance(dataset, answer.judges[0])
        case Outcome.CONSTANT:
            text = f"{named(answer.judges)} gave every item the same verdict"
        case Outcome.TOO_FEW | Outcome.UNMEASURED:
            return ""
    return f"On {dataset.sample_in_words}, {text}."


def _quoted_lead(dataset: RankedDataset, answer: Answer) -> str:
    best = answer.judges[0]
    other = answer.judges[-1]
    best_ones = answer.judges[:-1]
    others = len(dataset.ranked) - len(best_ones)
    several = others > 1
    who = best.label if len(best_ones) == 1 else f"{named(best_ones)}, with identical verdicts,"
    than = f"any of the {others} other judges" if several else other.label
    next_best = f"{other.label}, the next best" if several else other.label
    figures = _figures_to_quote(dataset, best, other, next_best, answer.lead)
    return f"{who} agreed better with {dataset.whose_labels} than {than} ({figures})"


def _quoted_tie(dataset: RankedDataset, answer: Answer) -> str:
    first, second = answer.judges
    figures = _figures_to_quote(dataset, first, second, second.label, answer.lead)
    pair = f"{first.label} and {second.label}"
    if answer.against is not None:
        companion = MEASURES[METRICS[dataset.measure].companion or ""]
        other_way = f"by {companion}, {_difference(dataset, answer.against)} the other way"
        return f"the order of {pair} depends on the metric ({figures}; {other_way})"
    if answer.lead is not None and answer.lead.holds:
        chance = f"{first.label} was {_against_chance(dataset, first)}"
        return f"{first.label} agreed better with {dataset.whose_labels} than {second.label} ({figures}), but {chance}"
    return f"{pair} did not differ significantly in their agreement with {dataset.whose_labels} ({figures})"


def _quoted_agreement(dataset: RankedDataset, answer: Answer) -> str:
    judge = answer.judges[0]
    chance = dataset.chance(judge)
    figure = dataset.figure(judge)
    p = f", p {p_in_words(chance.adjusted)}" if chance and chance.adjusted is not None else ""
    same = " with identical verdicts" if answer.outcome is Outcome.IDENTICAL else ""
    who = f"{named(answer.judges)}{same}"
    metric = f"{MEASURES[dataset.measure]} {_value(figure)}{_interval(dataset, figure)}{p}"
    return f"{who} agreed with {dataset.whose_labels} better than chance ({metric})"


def _quoted_chance(dataset: RankedDataset, best: Judge) -> str:
    figure = dataset.own_figure(best)
    metric = f"{MEASURES[dataset.measure]} {_value(figure)}{_interval(dataset, figure)}"
    if is_below_chance(dataset, best):
        return f"the scores of {best.label} went against those of {dataset.whose_labels} ({metric})"
    if len(dataset.judges) == 1:
        return f"{best.label} did not agree with {dataset.whose_labels} significantly better than chance ({metric})"
    which = f"highest {metric}, {best.label}"
    return f"no judge agreed with {dataset.whose_labels} significantly better than chance ({which})"


def _figures_to_quote(
    dataset: RankedDataset, first: Judge, second: Judge, name: str, lead: LeadOverRunnerUp | None
) -> str:
    """Write both figures with their intervals, and the difference."""
    one = dataset.figure(first)
    other = dataset.figure(second)
    metric = MEASURES[dataset.measure]
    figures = f"{metric} {_value(one)}{_interval(dataset, one)}"
    figures += f", against {_value(other)}{_interval(dataset, other)} for {name}"
    adjusted = ", Holm-adjusted" if lead and lead.p is not None and len(dataset.ranked) > 2 else ""
    return f"{figures}; {_difference(dataset, lead)}{adjusted}" if lead else figures


def _figure(dataset: RankedDataset, judge: Judge) -> str:
    figure = dataset.figure(judge)
    return f"{dataset.symbol} {_value(figure)}{_interval(dataset, figure)}"


def companion_of(dataset: RankedDataset, judge: Judge) -> str:
    """Write the companion metric of a judge as a sentence; empty without one."""
    name = METRICS[dataset.measure].companion
    beside = dataset.companion(judge, name)
    if name is None or beside is None:
        return ""
    return (
        f"{capital(MEASURES[name])} of {judge.label}: {_value(beside)}{_interval(dataset, beside)}."
    )


def kappa_of(dataset: RankedDataset, judge: Judge) -> str:
    """Write a judge's kappa after a space.

    An accuracy alone does not show how much of it is chance.
    """
    text = companion_of(dataset, judge) if dataset.compares else ""
    return f" {text}" if text else ""


def _over(dataset: RankedDataset) -> str:
    """Write the number of rows and groups behind the figures, and the rest if judges failed."""
    best = dataset.ranked[0]
    rows = dataset.rows(best)
    clusters = dataset.clusters(best)
    aspects = f", mean of {len(dataset.subjects)} aspects" if len(dataset.subjects) > 1 else ""
    if not rows:
        return aspects
    wanted = max(judge.wanted // max(1, len(judge.subjects)) for judge in dataset.judges)
    of_all = (
        f" of {wanted:,}"
        if wanted - rows > NOTHING_LOST * wanted and dataset.subjects[0].rule.votes != "each"
        else ""
    )
    text = f" over {rows:,}{of_all} {dataset.unit(max(rows, 2) if of_all else rows)}"
    silent = max((within.one_score for _, within in dataset.within_groups(best)), default=0)
    left_out = dataset.groups_left_out(best)
    if clusters is not None and dataset.cluster_name == "groups":
        groups = clusters + left_out
        text += f" in {groups:,} {'group' if groups == 1 else 'groups'}"
        about = [f"{silent:,} with one score for all items {count_as_0(silent)}"] if silent else []
        about += [f"{left_out:,} {ALL_ALIKE}"] if left_out else []
        text += f" ({'; '.join(about)})" if about else ""
    return text + aspects


def _rows_of(dataset: RankedDataset) -> str:
    rows = max((agreement.n for agreement in dataset.agreements(*dataset.judges)), default=0)
    return f"{rows:,} labelled {dataset.unit(rows)}. " if rows else ""


def count_as_0(groups: int) -> str:
    """Write that groups count as 0, with the verb in the right number."""
    return "counts as 0" if groups == 1 else "count as 0"


def _needed(dataset: RankedDataset, lead: LeadOverRunnerUp | None, purpose: str) -> str:
    # The needed number may already be reached. Adjusted for the other comparisons, it still does
    # not separate the judges.
    enough = dataset.clusters(dataset.ranked[0]) or 0
    if lead is None or lead.holds or lead.needed is None or lead.needed <= enough:
        return ""
    at = f"({POWER:.0%} power at the difference seen)"
    return (
        f" At least {_rounded(lead.needed)} {dataset.cluster_name} would be needed {purpose} {at}."
    )


def _rounded(count: int) -> str:
    """Write an approximate number with two digits.

    >>> _rounded(7134), _rounded(10)
    ('7,100', '10')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def _value(statistic: Statistic, digits: int = DIGITS) -> str:
    return written(statistic.value, Column("", digits)).text


def _interval(dataset: RankedDataset, statistic: Statistic, digits: int = DIGITS) -> str:
    """Write an interval after a comma; empty without one."""
    if statistic.low is None or statistic.high is None:
        return ""
    low, high = (written(end, Column("", digits)).text for end in (statistic.low, statistic.high))
    return f", {100 * dataset.study.resampling.confidence:.4g} % CI {low} to {high}"


def p_in_words(p: float | None) -> str:
    """Write a p-value after the letter.

    >>> p_in_words(0.0004), p_in_words(0.31)
    ('< 0.001', '= 0.310')
    """
    text = written(p, Column("p", form="p")).text
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"
