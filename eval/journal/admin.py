"""Summaries and pruning of a journal from outside, also while runs use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    case,
    exists,
    func,
    select,
    text,
    update,
)

from ...nodes.models.retry import Waits
from ...state.errors import UsageError
from ...state.transcript import Usage
from .database import (
    SUMS,
    WRITTEN_BY,
    JournalLocation,
    calls,
    claims,
    journal_location,
    metadata,
    now,
    openings,
    usage_from,
    version_of,
)
from .records import JournalError
from .store import EDGE_PATIENCE, T, persevere


class JournalSummary(NamedTuple):
    """The number of calls, replies and claims in a journal, and the usage of its calls.

    Attributes:
        shown: the path or URL of the journal, without a password.
        version: the version of its format.
        bytes: its size on disk.
        spent: the usage of all its calls.
        by_model: the usage by model.
        by_run: the usage by run.
        replies: the number of calls that still have their reply, including invalidated ones.
        invalidated: the number of calls whose replies could not be used.
        claims: the number of calls that a process is making, or was making when it was killed.
        oldest, newest: the times of its first and its last call, in seconds since 1970.
    """

    shown: str
    version: int
    bytes: int
    spent: Usage
    by_model: Mapping[str, Usage]
    by_run: Mapping[str, Usage]
    replies: int
    invalidated: int
    claims: int
    oldest: int | None
    newest: int | None


def summarize(where: str | Path) -> JournalSummary:
    """Summarize the content of a journal.

    Args:
        where: as for :meth:`Journal.open`.

    Raises:
        UsageError: the journal does not exist or cannot be read.
    """
    place = journal_location(where)
    return _inside(place, lambda connection: _summary(connection, place))


def prune(
    where: str | Path,
    *,
    older_than_days: float | None = None,
    run: str | None = None,
    invalidated: bool = False,
) -> int:
    """Delete the replies that meet all given conditions; their cost still counts.

    Args:
        where: as for :meth:`Journal.open`.
        older_than_days: replies written longer ago.
        run: replies that this run paid for.
        invalidated: replies that could not be used.

    Returns:
        The number of deleted replies.

    Raises:
        UsageError: no condition, an unknown run, no journal, or one that cannot be written.
    """
    if older_than_days is None and run is None and not invalidated:
        raise UsageError(
            "say which replies to delete: older than some days, of a run, or invalidated"
        )
    place = journal_location(where)

    def action(connection: Connection) -> int:
        chosen: list[ColumnElement[bool]] = [calls.c.reply.is_not(None)]
        if older_than_days is not None:
            chosen.append(calls.c.created < now(connection.dialect) - int(older_than_days * 86_400))
        if run is not None:
            if (
                connection.execute(select(openings.c.number).where(openings.c.run == run)).first()
                is None
            ):
                some = select(openings.c.run).distinct().order_by(openings.c.run).limit(5)
                known = ", ".join(connection.scalars(some))
                raise UsageError(f"{place.shown}: no run {run!r}; runs are {known}")
            chosen.append(exists().where(openings.c.run == run, WRITTEN_BY))
        if invalidated:
            chosen.append(calls.c.invalidated.is_(True))
        # The row stays without its reply, so that sums over the calls still include its usage.
        return connection.execute(update(calls).where(*chosen).values(reply=None)).rowcount

    pruned = _inside(place, action)
    if place.file and pruned:
        # SQLite leaves the pages of deleted replies in the file until it is rewritten. VACUUM
        # cannot run inside a transaction.
        _inside(place, lambda connection: connection.execute(text("VACUUM")), one_statement=True)
    return pruned


def _summary(connection: Connection, place: JournalLocation) -> JournalSummary:
    def usage_by(column: ColumnElement[str], source: FromClause) -> dict[str, Usage]:
        sums = select(column, *SUMS).select_from(source).group_by(column).order_by(column)
        return {row[0]: usage_from(row[1:]) for row in connection.execute(sums)}

    figures = select(
        func.count(calls.c.reply).label("replies"),
        func.count(case((calls.c.invalidated.is_(True), 1))).label("invalidated"),
        select(func.count()).select_from(claims).scalar_subquery().label("claims"),
        func.min(calls.c.created).label("oldest"),
        func.max(calls.c.created).label("newest"),
    )
    return JournalSummary(
        shown=place.shown,
        version=version_of(connection, place) or 0,
        bytes=_bytes(connection, place),
        spent=usage_from(connection.execute(select(*SUMS)).one()),
        by_model=usage_by(calls.c.model, calls),
        by_run=usage_by(openings.c.run, openings.join(calls, WRITTEN_BY)),
        **connection.execute(figures).one()._mapping,
    )


def _bytes(connection: Connection, place: JournalLocation) -> int:
    if place.file:
        # Until SQLite's next checkpoint, the latest calls are only in the -wal file.
        files = (place.file, place.file.with_name(f"{place.file.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())
    sizes = [func.pg_total_relation_size(table.name) for table in metadata.sorted_tables]
    return sum(connection.execute(select(*sizes)).one())


def _inside(
    place: JournalLocation, action: Callable[[Connection], T], *, one_statement: bool = False
) -> T:
    """Run an action on an existing journal; faults become usage errors."""
    if place.file and not place.file.is_file():
        raise UsageError(f"{place.shown}: there is no journal")
    engine = place.engine()

    def once() -> T:
        with engine.connect() as connection, connection.begin():
            if place.file and not one_statement:
                connection.exec_driver_sql("BEGIN")
            # A database may exist without the tables. Counting or deleting must not create them.
            if version_of(connection, place) is None:
                raise UsageError(f"{place.shown}: there is no journal")
            return action(connection)

    try:
        return persevere(once, place, lambda: EDGE_PATIENCE, Waits())
    except JournalError as error:
        raise UsageError(str(error)) from error
