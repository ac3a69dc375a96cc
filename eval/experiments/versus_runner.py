"""Compare a protocol with its opponents at equal spending: carry out the runs, and hold what came of them.

The protocol comes first, then its opponents with what it has really spent.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import floor, nan
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from ...graphs.options import AnyJudge
from ...nodes.sync_bridge import run_blocking
from ..analysis.annotators import Annotators, compare_annotators
from ..analysis.comparison import PairwiseComparator
from ..analysis.diagnostics import Diagnosis, diagnose
from ..analysis.equal_cost import Currency
from ..analysis.loading import JudgeAspectData, LoadedJudge, load_evaluations
from ..calls.call_pipeline import RunContext
from ..calls.shutdown import Reason
from ..datasets.dataset import Data
from ..plan.plan import Options, Plan, divided
from ..report import study_tables
from ..report.debate_tables import diagnostics
from ..results.config import RunLimits
from ..results.evaluation import Evaluation
from ..results.experiment import ExperimentResult
from ..results.folder import shared_calls
from ..run.runner import execute
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, none_if_nan
from ..statistics.sample import paired_difference
from ..statistics.significance import holm
from ..tables.grid import Grid, columns_of, counts, text_column
from .cell_metrics import AVERAGE
from .equal_spending import Terms, matched, size_for
from .finding import Contest, Finding, find
from .opponents import Opponent
from .versus_plan import VersusPlan, plan_versus


@dataclass(frozen=True)
class Votes:
    """Counts the verdicts before and after the talking: by winner, or by the nearest point of the scale."""

    subject: str
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True)
class Versus(ExperimentResult):
    """Holds a protocol beside its opponents.

    Attributes:
        protocol: its label.
        data: the dataset's name.
        unit: what was spent equally.
        metric: that differences are of.
        finding: whether it pays, over all aspects.
        findings: whether it pays on each aspect, by its name.
        contests: with each opponent, on each subject and on average.
        diagnoses: what the protocol's agents did, by subject: flips both ways, and whose turns moved verdicts.
        votes: by subject.
        annotators: where the labels of single ones are known, each of them and the judges in their place.
        notes: what a reader should know.
        folders: of the runs, by judge.
    """

    file = "versus.json"
    protocol: str
    data: str
    unit: Currency
    metric: str
    finding: Finding
    findings: Mapping[str, Finding]
    contests: tuple[Contest, ...]
    diagnoses: tuple[Diagnosis, ...]
    votes: tuple[Votes, ...]
    annotators: tuple[Annotators, ...] = ()
    notes: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON."""
        return {"answer": self.finding.answer, "sentence": self.finding.sentence, **super().to_json()}

    def grids(self) -> Iterator[Grid]:
        """Make the tables: the comparison, flips, votes, and whose turns moved verdicts."""
        at_equal = f"{self.protocol} at equal {self.unit}: {METRICS[self.metric].title}"
        yield Grid.from_records(at_equal, columns_of(Contest), self.contests)
        subject = text_column("on", of=lambda pair: pair[0].subject)
        for name, title in _DIAGNOSTICS.items():
            yield from diagnostics(self.diagnoses, name, title, [subject])
        yield from study_tables.annotators(self.annotators)
        if self.votes:
            both = [(votes, when) for votes in self.votes for when in ("before", "after")]
            rows = [(votes.subject, when, counts(getattr(votes, when))) for votes, when in both]
            heads = map(text_column, ("on", "discussion", "verdicts"))
            yield Grid("Verdicts before and after the discussion", tuple(heads), tuple(rows))


_DIAGNOSTICS = {
    "changes": "Flips: verdicts that the discussion changed",
    "score_changes": "Verdict changes by agent, towards the labels and away",
}


class VersusOptions(Options, RunLimits, total=False):
    """Names the terms of a comparison, what all its runs have in common, and the limits of all of them together."""

    against: str | Sequence[str] | None
    by: Currency
    metric: str | None
    worth: float
    taken_from: str | Path | None
    resampling: Resampling


def versus(protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]) -> Versus:
    """Find out whether a protocol pays: better than what the same budget buys of a single judge, on the same items.

    ``aversus`` is the same for async code.

    Args:
        protocol: a protocol's name, or a graph: one of your own, or a wrapper such as ``repeated(debate.build(), 3)``.
        data: a dataset, its name, a file or a table in memory; may be left out where a run is taken up.
        **options: see ``Terms``, ``Options`` and ``RunConfig``. Settings of an opponent stand under its name.

    Raises:
        UsageError: bad input, told before any call.

    >>> result = versus("debate", "demo", aspects=["consistency"], limit=6, by="calls", settings={"n": 2})
    >>> result.finding.answer, [contest.opponent for contest in result.contests]
    ('cannot be told', ['single', 'ensemble'])
    """
    return run_blocking(aversus(protocol, data, **options))


async def aversus(protocol: AnyJudge, data: Data | None = None, **options: Unpack[VersusOptions]) -> Versus:
    """Compare from async code; arguments and errors are those of ``versus``."""
    config, wanted, of_terms = divided(options, *Terms.__annotations__)
    terms = Terms(**of_terms)
    out = wanted.get("out")
    with TemporaryDirectory(prefix="jurygraph-") as temporary:
        folder = Path(temporary) / "versus" if out is None else Path(out)
        # In a thread: planning reads the dataset, which would hold up the event loop.
        planned = await asyncio.to_thread(plan_versus, protocol, data, terms, folder, config, wanted)
        result = await carry_out_versus(planned, RunContext(config))
    # What was in a temporary folder is gone by now.
    return result if out is not None else replace(result, folder=None, folders={})


async def carry_out_versus(planned: VersusPlan, context: RunContext) -> Versus:
    """Carry out a planned comparison, as far as its budget goes, which is for all runs together.

    The protocol's run comes first. A single judge is then sampled once on every item, which says how many samples the
    protocol's spending pays for; an ensemble of as many is asked last. Whole samples rarely come out even, so the last
    one counts on a part of the items only (``matched``).
    """
    name, stop = planned.name, context.stop
    ended_early = list[tuple[Reason, str]]()

    async def judged_by(label: str, plan: Plan) -> Evaluation:
        context.counts.phase = label
        evaluation = await execute(plan, replace(context, config=planned.share(sharing, label != name)))
        if evaluation.stopped is not None and stop.reason is not None:
            ended_early.append((stop.reason, f"{label}: {stop.explanation}"))
        # Each run has its own part of the budget: where one has used it up, the next may begin.
        if stop.reason == "budget":
            stop.take_back()
        return evaluation

    with shared_calls(planned.folder, "comparison", context.config) as sharing:
        own = planned.taken_up or await judged_by(name, planned.own)
        runs = {name: own}
        judged = frozenset((result.item, result.aspect) for result in own.results if result.status == "ok")
        first = planned.opponents[0]
        for opponent in planned.opponents:
            if stop.is_asked or not judged:
                break
            # A judge's samples are much like those of an ensemble of such judges, which need not be tried first.
            sampled = runs.get(first.name) if first.panel is None else None
            if sampled is None:
                sampled = await judged_by(opponent.name, planned.of_opponent(opponent, 1, judged))
            size = size_for(own, name, sampled, planned.terms.by)
            runs[opponent.name] = await judged_by(opponent.name, planned.of_opponent(opponent, size, judged))
        if ended_early:
            stop.ask(*ended_early[-1])
        result = compare(runs, planned.opponents[: len(runs) - 1], planned.terms)
        return replace(result, folder=planned.folder, stopped=stop.reason if ended_early else None).write()


def compare(runs: Mapping[str, Evaluation], opponents: Sequence[Opponent], terms: Terms) -> Versus:
    """Compare the first judge with its opponents, at equal spending on the items that all of them judged.

    Args:
        runs: by the name of the judge: the protocol's, then its opponents'.
        opponents: in the same order.
        terms: of the comparison.
    """
    judge, *others = load_evaluations({name: (name, run) for name, run in runs.items()}, metric=terms.metric)
    loaded_by_opponent = dict(zip(opponents, others, strict=True))
    subjects = [_MatchedOpponents(data, loaded_by_opponent, terms) for data in judge.by_aspect.values()]
    metric = subjects[0].comparator.subject.metric
    contests = {subject.label: _contests(subject.label, [subject]) for subject in subjects}
    if len(subjects) > 1:
        contests[AVERAGE] = _contests(AVERAGE, subjects)
    findings = {label: find(judge.label, of_subject, metric, terms) for label, of_subject in contests.items()}
    finding = findings.pop(AVERAGE) if len(subjects) > 1 else next(iter(findings.values()))
    described = [loaded.describe() for loaded in (judge, *others)]
    notes = dict.fromkeys(about.note for about in described if about.note)
    matches = [pair for subject in subjects for pair in subject.matched.items()]
    # Annotators are compared with each other, and the judges at equal spending with them.
    annotators = (
        compare_annotators(of.comparator, [of.side, *(match.side for match in of.matched.values())])
        for of in subjects
    )
    why = "several are no better than one: the model does not sample, or its temperature is 0"
    alike = sorted({opponent.name for opponent, match in matches if match.alike})
    notes |= dict.fromkeys(f"all samples of {name} are the same, so {why}" for name in alike)
    return Versus(
        protocol=judge.label,
        data=described[0].data,
        unit=terms.by,
        metric=metric,
        finding=finding,
        findings=findings,
        contests=tuple(chain(*contests.values())),
        diagnoses=tuple(diagnose(data, terms.resampling) for data in judge.by_aspect.values()),
        votes=tuple(votes for data in judge.by_aspect.values() if (votes := _votes(data))),
        annotators=tuple(filter(None, annotators)),
        notes=tuple(notes),
        folders={loaded.label: str(loaded.folder) for loaded in (judge, *others)},
        failed=sum(about.failed for about in described),
    )


class _MatchedOpponents:
    """Holds the protocol and its opponents on one aspect, or on the comparisons."""

    def __init__(self, data: JudgeAspectData, others: Mapping[Opponent, LoadedJudge], terms: Terms) -> None:
        self.label, self.side, aspect = data.subject.label, data.side, data.subject.aspect
        self.comparator = PairwiseComparator(data.subject, terms.resampling)
        self.matched = {
            opponent: match
            for opponent, other in others.items()
            if aspect in other.by_aspect and (match := matched(other.by_aspect[aspect], data.rows, terms.by))
        }


def _contests(label: str, subjects: Sequence[_MatchedOpponents]) -> list[Contest]:
    """Compare with each opponent that is there on all of some subjects, over which differences are averaged.

    p-values hold for all opponents together.
    """
    contests, metric = list[Contest](), subjects[0].comparator.subject.metric
    for opponent in subjects[0].matched:
        if not all(opponent in subject.matched for subject in subjects):
            continue
        matches = [subject.matched[opponent] for subject in subjects]
        pairs = [of.comparator.samples(of.side, of.matched[opponent].side) for of in subjects]
        size, budget = fmean(match.size for match in matches), sum(match.budget for match in matches)
        ratio = none_if_nan(sum(match.spent for match in matches) / budget if budget else nan)
        other, items = (opponent.name, size, opponent.title(size)), min(len(mine) for mine, _ in pairs)
        # Not adjusted yet: the other opponents are still to come.
        difference = paired_difference(pairs, metric)
        contests.append(Contest.of(label, other, items, ratio, replace(difference, adjusted=difference.p)))
    adjusted = holm([contest.p for contest in contests])
    return [replace(contest, p=p) for contest, p in zip(contests, adjusted, strict=True)]


def _votes(data: JudgeAspectData) -> Votes | None:
    """Count verdicts before and after the talking; ``None`` where nobody talked."""
    rows = data.rows.take(data.rows.path_count > 0)
    if not data.debates or not len(rows):
        return None

    def counted(values: Any) -> dict[str, int]:
        verdicts = (verdict for verdict in rows.as_verdicts(values) if verdict is not None)
        # Half up, since Python's own rounding makes 2 of 2.5 and 4 of 3.5.
        named = (verdict if isinstance(verdict, str) else f"{floor(verdict + 0.5)}" for verdict in verdicts)
        return dict(sorted(Counter(named).items()))

    return Votes(data.subject.label, counted(rows.after(0)), counted(rows.judged))
