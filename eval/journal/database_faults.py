"""Tell which faults of a journal's database may pass, retry what met them, and say what to do about the others."""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

from ...nodes.models.retry import Waits
from .database import JournalLocation
from .records import JournalError

T = TypeVar("T")

logger = logging.getLogger("jurygraph.journal")
_WAIT_AT_MOST = 5.0
_PASSING_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}

# Connection lost, session ended for idling in a transaction, transaction lost to another (deadlock), resources,
# operator's shutdown, lock not available, I/O.
_PASSING_POSTGRES = ("08", "25P03", "40", "53", "57", "55P03", "58")
# Attempts that are made however long they take: a process that was stopped meanwhile has lost no time of its own.
_ATTEMPTS_AT_LEAST = 3
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another program holds it: close that program",
    sqlite3.SQLITE_LOCKED: "another program holds it: close that program",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "check the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "make sure that its folder exists and is writable, or choose another place",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, or recover it with sqlite3 FILE .recover",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database: choose another place, or move it away",
}


def persevere(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    waits: Waits | None = None,
) -> T:
    """Run an action, and retry it while the fault may pass; ``retry_seconds`` is asked anew after each attempt.

    Raises:
        JournalError: the fault lasts or cannot pass; says which database, what is wrong and what to do.
    """
    began, attempts = time.monotonic(), 0
    # A wait is shown until the next attempt has ended, which may itself wait for a lock.
    with ExitStack() as notes:
        while True:
            try:
                return action()
            except DBAPIError as error:
                notes.close()
                attempts += 1
                problem = explain(error)
                if not passes(error):
                    raise JournalError(f"journal {place.shown}: {problem}") from error
                most, taken = retry_seconds(), time.monotonic() - began
                if attempts >= _ATTEMPTS_AT_LEAST and taken >= most:
                    raise JournalError(f"journal {place.shown}: {problem} (for {most:g} s)") from error
            # At random, so that several processes which met the same fault do not all come back at once.
            pause = random.uniform(0, min(_WAIT_AT_MOST, 0.05 * 2 ** min(attempts - 1, 10)))
            again = f"trying again in {pause:.1f} s, for {most:g} s at most"
            logger.warning("journal %s: %s; %s", place.shown, problem, again)
            if waits:
                notes.enter_context(waits.noted(f"journal {place.shown}", problem, most - taken))
            time.sleep(pause)


def passes(error: DBAPIError) -> bool:
    """Tell whether a retry may help, which is so for faults that pass: locks, a full disk, a lost server."""
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    # By name, since psycopg is optional and its classes may not be there to compare with.
    is_operational = type(error.orig).__name__ in ("OperationalError", "InterfaceError")
    # A server that cannot be reached gives no SQLSTATE.
    lost = error.connection_invalidated or (state is None and is_operational)
    return lost or str(state).startswith(_PASSING_POSTGRES)


def explain(error: DBAPIError) -> str:
    """Return the database's message and a remedy, without the statement and its values."""
    message = " ".join(str(error.orig).split())
    remedy = _REMEDIES.get(_sqlite_code(error) or 0)
    return f"{message}; {remedy}" if remedy else message


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary code of an SQLite fault; its higher bits only say where it occurred."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # SQLITE_BUSY_SNAPSHOT (517) becomes SQLITE_BUSY (5), SQLITE_IOERR_FSYNC (1034) becomes SQLITE_IOERR (10).
    return None if code is None else code & 0xFF
