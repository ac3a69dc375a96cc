"""Finds each contender the biggest ensemble of single judges that costs no more than it, and compares the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...state.settings.referee_settings import GROUPS
from .comparing import Arena, Side, adjusted
from .contenders import Bill
from .gathering import Cell, Entry
from .matching import EnsembleOf, Match, Matching, Unit
from .measures import MAIN
from .single_judges import Smaller, holds_ensembles, smaller_ensembles

MOST_REFEREES = 10
"""As many as are ever suggested."""
_SLACK = 1e-9
_MUCH = 1.5


class Competitor(NamedTuple):
    """A contender on one subject, with what was gathered of it."""

    entry: Entry
    cell: Cell
    side: Side


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


def spent(bill: Bill, unit: Unit) -> float | None:
    """Of that unit, a judgement."""
    return bill.cost_each if unit == "cost" else bill.calls_each


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
