"""Analyse several runs together: compute once everything that a report shows.

``Study.of`` reads the runs, chooses the base judges and calls the analyses of this package in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack, cast

import numpy as np

from ...state.errors import UsageError
from ..results.agreement_rows import FlaggedItems
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
from .pooled_gains import PooledGains, pooled_gains
from .score_gaps import Courtroom, courtroom
from .verdict_columns import shared_items


class Choices(Measuring, total=False):
    """Holds the parameters of a study's analyses, where they are not the usual ones.

    Attributes:
        eps: of the gap analysis: the threshold, as a share of the widest possible gap; usually .1.
        prior: of the gap analysis: alpha and beta of the paper's model; usually 1 and 1.
        annotator_epsilon: of the test whether a judge could replace an annotator: how much less often it may be the
            closer one; its authors take .2 for experts, .15 for trained people and .1 (usual) for crowd workers.
    """

    eps: float
    prior: tuple[float, float]
    annotator_epsilon: float


@dataclass(frozen=True)
class Study:
    """Holds the analyses of some runs.

    Attributes:
        judges: the protocols of the runs, in the order in which the runs were given.
        subjects: what they judged.
        base: the label of the judge that gains and pairs refer to (of the first dataset that has one); ``None`` where
            no dataset has a base.
        resampling: how every interval was made, with its seed.
        leaderboard, comparison, matching, frontiers, diagnoses, costs: see their modules.
        courtrooms, leanings, annotators, pooled: see their modules.
        notes: what must stand at the head of everything shown of the study (the offline judge's disclosure), and what
            was left out and why.
        bases: the base's label by subject; a study of several datasets has one in each.
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
    notes: tuple[str, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)

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
            folders: of runs (``run.json`` beside ``results.jsonl``), finished or not.
            base: the label of the judge that the others are compared with, or a protocol's name; in each further
                dataset the first judge of that protocol. Default: ``single``, else ``baseline``, else the first.
            resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
            people: what people would take, for the table of costs.
            without_flagged: leave out items of which a text states a verdict itself, for all judges alike.
            otherwise: what is not as the data has it: with ``metric`` what judges are ranked by (one of ``METRICS``;
                data that it does not measure keep their own), with ``ties`` and ``votes`` how preferences are measured
                against humans, see ``TiePolicy``; and the parameters of analyses, see ``Choices``.

        Raises:
            UsageError: no folder; an unknown base; one aspect on two scales; an ``eps`` that is no share; an unknown
                value of ``metric``, ``ties`` or ``votes``; a metric that measures nothing of what was judged.
            DataError: a folder without a run, or a line that is no result.
        """
        given = [folders] if isinstance(folders, str | Path) else folders
        flagged = FlaggedItems(left_out=without_flagged)
        eps, prior = otherwise.pop("eps", 0.1), otherwise.pop("prior", (1, 1))
        epsilon = otherwise.pop("annotator_epsilon", EPSILON)
        loaded = load_runs([Path(folder) for folder in given], flagged, **cast("Measuring", otherwise))
        resampling = resampling or Resampling()
        bases = choose_bases(loaded, base)
        comparators = comparators_of(loaded, resampling)
        subjects = tuple(comparator.subject for comparator in comparators)
        judges = tuple(judge.describe() for judge in loaded)
        matching = match(comparators)
        people_compared = (compare_annotators(of, [*of.sides.values()], epsilon) for of in comparators)
        return cls(
            judges=judges,
            subjects=subjects,
            base=next(iter(bases.values()), None),
            resampling=resampling,
            leaderboard=leaderboard(loaded, comparators),
            comparison=compare(comparators, bases),
            matching=matching,
            frontiers=tuple(frontier(comparator, matching.ensembles) for comparator in comparators),
            diagnoses=tuple(diagnose(data, resampling) for of in loaded for data in of.by_aspect.values()),
            costs=costs(judges, people),
            leanings=tuple(leanings(comparators)),
            annotators=tuple(filter(None, people_compared)),
            pooled=pooled_gains(comparators, bases, resampling),
            courtrooms=tuple(filter(None, (courtroom(of, eps, prior) for of in comparators))),
            # Judges of one run carry the same note: it is shown once.
            notes=tuple(dict.fromkeys(_notes(judges, flagged))),
            bases={of.label: bases[of.digest] for of in subjects if of.digest in bases},
        )


def choose_bases(judges: Sequence[LoadedJudge], base: str | None) -> dict[str, str]:
    """Choose the base judge of each dataset and return its label by the dataset's digest.

    A dataset with one judge has no base, unless it was named.

    Raises:
        UsageError: a base that is no judge's label or protocol, nor a protocol with its folder, as ``debate (mine)``.
    """
    # A label names one run, as a folder does; in other datasets the judges of the same protocol take its place.
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
            """Put the one named first, then the usual ones; computed metrics, which ask no model, come last."""
            place = usual.index(judge.protocol) if judge.protocol in usual else len(usual)
            return judge is not named, place, not judge.models

        candidates = [judge for judge in of_dataset if protocol in (None, judge.protocol)]
        if candidates:
            bases[digest] = min(candidates, key=rank).label
    return bases


def _usual_bases() -> list[str]:
    """Return the protocols of judges alone, first those that an ensemble is made of."""
    # Imported here: reading and comparing results needs no graphs until a base is looked for.
    from ...graphs.registry import protocols

    singles = {ensemble.single for ensemble in ensemble_protocols().values()}
    baselines = [name for name, module in protocols().items() if module.protocol.is_baseline]
    # False sorts before True, and sorting is stable.
    return sorted(baselines, key=lambda name: name not in singles)


def comparators_of(judges: Sequence[LoadedJudge], resampling: Resampling) -> list[PairwiseComparator]:
    """Collect the subjects of all judges, each with the judges that judged it."""
    by_subject: dict[str, PairwiseComparator] = {}
    for data in (data for judge in judges for data in judge.by_aspect.values()):
        comparator = PairwiseComparator(data.subject, resampling)
        by_subject.setdefault(data.subject.label, comparator).data.append(data)
    for comparator in by_subject.values():
        comparator.items = shared_items(data.rows for data in comparator.data)
        # With one label alone no judge can agree or disagree, and a mean over aspects would have a hole.
        labels = np.concatenate([comparator.counted(data.rows).human for data in comparator.data])
        comparator.subject = replace(comparator.subject, labels_differ=len(np.unique(labels)) > 1)
    return [*by_subject.values()]


def _notes(judges: Sequence[Judge], flagged: FlaggedItems) -> Iterator[str]:
    yield from (judge.note for judge in judges if judge.note)
    if note := flagged.note():
        yield note
    for judge in judges:
        for reason, items in judge.left_out.items():
            yield f"{judge.label}: {items:,} items left out ({reason})"
        if judge.missing:
            missing = f"{judge.missing:,} of {judge.wanted:,} judgements are missing"
            yield f"{judge.label}: {missing}, because the run was not finished"
        if judge.failed:
            yield f"{judge.label}: {judge.failed:,} of {judge.wanted:,} judgements failed"
