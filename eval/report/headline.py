"""Write the answer of a report in sentences: which judge agrees best, how sure that is, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..analysis import Difference, EvaluationTarget, Judge, Study
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic, is_few
from ..tables import Column
from ..tables.grid import money, printable, written
from .labels import MEASURES, by_data, labels_of, main_measure, measure_of
from .leaderboard_tables import best_first, overall


def headline(study: Study, metric: str | None) -> str:
    """Write the answer: a line with a claim for each dataset, no stronger than the tests of the comparison allow."""
    found = [(subjects, ranked) for subjects, ranked in _ranked(study, metric) if ranked]
    if not found:
        return "No judge can be compared with human labels here"
    if len(found) == 1:
        return printable(_capital_of_sentence(_claim(study, *found[0], metric)))
    return "\n".join(
        printable(f"{subjects[0].data}: {_claim(study, subjects, ranked, metric)}")
        for subjects, ranked in found
    )


def _claim(study: Study, subjects: list[EvaluationTarget], ranked: list[Judge], metric: str | None) -> str:
    """Write what can be claimed about the judge that ranks first on a dataset."""
    best, whom = ranked[0], "humans" if subjects[0].labels == "people" else "the synthetic labels"
    if doubt := _doubt(study, subjects, ranked, metric):
        return doubt.format(whom)
    if len(ranked) > 1:
        return _lead_in_words(study, subjects, ranked, metric)
    # A judge that rates everything alike on an aspect has no correlation there, and so no average.
    others = len(best_first(study, subjects, metric)) > 1
    which = "the only judge with a value on every aspect" if others else "the only judge"
    return f"{best.label}, {which}, agrees with {whom} significantly better than chance"


def _lead_in_words(
    study: Study, subjects: list[EvaluationTarget], ranked: list[Judge], metric: str | None
) -> str:
    """Write what the lead of the first of several judges comes to."""
    best, whom = ranked[0], "humans" if subjects[0].labels == "people" else "the synthetic labels"
    if contradiction := _contradiction(study, subjects, ranked, main_measure(subjects[0], metric)):
        return contradiction
    leads = [one for one in _leads(study, subjects, ranked, metric) if one is not None]
    # Asked first: of few units there is no p-value, so a lead is neither confirmed nor put down to chance.
    if any(one.few for one in leads):
        return f"{best.label} ranks first, but the data is too little to tell whether it is better"
    if leads and all(one.holds for one in leads):
        return f"{best.label} agrees best with {whom}"
    base = study.bases.get(subjects[0].label)
    if any(one.holds and one.over == base for one in leads) and ranked[1].label != base:
        return f"{best.label} ranks first, but {ranked[1].label} may be as good"
    return f"{best.label} ranks first, but the lead may be due to chance"


def _doubt(study: Study, subjects: list[EvaluationTarget], ranked: list[Judge], metric: str | None) -> str:
    """Write why nothing is claimed of any judge; empty where there is an agreement to speak of."""
    if any(_is_small(study, subjects, judge) for judge in ranked):
        return "the data is too little to tell whether a judge agrees with {} better than chance"
    if not any(_beats_chance(study, subjects, judge, metric) for judge in ranked):
        return "no judge agrees with {} significantly better than chance"
    if not _beats_chance(study, subjects, ranked[0], metric):
        # It is not named: a judge that always says the same has the accuracy of the most frequent label.
        measure = MEASURES[main_measure(subjects[0], metric)]
        return (
            f"no judge can be said to agree best with {{}}: the highest {measure} cannot be told from chance"
        )
    return ""


def _is_small(study: Study, subjects: list[EvaluationTarget], judge: Judge) -> bool:
    """Tell whether some agreement of the judge is of too few units to tell it from chance."""
    entries = (study.leaderboard.standing(judge.label, subject.label) for subject in subjects)
    return any(entry and entry.agreement and is_few(entry.agreement.units) for entry in entries)


def _beats_chance(study: Study, subjects: list[EvaluationTarget], judge: Judge, metric: str | None) -> bool:
    """Tell whether the interval of the judge's correlation, or of its kappa, lies above zero."""
    figure = overall(study, judge, subjects, metric)
    # Accuracy is above zero by chance too; kappa is zero at chance, as a correlation is.
    if subjects[0].kind == "compare":
        figure = measure_of(study.leaderboard.standing(judge.label, subjects[0].label), "kappa")
    if figure is None or figure.value is None:
        return False
    # An average over aspects may come without an interval; then only its sign is known.
    return figure.value > 0 if figure.low is None and len(subjects) > 1 else (figure.low or 0.0) > 0


def _contradiction(
    study: Study, subjects: list[EvaluationTarget], ranked: Sequence[Judge], measure: str
) -> str:
    """Write what the companion of the leading metric says against its order; empty where it says nothing.

    It does where another judge agrees significantly better than the first by the companion: kappa beside accuracy,
    groups beside rows.
    """
    best, companion = ranked[0].label, METRICS[measure].companion
    against = {
        judge.label: other
        for judge in ranked[1:]
        if companion and (other := lead(study, subjects, judge.label, best, companion)) and other.holds
    }
    if not companion or not against:
        return ""
    # The one whose lead by the companion is the largest.
    rival = max(against, key=lambda judge: against[judge].difference.value or 0.0)
    own = lead(study, subjects, best, rival, measure)
    if subjects[0].kind == "compare" or own is None or not own.holds:
        return f"{best} ranks first by {MEASURES[measure]}, but {rival} does by {MEASURES[companion]}"
    # Both orders are significant: they measure two abilities.
    within, over = (best, rival) if METRICS[measure].within else (rival, best)
    return f"{over} ranks sources, {within} ranks the candidates of a source"


def _leads(
    study: Study, subjects: list[EvaluationTarget], ranked: list[Judge], metric: str | None
) -> tuple[LeadOverRunnerUp | None, ...]:
    """Return the lead of the first judge over the second, and over the base if that is neither of them."""
    best, runner_up = ranked[0].label, ranked[1].label
    base = study.bases.get(subjects[0].label)
    others = [runner_up, *([base] if base not in (None, best, runner_up) else [])]
    return tuple(lead(study, subjects, best, other, metric) for other in others if other is not None)


def answers(study: Study, metric: str | None) -> Iterator[str]:
    """Write sentences for each dataset: the agreement, the lead over others with its p-value, and the cost."""
    found = _best(study, metric)
    for subjects, best in found:
        where = f"On {subjects[0].data}, {best.label}: " if len(found) > 1 else ""
        is_small = _is_small(study, subjects, best)
        yield where + " ".join(
            filter(
                None,
                (
                    _sure(study, subjects, best, metric),
                    _equals(study, subjects, best, metric),
                    # A lead is none if the judge that has it cannot be told from chance.
                    _against(study, subjects, metric)
                    if is_small or _beats_chance(study, subjects, best, metric)
                    else "",
                    _cost_of(best),
                ),
            )
        )
    if not found:
        yield (
            "There are no labels, no verdicts, or no correlation that is defined: "
            "the tables below say how many rows were used, and why others were left out."
        )


def caveats(study: Study) -> tuple[str, ...]:
    """Write the notes of the comparison, which make the answer less certain."""
    return tuple(
        f"Caution: {note}." if not note.endswith(".") else f"Caution: {note}"
        for note in study.comparison.notes
    )


def subtitle(study: Study) -> str:
    """Write what the report covers: datasets, judges, verdicts."""
    judges = len(study.judges)
    data = ", ".join(dict.fromkeys(subject.data for subject in study.subjects)) or "nothing judged"
    verdicts = sum(judge.judged for judge in study.judges)
    failed = sum(judge.failed for judge in study.judges)
    missing = f", {failed:,} failed" if failed else ""
    return f"{data} · {judges} {'judge' if judges == 1 else 'judges'} · {verdicts:,} verdicts{missing}"


def _ranked(study: Study, metric: str | None) -> list[tuple[list[EvaluationTarget], list[Judge]]]:
    """Return the subjects of each dataset, and the judges that have a value on them, the best first."""
    found = []
    for subjects in by_data(study).values():
        figures = (
            (each, overall(study, each, subjects, metric)) for each in best_first(study, subjects, metric)
        )
        found.append((subjects, [each for each, figure in figures if figure and figure.value is not None]))
    return found


def _best(study: Study, metric: str | None) -> list[tuple[list[EvaluationTarget], Judge]]:
    """Return the subjects of each dataset and the judge that ranks first; datasets without any value are left out."""
    return [(subjects, ranked[0]) for subjects, ranked in _ranked(study, metric) if ranked]


def _sure(study: Study, subjects: list[EvaluationTarget], best: Judge, metric: str | None) -> str:
    figure = overall(study, best, subjects, metric)
    measure = MEASURES[main_measure(subjects[0], metric)]
    labels = labels_of(subjects[0])
    if len(subjects) == 1:
        standing = study.leaderboard.standing(best.label, subjects[0].label)
        rows = getattr(standing and standing.agreement, "n", None)
        of = f" over {rows:,} rows" if rows else ""
        companion = METRICS[main_measure(subjects[0], metric)].companion
        beside = measure_of(standing, companion) if companion else None
        also = (
            f"; {MEASURES[companion]} {_shown(beside)}"
            if companion and beside and beside.value is not None
            else ""
        )
        return f"{_capital(measure)} with {labels}: {_shown(figure)}{of}{also}."
    return f"{_capital(measure)} with {labels}: {_shown(figure)}, the mean over {len(subjects)} aspects."


def _equals(study: Study, subjects: list[EvaluationTarget], best: Judge, metric: str | None) -> str:
    """Name the judges with exactly the same agreement, which take no fewer calls."""
    figure = overall(study, best, subjects, metric)
    ranked = best_first(study, subjects, metric)
    same = [
        each.label
        for each in ranked
        if each is not best
        and figure is not None
        and figure.value is not None
        and (other := overall(study, each, subjects, metric)) is not None
        and other.value is not None
        # Apart from noise in the last digits, which ``best_first`` rounds off as well.
        and abs(other.value - figure.value) < 1e-9
    ]
    return f"Equal agreement, with no fewer calls: {', '.join(same)}." if same else ""


def _against(study: Study, subjects: list[EvaluationTarget], metric: str | None) -> str:
    """Write the lead over the second judge and over the base, and whether it is significant."""
    ranked = next(ranked for held, ranked in _ranked(study, metric) if held == subjects)
    if len(ranked) < 2:
        others = len(best_first(study, subjects, metric)) > 1
        return (
            "No other judge has a value on every aspect."
            if others
            else "There is no other judge to compare it with."
        )
    base = study.bases.get(subjects[0].label)
    # Judges with equal agreement have been named by ``_equals``.
    leads = [
        one
        for one in _leads(study, subjects, ranked, metric)
        if one and abs(one.difference.value or 0) > 1e-9
    ]
    told = [
        f"{one.over} ({_BASE if one.over == base else _RUNNER_UP}): {_shown(one.difference)}, {_judged(one)}"
        for one in leads
    ]
    return f"{ranked[0].label}'s lead over {'; over '.join(told)}." if told else ""


_P = Column("p", form="p")
_BASE, _RUNNER_UP = "the base", "second"


def _judged(found: LeadOverRunnerUp) -> str:
    if found.few:
        return "from too few groups or items for a p-value"
    if found.p is None:
        return "without a p-value"
    p = f"Holm-adjusted p {_with_sign(written(found.p, _P).text)}"
    return f"significant ({p})" if found.holds else f"not significant ({p})"


def _with_sign(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"


def _cost_of(judge: Judge) -> str:
    usage = judge.usage
    if usage.calls_each is None:
        return ""
    cost = "at unknown cost" if usage.cost_each is None else f"and costs {money(usage.cost_each)}"
    return f"A judgement takes {usage.calls_each:.1f} calls {cost}."


def _shown(figure: Statistic | None) -> str:
    if figure is None or figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _capital_of_sentence(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with a judge's name."""
    return _capital(text) if text.startswith("no judge") else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


LEVEL = 0.05
"""The significance level: a difference with a Holm-adjusted p-value below it is significant."""


class LeadOverRunnerUp(NamedTuple):
    """Holds the difference of the first judge's agreement to another's on the same rows.

    Attributes:
        over: the label of the other judge.
        difference: the difference with its interval.
        p: the p-value, adjusted by Holm's method; ``None`` if there is none.
        few: whether there are too few units to resample for a p-value.
    """

    over: str
    difference: Statistic
    p: float | None
    few: bool = False

    @property
    def holds(self) -> bool:
        """Tell whether the lead is significant."""
        return not self.few and (self.difference.value or 0.0) > 0 and self.p is not None and self.p < LEVEL


def lead(
    study: Study, subjects: Sequence[EvaluationTarget], ahead: str, over: str, metric: str | None
) -> LeadOverRunnerUp | None:
    """Return the lead of one judge over another; ``None`` if they were not compared.

    The lead is that on the only subject, or that of the averages over all subjects of a dataset.
    """
    measure = main_measure(subjects[0], metric)
    # A pair is compared in one order only, which may be the other one.
    for first, second in ((ahead, over), (over, ahead)):
        found, units = _compared(study, subjects, first, second, measure)
        if found is not None:
            apart = found.difference if first == ahead else _turned(found.difference)
            return LeadOverRunnerUp(over, apart, found.adjusted, is_few(units))
    return None


def _compared(
    study: Study, subjects: Sequence[EvaluationTarget], first: str, second: str, measure: str
) -> tuple[Difference | None, int]:
    if len(subjects) == 1:
        pair = study.comparison.of_pair(subjects[0].label, first, second)
        return (None, 0) if pair is None else (pair.differences.get(measure), pair.units)
    average = study.comparison.average(subjects[0].digest, first, second)
    return (None, 0) if average is None else (average.differences.get(measure), average.units)


def _turned(found: Statistic) -> Statistic:
    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    # The negative of the high end is the new low end.
    return Statistic(minus(found.value), minus(found.high), minus(found.low))
