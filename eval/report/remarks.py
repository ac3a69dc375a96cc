"""Write what a claim does not say: figures, what was left out, how judges lean where labels do not, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..analysis.judges import EvaluationTarget, Judge
from ..analysis.leaderboard import NOT_BY_ALL, LeaderboardEntry
from ..analysis.leanings import Leaning
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_UNITS
from ..tables.grid import in_words, money
from .labels import MEASURES, labels_of
from .ranked_dataset import RankedDataset, capital, named, value

_MISSING = 0.01
"""From this share of rows on that a judge has no verdict on, a sentence says so."""
_OFTEN = 0.1
"""From this share of judgements on that carry a warning of one kind, a sentence says so."""
_SHIFT = 0.1
"""From this part of the scale on a shift of level is spoken of."""


_FEW = 2
"""So many judges, or aspects, a remark names where there are more than one more; it counts the others."""


def remarks(dataset: RankedDataset, full: bool = False) -> Iterator[str]:
    """Yield sentences on the figures, on rows and judges left out, on how judges lean, and on the cost.

    Args:
        dataset: whose judges they are.
        full: whether to name every judge and aspect that a remark holds for.
    """
    if dataset.ranked:
        yield _sure(dataset)
        yield from _folded(dataset.unmeasured, "aspects have no figure", full)
    else:
        yield "`report --table agreement` says how many rows were used, and why others were left out"
    yield from _folded(_lacking(dataset), "judges have no verdict on some rows, as the notes say", full)
    yield from _folded(_unranked(dataset), "judges are not ranked: they have too few labelled rows", full)
    yield from _folded(_constant(dataset, full), "judges give the same verdict on every item", full)
    yield from _folded(_unhealthy(dataset), "judges did not work as intended", full)
    yield from _alike(dataset)
    for way, what in (
        ("level", f"judges score on another level than {dataset.whom}"),
        ("length", f"judges follow length more than {dataset.whom} do"),
        ("place", f"judges prefer one of the places more than {dataset.whom} do"),
    ):
        yield from _folded(_leaning(dataset, way, full), what, full)
    if dataset.ranked and dataset.ranked[0].usage.calls_each is not None:
        yield _cost_of(dataset.ranked[0])


def _sure(dataset: RankedDataset) -> str:
    best, measure = dataset.ranked[0], MEASURES[dataset.measure]
    of = f"{capital(measure)} of {best.label} with {labels_of(dataset.subjects[0])}: {in_words(dataset.figure(best))}"
    if len(dataset.subjects) > 1:
        return f"{of}, the mean over {len(dataset.subjects)} aspects"
    rows, units = dataset.rows(best), dataset.units(best)
    where = f" over {rows:,} rows" if rows else ""
    grouped = units is not None and dataset.unit_name == "groups"
    plural = "group" if units == 1 else "groups"
    name = METRICS[dataset.measure].companion
    beside = dataset.companion(best, name)
    also = f"; {MEASURES[name]} {in_words(beside)}" if name and beside else ""
    return f"{of}{where}{f' in {units:,} {plural}' if grouped else ''}{also}"


def _folded(of_judges: Iterable[str], what: str, full: bool) -> Iterator[str]:
    """Yield sentences, each on a judge; of many the first, and how many more there are that it holds for."""
    sentences = list(of_judges)
    shown = len(sentences) if full or len(sentences) <= _FEW + 1 else _FEW
    yield from sentences[:shown]
    if more := len(sentences) - shown:
        yield f"{more} more {what} (report --all)"


def _lacking(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges have no verdict on some rows, and whether these count for others."""
    for judge in dataset.judges:
        lacking = judge.failed + judge.missing
        if judge.wanted and lacking > _MISSING * judge.wanted:
            what = "failed on" if not judge.missing else "has no verdict on"
            rows = f"{lacking:,} of {judge.wanted:,} rows ({lacking / judge.wanted:.0%})"
            # Not those of a judge that is not compared, or of one that failed where all others did.
            others = (other for other in dataset.judges if other is not judge)
            left_out = (agreement.left_out for agreement in dataset.agreements(*others))
            shared = judge in dataset.ranked and any(reasons.get(NOT_BY_ALL) for reasons in left_out)
            yield f"{judge.label} {what} {rows}{', which are left out for all judges' if shared else ''}"


def _unranked(dataset: RankedDataset) -> Iterator[str]:
    most = dataset.rows(dataset.ranked[0]) if dataset.ranked else 0
    for judge in dataset.judges:
        rows = dataset.rows(judge)
        if judge not in dataset.ranked and 0 < rows < FEWEST_UNITS <= most:
            yield f"{judge.label} is not ranked: it has only {rows:,} labelled rows"


def _constant(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield which judges say the same of all items."""
    for judge in dataset.judges:
        verdicts = []
        for entry in dataset.entries(judge):
            if entry.always is not None:
                verdict_text = f"{entry.always:g}" if isinstance(entry.always, float) else entry.always
                figure = entry.measures.get("accuracy")
                met = f", which {value(figure)} of the labels are" if figure else ""
                verdicts.append(f"{verdict_text}{_on(entry, dataset.subjects)}{met}")
        if verdicts:
            nobody = ": it agrees with nobody" if dataset.labels_differ else ""
            yield f"{judge.label} always says {_few(verdicts, full)}{nobody}"


def _unhealthy(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges' verdicts often carry warnings that the agents behind them did not work."""
    subjects = {subject.label for subject in dataset.subjects}
    for judge in dataset.judges:
        health: Counter[str] = Counter()
        for diagnosis in dataset.study.diagnoses:
            if diagnosis.judge == judge.label and diagnosis.subject in subjects:
                health.update(diagnosis.replies.health)
        made = judge.usage.judgements
        often = [f"{kind} in {count:,}" for kind, count in health.most_common() if count > _OFTEN * made]
        if often:
            yield f"{judge.label} did not work as intended: {', '.join(often)} of {made:,} judgements"


def _alike(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges say the same as another judge; the first one's are in the claim."""
    already: set[str] = set()
    for judge in dataset.ranked:
        same = [] if judge.label in already else dataset.same_as(judge)
        already |= {other.label for other in same}
        if same and judge is not dataset.ranked[0]:
            yield f"{named([judge, *same])} give the same verdict on every row"


def _leaning(dataset: RankedDataset, way: str, full: bool) -> Iterator[str]:
    """Yield how the judges lean in one way where the labels do not, significantly."""
    subjects = {subject.label: subject for subject in dataset.subjects}
    leanings = [of for of in dataset.study.leanings if of.way == way and of.subject in subjects and of.holds]
    if way == "level":
        leanings = [leaning for leaning in leanings if _is_large(leaning, subjects[leaning.subject])]
    for judge in dataset.judges:
        holding = [leaning for leaning in leanings if leaning.judge == judge.label]
        phrases = _few([_leant(leaning, dataset) for leaning in holding], full)
        if holding and way == "level":
            yield f"{judge.label} scores {phrases} than {dataset.whom}: order is measured, not level"
        elif holding and way == "length":
            yield f"{judge.label} follows length more than {dataset.whom} do: {phrases}"
        elif holding:
            place = "first" if (holding[0].excess.value or 0) > 0 else "second"
            yield f"{judge.label} prefers the {place} answer more than {dataset.whom} do: {phrases}"


def _few(of_aspects: Sequence[str], full: bool) -> str:
    """Join what is said of several aspects; of many, count the others."""
    if full or len(of_aspects) <= _FEW + 1:
        return ", ".join(of_aspects)
    return f"{', '.join(of_aspects[:_FEW])}, and otherwise on {len(of_aspects) - _FEW} more aspects"


def _is_large(shift: Leaning, subject: EvaluationTarget) -> bool:
    if subject.low is None or subject.high is None:
        return False
    return abs(shift.excess.value or 0.0) > _SHIFT * (subject.high - subject.low)


def _on(about: Leaning | LeaderboardEntry, subjects: Sequence[EvaluationTarget]) -> str:
    return f" on {about.subject}" if len(subjects) > 1 else ""


def _leant(leaning: Leaning, dataset: RankedDataset) -> str:
    """Write how far a judge leans, beside the labels."""
    shift, on = leaning.excess.value or 0, _on(leaning, dataset.subjects)
    if leaning.way == "level":
        points = f"{abs(shift):.1f} points {'higher' if shift > 0 else 'lower'}{on}"
        return f"{points} ({leaning.judged:.2f} against {leaning.human:.2f})"
    if leaning.way == "length" and not dataset.compares:
        return f"rho with length {leaning.judged:.3f}, of the labels {leaning.human:.3f}{on}"
    answer = "longer answer" if leaning.way == "length" else "first one"
    return f"the {answer} wins {leaning.judged:.0%} of the time, by the labels {leaning.human:.0%}{on}"


def _cost_of(judge: Judge) -> str:
    usage = judge.usage
    cost = "at unknown cost" if usage.cost_each is None else f"and costs {money(usage.cost_each)}"
    return f"A judgement of {judge.label} takes {usage.calls_each or 0:.1f} calls {cost}"
