"""Which faults of a database pass, and how long to wait for it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from .errors import JournalError
from .places import Place

T = TypeVar("T")

logger = logging.getLogger("jurygraph.journal")

_WAIT_AT_MOST = 5.0
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}
# Connection lost, transaction lost to another (deadlock), resources, operator's shutdown, lock not available, I/O.
_PASSING_POSTGRES = ("08", "40", "53", "57", "55P03", "58")
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


def persevere(action: Callable[[], T], place: Place, patience: Callable[[], float]) -> T:
    """Do it, again and again while the fault may pass, for so many seconds; who waits may lose patience.

    Raises:
        JournalError: the fault lasts, or does not pass; says which database, what is wrong and what to do.
    """
    retrying = Retrying(
        retry=retry_if_exception(passes),
        wait=wait_random_exponential(multiplier=0.05, max=_WAIT_AT_MOST),
        stop=lambda state: (state.seconds_since_start or 0.0) >= patience(),
        before_sleep=lambda state: _warn(state, place, patience()),
        reraise=True,
    )
    try:
        return retrying(action)
    except DBAPIError as error:
        waited = f" (for {patience():g} s)" if passes(error) else ""
        raise JournalError(f"journal {place.shown}: {explain(error)}{waited}") from error


def passes(error: BaseException) -> bool:
    """Whether trying again may help."""
    if not isinstance(error, DBAPIError):
        return False
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    lost = error.connection_invalidated or (state is None and _is_operational(error))
    return lost or str(state).startswith(_PASSING_POSTGRES)


def explain(error: DBAPIError) -> str:
    """What the database said and what to do, without the statement and its values."""
    said = " ".join(str(error.orig).split())
    remedy = _REMEDIES.get(_sqlite_code(error) or 0)
    return f"{said}; {remedy}" if remedy else said


def _sqlite_code(error: DBAPIError) -> int | None:
    """The primary code of an SQLite fault; the rest of its bits say where it was met."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_operational(error: DBAPIError) -> bool:
    return type(error.orig).__name__ in ("OperationalError", "InterfaceError")


def _warn(state: RetryCallState, place: Place, patience: float) -> None:
    fault = state.outcome.exception() if state.outcome else None
    if isinstance(fault, DBAPIError) and state.next_action:
        logger.warning(
            "journal %s: %s; trying again in %.1f s, for %g s at most",
            place.shown, explain(fault), state.next_action.sleep, patience,
        )  # fmt: skip
