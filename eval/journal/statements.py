"""What is executed for every call, built once an opening, and the sums over calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BigInteger, BindParameter, Dialect, Table, bindparam, cast, delete, func, select
from sqlalchemy.sql.elements import ColumnElement

from .records import Totals
from .tables import COUNTER_BITS, calls, claims, now, openings

KEPT_AT_ONCE = 64
ROW = (
    "number", "key", "model", "reply", "requests", "input_tokens", "cached_input_tokens", "output_tokens",
    "reasoning_tokens", "cost_usd", "seconds",
)  # fmt: skip
"""What is given for a call; the rest of a row the database adds."""

_COUNTED = ("requests", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
_FIRST = cast(openings.c.number, BigInteger) * (1 << COUNTER_BITS)

WRITTEN_BY = calls.c.number.between(_FIRST, _FIRST + ((1 << COUNTER_BITS) - 1))
"""Which opening a call belongs to; over the primary key, so that one run's calls are read and no others."""

SUMS: tuple[ColumnElement[Any], ...] = (
    func.count(calls.c.number),
    *(func.sum(calls.c[name]) for name in _COUNTED),
    func.sum(calls.c.cost_usd),
    func.count(calls.c.cost_usd),
)
"""The columns that :func:`totals_from` reads."""


def totals_from(row: Sequence[Any]) -> Totals:
    """Totals from the columns of :data:`SUMS`."""
    number, *counted, cost, priced = row
    known = float(cost or 0) if priced == number else None
    return Totals(
        number, cost_usd=known, **{name: int(n or 0) for name, n in zip(_COUNTED, counted, strict=True)}
    )


class Statements:
    """The statements of one opening.

    Args:
        dialect: the database's.
        opening: the number of the opening.
        since: the opening from which on replies are served.
    """

    def __init__(self, dialect: Dialect, opening: int, *, since: int = 0) -> None:
        adding = _insert_for(dialect)
        keys: BindParameter[Any] = bindparam("keys", expanding=True)
        first = since << COUNTER_BITS
        self.served = calls.c.disowned.is_(False) & calls.c.reply.is_not(None) & (calls.c.number >= first)
        self.look_up = (
            select(calls.c.key, calls.c.reply)
            .where(calls.c.key.in_(keys), self.served)
            .order_by(calls.c.number)
        )
        self._placeholder = "?" if dialect.paramstyle == "qmark" else "%s"
        self._now = str(now(dialect))
        self._keeps: dict[int, str] = {}
        self.claim = adding(claims).on_conflict_do_nothing()
        self.claimed = select(claims.c.key).where(claims.c.key.in_(keys), claims.c.opening == opening)
        self.free = delete(claims).where(claims.c.key.in_(keys), claims.c.opening == opening)

    def keep(self, rows: int) -> str:
        """Add so many calls, in one step: each step of SQLite waits for its turn with the event loop's thread."""
        if rows not in self._keeps:
            row = f"({', '.join([self._placeholder] * len(ROW))}, {self._now})"
            start = f"INSERT INTO {calls.name} ({', '.join(ROW)}, created) VALUES "
            self._keeps[rows] = start + ", ".join([row] * rows) + " ON CONFLICT DO NOTHING"
        return self._keeps[rows]


def _insert_for(dialect: Dialect) -> Callable[[Table], Any]:
    """The database's own INSERT, which can pass over what is there; each dialect takes megabytes to load."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as into_postgres

        return into_postgres
    from sqlalchemy.dialects.sqlite import insert as into_sqlite

    return into_sqlite
