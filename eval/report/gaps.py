"""The courtroom protocols' gaps between two answers' scores, as tables: only where such protocols were run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..export import Column, Grid, text_column
from ..study import Courtroom, Study
from .naming import interval_note, signatures

if TYPE_CHECKING:
    from ..statistics.differentiation import IterationComplexity, ScoreDifferentiation

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
