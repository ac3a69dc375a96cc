"""Compare each judge with an ensemble of single judges that costs as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np

from ...state.aspects import ASPECTS
from ...state.protocol_facts import Ensemble
from ...state.redaction import shell_line
from ...state.transcript import total_usage
from ..datasets.dataset import data_options
from ..results.evaluation import UsageTotals
from ..results.known_protocols import known_protocols
from ..statistics.alignment import grouped
from ..statistics.resampling import Statistic
from .comparison import PairwiseComparator, PairwiseComparison, adjusted
from .granularity import hinges_on_ties, same_granularity, tie_share
from .loading import JudgeAspectData, LoadedJudge
from .verdict_columns import Side

Currency = Literal["tokens", "cost", "calls"]
"""The unit of spending: tokens, US dollars, or model calls."""


class EnsembleOf(NamedTuple):
    """The first k single judges of a run as an ensemble, on one subject.

    Attributes:
        label: such as ``ensemble, 2 of 5``.
        source: the label of the judge that contains it.
        subject: its label.
        k: the number of judges.
        usage: the usage of these judges alone.
        agreement: with humans, in the subject's leading metric; with its interval.
    """

    label: str
    source: str
    subject: str
    k: int
    usage: UsageTotals
    agreement: Statistic


def cost_of(usage: UsageTotals, currency: Currency) -> float | None:
    """Return the tokens, dollars or calls for a judgement."""
    if currency == "tokens":
        return usage.tokens_each
    return usage.cost_each if currency == "cost" else usage.calls_each


class EqualCostMatch(NamedTuple):
    """The comparison of one judge with the largest ensemble at no higher cost, on the same rows.

    Attributes:
        judge, subject: their labels.
        ensemble: the ensemble.
        currency: the unit of both costs.
        spent, ensemble_spent: in that currency, for a judgement.
        pairwise: judge (first) against ensemble (second), as in ``comparison``; p-values are
            adjusted over all matches on the subject. The ensemble's verdicts are at the granularity
            of the judge's (``same_granularity``).
        ties, ensemble_ties: the share of ties of each; for scores, the share of pairs of items with
            the same score.
        hinges_on_ties: whether the difference in accuracy is not significant among comparisons on
            which neither gives a tie.
    """

    judge: str
    subject: str
    ensemble: EnsembleOf
    currency: Currency
    spent: float
    ensemble_spent: float
    pairwise: PairwiseComparison
    ties: float | None = None
    ensemble_ties: float | None = None
    hinges_on_ties: bool = False


class EqualCostComparison(NamedTuple):
    """The comparison of every judge with single judges at the same cost.

    Attributes:
        ensembles: all k of all sources, by subject and source, with increasing k.
        matches: by subject, in the order of the judges.
        notes: why a judge has no match; if the study has no ensemble, the command that makes one.
    """

    ensembles: tuple[EnsembleOf, ...]
    matches: tuple[EqualCostMatch, ...]
    notes: tuple[str, ...] = ()


MOST_REFEREES = 10
"""The maximum number of judges in a suggested command."""
# Prices are sums of floats, so two equal prices may differ in the last digits.
_SLACK = 1e-9
# A larger ensemble is suggested from this multiple of the cost of the largest ensemble.
_MUCH = 1.5


def currency_of(usages: Sequence[UsageTotals]) -> Currency:
    """Return the currency to compare: money if all prices are known and something was paid.

    Otherwise it is calls.
    """
    # If nothing costs anything, as with your own models, dollars would put all judges in one place.
    return "cost" if total_usage(usage.total for usage in usages).cost_usd else "calls"


def unit_of_budgets(judges: Sequence[JudgeAspectData]) -> Currency:
    """Return the unit in which budgets are equal: tokens, as in ``versus``, if they are comparable.

    They are not if judges have different models, or if a provider counts no tokens. Then it is
    ``currency_of``.
    """
    asked = [data for data in judges if data.judge.models]
    models = {frozenset(data.judge.models.values()) for data in asked}
    counted = all(data.usage.total.tokens and not data.usage.total.uncounted for data in asked)
    if len(models) == 1 and counted:
        return "tokens"
    return currency_of([data.usage for data in judges])


def match(comparators: Sequence[PairwiseComparator]) -> EqualCostComparison:
    """Compare every judge on every subject with single judges at the same cost."""
    ensembles: list[EnsembleOf] = []
    matches: list[EqualCostMatch] = []
    unmatched: list[str] = []
    without: list[PairwiseComparator] = []
    for comparator in comparators:
        candidates: _Candidates = []
        for data in filter(holds_ensembles, comparator.data):
            sides = list(smaller_ensembles(data))
            for k, side in enumerate(sides, start=1):
                agreement = comparator.sample(side).statistic(comparator.subject.metric)
                whose = side.label, data.judge.label, comparator.subject.label
                ensemble = EnsembleOf(*whose, k, side.rows.usage_totals, agreement)
                candidates.append((data, len(sides), side, ensemble))
                ensembles.append(ensemble)
        if not candidates:
            without.append(comparator)
            continue
        currency = unit_of_budgets(comparator.data)
        others = [
            data for data in comparator.data if data.judge.protocol not in ensemble_protocols()
        ]
        tried = [_matched(comparator, data, candidates, currency) for data in others]
        matched = [outcome for outcome in tried if isinstance(outcome, EqualCostMatch)]
        # p-values are adjusted over all matches on one subject.
        pairwise = adjusted([match.pairwise for match in matched])
        matches += [
            match._replace(pairwise=pair) for match, pair in zip(matched, pairwise, strict=True)
        ]
        unmatched += [outcome for outcome in tried if isinstance(outcome, str)]
    notes: list[str] = []
    for name, subjects in grouped((of.subject.data, of) for of in without).items():
        # An ensemble as expensive as the most expensive judge.
        calls = max(
            data.usage.calls_each or 0.0 for comparator in subjects for data in comparator.data
        )
        missing = f"{name}: no equal-cost baseline, because no run has an ensemble of single judges"
        notes.append(
            f"{missing}; to make one, with all smaller ones: {_command(subjects[-1], calls)}"
        )
    notes += dict.fromkeys([*_far_below(comparators, matches), *unmatched])
    return EqualCostComparison(tuple(ensembles), tuple(matches), tuple(notes))


_Candidates = list[tuple[JudgeAspectData, int, Side, EnsembleOf]]
"""Ensembles to match with judges.

Of a run with many judges, these are the first ones.
"""


def _matched(
    comparator: PairwiseComparator,
    data: JudgeAspectData,
    candidates: _Candidates,
    currency: Currency,
) -> EqualCostMatch | str | None:
    """Return the match, or the reason for its absence.

    Return ``None`` for a judge that spent nothing or judged nothing.
    """
    price = cost_of(data.usage, currency)
    label = data.judge.label
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
        # If the only ensembles are parts of this run, there is nothing to compare it with.
        if all(source is data for source, *_ in candidates):
            return None
        return f"{label} on {comparator.subject.label}: spends less than a single judge of any ensemble here"
    # Of several ensembles with the same cost, the one from the largest run.
    cost, _, side, ensemble = max(affordable, key=lambda priced: priced[:2])
    judged = data.rows.take(np.isin(data.rows.keys, side.rows.keys))
    side = side._replace(rows=same_granularity(side.rows, judged))
    # The samples of a comparator are kept by label, and this ensemble has another granularity for
    # each judge.
    alone = PairwiseComparator(
        comparator.subject,
        comparator.resampling,
        items=comparator.items,
        skip_one_score=comparator.skip_one_score,
    )
    hinges = comparator.subject.kind == "compare" and hinges_on_ties(alone.pair(data.side, side))
    return EqualCostMatch(
        judge=label,
        subject=comparator.subject.label,
        ensemble=ensemble,
        currency=currency,
        spent=price,
        ensemble_spent=cost,
        pairwise=alone.compare(data.side, side),
        ties=tie_share(alone.rows(data.side, side)),
        ensemble_ties=tie_share(alone.rows(side, data.side)),
        hinges_on_ties=hinges,
    )


def _far_below(
    comparators: Sequence[PairwiseComparator], matches: Sequence[EqualCostMatch]
) -> Iterator[str]:
    """Yield the judges that cost much more than the largest ensemble.

    Each comes with the command for a larger ensemble.
    """
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
    """Return the command for an ensemble with this number of calls.

    It uses the items and the model of these judges.
    """
    # A judge of two answers needs a call for each order of them.
    orders = 2 if comparator.subject.kind == "compare" else 1
    judges = max(2, min(MOST_REFEREES, round(calls / orders)))
    name, ensemble = next(iter(ensemble_protocols().items()))
    settings = ensemble.settings(judges, True).items()
    options = [word for key, value in settings for word in ("--set", f"{key}={value}")]
    judge: LoadedJudge | None = next(
        (data.judge for data in comparator.data if data.judge.models), None
    )
    options += data_options(judge.described if judge else {"name": comparator.subject.data})
    own: list[str] = []
    if judge is not None:
        # With its parameters, because without the address the texts would go to another server.
        model = judge.models.get("*", "")
        limit = judge.manifest.get("limit")
        options += ["--model", model] if model not in ("", "offline") else []
        options += ["--limit", str(limit)] if limit else []
        for aspect in judge.aspects:
            # The full name of a known aspect. A user's own aspect is in a file.
            known = (
                name for name, ready in ASPECTS.items() if ready.model_dump(mode="json") == aspect
            )
            full_name = next(known, "FILE")
            options += ["--aspect", full_name]
            if full_name == "FILE":
                own.append(aspect["name"])
    command = shell_line("jurygraph", "run", name, *options, "--out", "DIR")
    return f"{command} (FILE: a YAML file with the aspect {' or '.join(own)})" if own else command


def holds_ensembles(data: JudgeAspectData) -> bool:
    """Whether a run is an ensemble of judges without debate, or one such judge with repeats.

    Referees with different roles are different judges, so the first k of them are not k single
    judges.
    """
    judge = data.judge
    repeated = int(judge.manifest.get("repeats") or 1) > 1
    single = any(judge.protocol == ensemble.single for ensemble in ensemble_protocols().values())
    ensemble = ensemble_protocols().get(judge.protocol)
    return (single and repeated) if ensemble is None else ensemble.alike(judge.settings)


@cache
def ensemble_protocols() -> dict[str, Ensemble]:
    """Return the protocols of judges without debate, by name."""
    ensembles = {name: facts.ensemble for name, facts in known_protocols().items()}
    return {name: ensemble for name, ensemble in ensembles.items() if ensemble is not None}


def smaller_ensembles(data: JudgeAspectData) -> Iterator[Side]:
    """Yield a run's ensembles of its first k judges, k rising from 1 to the run itself.

    Rows with a missing judge do not count. For an ensemble: the scores of each verdict's first k
    referees (over both orders of the answers) are averaged, as the ensemble itself does. For a
    single judge: those of each item's first k repeats.
    """
    rows = data.rows
    judge = data.judge
    if judge.protocol in ensemble_protocols():
        start = rows.agent_start
        judges = rows.agent_count
        values = rows.agents[:, :2]
        usage = rows.agents[:, 2:]
    else:
        # Rows are sorted by item, so the repeats of an item are adjacent. Those without a score do
        # not count.
        first = np.flatnonzero(np.diff(rows.item, prepend=-1))
        scored = rows.take(rows.path_count > 0)
        ends = np.searchsorted(np.flatnonzero(rows.path_count > 0), [*first, len(rows)])
        values = scored.path[scored.path_start + scored.path_count - 1]
        usage = scored.usage
        rows = rows.take(first)
        start = ends[:-1]
        judges = np.diff(ends)
    # Every k is measured on the same rows, those with all judges, so that the curve over k is for
    # one set of items.
    most = int(judges.max(initial=0))
    complete = judges == most
    rows = rows.take(complete)
    lines = start[complete][:, None] + np.arange(most)
    # Added up from the first to the last, from zero, as usages are.
    spent = np.zeros((len(rows), usage.shape[1]))
    for k in range(1, most + 1):
        spent = spent + usage[lines[:, k - 1]]
        # Averaged answer by answer, exactly as the ensemble itself does. A sum of columns would not
        # be exact.
        answers = (values[lines[:, :k], side].tolist() for side in range(2))
        means = np.array([list(map(fmean, scores)) for scores in answers]).reshape(2, len(rows)).T
        scores = means if rows.winners else rows.scores
        of_k = replace(rows, judged=rows.decided(means), scores=scores, usage=spent)
        yield Side(f"{judge.label}, {k} of {most}", of_k, data.distances)
