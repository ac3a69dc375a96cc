"""Make tables of debate diagnostics, and of the score gap of the courtroom protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..analysis import Courtroom, Diagnosis, Study
from ..tables import CellValue, Column, Grid, text_column
from .labels import MEASURES, config_notes, interval_note

if TYPE_CHECKING:
    from ..statistics.score_differentiation import IterationComplexity, ScoreDifferentiation


Rows = Iterable[tuple[CellValue, ...]]


def diagnoses(study: Study) -> Iterator[Grid]:
    """Make all tables of diagnostics that are not empty."""
    for make in (changes, rounds, score_changes, conformity, spending, positions, lengths, replies):
        grid = make(study)
        if grid.rows:
            yield grid


def notes(study: Study) -> tuple[str, ...]:
    """Collect the notes on the diagnostics, each once, with the judges and aspects that it holds for."""
    found: dict[str, list[str]] = {}
    for each in study.diagnoses:
        for note in each.notes:
            found.setdefault(note, []).append(f"{each.judge} on {each.subject}")
    return tuple(f"{', '.join(whose)}: {note}" for note, whose in found.items())


def _grid(
    study: Study, title: str, columns: tuple[Column, ...], rows: Callable[[Diagnosis], Rows], *notes: str
) -> Grid:
    several = len({each.subject for each in study.diagnoses}) > 1
    held = [(each, row) for each in study.diagnoses for row in rows(each)]
    # Scores and preferences do not have the same statistics: columns that are empty for all are left out.
    kept = [place for place in range(len(columns)) if any(row[place] is not None for _, row in held)]
    return Grid(
        title=title,
        columns=(
            *(text_column("judge"), *([text_column("aspect")] if several else [])),
            *(columns[place] for place in kept),
        ),
        rows=tuple(
            (each.judge, *([each.subject] if several else []), *(row[place] for place in kept))
            for each, row in held
        ),
        notes=(*notes, *config_notes(study, (each.judge for each, _ in held))),
    )


def changes(study: Study) -> Grid:
    """Tabulate how many verdicts changed in the debate, and whether for the better."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.changes) is not None:
            yield (
                *(found.n, found.moved, found.helpful, found.harmful, found.neither, found.p, found.error),
                *(found.back, found.up, found.down),
            )

    return _grid(
        study,
        "Verdict changes from the first to the last verdict",
        (
            *(Column("verdicts"), Column("changed", form="percent", digits=0)),
            Column("helpful", about="changes towards the label"),
            Column("harmful", about="changes away from the label"),
            Column("neither"),
            Column("p", form="p", about="sign test of helpful against harmful"),
            Column("Δ error", about="mean change of the absolute error: below zero is better"),
            Column("returned", about="changed on the way and returned to the first verdict"),
            *(Column("up"), Column("down")),
        ),
        rows,
        interval_note(study),
    )


def rounds(study: Study) -> Grid:
    """Tabulate the agreement that there would be if every debate had ended after a round."""

    def rows(each: Diagnosis) -> Rows:
        for one in each.rounds:
            yield (
                *(one.round, one.active, one.agreement, one.gain, one.calls, one.gain_per_call),
                *(one.changed, one.helpful, one.harmful, one.error),
            )

    measures = dict.fromkeys(MEASURES.get(each.measure, each.measure) for each in study.diagnoses)
    return _grid(
        study,
        "Agreement by round",
        (
            *(Column("round"), Column("active", about="verdicts with a score in this round")),
            Column("agreement", about=f"if all had ended here: {', '.join(measures)}"),
            Column("gain", about="over the previous round"),
            Column("calls", digits=2, about="per judgement, up to this round"),
            Column("gain per call", digits=4),
            *(Column("changed"), Column("helpful"), Column("harmful")),
            Column("absolute error", about="mean over verdicts; in comparisons the share of wrong winners"),
        ),
        rows,
        f"agreement: {', '.join(measures)}, if every debate had ended here; finished debates keep their last score",
        interval_note(study),
    )


def score_changes(study: Study) -> Grid:
    """Tabulate after which agent's turn verdicts changed."""

    def rows(each: Diagnosis) -> Rows:
        for one in each.score_changes:
            yield (one.agent, one.turns, one.moves, one.mean_move, one.helpful, one.harmful)

    return _grid(
        study,
        "Score changes by agent",
        (
            *(text_column("agent"), Column("turns"), Column("changes")),
            *(Column("mean change", digits=2), Column("helpful"), Column("harmful")),
        ),
        rows,
    )


def conformity(study: Study) -> Grid:
    """Tabulate whether referees move towards the scores of others."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.conformity) is not None:
            spread = " → ".join(f"{one:.2f}" for one in found.spread_by_turn)
            yield (
                *(found.n, found.changes, found.towards, found.away, found.p, found.towards_previous),
                *(found.start_equal, found.end_equal, spread),
            )

    return _grid(
        study,
        "Conformity among referees",
        (
            *(
                Column("verdicts"),
                Column("changes"),
                Column("towards", about="changes towards the other referees' scores"),
            ),
            *(
                Column("away"),
                Column("p", form="p", about="sign test"),
                Column("towards previous", about="changes towards the previous speaker's score"),
            ),
            Column("equal at start", form="percent", digits=0),
            Column("equal at end", form="percent", digits=0),
            text_column("sd by turn", about="mean standard deviation between referees"),
        ),
        rows,
    )


def spending(study: Study) -> Grid:
    """Tabulate how many rounds and calls debates took, and why they ended."""

    def rows(each: Diagnosis) -> Rows:
        found = each.spending
        ended = ", ".join(f"{reason} {count}" for reason, count in found.stop_reasons.items())
        yield (found.mean_rounds, found.mean_calls, found.unresolved, _counts(found.rounds), ended)

    return _grid(
        study,
        "Rounds and calls",
        (
            *(Column("rounds", digits=2), Column("calls", digits=2)),
            Column("unresolved", form="percent", digits=0, about="stopped by the round limit"),
            *(text_column("debates by round count"), text_column("stop reason")),
        ),
        rows,
    )


def _counts(counts: object) -> str:
    return (
        ", ".join(f"{number}: {many:,}" for number, many in counts.items())
        if isinstance(counts, dict)
        else ""
    )


def positions(study: Study) -> Grid:
    """Tabulate whether the order of two answers changes the winner."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.positions) is not None and found.n:
            yield (found.n, found.consistent, found.shown_first, found.shown_second, found.ties, found.p)

    return _grid(
        study,
        "Position bias",
        (
            *(
                Column("verdicts"),
                Column("consistent", about="both orders gave the same winner", form="percent", digits=0),
            ),
            *(Column("first shown wins"), Column("second shown wins"), Column("ties")),
            Column("p", form="p", about="sign test of first against second"),
        ),
        rows,
        interval_note(study),
    )


def lengths(study: Study) -> Grid:
    """Tabulate whether longer texts get better verdicts."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.length) is not None and found.n:
            yield (found.n, found.correlation, found.partial, found.human, found.longer, found.human_longer)

    return _grid(
        study,
        "Length bias",
        (
            Column("verdicts"),
            Column("rho with length", about="Spearman's rho of scores with the candidate's length"),
            Column("partial rho", about="the same, controlled for the label"),
            Column("label's rho", about="Spearman's rho of the label with length"),
            Column(
                "longer wins",
                form="percent",
                digits=0,
                about="share of winners that are the longer answer",
            ),
            Column("longer wins by label", form="percent", digits=0),
        ),
        rows,
        interval_note(study),
    )


def replies(study: Study) -> Grid:
    """Tabulate replies that did not have the requested format; only of judges that have some."""

    def rows(each: Diagnosis) -> Rows:
        found = each.replies
        if found.repaired or found.unread or found.failed or found.copied:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in found.reasons.items())
            yield (found.repaired, found.unread, found.copied, found.failed, reasons)

    return _grid(
        study,
        "Malformed replies",
        (
            Column("repaired", about="judgements with a repair request"),
            *(
                Column("unreadable", about="judgements without some samples, which could not be read"),
                Column(
                    "copied", about="judgements with a reply that copies its prompt or another agent's words"
                ),
                Column("failed"),
                text_column("reason"),
            ),
        ),
        rows,
    )


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
