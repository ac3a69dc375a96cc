"""Make tables of debate diagnostics, and of the score gap of the courtroom protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis import (
    Changes,
    Conformity,
    Courtroom,
    Diagnosis,
    LengthBias,
    Positions,
    Replies,
    Round,
    ScoreChanges,
    Spending,
    Study,
)
from ..tables import CellValue, Column, Grid, columns_of, text_column
from ..tables.grid import counts
from .labels import MEASURES, left_out_note, with_notes

if TYPE_CHECKING:
    from ..statistics.score_differentiation import IterationComplexity, RoundsNeeded, ScoreDifferentiation


class _Table(NamedTuple):
    """A table of diagnostics: its title, its records, and which of them a diagnosis has."""

    title: str
    record: type
    records: Callable[[Diagnosis], Iterable[object]]


_DIAGNOSTICS = (
    _Table(
        "Verdict changes from the first to the last verdict",
        Changes,
        lambda diagnosis: [diagnosis.changes] if diagnosis.changes else [],
    ),
    _Table("Agreement by round", Round, lambda diagnosis: diagnosis.rounds),
    _Table("Score changes by agent", ScoreChanges, lambda diagnosis: diagnosis.score_changes),
    _Table(
        "Conformity among referees",
        Conformity,
        lambda diagnosis: [diagnosis.conformity] if diagnosis.conformity else [],
    ),
    _Table("Rounds and calls", Spending, lambda diagnosis: [diagnosis.spending]),
    _Table(
        "Position bias",
        Positions,
        lambda diagnosis: [diagnosis.positions] if diagnosis.positions and diagnosis.positions.n else [],
    ),
    _Table(
        "Length bias",
        LengthBias,
        lambda diagnosis: [diagnosis.length] if diagnosis.length and diagnosis.length.n else [],
    ),
    # Only of judges that have some.
    _Table("Malformed replies", Replies, lambda diagnosis: [diagnosis.replies] if diagnosis.replies else []),
)


def diagnoses(study: Study) -> Iterator[Grid]:
    """Make all tables of diagnostics that are not empty."""
    for table in _DIAGNOSTICS:
        records = [
            (diagnosis, record) for diagnosis in study.diagnoses for record in table.records(diagnosis)
        ]
        if records:
            yield with_notes(
                study,
                Grid.from_records(
                    table.title,
                    (
                        *whose(study.diagnoses, lambda pair: pair[0]),
                        *columns_of(table.record, lambda pair: pair[1]),
                    ),
                    records,
                    notes=[_rounds_note(study)] if table.record is Round else (),
                    # Scores and comparisons do not have the same figures.
                    drop_empty=True,
                ),
            )


def whose(
    diagnoses: Sequence[Diagnosis], of: Callable[[Any], Diagnosis] = lambda diagnosis: diagnosis
) -> Iterator[Column]:
    """Yield the columns that name a diagnosis: its judge, and its aspect where there are several."""
    yield text_column("judge", of=lambda record: of(record).judge)
    if len({diagnosis.subject for diagnosis in diagnoses}) > 1:
        yield text_column("aspect", of=lambda record: of(record).subject)


def _rounds_note(study: Study) -> str:
    metrics = dict.fromkeys(
        MEASURES.get(diagnosis.measure, diagnosis.measure) for diagnosis in study.diagnoses
    )
    return f"agreement: {', '.join(metrics)}, if every debate had ended here; finished debates keep their last score"


def notes(study: Study) -> tuple[str, ...]:
    """Collect the notes on the diagnostics, each once, with the judges and aspects that it holds for."""
    holders: dict[str, list[str]] = {}
    for diagnosis in study.diagnoses:
        for note in diagnosis.notes:
            holders.setdefault(note, []).append(f"{diagnosis.judge} on {diagnosis.subject}")
    return tuple(f"{', '.join(those)}: {note}" for note, those in holders.items())


_BOUND = (
    "the paper's bound on that probability, 1 - 4 Var / eps^2: it does not apply if the model's mean is not above "
    "1 - eps / 2, and is vacuous if it is not above 0"
)


def gaps(study: Study) -> Iterator[Grid]:
    """Make all tables of the score gap: by round, compared between protocols, and rounds until it is reached."""
    for courtroom in study.courtrooms:
        data = next(
            (subject.data for subject in study.subjects if subject.label == courtroom.subject),
            courtroom.subject,
        )
        yield with_notes(study, _by_round(courtroom, data))
        if courtroom.differentiation is not None:
            yield with_notes(study, _compared(courtroom.differentiation, data))
        if courtroom.complexity is not None:
            yield with_notes(study, _rounds_taken(courtroom.complexity, data))


def _by_round(courtroom: Courtroom, data: str) -> Grid:
    return Grid.from_records(
        f"{data}: score gap by round",
        (
            text_column("judge", of=lambda row: row[0]),
            Column("round", of=lambda row: row[1].round),
            Column("cases", about="that lasted this long", of=lambda row: row[1].n),
            # Totals of six criteria, 1 to 20 each, lie between 6 and 120: 114 points apart at most.
            Column(
                "gap",
                about="mean difference of the two answers' scores, as a share of the largest possible one (114 points)",
                of=lambda row: row[1].gap,
            ),
            Column(
                "growths",
                digits=2,
                about="mean number of rounds in which the gap grew",
                of=lambda row: row[1].growths,
            ),
            Column(
                "probability",
                about=f"exact probability of a gap of {1 - courtroom.eps:g} or more under the paper's model",
                of=lambda row: row[1].tail,
            ),
            Column("bound holds", about=_BOUND, of=lambda row: row[1].holds),
            Column("vacuous", of=lambda row: row[1].vacuous),
            Column("does not apply", of=lambda row: row[1].not_applying),
        ),
        [(judge, round) for judge, gaps in courtroom.gaps.items() for round in gaps.rounds],
        notes=(
            *_model(courtroom),
            f"the last three columns count cases by the outcome of {_BOUND}",
            *(note for judge, gaps in courtroom.gaps.items() for note in left_out_note(gaps.left_out, judge)),
        ),
    )


def _model(courtroom: Courtroom) -> Iterator[str]:
    for gaps in list(courtroom.gaps.values())[:1]:
        yield (
            f"probability: of a gap of {1 - courtroom.eps:g} or more (eps {courtroom.eps:g}), if after i rounds, in w "
            f"of which it grew, it is distributed as Beta({gaps.prior[0]:g} + w, {gaps.prior[1]:g} + i - w)"
        )


def _compared(differentiation: ScoreDifferentiation, data: str) -> Grid:
    # The first protocol is the one that the others are tested against: it has no test of its own.
    first, tests = next(iter(differentiation.gaps)), differentiation.tests
    return Grid.from_records(
        f"{data}: final score gap (Theorem 1)",
        (
            text_column("judge", of=str),
            Column("items", about="that all protocols judged", of=lambda _: differentiation.n),
            Column(
                "gap",
                best="high",
                about="mean, as a share of the largest possible one",
                of=differentiation.gaps.get,
            ),
            Column(
                f"Δ vs. {first}",
                about=f"{first}'s gap minus this one, mean over the items, with the t-test's interval",
                of=lambda judge: tests[judge].difference if judge in tests else None,
            ),
            Column(
                "p t",
                form="p",
                about="paired t-test",
                of=lambda judge: tests[judge].p if judge in tests else None,
            ),
            Column("p (Holm)", form="p", of=differentiation.adjusted.get),
        ),
        differentiation.gaps,
        notes=left_out_note(differentiation.left_out),
    )


def _rounds_taken(complexity: IterationComplexity, data: str) -> Grid:
    first = next(iter(complexity.protocols))

    def against(name: str) -> Callable[[tuple[str, RoundsNeeded]], CellValue]:
        # The first protocol, which the others are tested against, has no test of its own.
        return lambda row: getattr(complexity.against.get(row[0]), name, None)

    return Grid.from_records(
        f"{data}: rounds until the score gap reaches {complexity.eps:g} (Theorem 2)",
        (
            text_column("judge", of=lambda row: row[0]),
            Column("items", of=lambda _: complexity.n),
            Column("reached", form="percent", digits=0, of=lambda row: row[1].share),
            Column("never", of=lambda row: row[1].never),
            Column(
                "mean round",
                digits=2,
                about="over the items that reached it",
                of=lambda row: row[1].rounds,
            ),
            text_column("items by round", of=lambda row: counts(row[1].after)),
            Column(
                f"{first} sooner",
                about=f"items on which {first} reached it sooner; never counts as latest",
                of=against("sooner"),
            ),
            Column("later", of=against("later")),
            Column("same", of=against("same")),
            Column("p", form="p", about="sign test", of=against("p")),
            Column("p (Holm)", form="p", of=against("adjusted")),
        ),
        complexity.protocols.items(),
        notes=(
            "mean round: only over the items that reached the gap; the others would have taken longer",
            *left_out_note(complexity.left_out),
        ),
    )
