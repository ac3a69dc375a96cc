"""Keep model calls in a journal: every finished call is on disk before it is used, and none is made twice."""

from .admin import JournalSummary, prune, summarize
from .call_journal import Journal
from .records import Batch, Entry, JournalError

__all__ = ["Batch", "Entry", "Journal", "JournalError", "JournalSummary", "prune", "summarize"]
