"""Make tables of debate diagnostics, and of the score gap of the courtroom protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

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
from ..tables import Column, Grid, text_column
from ..tables.record_columns import cells_of, columns_of, used_columns
from .labels import MEASURES, config_notes, interval_note

if TYPE_CHECKING:
    from ..statistics.score_differentiation import IterationComplexity, ScoreDifferentiation


class _Table(NamedTuple):
    """A table of diagnostics: its title, its records, which of them a diagnosis has, and whether it has intervals."""

    title: str
    record: type
    records: Callable[[Diagnosis], Iterable[object]]
    intervals: bool = False


_DIAGNOSTICS = (
    _Table(
        "Verdict changes from the first to the last verdict",
        Changes,
        lambda diagnosis: [diagnosis.changes] if diagnosis.changes else [],
        intervals=True,
    ),
    _Table("Agreement by round", Round, lambda diagnosis: diagnosis.rounds, intervals=True),
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
        intervals=True,
    ),
    _Table(
        "Length bias",
        LengthBias,
        lambda diagnosis: [diagnosis.length] if diagnosis.length and diagnosis.length.n else [],
        intervals=True,
    ),
    # Only of judges that have some.
    _Table("Malformed replies", Replies, lambda diagnosis: [diagnosis.replies] if diagnosis.replies else []),
)


def diagnoses(study: Study) -> Iterator[Grid]:
    """Make all tables of diagnostics that are not empty."""
    several = len({diagnosis.subject for diagnosis in study.diagnoses}) > 1
    for table in _DIAGNOSTICS:
        held = [(diagnosis, record) for diagnosis in study.diagnoses for record in table.records(diagnosis)]
        if not held:
            continue
        columns, rows = used_columns(columns_of(table.record), (cells_of(record) for _, record in held))
        names = [(diagnosis.judge, *([diagnosis.subject] if several else [])) for diagnosis, _ in held]
        yield Grid(
            title=table.title,
            columns=(text_column("judge"), *([text_column("aspect")] if several else []), *columns),
            rows=tuple((*name, *row) for name, row in zip(names, rows, strict=True)),
            notes=(
                *([_rounds_note(study)] if table.record is Round else []),
                *([interval_note(study)] if table.intervals else []),
                *config_notes(study, (diagnosis.judge for diagnosis, _ in held)),
            ),
        )


def _rounds_note(study: Study) -> str:
    metrics = dict.fromkeys(
        MEASURES.get(diagnosis.measure, diagnosis.measure) for diagnosis in study.diagnoses
    )
    return f"agreement: {', '.join(metrics)}, if every debate had ended here; finished debates keep their last score"


def notes(study: Study) -> tuple[str, ...]:
    """Collect the notes on the diagnostics, each once, with the judges and aspects that it holds for."""
    found: dict[str, list[str]] = {}
    for each in study.diagnoses:
        for note in each.notes:
            found.setdefault(note, []).append(f"{each.judge} on {each.subject}")
    return tuple(f"{', '.join(whose)}: {note}" for note, whose in found.items())


_BOUND = (
    "the paper's bound on that probability, 1 - 4 Var / eps^2: it does not apply if the model's mean is not above "
    "1 - eps / 2, and is vacuous if it is not above 0"
)


def gaps(study: Study) -> Iterator[Grid]:
    """Make all tables of the score gap: by round, compared between protocols, and rounds until it is reached."""
    for found in study.courtrooms:
        name = _name(study, found)
        yield _by_round(study, found, name)
        if found.differentiation is not None:
            yield _compared(study, found.differentiation, name)
        if found.complexity is not None:
            yield _rounds_taken(study, found.complexity, name)


def _name(study: Study, found: Courtroom) -> str:
    return next((one.data for one in study.subjects if one.label == found.subject), found.subject)


def _by_round(study: Study, found: Courtroom, name: str) -> Grid:
    return Grid(
        title=f"{name}: score gap by round",
        columns=(
            *(text_column("judge"), Column("round"), Column("cases", about="that lasted this long")),
            # Totals of six criteria, 1 to 20 each, lie between 6 and 120: 114 points apart at most.
            Column(
                "gap",
                about="mean difference of the two answers' scores, as a share of the largest possible one (114 points)",
            ),
            Column("growths", digits=2, about="mean number of rounds in which the gap grew"),
            Column(
                "probability",
                about=f"exact probability of a gap of {1 - found.eps:g} or more under the paper's model",
            ),
            *(Column("bound holds", about=_BOUND), Column("vacuous"), Column("does not apply")),
        ),
        rows=tuple(
            (
                judge,
                one.round,
                one.n,
                one.gap,
                one.growths,
                one.tail,
                one.holds,
                one.vacuous,
                one.not_applying,
            )
            for judge, held in found.gaps.items()
            for one in held.rounds
        ),
        notes=(
            *_models(found),
            f"the last three columns count cases by the outcome of {_BOUND}",
            *_left_out({judge: held.left_out for judge, held in found.gaps.items()}),
            interval_note(study),
            *config_notes(study, found.gaps),
        ),
    )


def _models(found: Courtroom) -> Iterator[str]:
    held = next(iter(found.gaps.values()), None)
    if held is not None:
        yield (
            f"probability: of a gap of {1 - found.eps:g} or more (eps {found.eps:g}), if after i rounds, in w of which "
            f"it grew, it is distributed as Beta({held.prior[0]:g} + w, {held.prior[1]:g} + i - w)"
        )


def _compared(study: Study, held: ScoreDifferentiation, name: str) -> Grid:
    # The first protocol is the one that the others are tested against: it has no test of its own.
    first = next(iter(held.gaps))
    return Grid(
        title=f"{name}: final score gap (Theorem 1)",
        columns=(
            *(text_column("judge"), Column("items", about="that all protocols judged")),
            Column("gap", best="high", about="mean, as a share of the largest possible one"),
            Column(
                f"Δ vs. {first}",
                about=f"{first}'s gap minus this one, mean over the items, with the t-test's interval",
            ),
            *(Column("p t", form="p", about="paired t-test"), Column("p (Holm)", form="p")),
        ),
        rows=tuple(
            (
                *(judge, held.n, gap),
                *(
                    (held.tests[judge].difference, held.tests[judge].p, held.adjusted[judge])
                    if judge in held.tests
                    else (None, None, None)
                ),
            )
            for judge, gap in held.gaps.items()
        ),
        notes=(
            *_reasons("left out", held.left_out),
            interval_note(study),
            *config_notes(study, held.gaps),
        ),
    )


def _rounds_taken(study: Study, held: IterationComplexity, name: str) -> Grid:
    first = next(iter(held.protocols))
    return Grid(
        title=f"{name}: rounds until the score gap reaches {held.eps:g} (Theorem 2)",
        columns=(
            *(text_column("judge"), Column("items"), Column("reached", form="percent", digits=0)),
            *(Column("never"), Column("mean round", digits=2, about="over the items that reached it")),
            text_column("items by round"),
            *(
                Column(
                    f"{first} sooner",
                    about=f"items on which {first} reached it sooner; never counts as latest",
                ),
                *(Column("later"), Column("same"), Column("p", form="p", about="sign test")),
                Column("p (Holm)", form="p"),
            ),
        ),
        rows=tuple(
            (
                *(judge, held.n, one.share, one.never, one.rounds),
                ", ".join(f"{number}: {items}" for number, items in one.after.items()),
                *(
                    (sign.sooner, sign.later, sign.same, sign.p, sign.adjusted)
                    if (sign := held.against.get(judge)) is not None
                    else (None,) * 5  # the first protocol, which the others are tested against
                ),
            )
            for judge, one in held.protocols.items()
        ),
        notes=(
            "mean round: only over the items that reached the gap; the others would have taken longer",
            *_reasons("left out", held.left_out),
            interval_note(study),
            *config_notes(study, held.protocols),
        ),
    )


def _left_out(reasons: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for judge, found in reasons.items():
        yield from _reasons(f"{judge}: left out", found)


def _reasons(lead: str, found: Mapping[str, int]) -> Iterator[str]:
    reasons = [f"{count:,} {reason}" for reason, count in found.items() if count]
    if reasons:
        yield f"{lead} {', '.join(reasons)}"
