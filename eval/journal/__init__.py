"""The journal of model calls: every finished call is on disk before it is used, and none is made twice."""

from .errors import JournalError
from .journal import Journal
from .records import Batch, Entry, Totals
from .upkeep import JournalSummary, prune, summarize

__all__ = ["Batch", "Entry", "Journal", "JournalError", "JournalSummary", "Totals", "prune", "summarize"]
