"""Make tables of debate diagnostics, and of the score gap of the courtroom protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter

from ..analysis import Study
from ..analysis.diagnostics import Diagnosis
from ..analysis.gap_analysis import BOUND, FinalGap, RoundOfGaps, RoundsNeeded
from ..analysis.score_gaps import Counted, Courtroom, PredictedGap, Premise
from ..review.audit_labels import (
    SECOND,
    AuditedRole,
    LabelAgreement,
    agreement_of_labellers,
    read_audit,
    roles_of,
)
from ..statistics.alignment import grouped
from ..statistics.resampling import FEWEST_CLUSTERS, is_few
from ..tables.grid import Column, Grid, Reader, columns_of, fields_of, figure, text_column
from .labels import MEASURES, left_out_note

_DIAGNOSES = {
    "changes": "Verdict changes from the first to the last verdict",
    "rounds": "Agreement by round",
    "score_changes": "Score changes by agent",
    "conformity": "Conformity among referees",
    "objections": "Objections of critics to wrong and to right scores",
    "spending": "Rounds and calls",
    "positions": "Position bias",
    "length": "Length bias",
    "replies": "Malformed replies",
}
"""The titles of the tables on debates, by the field of a diagnosis."""
_PLACEBO = (
    "Placebo: first verdicts that differ between two repeats of an item, with no discussion between them. "
    "A discussion has an effect only if it changes more verdicts."
)
_NO_PLACEBO = (
    "a model that judges again also changes some verdicts, so these changes are no evidence of an effect. "
    "Judge with run --repeats 2 for a placebo, or use jurygraph whatif for a single turn."
)
_FITTED = (
    "alpha, beta: maximum-likelihood estimates if gaps are distributed as Beta(alpha + w, beta + i - w) "
    "after i rounds, of which w widened the gap. If the last p-value (Holm) is below 0.05, the model does "
    "not fit these runs."
)
_PREMISES = (
    "The paper assumes these premises and tests none. An aggregate is compared with the best defence of "
    "another run on the same items (aggregate=llm and aggregate=best). A lead is measured towards the answer "
    "that the judge with fewer advocates prefers; part of that lead is chance, so a figure just below 0 may "
    "be chance, too. A premise holds or is refuted if its p-value (Holm) is below 0.05."
)


def diagnoses(study: Study) -> Iterator[Grid]:
    """Make all tables of diagnostics that are not empty."""
    columns = whose(study.diagnoses, itemgetter(0))
    metrics = ", ".join(
        dict.fromkeys(MEASURES.get(of.measure, of.measure) for of in study.diagnoses)
    )
    note = f"Agreement: {metrics}, if every debate had ended here. Finished debates keep their last score."
    notes = {"rounds": [note]} | dict.fromkeys(
        ("changes", "score_changes"), placebo_notes(study.diagnoses)
    )
    for name, title in _DIAGNOSES.items():
        yield from diagnostics(study.diagnoses, name, title, columns, notes.get(name, []))


def placebo_notes(diagnoses: Iterable[Diagnosis]) -> list[str]:
    """Return the notes on the share of changed verdicts that resampling alone explains."""
    changed = [(of, of.changes) for of in diagnoses if of.changes is not None]
    notes = []
    if any(changes.placebo is not None for _, changes in changed):
        notes.append(_PLACEBO)
    without = [of.judge for of, changes in changed if of.varies and changes.placebo is None]
    if without:
        whose = "" if len(without) == len(changed) else f" for {', '.join(dict.fromkeys(without))}"
        notes.append(f"No placebo was run{whose}: {_NO_PLACEBO}")
    elif changed and not any(of.varies for of, _ in changed):
        notes.append("Placebo: zero, because the offline judge repeats its verdicts.")
    return notes


def diagnostics(
    diagnoses: Iterable[Diagnosis],
    name: str,
    title: str,
    whose: Iterable[Column],
    notes: Sequence[str] = (),
) -> Iterator[Grid]:
    """Tabulate a field of diagnoses, unless it is empty.

    Args:
        diagnoses: pairs of a diagnosis and a record of its field.
        name: the name of the field.
        title: the title of the table.
        whose: the first columns of such a pair.
        notes: the notes below the table.
    """
    records = []
    for diagnosis in diagnoses:
        value = getattr(diagnosis, name)
        for record in value if isinstance(value, tuple) else (value,):
            # Replies without a fault, and biases without a verdict, are empty.
            if record and getattr(record, "n", 1):
                records.append((diagnosis, record))
    if records:
        # Scores and comparisons have different figures.
        columns = (*whose, *columns_of(type(records[0][1]), itemgetter(1)))
        yield Grid.from_records(title, columns, records, notes).without_empty_columns()


def audits(study: Study) -> Iterator[Grid]:
    """Tabulate the auditor's findings on the turns of each audited run."""
    for folder in dict.fromkeys(judge.folder for judge in study.judges):
        if records := read_audit(folder):
            models = ", ".join(
                dict.fromkeys(model for record in records for model in record["models"])
            )
            about = f"{len(records):,} verdicts of {folder.name}, labelled by {models}"
            roles = roles_of(records, study.resampling)
            table = Grid.from_records(f"What turns did: {about}", columns_of(AuditedRole), roles)
            yield table.without_empty_columns()
            second = read_audit(folder, SECOND)
            if shared := agreement_of_labellers(records, second, study.resampling):
                others = ", ".join(dict.fromkeys(m for record in second for m in record["models"]))
                title = f"Agreement of two labellers on {folder.name}: {models} and {others}"
                yield Grid.from_records(title, columns_of(LabelAgreement), shared)


def whose(diagnoses: Sequence[Diagnosis], of: Reader | None = None) -> tuple[Column, ...]:
    """Return the columns with a diagnosis's judge, and its aspect if there are several."""
    names = fields_of(of, judge=text_column("judge"), subject=text_column("aspect"))
    return names if len({diagnosis.subject for diagnosis in diagnoses}) > 1 else names[:1]


def notes(study: Study) -> tuple[str, ...]:
    """Collect the notes on the diagnostics, each once, with its judges and aspects."""
    holders = grouped(
        (note, f"{of.judge} on {of.subject}") for of in study.diagnoses for note in of.notes
    )
    return tuple(f"{', '.join(those)}: {note}" for note, those in holders.items())


def gaps(study: Study) -> Iterator[Grid]:
    """Make the score gap tables: by round, between protocols, and rounds until it is reached."""
    for courtroom in study.courtrooms:
        name = courtroom.subject.data
        yield _by_round(courtroom, name)
        if courtroom.differentiation.rows:
            yield _final_gaps(courtroom.differentiation, name, courtroom.unit)
        if courtroom.complexity.rows:
            yield _rounds_taken(courtroom.complexity, courtroom.eps, name, courtroom.unit)
        if courtroom.predicted:
            title = f"{name}: observed gaps beside those of the paper's model, fitted to each judge's debates"
            table = Grid.from_records(
                title, columns_of(PredictedGap), courtroom.predicted, [_FITTED]
            )
            yield table.without_empty_columns()
        if courtroom.premises:
            columns = *columns_of(Premise), *fields_of(outcome=text_column("outcome"))
            title = f"{name}: premises of the paper's theorems on these runs"
            table = Grid.from_records(title, columns, courtroom.premises, [_PREMISES])
            yield table.without_empty_columns()


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


def _final_gaps(judges: Counted[FinalGap], data: str, unit: str) -> Grid:
    base = judges.rows[0].judge
    about = (
        f"this judge's gap minus that of {base}, mean over the items, with its interval over {unit}"
    )
    delta = Column(f"Δ vs. {base}: judge - {base}", about=about, of=lambda row: row.difference)
    gap = columns_of(FinalGap, only=["judge", "n", "gap"])
    tests = columns_of(FinalGap, only=["p", "adjusted"])
    finding = text_column("finding", of=partial(_gap_finding, base=base, delta=delta))
    title = f"{data}: final score gap (Theorem 1)"
    notes = [*_too_few_note(judges.rows[0].clusters, unit), *left_out_note(judges.left_out)]
    return Grid.from_records(
        title, (*gap, delta, *tests, finding), judges.rows, notes
    ).without_empty_columns()


def _gap_finding(row: FinalGap, base: str, delta: Column) -> str | None:
    """Name the direction of a significant difference from the base's gap."""
    if row.direction is None or row.difference is None or row.difference.value is None:
        return None
    if row.direction == "no significant difference":
        return f"no significant difference from {base}"
    return f"gap {row.direction} than that of {base} by {figure(abs(row.difference.value), delta)}"


def _too_few_note(clusters: int, unit: str) -> Iterator[str]:
    if is_few(clusters):
        are = f"1 {unit[:-1]} is" if clusters == 1 else f"{clusters} {unit} are"
        yield f"{are} too few to claim anything: at least {FEWEST_CLUSTERS} {unit} are needed"


def _rounds_taken(judges: Counted[RoundsNeeded], eps: float, data: str, unit: str) -> Grid:
    first = judges.rows[0].judge
    sooner = f"items on which {first} reached it sooner; not reaching it counts as last"
    columns = columns_of(RoundsNeeded, sooner=Column(f"{first} sooner", about=sooner))
    title = f"{data}: rounds until the score gap reaches {eps:g} (Theorem 2)"
    mean = (
        "mean round: only over the items that reached the gap; the others would have taken longer"
    )
    notes = [mean, *_too_few_note(judges.rows[0].clusters, unit), *left_out_note(judges.left_out)]
    return Grid.from_records(title, columns, judges.rows, notes).without_empty_columns()
