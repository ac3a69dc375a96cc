"""Write the remarks on the judges of a dataset, the most important first.

The first screen shows two of these remarks. ``report --all``, the page and the files have all of
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...state.verdict_warnings import REPLACED
from ..analysis.judges import Subject
from ..analysis.leaderboard import NOT_BY_ALL, LeaderboardEntry
from ..analysis.leanings import Leaning
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic
from ..tables.grid import in_words, money
from .answer import Outcome, answer_of
from .headline import companion_of, count_as_0
from .labels import MEASURES, prompts_of
from .ranked_dataset import MANY, RankedDataset, named

_MISSING = 0.01
"""The share of rows without a verdict from which there is a remark."""
_SILENT = 0.05
"""The share of groups with one score from which there is a remark."""
_OFTEN = 0.1
"""The share of judgements with one kind of warning from which there is a remark."""
_SHIFT = 0.1
"""The shift of level from which there is a remark, as a part of the scale."""
_FEW = 2
"""The maximum number of judges or aspects that a remark names; it counts the others."""


@dataclass(frozen=True)
class Remark:
    """One kind of remark.

    Attributes:
        sentences: a sentence for each judge or aspect that the remark is about.
        others: the words for judges that are only counted: "6 more judges ...".
        is_warning: whether it makes the answer doubtful, so that the first screen may show it.
    """

    sentences: tuple[str, ...]
    others: str = ""
    is_warning: bool = True

    def text(self, most: int | None = None) -> str:
        """Return the sentences as one text: the first ``most``, and the number of the rest."""
        shown = len(self.sentences) if most is None or len(self.sentences) <= most + 1 else most
        more = len(self.sentences) - shown
        counted = [f"{more} more {self.others} (report --all)."] if more else []
        return " ".join([*self.sentences[:shown], *counted])


def remarks(dataset: RankedDataset, full: bool = False) -> list[Remark]:
    """Return the remarks on a dataset, the most important first.

    Args:
        dataset: the dataset of the judges.
        full: whether to name every aspect of a remark.
    """
    kinds: list[tuple[Callable[[RankedDataset, bool], Iterator[str]], str]] = [
        (_failing, "judges failed on some items"),
        (_lacking, "judges have no verdict on some items"),
        (_unranked, "judges are not ranked, because they have too few labelled items"),
        (_constant, "judges gave every item the same verdict"),
        (_one_score, "judges gave all items of some groups one score"),
        (_unhealthy, "judges need a check"),
        (_own_rows, ""),
        (_alike, "groups of judges gave identical verdicts"),
        (_placed, "judges prefer the answer shown first or second"),
        (_shifted, "judges score on another level than the labels"),
        (_lengthy, "judges have verdicts that go with length more than the labels do"),
        (_unmeasured, "aspects have no agreement"),
        (_unpriced, "judges have an unknown cost"),
    ]
    found = [Remark(tuple(of(dataset, full)), others) for of, others in kinds]
    found.append(Remark(tuple(_companions(dataset)), is_warning=False))
    found.append(Remark(tuple(_of_one_model(dataset)), is_warning=False))
    found.append(Remark(tuple(_reworded(dataset)), is_warning=False))
    return [remark for remark in found if remark.sentences]


def incompleteness(dataset: RankedDataset) -> list[Remark]:
    """Return the remarks that also apply without labels.

    They are on failed or missing judgements, and on panels of one model.
    """
    failed = tuple(failures(dataset))
    missing = tuple(_lacking(dataset, False))
    found = [
        Remark(failed, "judges failed on some items"),
        Remark(missing, "judges are incomplete"),
        Remark(tuple(_of_one_model(dataset)), is_warning=False),
    ]
    return [remark for remark in found if remark.sentences]


def failures(dataset: RankedDataset) -> Iterator[str]:
    """Yield a sentence for each judge with failures, with the most common reason."""
    for judge in dataset.judges:
        if not judge.failed:
            continue
        what = (
            "items"
            if len(judge.subjects) <= 1 and judge.manifest.get("repeats", 1) in (None, 1)
            else "judgements"
        )
        made = judge.judged + judge.failed
        count = f"all {made:,}" if not judge.judged else f"{judge.failed:,} of {made:,}"
        if judge.failed == made == 1:
            count = "its only"
            what = what[:-1]
        reasons = Counter[str]()
        for diagnosis in dataset.study.diagnoses:
            if diagnosis.judge == judge.label and diagnosis.subject in judge.subjects:
                reasons.update(diagnosis.replies.reasons)
        why = f' ("{reasons.most_common(1)[0][0].rstrip(".")}")' if reasons else ""
        more = f" and {len(reasons) - 1} other reasons" if len(reasons) > 2 else ""
        more = " and 1 other reason" if len(reasons) == 2 else more
        left_out = (
            ""
            if not _left_out_for_all(dataset, judge.label)
            else "; they are left out for all judges"
        )
        yield f"{judge.label} failed on {count} {what}{why}{more}{left_out}."


def _failing(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    yield from failures(dataset)


def _left_out_for_all(dataset: RankedDataset, label: str) -> bool:
    """Whether rows without a verdict of this judge are left out for all judges."""
    if label not in {judge.label for judge in dataset.ranked}:
        return False
    others = (judge for judge in dataset.judges if judge.label != label)
    return any(agreement.left_out.get(NOT_BY_ALL) for agreement in dataset.agreements(*others))


def _lacking(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    """Yield the judges that have not reached some rows."""
    for judge in dataset.judges:
        if judge.wanted and judge.missing > _MISSING * judge.wanted:
            rows = f"{judge.missing:,} of {judge.wanted:,} judgements ({judge.missing / judge.wanted:.0%})"
            left_out = (
                ", which are left out for all judges"
                if _left_out_for_all(dataset, judge.label)
                else ""
            )
            yield f"{judge.label} has not made {rows}{left_out}."


def _own_rows(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield each judge's agreement over all its own rows, if others judged only some of them."""
    own = [(judge, chance) for judge in dataset.ranked if (chance := dataset.chance(judge))]
    if any(chance.rows > dataset.rows(judge) for judge, chance in own):
        phrases = [
            f"{judge.label} {in_words(chance.figure)} over {chance.rows:,}"
            f" ({'better than chance' if chance.better else 'may be chance'})"
            for judge, chance in own
        ]
        shared = min((dataset.rows(judge) for judge, _ in own), default=0)
        shown = phrases if full else phrases[:MANY]
        yield (
            f"The judges are compared on the {shared:,} {dataset.unit(shared)} that all of them judged."
            f" {MEASURES[dataset.measure]} on each judge's own: {', '.join(shown)}."
        )


def _unranked(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    most = dataset.rows(dataset.ranked[0]) if dataset.ranked else 0
    for judge in dataset.judges:
        rows = dataset.rows(judge)
        if judge not in dataset.ranked and 0 < rows < FEWEST_CLUSTERS <= most:
            yield f"{judge.label} is not ranked, because it has only {rows:,} labelled {dataset.unit(rows)}."


def _constant(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield the judges that gave every item the same verdict, unless the headline names them."""
    named_already = answer_of(dataset).outcome is Outcome.CONSTANT
    for judge in dataset.judges:
        verdicts = []
        for entry in dataset.entries(judge):
            if entry.always is None:
                continue
            if isinstance(entry.always, float):
                verdicts.append(f"{entry.always:g}{_on(entry, dataset.subjects)}")
            else:
                verdicts.append(_winner(entry.always, entry.measures.get("accuracy")))
        if not verdicts or (named_already and len(verdicts) == 1 and not dataset.compares):
            continue
        so = ", so its agreement cannot be computed" * (
            dataset.labels_differ and not dataset.compares
        )
        item = "comparison" if dataset.compares else "item"
        yield f"{judge.label} gave every {item} {_few(verdicts, full)}{so}."


def _winner(winner: str, accuracy: Statistic | None) -> str:
    """Write that all comparisons have one winner, with the share of matching labels."""
    verdict = "a tie" if winner == "tie" else f"to answer {winner}"
    share = (
        f", as {accuracy.value:.0%} of the labels do"
        if accuracy and accuracy.value is not None
        else ""
    )
    return f"{verdict}{share}; that is no better than chance"


def _one_score(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield the judges that give all items of some groups one score, unless the evidence has it."""
    for judge in dataset.judges:
        # The evidence has the count for the first judge on a single aspect. A constant judge has
        # its own remark.
        said = len(dataset.subjects) == 1 and judge in dataset.ranked[:1]
        if said or dataset.constant(judge):
            continue
        counts = [
            f"{within.one_score:,} of {within.groups:,} groups{_on(entry, dataset.subjects)}"
            for entry, within in dataset.within_groups(judge)
            if within.one_score > _SILENT * within.groups
        ]
        if counts:
            yield f"{judge.label} gave all items of a group one score in {_few(counts, full)}; these {count_as_0(2)}."


def _unhealthy(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    """Yield the judges whose verdicts often carry warnings about failing agents."""
    subjects = {subject.label for subject in dataset.subjects}
    for judge in dataset.judges:
        health: Counter[str] = Counter()
        for diagnosis in dataset.study.diagnoses:
            if diagnosis.judge == judge.label and diagnosis.subject in subjects:
                health.update(diagnosis.replies.health)
        made = judge.usage.judgements
        often = [
            f"{kind} in {count:,}" for kind, count in health.most_common() if count > _OFTEN * made
        ]
        if often:
            yield f"Check {judge.label}: {', '.join(often)} of {made:,} judgements."


def _alike(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    """Yield the judges with the same verdicts as another one.

    The headline has those of the first judge.
    """
    already: set[str] = set()
    for judge in dataset.ranked:
        same = [] if judge.label in already else dataset.same_as(judge)
        already |= {other.label for other in same}
        if same and judge is not dataset.ranked[0]:
            yield f"{named([judge, *same])} gave identical verdicts."


def _shifted(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield the judges that score significantly higher or lower than the labels.

    The difference is more than a tenth of the scale.
    """
    subjects = {subject.label: subject for subject in dataset.subjects}
    for label, held in _leanings(dataset, "level"):
        large = [leaning for leaning in held if _is_large(leaning, subjects[leaning.subject])]
        if large:
            phrases = [_shift_in_words(leaning, dataset.subjects) for leaning in large]
            yield f"{label} is {_few(phrases, full)}. This does not affect its rank correlation."


def _shift_in_words(shift: Leaning, subjects: Sequence[Subject]) -> str:
    points = shift.excess.value or 0.0
    which = "lenient" if points > 0 else "strict"
    means = f"(mean {shift.judged:.2f}, labels {shift.human:.2f})"
    return f"{abs(points):.1f} points too {which}{_on(shift, subjects)} {means}"


def _is_large(shift: Leaning, subject: Subject) -> bool:
    if subject.low is None or subject.high is None:
        return False
    return abs(shift.excess.value or 0.0) > _SHIFT * (subject.high - subject.low)


def _lengthy(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield the judges that follow length more than the labels do.

    This is not evidence of a bias. Only an effect at equal quality is, which needs labels of
    several annotators.
    """
    for label, held in _leanings(dataset, "length"):
        if favoured := [leaning for leaning in held if leaning.favours_longer]:
            phrases = [_beyond_in_words(leaning, dataset) for leaning in favoured]
            longer = "answers" if dataset.compares else "texts"
            yield f"{label} favours longer {longer}: {_few(phrases, full)}."
            continue
        phrases = []
        for leaning in held:
            if dataset.compares:
                figures = f"the longer answer wins {leaning.judged:.0%} of the time, by the labels {leaning.human:.0%}"
            else:
                figures = f"rho with length {leaning.judged:.2f}, of the labels {leaning.human:.2f}"
            phrases.append(f"{figures}{_on(leaning, dataset.subjects)}")
        goes = f"The verdicts of {label} go with length more than the labels do ({_few(phrases, full)})"
        if all(leaning.shows_no_effect for leaning in held):
            beyond = [_beyond_in_words(leaning, dataset) for leaning in held]
            yield f"{goes}; no effect of length is found beyond the noise of the labels ({_few(beyond, full)})."
        else:
            yield f"{goes}; labels this noisy would show it too."


def _beyond_in_words(leaning: Leaning, dataset: RankedDataset) -> str:
    """Write the effect of length at equal quality, as the halves of the annotators show it."""
    beyond = leaning.beyond
    assert beyond is not None and beyond.value is not None
    scale = 100 if dataset.compares else 1
    unit = (
        "percentage points of wins"
        if dataset.compares
        else "points per standard deviation of log length"
    )
    digits = 0 if dataset.compares else 2
    value = f"{scale * beyond.value:.{digits}f} {unit}"
    if beyond.low is not None and beyond.high is not None:
        ends = f"{scale * beyond.low:.{digits}f} to {scale * beyond.high:.{digits}f}"
        value = f"{value}, 95 % CI {ends}"
    return f"at equal quality, {value}{_on(leaning, dataset.subjects)}"


def _placed(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield the judges that prefer a place.

    The experiment shows each pair in both orders.
    """
    for label, held in _leanings(dataset, "place"):
        place = "first" if (held[0].excess.value or 0) > 0 else "second"
        wins = [
            f"{leaning.judged:.0%} of the time{_on(leaning, dataset.subjects)}" for leaning in held
        ]
        yield (
            f"{label} prefers the answer shown {place}: with both orders judged, the one shown first wins"
            f" {_few(wins, full)}."
        )


def _leanings(dataset: RankedDataset, way: str) -> Iterator[tuple[str, list[Leaning]]]:
    """Yield the judges with significant leanings that the labels do not have, with each leaning."""
    subjects = {subject.label for subject in dataset.subjects}
    leanings = [
        of
        for of in dataset.study.leanings
        if of.way == way and of.subject in subjects and (of.holds or of.favours_longer)
    ]
    for judge in dataset.judges:
        if held := [leaning for leaning in leanings if leaning.judge == judge.label]:
            yield judge.label, held


def _unmeasured(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    """Yield why aspects have no agreement, if others have one."""
    if dataset.ranked:
        yield from (f"No agreement on {reason}." for reason in dataset.unmeasured)


def _companions(dataset: RankedDataset) -> Iterator[str]:
    """Yield the companion metric of the first judge, unless the evidence has it."""
    if (
        dataset.ranked
        and not dataset.compares
        and (text := companion_of(dataset, dataset.ranked[0]))
    ):
        yield text


def _reworded(dataset: RankedDataset) -> Iterator[str]:
    """Yield the prompts of each judge whose prompts are not the bundled ones."""
    for judge in dataset.judges:
        if sets := prompts_of(judge):
            yield f"{judge.label} used the prompts {sets} in place of the usual ones."


def _of_one_model(dataset: RankedDataset) -> Iterator[str]:
    """Yield the panels in which one model has all seats, as their runs recorded it."""
    for judge in dataset.judges:
        models = (judge.manifest.get("one_model_panels") or {}).get(judge.protocol)
        if not models:
            continue
        replaced = sum(
            diagnosis.replies.warnings.get(REPLACED.label, 0)
            for diagnosis in dataset.study.diagnoses
            if diagnosis.judge == judge.label and diagnosis.subject in judge.subjects
        )
        made = f"{replaced:,} of {judge.usage.judgements:,} judgements"
        apart = f" except in {made}, which have replaced members" if replaced else ""
        yield (
            f"One model has all seats of {judge.label} ({', '.join(models)}){apart}, so the members' errors "
            "are correlated by construction."
        )


def _unpriced(dataset: RankedDataset, _full: bool) -> Iterator[str]:
    for judge in dataset.judges:
        calls = judge.usage.calls_each
        if calls and judge.usage.cost_each is None:
            each = "1 model call" if round(calls, 1) == 1 else f"{calls:.1f} model calls"
            price = "Cost unknown: add `?price_in=...&price_out=...` to the model"
            yield f"{judge.label} needs {each} per item. {price}."


def price(dataset: RankedDataset) -> str:
    """Write the calls and cost of a judgement of the first judge; empty if unknown."""
    usage = dataset.ranked[0].usage if dataset.ranked else None
    if usage is None or not usage.calls_each or usage.cost_each is None:
        return ""
    each = (
        "1 model call" if round(usage.calls_each, 1) == 1 else f"{usage.calls_each:.1f} model calls"
    )
    return f"{dataset.ranked[0].label} needs {each} per item, which costs {money(usage.cost_each)}."


def _on(about: Leaning | LeaderboardEntry, subjects: Sequence[Subject]) -> str:
    return f" on {about.subject}" if len(subjects) > 1 else ""


def _few(of_aspects: Sequence[str], full: bool) -> str:
    """Join the phrases of several aspects; if there are many, count the rest."""
    if full or len(of_aspects) <= _FEW + 1:
        return ", ".join(of_aspects)
    return f"{', '.join(of_aspects[:_FEW])}, and similarly on {len(of_aspects) - _FEW} more aspects"
