"""Several runs looked at together: everything that a report shows, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from ...state.errors import UsageError
from ..statistics.resampling import Resampling
from ..statistics.tie_policy import Overrides
from .average_comparison import There, average_comparisons
from .comparison import Comparison, PairwiseComparator, Side, compare
from .costs import Costs, Frontier, People, costs, frontier
from .diagnostics import Diagnosis, diagnose
from .equal_cost import EqualCostComparison, JudgeData, ensemble_protocols, match
from .judges import EvaluationTarget, Judge
from .leaderboard import Leaderboard, LeaderboardBuilder
from .loading import Entry, load_runs
from .score_gaps import Courtroom, courtroom


@dataclass(frozen=True)
class Study:
    """Runs side by side.

    Attributes:
        contenders: protocols of runs, in the order in which they were given.
        subjects: what they judged.
        base: the label of the contender that gains and pairs refer to (of the first dataset that has one); ``None``
            where nobody has a base.
        resampling: how every interval was made, with its seed.
        leaderboard, comparison, matching, frontiers, diagnoses, costs, courtrooms: see their modules.
        notes: what must stand at the head of everything shown of it (the offline judge's disclosure), and what was
            left out of the study and why.
        bases: the base's label by subject; a study of several datasets has one in each.
    """

    judges: tuple[Judge, ...]
    subjects: tuple[EvaluationTarget, ...]
    base: str | None
    resampling: Resampling
    leaderboard: Leaderboard
    comparison: Comparison
    matching: EqualCostComparison
    frontiers: tuple[Frontier, ...]
    diagnoses: tuple[Diagnosis, ...]
    costs: Costs
    courtrooms: tuple[Courtroom, ...] = ()
    notes: tuple[str, ...] = ()
    bases: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folders: Sequence[str | Path] | str | Path,
        base: str | None = None,
        resampling: Resampling | None = None,
        people: People | None = None,
        eps: float = 0.1,
        **otherwise: Unpack[Overrides],
    ) -> Study:
        """Read run folders and compute everything.

        Args:
            folders: of runs (``run.json`` beside ``results.jsonl``), finished or not.
            base: the label of the contender that the others are measured by, or a protocol's name; in each further
                dataset the first contender of that protocol. Default: ``single``, else ``baseline``, else the first.
            resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
            people: what people would take, for the table of costs.
            eps: of the gap analysis: the threshold, as a share of the widest possible gap.
            otherwise: with ``ties`` and ``votes``, how preferences are measured against people, instead of by the
                data's own rule; see ``Rule``.

        Raises:
            UsageError: no folder; an unknown base; one aspect on two scales; an ``eps`` that is no share; a rule that
                there is not.
            DataError: a folder without a run, or a line that is no result.
        """
        given = [folders] if isinstance(folders, str | Path) else folders
        entries = load_runs([Path(folder) for folder in given], **otherwise)
        resampling = resampling or Resampling()
        bases = choose_bases(entries, base)
        comparators = list(_comparators(entries, resampling))
        judges = tuple(entry.judge() for entry in entries)
        matching = match(comparators)
        board = LeaderboardBuilder(resampling, bases)
        for comparator, there in comparators:
            board.add(comparator, there)
        return cls(
            judges=judges,
            subjects=tuple(comparator.subject for comparator, _ in comparators),
            base=next(iter(bases.values()), None),
            resampling=resampling,
            leaderboard=board.leaderboard(entries),
            comparison=_compared(comparators, bases),
            matching=matching,
            frontiers=tuple(
                frontier(
                    comparator,
                    there,
                    [e for e in matching.ensembles if e.subject == comparator.subject.label],
                )
                for comparator, there in comparators
            ),
            diagnoses=tuple(
                diagnose(entry, cell, resampling) for entry in entries for cell in entry.cells.values()
            ),
            costs=costs(judges, people),
            courtrooms=tuple(
                found for comparator, there in comparators if (found := courtroom(comparator, there, eps))
            ),
            notes=tuple(dict.fromkeys(_notes(judges))),
            bases={
                comparator.subject.label: bases[comparator.subject.digest]
                for comparator, _ in comparators
                if comparator.subject.digest in bases
            },
        )


def choose_bases(entries: Sequence[Entry], base: str | None) -> dict[str, str]:
    """By dataset's digest the label of its base; a dataset with one contender has none, unless it was named.

    Raises:
        UsageError: a base that is nobody's label or protocol.
    """
    named = next((entry for entry in entries if entry.label == base), None)
    protocol = named.protocol if named else base
    if base is not None and protocol not in {entry.protocol for entry in entries}:
        known = ", ".join(entry.label for entry in entries)
        raise UsageError(f"no contender {base!r} to compare with: there are {known}")
    found: dict[str, str] = {}
    for digest in dict.fromkeys(entry.digest for entry in entries):
        there = [entry for entry in entries if entry.digest == digest]
        wanted = _usual_bases() if protocol is None else (protocol,)
        candidates = [entry for name in wanted for entry in there if entry.protocol == name]
        if named is not None and named.digest == digest:
            candidates = [named]
        if protocol is None:
            candidates += sorted(there, key=lambda entry: not entry.models)
        if candidates and (base is not None or len(there) > 1):
            found[digest] = candidates[0].label
    return found


def _usual_bases() -> list[str]:
    """Give the protocols of one judge alone; first those whose judges an ensemble is made of."""
    from ...graphs.registry import protocols

    singles = {ensemble.single for ensemble in ensemble_protocols().values()}
    found = [name for name, module in protocols().items() if module.protocol.is_baseline]
    return sorted(found, key=lambda name: name not in singles)


def _comparators(
    entries: Sequence[Entry], resampling: Resampling
) -> Iterator[tuple[PairwiseComparator, list[JudgeData]]]:
    """The subjects, each with those who judged it."""
    there: dict[str, tuple[PairwiseComparator, list[JudgeData]]] = {}
    for entry in entries:
        for cell in entry.cells.values():
            comparator = PairwiseComparator(cell.subject, resampling)
            side = Side(entry.label, cell.by_key, cell.distances)
            there.setdefault(cell.subject.label, (comparator, []))[1].append(JudgeData(entry, cell, side))
    yield from there.values()


def _compared(
    comparators: Sequence[tuple[PairwiseComparator, Sequence[JudgeData]]], bases: Mapping[str, str]
) -> Comparison:
    """All pairs on each subject, and their means over the subjects of each dataset."""
    found = compare(
        [
            (comparator, [each.side for each in there], bases.get(comparator.subject.digest))
            for comparator, there in comparators
        ]
    )
    datasets: dict[str, list[There]] = {}
    for comparator, there in comparators:
        sides = {each.side.label: each.side for each in there}
        datasets.setdefault(comparator.subject.digest, []).append((comparator, sides))
    averages = (
        pair
        for digest, subjects in datasets.items()
        for pair in average_comparisons(subjects, bases.get(digest))
    )
    return replace(found, averages=tuple(averages))


def _notes(judges: Sequence[Judge]) -> Iterator[str]:
    yield from (judge.note for judge in judges if judge.note)
    for judge in judges:
        for reason, items in judge.left_out.items():
            yield f"{judge.label}: {items:,} items left out ({reason})"
        if judge.missing:
            yield (
                f"{judge.label}: {judge.missing:,} of {judge.wanted:,} judgements are not there: "
                "the run was not finished"
            )
        if judge.failed:
            yield f"{judge.label}: {judge.failed:,} of {judge.wanted:,} judgements failed"
