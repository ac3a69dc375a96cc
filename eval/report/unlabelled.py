"""The first screen of data without labels: winners, order consistency, means, failures.

It makes no statement about agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from ..analysis.verdict_summary import VerdictSummary
from ..statistics.resampling import Statistic
from ..statistics.tie_policy import WINNERS
from ..tables.grid import Column, Grid, fields_of, share_column, text_column, written
from .labels import listed
from .ranked_dataset import RankedDataset

NO_LABELS = "(no human labels)"


def summaries(dataset: RankedDataset) -> list[VerdictSummary]:
    """Return the summaries of a dataset's judges on its subjects, judge by judge."""
    labels = {judge.label for judge in dataset.judges}
    subjects = {subject.label for subject in (*dataset.subjects, *dataset.untold)}
    return [of for of in dataset.study.verdicts if of.judge in labels and of.subject in subjects]


def claim(dataset: RankedDataset) -> str:
    """Write the headline: which answer wins most often, or which judge gives the higher scores."""
    found = [of for of in summaries(dataset) if of.judged]
    if not found:
        failed = any(judge.failed for judge in dataset.judges)
        return "Every judgement failed" if failed else "Nothing was judged yet"
    if dataset.compares:
        return f"{_winner_claim([_commonest(of) for of in found])} {NO_LABELS}"
    means = _means(found)
    if len(means) == 1:
        return "Scores only: there are no human labels"
    highest, *others = sorted(means, key=lambda judge: -means[judge])
    if isclose(means[highest], means[others[-1]], abs_tol=1e-9):
        return f"All judges give the same mean score {NO_LABELS}"
    return f"{highest} gives the highest scores {NO_LABELS}"


def _commonest(of: VerdictSummary) -> tuple[str, ...]:
    most = max(of.wins.values())
    return tuple(winner for winner in WINNERS if of.wins[winner] == most)


def _winner_claim(commonest: Sequence[tuple[str, ...]]) -> str:
    if len({*commonest}) > 1:
        return "The judges disagree on which answer wins most often"
    winners = commonest[0]
    if winners == ("tie",):
        return "Ties are the most frequent verdict"
    if len(winners) == 1:
        return f"Answer {winners[0]} wins most often"
    return (
        "Answers 1 and 2 win equally often" if "tie" not in winners else "No answer wins most often"
    )


def _means(found: Sequence[VerdictSummary]) -> dict[str, float]:
    """Return the mean score of each judge over its aspects."""
    by_judge: dict[str, list[float]] = {}
    for of in found:
        if of.mean is not None and of.mean.value is not None:
            by_judge.setdefault(of.judge, []).append(of.mean.value)
    return {judge: sum(means) / len(means) for judge, means in by_judge.items()}


def table(dataset: RankedDataset, title: str) -> Grid:
    """Make the table with a row for each judge and aspect.

    Comparisons show the winners, and scores show mean and spread.
    """
    found = summaries(dataset)
    named = text_column(title, of=lambda of: _name(of, several=len(dataset.subjects) > 1))
    if dataset.compares:
        shares = fields_of(
            first=share_column("answer 1"),
            second=share_column("answer 2"),
            tied=share_column("ties"),
        )
        columns = (named, *shares)
    else:
        columns = (
            named,
            *fields_of(mean=Column("mean", 2), spread=Column("sd", 2)),
            text_column("range", of=_range),
        )
    return Grid.from_records("", columns, found)


def _name(of: VerdictSummary, several: bool) -> str:
    return f"{of.judge}, {of.subject}" if several else of.judge


def _range(of: VerdictSummary) -> str | None:
    if of.lowest is None or of.highest is None:
        return None
    return f"{of.lowest:g} to {of.highest:g}"


def evidence(dataset: RankedDataset) -> str:
    """Write the number of verdicts, and the share of comparisons with one winner in both orders."""
    found = [of for of in summaries(dataset) if of.judged]
    if not found:
        return ""
    if not dataset.compares:
        return ""
    parts = []
    for of in found:
        wins = f"answer 1 {of.wins['1']:,}, answer 2 {of.wins['2']:,}, ties {of.wins['tie']:,}"
        parts.append(f"{of.judge}: {wins}{_orders(of)}.")
    shown = parts[:2]
    more = len(parts) - 2
    return " ".join([*shown, *([f"{more} more judges in the report."] if more > 0 else [])])


def _orders(of: VerdictSummary) -> str:
    if of.consistent is None or of.consistent.value is None:
        return "; judged in one order only"
    same = round(of.consistent.value * (of.orders or 0))
    return f"; the same winner in both orders in {same:,} of {of.orders:,} comparisons"


def quotable(dataset: RankedDataset) -> str:
    """Write a sentence that a paper may quote about the first judge."""
    found = [of for of in summaries(dataset) if of.judged]
    if not found:
        return ""
    of = found[0]
    on = f" ({of.subject})" if not dataset.compares and of.subject else ""
    left_out = f"; {listed({'judgements failed': of.failed})}" if of.failed else ""
    if dataset.compares:
        assert of.first is not None and of.second is not None and of.tied is not None
        shares = f"answer 1 in {_share(of.first)}, answer 2 in {_share(of.second)} and neither in {_share(of.tied)}"
        sentence = (
            f"Over {of.judged:,} comparisons of {dataset.name}, {of.judge} preferred {shares}"
        )
        return f"{sentence}{_orders(of) if of.consistent else ''}{left_out}. No human labels were used."
    assert of.mean is not None
    mean = written(of.mean, Column("", 2))
    sd = f", SD {of.spread:.2f}" if of.spread is not None else ""
    scale = next((s for s in dataset.subjects if s.label == of.subject and s.low is not None), None)
    points = (
        f" on a scale from {scale.low:g} to {scale.high:g}"
        if scale and scale.high is not None
        else ""
    )
    sentence = f"{of.judge} gave {of.judged:,} items of {dataset.name} a mean score of {mean.text}{points}{on}{sd}"
    return f"{sentence}{left_out}. No human labels were used."


def _share(share: Statistic) -> str:
    return "-" if share.value is None else f"{share.value:.0%}"
