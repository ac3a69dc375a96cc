"""Make tables of debate diagnostics, and of the score gap of the courtroom protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from ..analysis import Study
from ..analysis.diagnostics import Diagnosis
from ..analysis.gap_analysis import BOUND, FinalGap, RoundOfGaps, RoundsNeeded
from ..analysis.score_gaps import Counted, Courtroom, PredictedGap, Premise
from ..review.audit_labels import AuditedRole, read_audit, roles_of
from ..statistics.alignment import grouped
from ..tables.grid import Column, Grid, Reader, columns_of, fields_of, text_column
from .labels import MEASURES, TEXTS, left_out_note


def diagnoses(study: Study) -> Iterator[Grid]:
    """Make all tables of diagnostics that are not empty."""
    columns = whose(study.diagnoses, itemgetter(0))
    metrics = ", ".join(dict.fromkeys(MEASURES.get(of.measure, of.measure) for of in study.diagnoses))
    note = f"agreement: {metrics}, if every debate had ended here; finished debates keep their last score"
    for name, title in TEXTS["diagnoses"].items():
        yield from diagnostics(study.diagnoses, name, title, columns, [note] if name == "rounds" else [])


def diagnostics(
    diagnoses: Iterable[Diagnosis], name: str, title: str, whose: Iterable[Column], notes: Sequence[str] = ()
) -> Iterator[Grid]:
    """Tabulate what a field of diagnoses holds, unless that is nothing.

    Args:
        diagnoses: each is the first of a pair with a record of its field.
        name: of the field.
        title: of the table.
        whose: the first columns, of such a pair.
        notes: below the table.
    """
    records = []
    for diagnosis in diagnoses:
        value = getattr(diagnosis, name)
        for record in value if isinstance(value, tuple) else (value,):
            # Those that hold something: replies without a fault, and biases of no verdict, do not.
            if record and getattr(record, "n", 1):
                records.append((diagnosis, record))
    if records:
        # Scores and comparisons do not have the same figures.
        columns = (*whose, *columns_of(type(records[0][1]), itemgetter(1)))
        yield Grid.from_records(title, columns, records, notes).without_empty_columns()


def audits(study: Study) -> Iterator[Grid]:
    """Tabulate what an auditor said of the turns of each run that was audited."""
    for folder in dict.fromkeys(judge.folder for judge in study.judges):
        if records := read_audit(folder):
            models = ", ".join(dict.fromkeys(model for record in records for model in record["models"]))
            about = f"{len(records):,} verdicts of {folder.name}, labelled by {models}"
            roles = roles_of(records, study.resampling)
            yield Grid.from_records(f"What turns did: {about}", columns_of(AuditedRole), roles)


def whose(diagnoses: Sequence[Diagnosis], of: Reader | None = None) -> tuple[Column, ...]:
    """Return the columns that name a diagnosis: its judge, and its aspect where there are several."""
    names = fields_of(of, judge=text_column("judge"), subject=text_column("aspect"))
    return names if len({diagnosis.subject for diagnosis in diagnoses}) > 1 else names[:1]


def notes(study: Study) -> tuple[str, ...]:
    """Collect the notes on the diagnostics, each once, with the judges and aspects that it holds for."""
    holders = grouped((note, f"{of.judge} on {of.subject}") for of in study.diagnoses for note in of.notes)
    return tuple(f"{', '.join(those)}: {note}" for note, those in holders.items())


def gaps(study: Study) -> Iterator[Grid]:
    """Make all tables of the score gap: by round, compared between protocols, and rounds until it is reached."""
    for courtroom in study.courtrooms:
        name = courtroom.subject.data
        yield _by_round(courtroom, name)
        if courtroom.differentiation.rows:
            yield _final_gaps(courtroom.differentiation, name)
        if courtroom.complexity.rows:
            yield _rounds_taken(courtroom.complexity, courtroom.eps, name)
        if courtroom.predicted:
            title = f"{name}: observed gaps beside those of the paper's model, fitted to each judge's debates"
            yield Grid.from_records(title, columns_of(PredictedGap), courtroom.predicted, [TEXTS["fitted"]])
        if courtroom.premises:
            columns = *columns_of(Premise), *fields_of(outcome=text_column("outcome"))
            title = f"{name}: premises of the paper's theorems on these runs"
            yield Grid.from_records(title, columns, courtroom.premises, [TEXTS["premises"]])


def _by_round(courtroom: Courtroom, data: str) -> Grid:
    gap = f"a gap of {1 - courtroom.eps:g} or more"
    about = f"exact probability of {gap} under the paper's model"
    of_round = columns_of(RoundOfGaps, itemgetter(1), tail=Column("probability", about=about))
    columns = (text_column("judge", of=itemgetter(0)), *of_round)
    alpha, beta = courtroom.prior
    model = f"it is distributed as Beta({alpha:g} + w, {beta:g} + i - w)"
    by_round = [(judge, round) for judge, gaps in courtroom.gaps.items() for round in gaps.rows]
    notes = [
        f"probability: of {gap} (eps {courtroom.eps:g}), if after i rounds, in w of which it grew, {model}",
        f"the last three columns count cases by the outcome of {BOUND}",
    ]
    for judge, gaps in courtroom.gaps.items():
        notes += left_out_note(gaps.left_out, judge)
    return Grid.from_records(f"{data}: score gap by round", columns, by_round, notes)


def _final_gaps(judges: Counted[FinalGap], data: str) -> Grid:
    first = judges.rows[0].judge
    delta = f"{first}'s gap minus this one, mean over the items, with the t-test's interval"
    columns = columns_of(FinalGap, less=Column(f"Δ vs. {first}", about=delta))
    title = f"{data}: final score gap (Theorem 1)"
    return Grid.from_records(title, columns, judges.rows, left_out_note(judges.left_out))


def _rounds_taken(judges: Counted[RoundsNeeded], eps: float, data: str) -> Grid:
    first = judges.rows[0].judge
    sooner = f"items on which {first} reached it sooner; not reaching it counts as last"
    columns = columns_of(RoundsNeeded, sooner=Column(f"{first} sooner", about=sooner))
    title = f"{data}: rounds until the score gap reaches {eps:g} (Theorem 2)"
    mean = "mean round: only over the items that reached the gap; the others would have taken longer"
    return Grid.from_records(title, columns, judges.rows, (mean, *left_out_note(judges.left_out)))
