"""What goes wrong with a journal while a run is on."""

from __future__ import annotations

from ...state.errors import JurygraphError


class JournalError(JurygraphError, RuntimeError):
    """A journal that cannot be read or written any more: disk full, database gone, locked or damaged.

    What was kept before is safe. No call should be made after it, since its reply could not be kept.
    """
