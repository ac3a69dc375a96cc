"""Against an ensemble of single judges that costs as much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from ...state.aggregation import mean_of
from ...state.settings.referee_settings import GROUPS
from .comparison import Arena, Duel, Side, adjusted
from .judges import Bill
from .loading import Cell, Entry
from .measures import MAIN
from .result_rows import Row, RowKey, Value, judged_by

if TYPE_CHECKING:
    from ..statistics.resampling import Statistic


Unit = Literal["cost", "calls"]
"""What is spent: US dollars where every price is known and something was paid, else model calls."""


@dataclass(frozen=True)
class EnsembleOf:
    """The first k single judges of a run, taken as an ensemble of their own, on one subject.

    Attributes:
        label: such as ``ensemble, 2 of 5``.
        source: the contender that holds it.
        subject: its label.
        k: how many judges.
        bill: what they alone took.
        measure: the subject's main measure (``spearman`` or ``accuracy``).
        agreement: with people, in that measure; with its interval.
    """

    label: str
    source: str
    subject: str
    k: int
    bill: Bill
    measure: str
    agreement: Statistic


def spent(bill: Bill, unit: Unit) -> float | None:
    """Of that unit, a judgement."""
    return bill.cost_each if unit == "cost" else bill.calls_each


@dataclass(frozen=True)
class Match:
    """One contender beside the biggest ensemble that costs no more than it, on the same rows.

    Attributes:
        contender, subject: their labels.
        ensemble: what it is compared with.
        unit: whether cost or calls were matched.
        spent, ensemble_spent: of that unit, a judgement.
        duel: contender (first) against ensemble (second), as in the fair comparison; p-values are adjusted over all
            matches on the subject.
    """

    contender: str
    subject: str
    ensemble: EnsembleOf
    unit: Unit
    spent: float
    ensemble_spent: float
    duel: Duel


@dataclass(frozen=True)
class Matching:
    """Every contender against single judges at its own price.

    Attributes:
        ensembles: all k of all sources, by subject and source, k rising.
        matches: by subject, in the order of the contenders.
        notes: why a contender has no match; where the study holds no ensemble, the command that makes one.
    """

    ensembles: tuple[EnsembleOf, ...]
    matches: tuple[Match, ...]
    notes: tuple[str, ...] = ()


MOST_REFEREES = 10
"""As many as are ever suggested."""
_SLACK = 1e-9
_MUCH = 1.5


class Competitor(NamedTuple):
    """A contender on one subject, with what was gathered of it."""

    entry: Entry
    cell: Cell
    side: Side


class Smaller(NamedTuple):
    """An ensemble of the first k judges of a run, on one subject."""

    k: int
    of: int
    side: Side
    bill: Bill


@dataclass(frozen=True)
class _Offer:
    """An ensemble of k that contenders may be matched with."""

    smaller: Smaller
    shown: EnsembleOf
    entry: Entry


def unit_of(bills: Sequence[Bill]) -> Unit:
    """What is compared: money where every price is known and something was paid, else calls."""
    known = all(bill.cost_usd is not None for bill in bills)
    return "cost" if known and any(bill.cost_usd for bill in bills) else "calls"


def match(arenas: Sequence[tuple[Arena, Sequence[Competitor]]]) -> Matching:
    """Every contender on every subject beside single judges at its own price."""
    ensembles: list[EnsembleOf] = []
    matches: list[Match] = []
    unmatched: list[str] = []
    without: list[tuple[Arena, Sequence[Competitor]]] = []
    for arena, there in arenas:
        offers = list(_offers(arena, there))
        ensembles += [offer.shown for offer in offers]
        if not offers:
            without.append((arena, there))
            continue
        unit = unit_of([each.cell.bill for each in there])
        tried = [_matched(arena, each, offers, unit) for each in there if each.entry.protocol != "ensemble"]
        matches += _adjusted([one for one in tried if isinstance(one, Match)])
        unmatched += [one for one in tried if isinstance(one, str)]
    return Matching(
        tuple(ensembles),
        tuple(matches),
        tuple(dict.fromkeys([*_how_to_get_one(without), *_far_below(arenas, matches), *unmatched])),
    )


def _offers(arena: Arena, there: Sequence[Competitor]) -> Iterator[_Offer]:
    measure = MAIN[arena.kind]
    for each in there:
        if not holds_ensembles(each.entry):
            continue
        for smaller in smaller_ensembles(each.entry, each.cell):
            agreement = arena.sample(smaller.side).statistic(measure)
            shown = EnsembleOf(
                label=smaller.side.label,
                source=each.entry.label,
                subject=arena.subject.label,
                k=smaller.k,
                bill=smaller.bill,
                measure=measure,
                agreement=agreement,
            )
            yield _Offer(smaller, shown, each.entry)


def _matched(arena: Arena, each: Competitor, offers: Sequence[_Offer], unit: Unit) -> Match | str | None:
    """The match, or why there is none; nothing for who is not judged by models, or judged nothing."""
    price = spent(each.cell.bill, unit)
    if not price or not each.side.rows:
        return None
    affordable = [
        (cost, offer)
        for offer in offers
        if offer.entry is not each.entry
        and (cost := spent(offer.shown.bill, unit)) is not None
        and cost <= price * (1 + _SLACK)
    ]
    if not affordable and offers[0].entry is each.entry and len({offer.entry.label for offer in offers}) == 1:
        return None
    if not affordable:
        return (
            f"{each.side.label} on {arena.subject.label}: takes less than a single judge of any ensemble here"
        )
    cost, offer = max(affordable, key=lambda priced: (priced[0], priced[1].smaller.of))
    duel = arena.duel(each.side, offer.smaller.side)
    return Match(each.side.label, arena.subject.label, offer.shown, unit, price, cost, duel)


def _adjusted(matches: Sequence[Match]) -> list[Match]:
    """With p-values that hold for all matches on one subject together."""
    duels = adjusted([one.duel for one in matches])
    return [replace(one, duel=duel) for one, duel in zip(matches, duels, strict=True)]


def _how_to_get_one(without: Sequence[tuple[Arena, Sequence[Competitor]]]) -> Iterator[str]:
    """For each dataset the command that makes an ensemble as expensive as its most expensive contender."""
    calls: dict[str, float] = {}
    asked: dict[str, tuple[Arena, Sequence[Competitor]]] = {}
    for arena, there in without:
        most = max((each.cell.bill.calls_each or 0.0 for each in there), default=0.0)
        asked[arena.subject.data] = arena, there
        calls[arena.subject.data] = max(most, calls.get(arena.subject.data, 0.0))
    for data, (arena, there) in asked.items():
        yield (
            f"{data}: no run here holds an ensemble of single judges; {_command(arena, there, calls[data])} makes one, "
            "and every smaller one is in it"
        )


def _far_below(
    arenas: Sequence[tuple[Arena, Sequence[Competitor]]], matches: Sequence[Match]
) -> Iterator[str]:
    """Who takes much more than the greatest ensemble there is, at worst; and the command that makes a greater one."""
    by_subject = {arena.subject.label: (arena, there) for arena, there in arenas}
    worst: dict[str, Match] = {}
    for found in matches:
        before = worst.get(found.contender)
        if _times(found) > (_MUCH if before is None else _times(before)):
            worst[found.contender] = found
    for contender, found in worst.items():
        if found.ensemble.k < MOST_REFEREES:
            wanted = (found.ensemble.bill.calls_each or 1.0) * _times(found)
            yield (
                f"{contender} takes up to {_times(found):.1f} times as much as the greatest ensemble here; "
                f"a greater one: {_command(*by_subject[found.subject], wanted)}"
            )


def _times(found: Match) -> float:
    return found.spent / found.ensemble_spent if found.ensemble_spent else 1.0


def _command(arena: Arena, there: Sequence[Competitor], calls: float) -> str:
    """What makes an ensemble that takes so many calls, on the items and with the model of those who are there."""
    orders = 2 if arena.kind == "compare" else 1
    referees = max(2, min(MOST_REFEREES, round(calls / orders)))
    options = [f"--set referees={referees}", f"--data {arena.subject.data}"]
    if referees > len(GROUPS["diverse"]):
        options.insert(1, "--set roles=same")
    judge: Entry | None = next((each.entry for each in there if each.entry.models), None)
    if judge is not None:
        model, limit = judge.models.get("*", "").partition("?")[0], judge.manifest.get("limit")
        options += [f"--model {model}"] if model not in ("", "offline") else []
        options += [f"--limit {limit}"] if limit else []
    return " ".join(["jurygraph run ensemble", *options, "--out DIR"])


def holds_ensembles(entry: Entry) -> bool:
    """Whether a contender is an ensemble of judges who do not talk, or one judge asked several times."""
    repeated = int(entry.manifest.get("repeats") or 1) > 1
    return entry.protocol == "ensemble" or (entry.protocol == "single" and repeated)


def smaller_ensembles(entry: Entry, cell: Cell) -> Iterator[Smaller]:
    """All of them, k rising; the greatest is the run itself. Rows in which a judge is missing count for none.

    Of an ensemble: each verdict's first k referees, whose scores (over both orders of the answers) are averaged, as
    ``ensemble`` itself does. Of a single judge: each item's first k repeats, likewise.
    """
    if entry.protocol == "ensemble":
        yield from _of(entry, cell, [[(v.value, v.bill) for v in row.voices] for row in cell.rows], cell.rows)
        return
    repeats: dict[str, list[Row]] = defaultdict(list)
    for row in cell.rows:
        repeats[row.item].append(row)
    said = [[(row.path[-1], row.bill) for row in rows if row.path] for rows in repeats.values()]
    yield from _of(entry, cell, said, [rows[0] for rows in repeats.values()])


def _of(
    entry: Entry,
    cell: Cell,
    said: Sequence[Sequence[tuple[object, Bill]]],
    rows: Sequence[Row],
) -> Iterator[Smaller]:
    most = max(map(len, said), default=0)
    complete = [(row, judges) for row, judges in zip(rows, said, strict=True) if len(judges) == most and most]
    for k in range(1, most + 1):
        found: dict[RowKey, Row] = {}
        for row, judges in complete:
            bill = replace(sum((bill for _, bill in judges[:k]), Bill()), judgements=1)
            judged = judged_by(mean([cast("Value", value) for value, _ in judges[:k]]))
            found[row.key] = row._replace(judged=judged, bill=bill, path=(), voices=())
        label = f"{entry.label}, {k} of {most}"
        side = Side(label, found, cell.distances)
        yield Smaller(k, most, side, sum((row.bill for row in found.values()), Bill()))


def mean(values: Sequence[Value]) -> Value:
    """Of scores, or of pairs answer by answer.

    >>> mean([3.0, 4.0]), mean([(8.0, 6.0), (7.0, 7.0)])
    (3.5, (7.5, 6.5))
    """
    found = mean_of([list(value) if isinstance(value, tuple) else value for value in values])
    return cast("tuple[float, float]", tuple(found)) if isinstance(found, list) else found
