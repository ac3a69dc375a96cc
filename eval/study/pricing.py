"""Lays out what judging took, beside what people would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .contenders import Contender
from .costs import CostRow, Costs, People


def costs(contenders: Sequence[Contender], people: People | None) -> Costs:
    """A row a contender; then for each dataset one for people on the items and aspects of its longest run."""
    rows = [_row(contender) for contender in contenders]
    if people is not None:
        rows += _people(contenders, people)
    return Costs(tuple(rows), people, tuple(_notes(contenders)))


def _row(contender: Contender) -> CostRow:
    bill = contender.bill
    return CostRow(
        label=contender.label,
        data=contender.data,
        judgements=bill.judgements,
        cost_usd=bill.cost_usd,
        seconds=bill.seconds,
        cost_each=bill.cost_each,
        seconds_each=bill.seconds_each,
        calls_each=bill.calls_each,
        tokens_each=bill.tokens_each,
    )


def _people(contenders: Sequence[Contender], people: People) -> Iterator[CostRow]:
    for digest in dict.fromkeys(contender.digest for contender in contenders):
        there = [contender for contender in contenders if contender.digest == digest]
        judgements = max(each.bill.judgements // _repeats(each) for each in there)
        cost, seconds = people.cost_each, people.seconds_each
        yield CostRow(
            label="people",
            data=there[0].data,
            judgements=judgements,
            cost_usd=None if cost is None else cost * judgements,
            seconds=None if seconds is None else seconds * judgements,
            cost_each=cost,
            seconds_each=seconds,
            calls_each=None,
            tokens_each=None,
            is_people=True,
        )


def _repeats(contender: Contender) -> int:
    return max(1, int(contender.manifest.get("repeats") or 1))


def _notes(contenders: Sequence[Contender]) -> Iterator[str]:
    yield "time is what models took, added up over calls; calls that run side by side take less by the clock"
    unknown = [contender.label for contender in contenders if contender.bill.cost_usd is None]
    if unknown:
        yield f"no price is known for a model of {', '.join(unknown)}"
