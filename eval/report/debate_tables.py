"""What the debates did; score gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..analysis import Courtroom, Diagnosis, Study
from ..tables import CellValue, Column, Grid, text_column
from .labels import MEASURES, interval_note, signatures

if TYPE_CHECKING:
    from ..statistics.score_differentiation import IterationComplexity, ScoreDifferentiation


Rows = Iterable[tuple[CellValue, ...]]


def diagnoses(study: Study) -> Iterator[Grid]:
    """All tables of diagnostics that have something in them."""
    for make in (changes, rounds, score_changes, conformity, spending, positions, lengths, replies):
        grid = make(study)
        if grid.rows:
            yield grid


def notes(study: Study) -> tuple[str, ...]:
    """What a reader should know of the diagnostics, each thing once, with whom and what it is about."""
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
    # Scores and preferences have figures of their own: a column that is empty for all says nothing.
    told = [place for place in range(len(columns)) if any(row[place] is not None for _, row in held)]
    return Grid(
        title=title,
        columns=(
            *(text_column("judge"), *([text_column("of")] if several else [])),
            *(columns[place] for place in told),
        ),
        rows=tuple(
            (each.judge, *([each.subject] if several else []), *(row[place] for place in told))
            for each, row in held
        ),
        notes=(*notes, *signatures(study, (each.judge for each, _ in held))),
    )


def changes(study: Study) -> Grid:
    """Whether talking changed verdicts, and for the better."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.changes) is not None:
            yield (
                *(found.n, found.moved, found.helpful, found.harmful, found.neither, found.p, found.error),
                *(found.back, found.up, found.down),
            )

    return _grid(
        study,
        "What the debate changed, from the first verdict to the last",
        (
            *(Column("verdicts"), Column("changed", form="percent", digits=0)),
            Column("helpful", about="changes that ended nearer to people"),
            Column("harmful", about="changes that ended farther from people"),
            Column("neither"),
            Column("p", form="p", about="sign test of helpful against harmful"),
            Column("distance", about="mean change of the distance to people: below zero is nearer"),
            Column("and back", about="moved on the way and came back"),
            *(Column("up"), Column("down")),
        ),
        rows,
        interval_note(study),
    )


def rounds(study: Study) -> Grid:
    """Agreement had every debate ended after each round."""

    def rows(each: Diagnosis) -> Rows:
        for one in each.rounds:
            yield (
                *(one.round, one.active, one.agreement, one.gain, one.calls, one.gain_per_call),
                *(one.changed, one.helpful, one.harmful, one.error),
            )

    measures = dict.fromkeys(MEASURES.get(each.measure, each.measure) for each in study.diagnoses)
    return _grid(
        study,
        "After each round",
        (
            *(Column("round"), Column("debated", about="verdicts that gave a score in this round")),
            Column("agreement", about=f"with people, had all ended here: {', '.join(measures)}"),
            Column("gain", about="over the round before"),
            Column("calls", digits=2, about="a judgement, up to here"),
            Column("gain a call", digits=4),
            *(Column("changed"), Column("helpful"), Column("harmful")),
            Column("distance", about="mean distance to people; of two answers the share of wrong winners"),
        ),
        rows,
        f"agreement: {', '.join(measures)}, had every debate ended here; who was done before keeps the last score",
        interval_note(study),
    )


def score_changes(study: Study) -> Grid:
    """After whose word verdicts changed."""

    def rows(each: Diagnosis) -> Rows:
        for one in each.score_changes:
            yield (one.agent, one.turns, one.moves, one.mean_move, one.helpful, one.harmful)

    return _grid(
        study,
        "Whose word moved the score",
        (
            *(text_column("agent"), Column("turns"), Column("moves")),
            *(Column("mean move", digits=2), Column("helpful"), Column("harmful")),
        ),
        rows,
    )


def conformity(study: Study) -> Grid:
    """Whether referees give in to each other."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.conformity) is not None:
            spread = " → ".join(f"{one:.2f}" for one in found.spread_by_turn)
            yield (
                *(found.n, found.changes, found.towards, found.away, found.p, found.towards_previous),
                *(found.start_equal, found.end_equal, spread),
            )

    return _grid(
        study,
        "Whether referees give in to each other",
        (
            *(
                Column("verdicts"),
                Column("changes"),
                Column("towards", about="nearer to what the others had said"),
            ),
            *(Column("away"), Column("p", form="p", about="sign test"), Column("towards last")),
            Column("same at first", form="percent", digits=0),
            Column("same at last", form="percent", digits=0),
            text_column("spread turn by turn"),
        ),
        rows,
    )


def spending(study: Study) -> Grid:
    """How long debates were, and why they ended."""

    def rows(each: Diagnosis) -> Rows:
        found = each.spending
        ended = ", ".join(f"{reason} {count}" for reason, count in found.stop_reasons.items())
        yield (found.mean_rounds, found.mean_calls, found.unresolved, _counts(found.rounds), ended)

    return _grid(
        study,
        "Rounds and calls",
        (
            *(Column("rounds", digits=2), Column("calls", digits=2)),
            Column("unresolved", form="percent", digits=0, about="ended since the rounds were used up"),
            *(text_column("rounds: debates"), text_column("ended by")),
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
    """Whether the order of two answers decides."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.positions) is not None and found.n:
            yield (found.n, found.consistent, found.shown_first, found.shown_second, found.ties, found.p)

    return _grid(
        study,
        "Whether the order of the answers decides",
        (
            *(
                Column("verdicts"),
                Column("consistent", about="both orders gave one winner", form="percent", digits=0),
            ),
            *(Column("for the first shown"), Column("for the second shown"), Column("ties")),
            Column("p", form="p", about="sign test of first against second"),
        ),
        rows,
        interval_note(study),
    )


def lengths(study: Study) -> Grid:
    """Whether length decides."""

    def rows(each: Diagnosis) -> Rows:
        if (found := each.length) is not None and found.n:
            yield (found.n, found.correlation, found.partial, found.human, found.longer, found.human_longer)

    return _grid(
        study,
        "Whether length decides",
        (
            Column("verdicts"),
            Column("with length", about="Spearman's rho of scores with the candidate's length"),
            Column("people held", about="the same with people's score held constant"),
            Column("people's", about="Spearman's rho of people's score with length"),
            Column(
                "for the longer",
                form="percent",
                digits=0,
                about="share of winners that are the longer answer",
            ),
            Column("people's for it", form="percent", digits=0),
        ),
        rows,
        interval_note(study),
    )


def replies(study: Study) -> Grid:
    """How well models kept to their forms: only where something went wrong."""

    def rows(each: Diagnosis) -> Rows:
        found = each.replies
        if found.repaired or found.unread or found.failed:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in found.reasons.items())
            yield (found.repaired, found.unread, found.failed, reasons)

    return _grid(
        study,
        "Replies that were not as asked for",
        (
            Column("repaired", about="judgements with a reply that was asked for again"),
            *(
                Column("unread", about="judgements with samples left out"),
                Column("failed"),
                text_column("why"),
            ),
        ),
        rows,
    )


_BOUND = (
    "the paper's bound of that chance, 1 - 4 Var / eps^2: it does not apply where the model's mean is not above "
    "1 - eps / 2, and is vacuous where it is not above 0"
)


def gaps(study: Study) -> Iterator[Grid]:
    """All tables of all subjects: gaps by round, gaps beside each other, and rounds that they took."""
    for found in study.courtrooms:
        name = _name(study, found)
        yield _by_round(study, found, name)
        if found.differentiation is not None:
            yield _beside_each_other(study, found.differentiation, name)
        if found.complexity is not None:
            yield _rounds_taken(study, found.complexity, name)


def _name(study: Study, found: Courtroom) -> str:
    return next((one.data for one in study.subjects if one.label == found.subject), found.subject)


def _by_round(study: Study, found: Courtroom, name: str) -> Grid:
    return Grid(
        title=f"{name}: the gap between both answers' scores, round by round",
        columns=(
            *(text_column("judge"), Column("round"), Column("cases", about="that were held so long")),
            Column("gap", about="mean, as a share of the widest possible one (114 points of the totals)"),
            Column("growths", digits=2, about="mean number of rounds in which it had grown"),
            Column(
                "chance", about=f"exact chance of a gap of {1 - found.eps:g} or more, under the paper's model"
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
            f"the last columns count cases by what becomes of {_BOUND}",
            *_left_out({judge: held.left_out for judge, held in found.gaps.items()}),
            interval_note(study),
            *signatures(study, found.gaps),
        ),
    )


def _models(found: Courtroom) -> Iterator[str]:
    held = next(iter(found.gaps.values()), None)
    if held is not None:
        yield (
            f"chance: of a gap of {1 - found.eps:g} or more (eps {found.eps:g}) where after i rounds, w of which "
            f"made it grow, it is Beta({held.prior[0]:g} + w, {held.prior[1]:g} + i - w)"
        )


def _beside_each_other(study: Study, held: ScoreDifferentiation, name: str) -> Grid:
    first = next(iter(held.gaps))
    return Grid(
        title=f"{name}: how far apart the scores end (Theorem 1)",
        columns=(
            *(text_column("judge"), Column("items", about="that all of them judged")),
            Column("gap", best="high", about="mean, as a share of the widest possible one"),
            Column(
                f"{first} less it", about="mean difference on the same items, with the t-test's own interval"
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
            *signatures(study, held.gaps),
        ),
    )


def _rounds_taken(study: Study, held: IterationComplexity, name: str) -> Grid:
    first = next(iter(held.protocols))
    return Grid(
        title=f"{name}: rounds until the gap reaches {held.eps:g} (Theorem 2)",
        columns=(
            *(text_column("judge"), Column("items"), Column("reached", form="percent", digits=0)),
            *(Column("never"), Column("mean round", digits=2, about="of the items on which it was reached")),
            text_column("round: items"),
            *(
                Column(
                    f"{first} sooner", about="items on which it was there sooner; never is later than ever"
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
                    else (None,) * 5
                ),
            )
            for judge, one in held.protocols.items()
        ),
        notes=(
            "the mean round is of the items on which the gap was reached alone: the others would have taken longer",
            *_reasons("left out", held.left_out),
            interval_note(study),
            *signatures(study, held.protocols),
        ),
    )


def _left_out(reasons: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for judge, found in reasons.items():
        yield from _reasons(f"{judge}: left out", found)


def _reasons(lead: str, found: Mapping[str, int]) -> Iterator[str]:
    told = [f"{count:,} {reason}" for reason, count in found.items() if count]
    if told:
        yield f"{lead} {', '.join(told)}"
