"""Compare each judge with an ensemble of single judges that costs as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from shlex import join
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from ...state.aspects import ASPECTS
from ...state.protocols import Ensemble
from ...state.transcript import total_usage
from ..datasets.dataset import data_options
from ..results.evaluation import UsageTotals
from ..statistics.alignment import grouped
from ..statistics.resampling import Statistic
from .comparison import PairwiseComparator, PairwiseComparison, adjusted
from .loading import JudgeAspectData, LoadedJudge
from .verdict_columns import Side

Currency = Literal["tokens", "cost", "calls"]
"""What is spent: tokens, US dollars, or model calls."""


class EnsembleOf(NamedTuple):
    """Holds the first k single judges of a run, taken as an ensemble of their own, on one subject.

    Attributes:
        label: such as ``ensemble, 2 of 5``.
        source: the label of the judge that holds it.
        subject: its label.
        k: how many judges.
        usage: what they alone took.
        agreement: with people, in the subject's leading metric; with its interval.
    """

    label: str
    source: str
    subject: str
    k: int
    usage: UsageTotals
    agreement: Statistic


def cost_of(usage: UsageTotals, currency: Currency) -> float | None:
    """Return the dollars or calls that a judgement takes."""
    return usage.cost_each if currency == "cost" else usage.calls_each


class EqualCostMatch(NamedTuple):
    """Compares one judge with the largest ensemble that costs no more than it, on the same rows.

    Attributes:
        judge, subject: their labels.
        ensemble: what it is compared with.
        currency: what both costs are counted in.
        spent, ensemble_spent: in that currency, a judgement.
        pairwise: judge (first) against ensemble (second), as in ``comparison``; p-values are adjusted over all
            matches on the subject.
    """

    judge: str
    subject: str
    ensemble: EnsembleOf
    currency: Currency
    spent: float
    ensemble_spent: float
    pairwise: PairwiseComparison


class EqualCostComparison(NamedTuple):
    """Holds the comparison of every judge with single judges at its own price.

    Attributes:
        ensembles: all k of all sources, by subject and source, k rising.
        matches: by subject, in the order of the judges.
        notes: why a judge has no match; where the study holds no ensemble, the command that makes one.
    """

    ensembles: tuple[EnsembleOf, ...]
    matches: tuple[EqualCostMatch, ...]
    notes: tuple[str, ...] = ()


MOST_REFEREES = 10
"""The most judges that a suggested command asks for."""
# Prices are sums of floats: two that are equal may differ in the last digits.
_SLACK = 1e-9
# From so many times the cost of the largest ensemble on, a larger one is suggested.
_MUCH = 1.5


def currency_of(usages: Sequence[UsageTotals]) -> Currency:
    """Return the currency to compare: money where every price is known and something was paid, else calls."""
    # Where nothing costs anything, as with models of one's own, dollars would put all judges at one place.
    return "cost" if total_usage(usage.total for usage in usages).cost_usd else "calls"


def match(comparators: Sequence[PairwiseComparator]) -> EqualCostComparison:
    """Compare every judge on every subject with single judges at its own price."""
    ensembles: list[EnsembleOf] = []
    matches: list[EqualCostMatch] = []
    unmatched: list[str] = []
    without: list[PairwiseComparator] = []
    for comparator in comparators:
        candidates: _Candidates = []
        for data in filter(holds_ensembles, comparator.data):
            sides = list(smaller_ensembles(data))
            for k, side in enumerate(sides, start=1):
                agreement = comparator.labelled_sample(side).statistic(comparator.subject.metric)
                whose = side.label, data.judge.label, comparator.subject.label
                ensemble = EnsembleOf(*whose, k, side.rows.usage_totals, agreement)
                candidates.append((data, len(sides), side, ensemble))
                ensembles.append(ensemble)
        if not candidates:
            without.append(comparator)
            continue
        currency = currency_of([data.usage for data in comparator.data])
        others = [data for data in comparator.data if data.judge.protocol not in ensemble_protocols()]
        tried = [_matched(comparator, data, candidates, currency) for data in others]
        matched = [outcome for outcome in tried if isinstance(outcome, EqualCostMatch)]
        # p-values hold for all matches on one subject together.
        pairwise = adjusted([match.pairwise for match in matched])
        matches += [match._replace(pairwise=pair) for match, pair in zip(matched, pairwise, strict=True)]
        unmatched += [outcome for outcome in tried if isinstance(outcome, str)]
    notes: list[str] = []
    for name, subjects in grouped((of.subject.data, of) for of in without).items():
        # An ensemble as expensive as the most expensive judge.
        calls = max(data.usage.calls_each or 0.0 for comparator in subjects for data in comparator.data)
        missing = f"{name}: no equal-cost baseline, because no run has an ensemble of single judges"
        notes.append(f"{missing}; to make one, with all smaller ones: {_command(subjects[-1], calls)}")
    notes += dict.fromkeys([*_far_below(comparators, matches), *unmatched])
    return EqualCostComparison(tuple(ensembles), tuple(matches), tuple(notes))


_Candidates = list[tuple[JudgeAspectData, int, Side, EnsembleOf]]
"""Ensembles that others may be matched with: of a run that has so many judges, the first of them."""


def _matched(
    comparator: PairwiseComparator, data: JudgeAspectData, candidates: _Candidates, currency: Currency
) -> EqualCostMatch | str | None:
    """Return the match, or why there is none; ``None`` for a judge that spent nothing or judged nothing."""
    price, label = cost_of(data.usage, currency), data.judge.label
    if not price or not len(data.rows):
        return None
    affordable = [
        (cost, judges, side, ensemble)
        for source, judges, side, ensemble in candidates
        if source is not data
        and (cost := cost_of(ensemble.usage, currency)) is not None
        and cost <= price * (1 + _SLACK)
    ]
    if not affordable:
        # Where the only ensembles are parts of this very run, it has nothing to be compared with.
        if all(source is data for source, *_ in candidates):
            return None
        return f"{label} on {comparator.subject.label}: spends less than a single judge of any ensemble here"
    # Of several that cost as much, the one from the largest run.
    cost, _, side, ensemble = max(affordable, key=lambda priced: priced[:2])
    pair = comparator.compare(data.side, side)
    return EqualCostMatch(label, comparator.subject.label, ensemble, currency, price, cost, pair)


def _far_below(comparators: Sequence[PairwiseComparator], matches: Sequence[EqualCostMatch]) -> Iterator[str]:
    """Yield the judges that take much more than the largest ensemble, and the command that makes a larger one."""
    by_subject = {comparator.subject.label: comparator for comparator in comparators}
    for judge, of_judge in grouped((match.judge, match) for match in matches).items():
        match = max(of_judge, key=_cost_ratio)
        ratio = _cost_ratio(match)
        if ratio > _MUCH and match.ensemble.k < MOST_REFEREES:
            wanted = (match.ensemble.usage.calls_each or 1.0) * ratio
            spends = f"{judge} spends up to {ratio:.1f} times as much as the largest ensemble here"
            yield f"{spends}; to make a larger one: {_command(by_subject[match.subject], wanted)}"


def _cost_ratio(match: EqualCostMatch) -> float:
    return match.spent / match.ensemble_spent if match.ensemble_spent else 1.0


def _command(comparator: PairwiseComparator, calls: float) -> str:
    """Return the command that makes an ensemble of so many calls, on the items and with the model of these judges."""
    # A judge of two answers takes a call for each order of them.
    orders = 2 if comparator.subject.kind == "compare" else 1
    judges = max(2, min(MOST_REFEREES, round(calls / orders)))
    name, ensemble = next(iter(ensemble_protocols().items()))
    settings = ensemble.settings(judges, True).items()
    options = [word for key, value in settings for word in ("--set", f"{key}={value}")]
    judge: LoadedJudge | None = next((data.judge for data in comparator.data if data.judge.models), None)
    options += data_options(judge.described if judge else {"name": comparator.subject.data})
    own: list[str] = []
    if judge is not None:
        # With its parameters: without the address, the texts would go to another server.
        model, limit = judge.models.get("*", ""), judge.manifest.get("limit")
        options += ["--model", model] if model not in ("", "offline") else []
        options += ["--limit", str(limit)] if limit else []
        for aspect in judge.aspects:
            # The full name of a ready-made aspect; one of the user's own is in a file.
            known = (name for name, ready in ASPECTS.items() if ready.model_dump(mode="json") == aspect)
            full_name = next(known, "FILE")
            options += ["--aspect", full_name]
            if full_name == "FILE":
                own.append(aspect["name"])
    command = join(["jurygraph", "run", name, *options, "--out", "DIR"])
    return f"{command} (FILE: a YAML file with the aspect {' or '.join(own)})" if own else command


def holds_ensembles(data: JudgeAspectData) -> bool:
    """Tell whether a run is of an ensemble of judges who do not talk, or of one such judge asked several times.

    Referees of different roles are several judges, each of another kind: the first k of them are no k single judges.
    """
    judge = data.judge
    repeated = int(judge.manifest.get("repeats") or 1) > 1
    single = any(judge.protocol == ensemble.single for ensemble in ensemble_protocols().values())
    ensemble = ensemble_protocols().get(judge.protocol)
    return (single and repeated) if ensemble is None else ensemble.alike(judge.settings)


@cache
def ensemble_protocols() -> dict[str, Ensemble]:
    """Return the protocols of judges who do not talk, by name."""
    # Imported here: reading and comparing results needs no graphs until somebody asks about a protocol.
    from ...graphs.registry import protocols

    ensembles = {name: module.protocol.ensemble for name, module in protocols().items()}
    return {name: ensemble for name, ensemble in ensembles.items() if ensemble is not None}


def smaller_ensembles(data: JudgeAspectData) -> Iterator[Side]:
    """Yield a run's ensembles of its first k judges, k rising from 1; the largest is the run itself.

    Rows in which a judge is missing count for none. Of an ensemble: each verdict's first k referees, whose scores (over
    both orders of the answers) are averaged, as the ensemble itself does. Of a single judge: each item's first k
    repeats, likewise.
    """
    rows, judge = data.rows, data.judge
    if judge.protocol in ensemble_protocols():
        start, judges = rows.agent_start, rows.agent_count
        values, usage = rows.agents[:, :2], rows.agents[:, 2:]
    else:
        # Rows come by item, so the repeats of one stand beside each other; those without a score count for none.
        first = np.flatnonzero(np.diff(rows.item, prepend=-1))
        scored = rows.take(rows.path_count > 0)
        ends = np.searchsorted(np.flatnonzero(rows.path_count > 0), [*first, len(rows)])
        values, usage = scored.path[scored.path_start + scored.path_count - 1], scored.usage
        rows, start, judges = rows.take(first), ends[:-1], np.diff(ends)
    # Every k is measured on the same rows, those with all judges, so that the curve over k is of one set of items.
    most = int(judges.max(initial=0))
    complete = judges == most
    rows, lines = rows.take(complete), start[complete][:, None] + np.arange(most)
    # Added up from the first to the last, from zero, as usages are.
    spent = np.zeros((len(rows), usage.shape[1]))
    for k in range(1, most + 1):
        spent = spent + usage[lines[:, k - 1]]
        # Averaged answer by answer, as the ensemble itself does it: exactly, which a sum of columns is not.
        answers = (values[lines[:, :k], side].tolist() for side in range(2))
        means = np.array([list(map(fmean, scores)) for scores in answers]).reshape(2, len(rows)).T
        of_k = replace(rows, judged=rows.decided(means), usage=spent)
        yield Side(f"{judge.label}, {k} of {most}", of_k, data.distances)
