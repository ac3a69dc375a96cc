"""Analyse several runs together, and compute everything that a report shows.

``Study.of`` reads the runs, chooses the base judges and calls the analyses of this package in their
order.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

from ...state.errors import UsageError
from ..results.agreement_rows import FlaggedItems
from ..results.known_protocols import known_protocols
from ..statistics.alignment import grouped
from ..statistics.resampling import Resampling
from .annotators import EPSILON, Annotators, compare_annotators
from .comparison import Comparison, PairwiseComparator, compare
from .costs import AnnotatorRates, Costs, Frontier, costs, frontier
from .diagnostics import Diagnosis, diagnose
from .equal_cost import EqualCostComparison, ensemble_protocols, match
from .judges import Judge, Subject
from .leaderboard import Leaderboard, leaderboard
from .leanings import Leaning, leanings
from .loading import LoadedJudge, Measuring, load_runs
from .panel_value import Panel, panels_of
from .pooled_gains import PooledGains, pooled_gains
from .score_gaps import Courtroom, courtroom
from .verdict_columns import shared_items
from .verdict_summary import VerdictSummary, summarise_verdicts


class Choices(Measuring, total=False):
    """The parameters of a study's analyses that differ from the usual ones.

    Attributes:
        eps: for the gap analysis: the threshold, as a share of the widest possible gap; usually .1.
        prior: for the gap analysis: alpha and beta of the paper's model; usually 1 and 1.
        annotator_epsilon: for the test whether a judge could replace an annotator: how much less
            often the judge may be the closer one. The test's authors use .2 for experts, .15 for
            trained annotators and .1 (usual) for crowd workers.
    """

    eps: float
    prior: tuple[float, float]
    annotator_epsilon: float


@dataclass(frozen=True)
class Study:
    """The analyses of some runs.

    Attributes:
        judges: the protocols of the runs, in the order of the runs.
        subjects: the subjects of the judges.
        base: the label of the judge for gains and pairs (in the first dataset with one); ``None``
            without a base in any dataset.
        resampling: how every interval was computed, with its seed. leaderboard, comparison,
            matching, frontiers, diagnoses, costs: see their modules. courtrooms, leanings,
            annotators, pooled, verdicts: see their modules.
        notes: notes that must precede everything shown of the study (the offline judge's
            disclosure), and the excluded items with reasons.
        bases: the base's label by subject; each of several datasets has its own base.
        parts: with several datasets, the study of each. No figure is computed over several
            datasets.
        order: the labels of all judges of the report, which give each judge its colour in charts;
            if it is empty, those of ``judges``.
        comparators: the verdicts of the judges by subject; the panels are computed from them.
    """

    judges: tuple[Judge, ...]
    subjects: tuple[Subject, ...]
    base: str | None
    resampling: Resampling
    leaderboard: Leaderboard
    comparison: Comparison
    matching: EqualCostComparison
    frontiers: tuple[Frontier, ...]
    diagnoses: tuple[Diagnosis, ...]
    costs: Costs
    courtrooms: tuple[Courtroom, ...] = ()
    leanings: tuple[Leaning, ...] = ()
    annotators: tuple[Annotators, ...] = ()
    pooled: tuple[PooledGains, ...] = ()
    verdicts: tuple[VerdictSummary, ...] = ()
    notes: tuple[str, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Study, ...] = ()
    order: tuple[str, ...] = ()
    comparators: tuple[PairwiseComparator, ...] = field(default=(), repr=False, compare=False)

    @property
    def by_dataset(self) -> tuple[Study, ...]:
        """The study of each dataset, or this study if it has only one."""
        return self.parts or (self,)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """What the judges are worth as a panel, on each subject that several of them judged.

        Computed on first use, because only some tables of a report need it.
        """
        if self.parts:
            return tuple(panel for part in self.parts for panel in part.panels)
        return panels_of(self.comparators)

    @classmethod
    def of(
        cls,
        folders: Sequence[str | Path] | str | Path,
        base: str | None = None,
        resampling: Resampling | None = None,
        people: AnnotatorRates | None = None,
        without_flagged: bool = False,
        **otherwise: Unpack[Choices],
    ) -> Study:
        """Read run folders and compute every analysis of them.

        Args:
            folders: the folders of runs (with ``run.json`` and ``results.jsonl``), finished or not.
            base: the label of the judge with which the others are compared, or a protocol's name;
                in each further dataset the first judge of that protocol. Default: ``single``, else
                ``baseline``, else the first.
            resampling: how intervals are computed; default 1000 resamples, 95 %, seed 0.
            people: the price and time of humans, for the table of costs.
            without_flagged: leave out items with a text that states a verdict, for all judges.
            otherwise: settings that differ from the data's own. ``metric`` ranks the judges (one of
                ``METRICS``; data without this metric keep their own). ``ties`` and ``votes``
                determine how preferences are measured against humans, see ``TiePolicy``. For the
                parameters of analyses, see ``Choices``.

        Raises:
            UsageError: no folder; an unknown base; one aspect on two scales; an ``eps`` that is not
                a share; an unknown value of ``metric``, ``ties`` or ``votes``; a metric that does
                not apply to the judged data.
            DataError: a folder without a run, or a line that is not a result.
        """
        given = [folders] if isinstance(folders, str | Path) else folders
        flagged = FlaggedItems(left_out=without_flagged)
        eps = otherwise.pop("eps", 0.1)
        prior = otherwise.pop("prior", (1, 1))
        epsilon = otherwise.pop("annotator_epsilon", EPSILON)
        loaded = load_runs(
            [Path(folder) for folder in given], flagged, **cast("Measuring", otherwise)
        )
        resampling = resampling or Resampling()
        bases = choose_bases(loaded, base)
        by_data = grouped((of.subject.digest, of) for of in comparators_of(loaded, resampling))
        judges = {id(judge): judge.describe() for judge in loaded}
        order = tuple(dict.fromkeys(judge.label for judge in judges.values()))
        parts: list[Study] = []
        for digest, comparators in by_data.items():
            of_data = [judge for judge in loaded if judge.digest == digest]
            described = tuple(judges[id(judge)] for judge in of_data)
            matching = match(comparators)
            courtrooms = (courtroom(of, eps, prior) for of in comparators)
            people_compared = (
                compare_annotators(of, [*of.sides.values()], epsilon) for of in comparators
            )
            own_base = bases.get(digest)
            part = cls(
                judges=described,
                subjects=tuple(comparator.subject for comparator in comparators),
                base=own_base,
                resampling=resampling,
                leaderboard=leaderboard(of_data, comparators),
                comparison=compare(comparators, bases),
                matching=matching,
                frontiers=tuple(
                    frontier(comparator, matching.ensembles) for comparator in comparators
                ),
                diagnoses=tuple(
                    diagnose(data, resampling) for of in of_data for data in of.by_aspect.values()
                ),
                costs=costs(described, people),
                leanings=tuple(leanings(comparators)),
                annotators=tuple(filter(None, people_compared)),
                pooled=pooled_gains(comparators, bases, resampling),
                courtrooms=tuple(filter(None, courtrooms)),
                verdicts=tuple(
                    summarise_verdicts(data, resampling)
                    for of in of_data
                    for data in of.by_aspect.values()
                ),
                bases={of.subject.label: own_base for of in comparators if own_base is not None},
                order=order,
                comparators=tuple(comparators),
            )
            parts.append(part)
        # Judges of one run have the same note, which is shown once.
        notes = tuple(dict.fromkeys(_notes([*judges.values()], flagged)))
        if len(parts) == 1:
            return replace(parts[0], notes=notes)
        return _joined(parts, tuple(judges.values()), costs([*judges.values()], people), notes)


def _joined(
    parts: Sequence[Study], judges: tuple[Judge, ...], all_costs: Costs, notes: tuple[str, ...]
) -> Study:
    """Concatenate the results of several datasets."""

    def all_of(name: str) -> Any:
        return tuple(chain.from_iterable(operator.attrgetter(name)(part) for part in parts))

    def all_notes(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(all_of(f"{name}.notes")))

    return Study(
        judges=judges,
        subjects=all_of("subjects"),
        base=next((part.base for part in parts if part.base is not None), None),
        resampling=parts[0].resampling,
        leaderboard=Leaderboard(
            all_of("leaderboard.standings"),
            all_of("leaderboard.averages"),
            all_notes("leaderboard"),
        ),
        comparison=Comparison(
            all_of("comparison.pairwise"), all_notes("comparison"), all_of("comparison.averages")
        ),
        matching=EqualCostComparison(
            all_of("matching.ensembles"), all_of("matching.matches"), all_notes("matching")
        ),
        frontiers=all_of("frontiers"),
        diagnoses=all_of("diagnoses"),
        costs=all_costs,
        courtrooms=all_of("courtrooms"),
        leanings=all_of("leanings"),
        annotators=all_of("annotators"),
        pooled=all_of("pooled"),
        verdicts=all_of("verdicts"),
        notes=notes,
        bases={label: base for part in parts for label, base in part.bases.items()},
        parts=tuple(parts),
        order=parts[0].order,
    )


def choose_bases(judges: Sequence[LoadedJudge], base: str | None) -> dict[str, str]:
    """Choose the base judge of each dataset, and return its label by the dataset's digest.

    A dataset with one judge has no base, unless the user named it.

    Raises:
        UsageError: a base is not a judge's label or protocol, nor a protocol with its folder, such
            as ``debate (mine)``.
    """
    # A label names one run, as a folder does. In other datasets, the judges of the same protocol
    # replace it.
    names = ((judge, (judge.label, f"{judge.protocol} ({judge.folder.name})")) for judge in judges)
    named = next((judge for judge, own in names if base in own), None)
    protocol = named.protocol if named else base
    if base is not None and protocol not in {judge.protocol for judge in judges}:
        known = ", ".join(judge.label for judge in judges)
        raise UsageError(f"no judge {base!r} to compare with; judges are {known}")
    usual = _usual_bases() if protocol is None else [protocol]
    bases: dict[str, str] = {}
    for digest, of_dataset in grouped((judge.digest, judge) for judge in judges).items():
        if base is None and len(of_dataset) == 1:
            continue

        def rank(judge: LoadedJudge) -> tuple[bool, int, bool]:
            """Return the rank of a judge as base: the named one, then the usual ones, metrics last.

            Computed metrics call no model.
            """
            place = usual.index(judge.protocol) if judge.protocol in usual else len(usual)
            return judge is not named, place, not judge.models

        candidates = [judge for judge in of_dataset if protocol in (None, judge.protocol)]
        if candidates:
            bases[digest] = min(candidates, key=rank).label
    return bases


def _usual_bases() -> list[str]:
    """Return the protocols of single judges; protocols that form an ensemble come first."""
    singles = {ensemble.single for ensemble in ensemble_protocols().values()}
    baselines = [name for name, facts in known_protocols().items() if facts.is_baseline]
    # False sorts before True, and sorting is stable.
    return sorted(baselines, key=lambda name: name not in singles)


def comparators_of(
    judges: Sequence[LoadedJudge], resampling: Resampling, skip_one_score: bool = False
) -> list[PairwiseComparator]:
    """Collect the subjects of all judges, each with its judges.

    Args:
        judges: in their order.
        resampling: how intervals are computed.
        skip_one_score: leave out the groups in which a judge gives every item one score, as the
            papers' tables do.
    """
    by_subject: dict[str, PairwiseComparator] = {}
    for data in (data for judge in judges for data in judge.by_aspect.values()):
        comparator = PairwiseComparator(data.subject, resampling, skip_one_score=skip_one_score)
        by_subject.setdefault(data.subject.label, comparator).data.append(data)
    for comparator in by_subject.values():
        comparator.items = shared_items(data.rows for data in comparator.data)
        # With one label value, no judge can agree or disagree, and a mean over aspects would have a
        # gap.
        labels = np.concatenate([comparator.rows(data.side).human for data in comparator.data])
        comparator.subject = replace(comparator.subject, labels_differ=len(np.unique(labels)) > 1)
    return [*by_subject.values()]


def _notes(judges: Sequence[Judge], flagged: FlaggedItems) -> Iterator[str]:
    yield from (judge.note for judge in judges if judge.note)
    if note := flagged.note():
        yield note
    for judge in judges:
        for reason, items in judge.left_out.items():
            yield f"{judge.label}: {items:,} items left out ({reason})"
        yield from incomplete(judge)


def incomplete(judge: Judge) -> Iterator[str]:
    """Yield how many judgements of a judge are missing or failed."""
    if judge.missing:
        missing = f"{judge.missing:,} of {judge.wanted:,} judgements are missing"
        yield f"{judge.label}: {missing}, because the run was not finished"
    if judge.failed:
        yield f"{judge.label}: {judge.failed:,} of {judge.wanted:,} judgements failed"
