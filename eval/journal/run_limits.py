"""The limits that all processes of a run share: the amount for each, and the times of its calls."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, func, select, update

from .database import GRANTED, clock, insert_for, now, openings, rates, runs
from .records import Amounts, Grant, GrantRequest
from .store import Store, transaction

# Seconds for which other processes return what they do not need, after one had to wait.
_WAITING_SECONDS = 3
# Beyond its need, an opening gets this share of the rest, divided by the number of living openings.
# Shares shrink with several requests before the end, so that nobody waits long for unused amounts.
_SHARE = 0.25


def grant(store: Store, request: GrantRequest) -> Grant:
    """Grant an opening the need of its waiting calls and a share of the rest, within the limits.

    A living opening counts with its grant, and an ended one with its usage. The sum of these never
    exceeds a limit.
    """
    began = time.monotonic()

    def action(connection: Connection) -> Grant:
        store.lock_run(connection)
        mine = openings.c.number == store.opening
        ended = store.of_run & store.lapsed(connection) & (openings.c.alive_until != 0) & ~mine
        store.count(connection, ended, ended=True)
        others = connection.execute(select(openings).where(store.of_run, ~mine)).all()
        is_waited_for = runs.c.waiting_until > now(connection.dialect)
        somebody_waits = bool(
            connection.scalar(select(is_waited_for).where(runs.c.run == store.run))
        )
        granted, has_room = _granted(request, others, _SHARE * (not somebody_waits))
        if not has_room:
            until = now(connection.dialect) + _WAITING_SECONDS
            connection.execute(
                update(runs).where(runs.c.run == store.run).values(waiting_until=until)
            )
        # Without a limit, nothing needs to be stored. The columns of calls and tokens take
        # integers.
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
    """Divide the rest of the limits; return the grant, and whether all waiting calls have room."""
    limits, spent, in_flight, waiting, next_call = np.array(request, dtype=float)
    left = limits.copy()
    left_at_best = limits.copy()
    for row in others:
        known = (row.requests, row.input_tokens + row.output_tokens, row.cost_usd)
        # Calls without known usage count as much as the next one.
        taken = np.array(known) + next_call * (0, row.uncounted, row.unpriced)
        left_at_best -= taken
        left -= np.maximum(taken, [getattr(row, name) for name in GRANTED])
    used = spent + in_flight
    is_reached = zip(Amounts._fields, spent + next_call > left_at_best, strict=True)
    reached = next((name for name, too_much in is_reached if too_much), "")
    # Grant nothing rather than a part: two openings, each with a part that the other needs, would
    # wait forever.
    allowed = used
    has_room = False
    if (used + next_call <= left).all():
        needed = used + waiting
        has_room = bool((needed <= left).all())
        among = share / (1 + sum(row.alive_until != 0 for row in others))
        wished = needed + among * np.maximum(left - needed, 0) if among else needed
        # Calls and tokens are integers.
        allowed = np.minimum(wished, left)
        allowed[:2] = np.floor(allowed[:2])
    # Without a limit, everything is allowed.
    return Grant(Amounts(*np.where(np.isinf(limits), limits, allowed).tolist()), reached), has_room


@transaction
def book(store: Store, connection: Connection, model: str, kind: str, seconds: float) -> float:
    """Book the next seconds of a rate for calls of this process; others get the time after them.

    Args:
        store: the store of an opening of the run.
        connection: the connection inside the transaction.
        model: the model of the rate.
        kind: ``requests`` or ``tokens``.
        seconds: the duration of the request at that rate.

    Returns:
        The seconds until the booked time begins: 0 if nobody had booked later ones.
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
    # In two steps, because SQLite before 3.35 cannot return a written row.
    connection.execute(statement)
    ends = connection.execute(select(left).where(of_rate)).scalar_one()
    return max(0.0, float(ends) - seconds)
