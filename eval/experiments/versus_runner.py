"""Compare a protocol with its opponents at equal spending: do the runs, and build the result.

The protocol runs first. Its actual spending determines the size of the opponents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import floor, nan
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from ...graphs.engine.options import AnyJudge
from ...graphs.engine.registry import Given
from ...nodes.common.sync_bridge import run_blocking
from ...state.redaction import redact
from ..analysis.annotators import Annotators, compare_annotators
from ..analysis.comparison import PairwiseComparator
from ..analysis.diagnostics import Diagnosis, diagnose
from ..analysis.equal_cost import Currency
from ..analysis.granularity import hinges_on_ties, tie_share
from ..analysis.loading import JudgeAspectData, LoadedJudge, load_evaluations
from ..datasets.dataset import Data
from ..report import study_tables
from ..report.debate_tables import diagnostics, placebo_notes
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.experiment_result import ExperimentResult
from ..results.folder import shared_calls
from ..run.calls.call_pipeline import RunContext
from ..run.calls.shutdown import Reason
from ..run.plan.plan import Options, Plan, count_judged, divided
from ..run.runner import check_run, execute
from ..statistics.metrics import METRICS, of_kind
from ..statistics.resampling import Resampling, none_if_nan
from ..statistics.sample import paired_difference
from ..tables.grid import Grid, columns_of, counts, text_column
from ..tables.screen import FirstScreen
from .cell_metrics import AVERAGE
from .equal_spending import Terms, matched, size_for
from .experiment import Experiment, planned_and_done
from .finding import Contest, Finding, adjusted_over, budgets_in_words, find, find_each
from .opponents import Opponent
from .planner_check import planner_problem
from .versus_plan import VersusPlan, plan_versus
from .versus_screen import Compared, versus_screen


@dataclass(frozen=True)
class Votes:
    """Counts of verdicts before and after the debate, by winner or nearest point of the scale."""

    subject: str
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True)
class Versus(ExperimentResult):
    """The result of comparing a protocol with its opponents.

    Attributes:
        protocol: its label.
        data: the dataset's name.
        unit: the currency in which spending is equal.
        metric: the metric of the differences; ``None`` if nothing was compared.
        finding: whether it pays, over all aspects.
        findings: whether it pays on each aspect, by its name.
        contests: the comparison with each opponent, on each subject and on average.
        diagnoses: the effects of the protocol's agents, by subject: verdict flips in both
            directions, and the turns that caused them.
        votes: the counts of verdicts, by subject.
        annotators: the comparison of each annotator with the judges in the annotator's place, if
            labels of single annotators are known.
        notes: warnings and explanations.
        folders: the folders of the runs, by judge.
    """

    file = "versus.json"
    protocol: str
    data: str
    unit: Currency
    metric: str | None
    finding: Finding
    findings: Mapping[str, Finding]
    contests: tuple[Contest, ...]
    diagnoses: tuple[Diagnosis, ...]
    votes: tuple[Votes, ...]
    annotators: tuple[Annotators, ...] = ()
    notes: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        return {
            "answer": self.finding.answer,
            "sentence": self.finding.sentence,
            **super().to_json(),
        }

    def screen(self) -> FirstScreen:
        """Compose the first screen: whether the protocol pays."""
        opponents = {contest.opponent for contest in self.contests}
        is_complete = len(opponents) >= len(self.folders) - 1
        what = Compared(self.protocol, self.data, self.unit, self.metric, is_complete)
        return versus_screen(what, self.finding, self.findings, self.contests, self.notes)

    def grids(self) -> Iterator[Grid]:
        """Make the tables: the comparison, flips, votes, and turns that moved verdicts."""
        if self.contests and self.metric:
            budgets = budgets_in_words(self.contests, self.unit)
            title = f"{self.protocol} {budgets}: {METRICS[self.metric].title}"
            yield Grid.from_records(title, columns_of(Contest), self.contests, [_HOLM])
        notes = placebo_notes(self.diagnoses)
        subject = text_column("on", of=lambda pair: pair[0].subject)
        for name, title in _DIAGNOSTICS.items():
            yield from diagnostics(self.diagnoses, name, title, [subject], notes)
        yield from study_tables.annotators(self.annotators)
        if self.votes:
            both = [(votes, when) for votes in self.votes for when in ("before", "after")]
            rows = [(votes.subject, when, counts(getattr(votes, when))) for votes, when in both]
            heads = map(text_column, ("on", "discussion", "verdicts"))
            title = "Verdicts before and after the discussion"
            yield Grid(title, tuple(heads), tuple(rows), tuple(notes))


_HOLM = "p (Holm): adjusted over all opponents and aspects; for the average, over the opponents"
_DIAGNOSTICS = {
    "changes": "Flips: verdicts that differ after the discussion",
    "score_changes": "Verdict changes by agent, towards the labels and away",
}


class VersusOptions(Options, RunLimits, total=False):
    """The terms of a comparison, the options of all its runs, and their common limits."""

    against: str | Sequence[str] | None
    by: Currency
    metric: str | None
    worth: float
    taken_from: str | Path | None
    resampling: Resampling


def versus(
    protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]
) -> Versus:
    """Find out whether a protocol is better than other uses of the same budget.

    The opponents judge the same items. ``aversus`` is the same for async code.

    Args:
        protocol: a protocol's name, or a graph: one of your own, or a wrapper such as
            ``repeated(debate.build(), 3)``.
        data: a dataset, its name, a file or a table in memory; optional if a run is reused.
        **options: see ``Terms``, ``Options`` and ``RunConfig``. Settings of an opponent are under
            its name.

    Raises:
        UsageError: invalid input; raised before any call.

    >>> result = versus("debate", "demo", aspects=["consistency"], limit=6, by="calls", settings={"n": 2})
    >>> result.finding.answer, [contest.opponent for contest in result.contests]
    ('undecided', ['single', 'ensemble'])
    """
    return run_blocking(aversus(protocol, data, **options))


async def aversus(
    protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]
) -> Versus:
    """Compare from async code; arguments and errors are the same as for ``versus``."""
    config, wanted, of_terms = divided(options, *Terms.__annotations__)
    terms = Terms(**of_terms)
    out = wanted.get("out")
    with TemporaryDirectory(prefix="jurygraph-") as temporary:
        folder = Path(temporary) / "versus" if out is None else Path(out)
        plan = partial(plan_comparison, protocol, data, terms, folder, config, wanted)
        result = await planned_and_done(plan, config)
    # The temporary folder no longer exists.
    return result if out is not None else replace(result, folder=None, folders={})


@dataclass(frozen=True)
class Comparison(Experiment[Versus]):
    """A comparison that has been checked but not started.

    Attributes:
        planned: its runs, as far as they are known.
    """

    planned: VersusPlan

    def check(self, config: RunConfig) -> None:
        """Check the run of the protocol and its folder."""
        check_run(self.planned.own, config)
        if self.planned.taken_up is None:
            count_judged(self.planned.own, config)

    async def carry_out(self, context: RunContext) -> Versus:
        """Run a planned comparison within a budget for all runs together.

        Opponents with a planner are asked for its plan first; if that fails, nothing else is asked. The
        protocol's run is next. Then a single judge is sampled once on every item, which shows how many
        samples the protocol's spending pays for. An ensemble of this size is last. The budget rarely
        pays for a whole number of samples, so the last sample is used only on some items (``matched``).
        An opponent that fails on every item is not asked again.
        """
        planned = self.planned
        name = planned.name
        stop = context.stop
        ended_early = list[tuple[Reason, str]]()

        async def judged_by(label: str, plan: Plan) -> Evaluation:
            context.counts.phase = label
            evaluation = await execute(
                plan, replace(context, config=planned.share(sharing, label != name))
            )
            if evaluation.stopped is not None and stop.reason is not None:
                ended_early.append((stop.reason, f"{label}: {stop.explanation}"))
            # Each run has its own part of the budget, so the next one can start when one is used up.
            if stop.reason == "budget":
                stop.take_back()
            return evaluation

        with shared_calls(planned.folder, "comparison", context.config) as sharing:
            for opponent in planned.opponents:
                context.counts.phase = f"planner of {opponent.name}"
                share = replace(context, config=planned.share(sharing, opponent=False))
                asked = planned.of_opponent(opponent, 1)
                # The protocol's run is next, so the planner's calls are counted with it.
                if (problem := await planner_problem(asked, share, planned.own_run)) is not None:
                    return _without_plan(planned, opponent.name, problem).write()
                if stop.is_asked:
                    ended_early.append(
                        (stop.reason or "budget", f"{opponent.name}: {stop.explanation}")
                    )
                    break
            own = planned.taken_up or await judged_by(name, planned.own)
            runs = {name: own}
            judged = frozenset(
                (result.item, result.aspect) for result in own.results if result.status == "ok"
            )
            first = planned.opponents[0]
            for opponent in planned.opponents:
                if stop.is_asked or not judged:
                    break
                # Samples of a judge cost about as much as an ensemble of such judges, so use them if
                # they exist.
                sampled = runs.get(first.name) if first.panel is None else None
                if sampled is None or failure_everywhere(first.name, sampled):
                    sampled = await judged_by(
                        opponent.name, planned.of_opponent(opponent, 1, judged)
                    )
                    if failure_everywhere(opponent.name, sampled):
                        runs[opponent.name] = sampled
                        continue
                size = size_for(own, name, sampled, planned.terms.by)
                runs[opponent.name] = await judged_by(
                    opponent.name, planned.of_opponent(opponent, size, judged)
                )
            if ended_early:
                stop.ask(*ended_early[-1])
            result = compare(runs, planned.opponents[: len(runs) - 1], planned.terms)
            return replace(
                result, folder=planned.folder, stopped=stop.reason if ended_early else None
            ).write()


def plan_comparison(
    protocol: Given,
    data: Data | None,
    terms: Terms,
    folder: Path,
    config: RunConfig,
    options: Options,
) -> Comparison:
    """Check a comparison; arguments and errors are the same as for ``plan_versus``."""
    return Comparison(plan_versus(protocol, data, terms, folder, config, options))


def failure_everywhere(name: str, evaluation: Evaluation) -> str | None:
    """Report that a judge failed on every item, and the most common reason; ``None`` if it did not.

    A run that was stopped before its first verdict has not failed.
    """
    failed = evaluation.failed
    if not failed or len(failed) < len(evaluation.results) or evaluation.stopped is not None:
        return None
    items = len({result.item for result in failed})
    [(reason, _)] = Counter(_reason(result.error or "") for result in failed).most_common(1)
    on = "its only item" if items == 1 else f"all {items:,} items"
    return f'{name} failed on {on} ("{reason}"); nothing to compare.'


def _reason(error: str) -> str:
    """Return the reason for an error, without its type, the agent, and the reply.

    >>> _reason("ReplyError: planner, round 0: The reply has no list of steps. Raw reply: 'Sure.'")
    'The reply has no list of steps'
    """
    problem, _, _ = error.partition(" Raw reply:")
    problem = re.sub(r"^\w+: (\w+, round \d+: )?", "", problem)
    return redact(problem).strip().rstrip(".")[:200]


def _without_plan(planned: VersusPlan, opponent: str, problem: Exception) -> Versus:
    """Return the result of a comparison that ended because an opponent's planner failed."""
    reason = _reason(f"{type(problem).__name__}: {problem}")
    stopped = "so the comparison stopped before any other call; change the model of the planner, or the opponents"
    sentence = f'Nothing was compared: the planner of {opponent} failed ("{reason}"), {stopped}.'
    return Versus(
        protocol=planned.name,
        data=planned.own.dataset.name,
        unit=planned.terms.by,
        metric=planned.terms.metric,
        finding=Finding("undecided", sentence, items=0),
        findings={},
        contests=(),
        diagnoses=(),
        votes=(),
        folder=planned.folder,
        failed=1,
    )


def compare(runs: Mapping[str, Evaluation], opponents: Sequence[Opponent], terms: Terms) -> Versus:
    """Compare the first judge with its opponents, at equal spending on their common items.

    Args:
        runs: the runs by name of the judge: the protocol's, then its opponents'.
        opponents: the opponents, in the same order.
        terms: the terms of the comparison.
    """
    judge, *others = load_evaluations(
        {name: (name, run) for name, run in runs.items()}, metric=terms.metric
    )
    loaded_by_opponent = dict(zip(opponents, others, strict=True))
    subjects = [
        _MatchedOpponents(data, loaded_by_opponent, terms) for data in judge.by_aspect.values()
    ]
    metric = subjects[0].comparator.subject.metric
    of_aspects = {subject.label: _contests(subject.label, [subject]) for subject in subjects}
    if len(subjects) > 1:
        # The average is the answer. The aspects are shown together, so they are adjusted together.
        main = adjusted_over(_contests(AVERAGE, subjects))
        every = iter(adjusted_over([*chain(*of_aspects.values())]))
        of_aspects = {aspect: [next(every) for _ in of] for aspect, of in of_aspects.items()}
        findings = find_each(judge.label, of_aspects, metric, terms)
    else:
        main = adjusted_over([*chain(*of_aspects.values())])
        of_aspects = {}
        findings = {}
    finding = find(judge.label, main, metric, terms)
    failures = [words for name, run in runs.items() if (words := failure_everywhere(name, run))]
    if failures:
        finding = _with_failures(judge.label, finding, failures)
    described = [loaded.describe() for loaded in (judge, *others)]
    notes = dict.fromkeys(about.note for about in described if about.note)
    matches = [pair for subject in subjects for pair in subject.matched.items()]
    # Compare annotators with each other, and with the judges at equal spending.
    annotators = (
        compare_annotators(of.comparator, [of.side, *(match.side for match in of.matched.values())])
        for of in subjects
    )
    if alike := list(dict.fromkeys(opponent.name for opponent, match in matches if match.alike)):
        why = "several are no better than one: the model does not sample, or its temperature is 0"
        notes[f"All samples of {' and '.join(alike)} are the same, so {why}."] = None
    return Versus(
        protocol=judge.label,
        data=described[0].data,
        unit=terms.by,
        metric=metric,
        finding=finding,
        findings=findings,
        contests=(*chain(*of_aspects.values()), *main),
        diagnoses=tuple(diagnose(data, terms.resampling) for data in judge.by_aspect.values()),
        votes=tuple(votes for data in judge.by_aspect.values() if (votes := _votes(data))),
        annotators=tuple(filter(None, annotators)),
        notes=tuple(notes),
        folders={loaded.label: str(loaded.folder) for loaded in (judge, *others)},
        failed=sum(about.failed for about in described),
    )


def _with_failures(protocol: str, finding: Finding, failures: Sequence[str]) -> Finding:
    """Add judges that failed on all items to a finding, which then cannot say that it pays."""
    words = " ".join(failures)
    if not finding.items:
        return Finding("undecided", words, items=0)
    if finding.answer in ("pays", "better for more"):
        missing = f"Undecided whether {protocol} pays, because an opponent is missing"
        return replace(finding, answer="undecided", sentence=f"{missing}. {words}")
    return replace(finding, sentence=f"{finding.sentence}. {words}")


class _MatchedOpponents:
    """The protocol and its opponents on one aspect, or on the comparisons."""

    def __init__(
        self, data: JudgeAspectData, others: Mapping[Opponent, LoadedJudge], terms: Terms
    ) -> None:
        self.label = data.subject.label
        self.side = data.side
        aspect = data.subject.aspect
        self.comparator = PairwiseComparator(data.subject, terms.resampling)
        self.matched = {
            opponent: match
            for opponent, other in others.items()
            if aspect in other.by_aspect
            and (match := matched(other.by_aspect[aspect], data.rows, terms.by))
        }


def _contests(label: str, subjects: Sequence[_MatchedOpponents]) -> list[Contest]:
    """Compare with each available opponent, with differences averaged over all subjects.

    p-values are not adjusted.
    """
    contests = list[Contest]()
    metric = subjects[0].comparator.subject.metric
    for opponent in subjects[0].matched:
        if not all(opponent in subject.matched for subject in subjects):
            continue
        matches = [subject.matched[opponent] for subject in subjects]
        pairs = [of.comparator.pair(of.side, of.matched[opponent].side) for of in subjects]
        size = fmean(match.size for match in matches)
        budget = sum(match.budget for match in matches)
        ratio = none_if_nan(sum(match.spent for match in matches) / budget if budget else nan)
        named = (opponent.name, size, opponent.title(size))
        items = min(len(mine) for mine, _ in pairs)
        difference = paired_difference(pairs, metric)
        contest = Contest.of(label, named, items, ratio, replace(difference, adjusted=difference.p))
        sides = [(of.comparator, of.side, of.matched[opponent].side) for of in subjects]
        ties = [tie_share(comparator.rows(own, other)) for comparator, own, other in sides]
        others = [tie_share(comparator.rows(other, own)) for comparator, own, other in sides]
        hinges = metric in of_kind("compare") and any(map(hinges_on_ties, pairs))
        contests.append(
            replace(
                contest,
                ties=_mean_share(ties),
                other_ties=_mean_share(others),
                hinges_on_ties=hinges,
            )
        )
    return contests


def _mean_share(shares: Sequence[float | None]) -> float | None:
    """Return the mean over the aspects; ``None`` if a value is missing."""
    known = [share for share in shares if share is not None]
    return fmean(known) if known and len(known) == len(shares) else None


def _votes(data: JudgeAspectData) -> Votes | None:
    """Count verdicts before and after the debate; ``None`` without a debate."""
    rows = data.rows.take(data.rows.path_count > 0)
    if not data.debates or not len(rows):
        return None

    def counted(values: Any) -> dict[str, int]:
        verdicts = (verdict for verdict in rows.as_verdicts(values) if verdict is not None)
        # Round half up: Python's own rounding makes 2 of 2.5 and 4 of 3.5.
        named = (
            verdict if isinstance(verdict, str) else f"{floor(verdict + 0.5)}"
            for verdict in verdicts
        )
        return dict(sorted(Counter(named).items()))

    return Votes(data.subject.label, counted(rows.after(0)), counted(rows.judged))
