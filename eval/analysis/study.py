"""Several runs looked at together: everything that a report shows, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from ...state.errors import UsageError
from ..statistics.resampling import Resampling
from ..statistics.tie_policy import Overrides
from .average_comparison import There, average_duels
from .comparison import Arena, Comparison, Side, compare
from .costs import Costs, Frontier, People, costs, frontier
from .diagnostics import Diagnosis, diagnose
from .equal_cost import Competitor, Matching, match
from .judges import Contender, Subject
from .leaderboard import Board, Leaderboard
from .loading import Entry, gather
from .score_gaps import Courtroom, courtroom

_USUAL_BASES = ("single", "baseline")


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

    contenders: tuple[Contender, ...]
    subjects: tuple[Subject, ...]
    base: str | None
    resampling: Resampling
    leaderboard: Leaderboard
    comparison: Comparison
    matching: Matching
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
        entries = gather([Path(folder) for folder in given], **otherwise)
        resampling = resampling or Resampling()
        bases = choose_bases(entries, base)
        arenas = list(_arenas(entries, resampling))
        contenders = tuple(entry.contender() for entry in entries)
        matching = match(arenas)
        board = Board(resampling, bases)
        for arena, there in arenas:
            board.add(arena, there)
        return cls(
            contenders=contenders,
            subjects=tuple(arena.subject for arena, _ in arenas),
            base=next(iter(bases.values()), None),
            resampling=resampling,
            leaderboard=board.leaderboard(entries),
            comparison=_compared(arenas, bases),
            matching=matching,
            frontiers=tuple(
                frontier(arena, there, [e for e in matching.ensembles if e.subject == arena.subject.label])
                for arena, there in arenas
            ),
            diagnoses=tuple(
                diagnose(entry, cell, resampling) for entry in entries for cell in entry.cells.values()
            ),
            costs=costs(contenders, people),
            courtrooms=tuple(found for arena, there in arenas if (found := courtroom(arena, there, eps))),
            notes=tuple(dict.fromkeys(_notes(contenders))),
            bases={
                arena.subject.label: bases[arena.subject.digest]
                for arena, _ in arenas
                if arena.subject.digest in bases
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
        wanted = _USUAL_BASES if protocol is None else (protocol,)
        candidates = [entry for name in wanted for entry in there if entry.protocol == name]
        if named is not None and named.digest == digest:
            candidates = [named]
        if protocol is None:
            candidates += sorted(there, key=lambda entry: not entry.models)
        if candidates and (base is not None or len(there) > 1):
            found[digest] = candidates[0].label
    return found


def _arenas(entries: Sequence[Entry], resampling: Resampling) -> Iterator[tuple[Arena, list[Competitor]]]:
    """The subjects, each with those who judged it."""
    there: dict[str, tuple[Arena, list[Competitor]]] = {}
    for entry in entries:
        for cell in entry.cells.values():
            arena = Arena(cell.subject, resampling)
            side = Side(entry.label, cell.by_key, cell.distances)
            there.setdefault(cell.subject.label, (arena, []))[1].append(Competitor(entry, cell, side))
    yield from there.values()


def _compared(arenas: Sequence[tuple[Arena, Sequence[Competitor]]], bases: Mapping[str, str]) -> Comparison:
    """All pairs on each subject, and their means over the subjects of each dataset."""
    found = compare(
        [(arena, [each.side for each in there], bases.get(arena.subject.digest)) for arena, there in arenas]
    )
    datasets: dict[str, list[There]] = {}
    for arena, there in arenas:
        sides = {each.side.label: each.side for each in there}
        datasets.setdefault(arena.subject.digest, []).append((arena, sides))
    averages = (
        duel for digest, subjects in datasets.items() for duel in average_duels(subjects, bases.get(digest))
    )
    return replace(found, averages=tuple(averages))


def _notes(contenders: Sequence[Contender]) -> Iterator[str]:
    yield from (contender.note for contender in contenders if contender.note)
    for contender in contenders:
        for reason, items in contender.left_out.items():
            yield f"{contender.label}: {items:,} items left out ({reason})"
        if contender.missing:
            yield (
                f"{contender.label}: {contender.missing:,} of {contender.wanted:,} judgements are not there: "
                "the run was not finished"
            )
        if contender.failed:
            yield f"{contender.label}: {contender.failed:,} of {contender.wanted:,} judgements failed"
