"""Tell which faults of a journal's database may pass, retry what met them, and say what to do about the others."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from ...nodes.models.retry import Waits
from .database import JournalLocation
from .records import JournalError

T = TypeVar("T")

logger = logging.getLogger("jurygraph.journal")
_WAIT_AT_MOST = 5.0
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}

# Connection lost, session ended for idling in a transaction, transaction lost to another (deadlock), resources,
# operator's shutdown, lock not available, I/O.
_PASSING_POSTGRES = ("08", "25P03", "40", "53", "57", "55P03", "58")
# Attempts that are made however long they take: a process that was stopped meanwhile has lost no time of its own.
_ATTEMPTS_AT_LEAST = 3
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another program holds it: close that program",
    sqlite3.SQLITE_LOCKED: "another program holds it: close that program",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "look after the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "make sure that its folder is there and writable, or choose another place",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: put it aside, or recover it with sqlite3 FILE .recover",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database: choose another place, or put it aside",
}


def persevere(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    waits: Waits | None = None,
) -> T:
    """Run an action, and retry it while the fault may pass; ``retry_seconds`` is asked anew before each attempt.

    Raises:
        JournalError: the fault lasts or cannot pass; says which database, what is wrong and what to do.
    """
    with ExitStack() as notes:

        def before_sleep(state: RetryCallState) -> None:
            notes.close()
            if waits:
                left = retry_seconds() - (state.seconds_since_start or 0.0)
                why = explain(fault) if isinstance(fault := _fault(state), DBAPIError) else ""
                notes.enter_context(waits.noted(f"journal {place.shown}", why, left))
            _warn(state, place, retry_seconds())

        return _retried(action, place, retry_seconds, before_sleep)


def _retried(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    before_sleep: Callable[[RetryCallState], None],
) -> T:
    retrying = Retrying(
        retry=retry_if_exception(passes),
        wait=wait_random_exponential(multiplier=0.05, max=_WAIT_AT_MOST),
        stop=lambda state: (
            state.attempt_number >= _ATTEMPTS_AT_LEAST
            and (state.seconds_since_start or 0.0) >= retry_seconds()
        ),
        before_sleep=before_sleep,
        reraise=True,
    )
    try:
        return retrying(action)
    except DBAPIError as error:
        waited = f" (for {retry_seconds():g} s)" if passes(error) else ""
        raise JournalError(f"journal {place.shown}: {explain(error)}{waited}") from error


def passes(error: BaseException) -> bool:
    """Tell whether a retry may help, which is so for faults that pass: locks, a full disk, a lost server."""
    if not isinstance(error, DBAPIError):
        return False
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    # A server that cannot be reached gives no SQLSTATE.
    lost = error.connection_invalidated or (state is None and _is_operational(error))
    return lost or str(state).startswith(_PASSING_POSTGRES)


def explain(error: DBAPIError) -> str:
    """Return the database's message and a remedy, without the statement and its values."""
    said = " ".join(str(error.orig).split())
    remedy = _REMEDIES.get(_sqlite_code(error) or 0)
    return f"{said}; {remedy}" if remedy else said


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary code of an SQLite fault; its higher bits only say where it occurred."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # SQLITE_BUSY_SNAPSHOT (517) becomes SQLITE_BUSY (5), SQLITE_IOERR_FSYNC (1034) becomes SQLITE_IOERR (10).
    return None if code is None else code & 0xFF


def _is_operational(error: DBAPIError) -> bool:
    # By name, since psycopg is optional and its classes may not be there to compare with.
    return type(error.orig).__name__ in ("OperationalError", "InterfaceError")


def _fault(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _warn(state: RetryCallState, place: JournalLocation, retry_seconds: float) -> None:
    fault = _fault(state)
    if isinstance(fault, DBAPIError) and state.next_action:
        logger.warning(
            "journal %s: %s; trying again in %.1f s, for %g s at most",
            place.shown, explain(fault), state.next_action.sleep, retry_seconds,
        )  # fmt: skip
