"""The answer in a glance: which judge agrees best with people, how sure that is, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from ..export.grid import money
from ..statistics.statistic import Statistic
from ..study import Contender, Duel, Study, Subject
from .naming import LABELS, MEASURES, by_data, main_measure
from .standings import best_first, overall


def headline(study: Study, metric: str) -> str:
    """The answer for the first dataset, in a line."""
    found = _best(study, metric)
    if not found:
        return "No judge can be compared with people here"
    (subjects, best), *others = found
    whom = "people" if subjects[0].labels == "people" else "the labels"
    where = f" on {subjects[0].data}" if others else ""
    return f"{best.label} agrees best with {whom}{where}"


def answers(study: Study, metric: str) -> Iterator[str]:
    """How sure the answer is and what it costs: some sentences a dataset."""
    found = _best(study, metric)
    for number, (subjects, best) in enumerate(found):
        where = f"On {subjects[0].data}, {best.label}: " if len(found) > 1 and number else ""
        yield where + " ".join(
            filter(
                None,
                (
                    _sure(study, subjects, best, metric),
                    _equals(study, subjects, best, metric),
                    _against(study, subjects, best, metric),
                    _price(best),
                ),
            )
        )
    if not found:
        yield (
            "There are no labels, no verdicts, or no figure that tells judges apart: "
            "the tables below say how many rows counted, and why others did not."
        )


def caveats(study: Study) -> tuple[str, ...]:
    """What makes the answer less sure than it reads: what the comparison has to say of itself."""
    return tuple(
        f"Caution: {note}." if not note.endswith(".") else f"Caution: {note}"
        for note in study.comparison.notes
    )


def eyebrow(study: Study) -> str:
    """What this is a report of."""
    judges = len(study.contenders)
    data = ", ".join(dict.fromkeys(subject.data for subject in study.subjects)) or "nothing judged"
    verdicts = sum(contender.judged for contender in study.contenders)
    failed = sum(contender.failed for contender in study.contenders)
    told = f", {failed:,} without" if failed else ""
    return f"{data} · {judges} {'judge' if judges == 1 else 'judges'} · {verdicts:,} verdicts{told}"


def _best(study: Study, metric: str) -> list[tuple[list[Subject], Contender]]:
    """Each dataset's subjects with who agrees best on them; datasets in which nobody has a figure are left out."""
    found = []
    for subjects in by_data(study).values():
        ranked = best_first(study, subjects, metric)
        figure = overall(study, ranked[0], subjects, metric) if ranked else None
        if figure is not None and figure.value is not None:
            found.append((subjects, ranked[0]))
    return found


def _sure(study: Study, subjects: list[Subject], best: Contender, metric: str) -> str:
    figure = overall(study, best, subjects, metric)
    measure = MEASURES[main_measure(subjects[0], metric)]
    labels = LABELS[subjects[0].labels]
    if len(subjects) == 1:
        standing = study.leaderboard.standing(best.label, subjects[0].label)
        rows = getattr(standing and standing.agreement, "n", None)
        of = f" over {rows:,} rows" if rows else ""
        return f"{_capital(measure)} with {labels} is {_shown(figure)}{of}."
    return f"{_capital(measure)} with {labels} is {_shown(figure)}, the mean over {len(subjects)} aspects."


def _equals(study: Study, subjects: list[Subject], best: Contender, metric: str) -> str:
    """Who agrees just as well, for more calls."""
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
        and abs(other.value - figure.value) < 1e-9
    ]
    return f"So is that of {', '.join(same)}, with no fewer calls." if same else ""


def _against(study: Study, subjects: list[Subject], best: Contender, metric: str) -> str:
    """Whether it is told apart from the base, where it is not the base itself."""
    measure = main_measure(subjects[0], metric)
    base = study.bases.get(subjects[0].label)
    if base == best.label:
        return "It is what the others are measured by."
    names = {subject.label for subject in subjects}
    judged = (
        _told(duel, measure, best.label, base) for duel in study.comparison.duels if duel.subject in names
    )
    told = [one for one in judged if one is not None]
    if not told or base is None:
        return ""
    if len(told) == 1:
        verdict = "is more than chance would give" if told[0] else "may be chance"
        return f"The lead over {base} {verdict} (Holm-adjusted, 5%)."
    if not any(told):
        return f"The lead over {base} may be chance on each of the {len(told)} aspects (Holm-adjusted, 5%)."
    many = f"{sum(told)} of {len(told)} aspects"
    return f"The lead over {base} is more than chance would give on {many} (Holm-adjusted, 5%)."


def _told(duel: Duel, measure: str, best: str, base: str | None) -> bool | None:
    if (duel.first, duel.second) != (best, base) or (found := duel.differences.get(measure)) is None:
        return None
    p = found.adjusted_to_base
    return p is not None and p < 0.05 and (found.difference.value or 0) > 0


def _price(contender: Contender) -> str:
    bill = contender.bill
    if bill.calls_each is None:
        return ""
    price = "at an unknown price" if bill.cost_each is None else f"for {money(bill.cost_each)}"
    return f"A judgement takes {bill.calls_each:.1f} calls, {price}."


def _shown(figure: Statistic | None) -> str:
    if figure is None or figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
