"""Keep the limits that all processes of a run have together: what each may use, and when its calls may go out."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from .database import GRANTED, clock, insert_for, now, openings, rates, runs
from .records import Amounts, Grant, GrantRequest
from .store import Store, transaction

# Seconds for which others give back what they do not need, once somebody had to wait.
_WAITING_SECONDS = 3
# Of what is left, an opening gets this share beyond its need, divided by the number of living openings: several
# requests come before the end, where the shares are so small that nobody waits for long for what others do not use.
_SHARE = 0.25


def grant(store: Store, request: GrantRequest) -> Grant:
    """Grant this opening what its waiting calls need and a share of what is left, as far as the limits allow.

    An opening counts as what was granted to it while it is alive, and as what it has spent once it is not: the sum of
    these is never above a limit.
    """
    began = time.monotonic()

    def action(connection: Connection) -> Grant:
        store.lock_run(connection)
        mine = openings.c.number == store.opening
        ended = store.of_run & store.lapsed(connection) & (openings.c.alive_until != 0) & ~mine
        store.count(connection, ended, ended=True)
        others = connection.execute(select(openings).where(store.of_run, ~mine)).all()
        is_waited_for = runs.c.waiting_until > now(connection.dialect)
        somebody_waits = bool(connection.scalar(select(is_waited_for).where(runs.c.run == store.run)))
        granted, has_room = _granted(request, others, _SHARE * (not somebody_waits))
        if not has_room:
            until = now(connection.dialect) + _WAITING_SECONDS
            connection.execute(update(runs).where(runs.c.run == store.run).values(waiting_until=until))
        # Where there is no limit nothing needs to be kept. The columns of calls and tokens take whole numbers.
        calls, tokens, cost = (amount if math.isfinite(amount) else 0 for amount in granted.allowed)
        kept = (math.ceil(calls), math.ceil(tokens), cost)
        alive = now(connection.dialect) + int(store.lease)
        row = {**dict(zip(GRANTED, kept, strict=True)), "alive_until": alive}
        connection.execute(update(openings).where(mine).values(row))
        return granted

    granted = store.transact(action)
    store.granted_until = began + store.lease
    return granted


def _granted(request: GrantRequest, others: Sequence[Row[Any]], share: float) -> tuple[Grant, bool]:
    """Divide what the limits leave; return the grant, and whether all waiting calls have room."""
    left = left_at_best = request.limits
    for row in others:
        # Calls that do not say what they took count as much as the next one.
        tokens = row.input_tokens + row.output_tokens + row.uncounted * request.next_call.tokens
        spent = Amounts(row.requests, tokens, row.cost_usd + row.unpriced * request.next_call.cost)
        left_at_best = left_at_best.minus(spent)
        granted = (row.granted_calls, row.granted_tokens, row.granted_cost)
        left = left.minus(Amounts(*map(max, granted, spent)))
    used = request.spent.plus(request.in_flight)
    best = zip(Amounts._fields, left_at_best, request.spent.plus(request.next_call), strict=True)
    reached = next((name for name, room, need in best if need > room), "")
    if any(need > room for need, room in zip(used.plus(request.next_call), left, strict=True)):
        # Nothing rather than a part: two that hold what the other lacks would wait for each other.
        return Grant(_unlimited(used, request.limits), reached), False
    needed = used.plus(request.waiting)
    among = share / (1 + sum(row.alive_until != 0 for row in others))
    rest = (max(0.0, room - need) if among else 0.0 for need, room in zip(needed, left, strict=True))
    wished = (need + among * more for need, more in zip(needed, rest, strict=True))
    calls, tokens, cost = (min(wish, room) for wish, room in zip(wished, left, strict=True))
    # There is no half of a call or token; of what has no limit this makes no number, which stands for nothing.
    allowed = Amounts(calls // 1, tokens // 1, cost)
    has_room = all(need <= room for need, room in zip(needed, left, strict=True))
    return Grant(_unlimited(allowed, request.limits), reached), has_room


def _unlimited(allowed: Amounts, limits: Amounts) -> Amounts:
    """Allow everything where there is no limit."""
    pairs = zip(allowed, limits, strict=True)
    return Amounts(*(limit if math.isinf(limit) else amount for amount, limit in pairs))


@transaction
def book(store: Store, connection: Connection, model: str, kind: str, seconds: float) -> float:
    """Book the next so many seconds of a rate for calls of this process; other processes get those after them.

    Args:
        store: of an opening of the run.
        connection: in the transaction that books.
        model: the model that the rate is of.
        kind: ``requests`` or ``tokens``.
        seconds: how long what is asked for takes at that rate.

    Returns:
        In how many seconds the booked time begins: 0 where nobody had asked for later ones.
    """
    fresh = insert_for(store.dialect)(rates)
    used_until = func.max if store.dialect.name == "sqlite" else func.greatest
    time_now = clock(store.dialect)
    first = fresh.values(run=store.run, model=model, kind=kind, used_until=time_now + seconds)
    keys = [rates.c.run, rates.c.model, rates.c.kind]
    later = {"used_until": used_until(rates.c.used_until, time_now) + seconds}
    statement = first.on_conflict_do_update(index_elements=keys, set_=later)
    left = rates.c.used_until - time_now
    of_rate = (rates.c.run == store.run) & (rates.c.model == model) & (rates.c.kind == kind)
    # In two steps, since SQLite before 3.35 returns nothing of a row that it has written.
    connection.execute(statement)
    ends = connection.execute(select(left).where(of_rate)).scalar_one()
    return max(0.0, float(ends) - seconds)
