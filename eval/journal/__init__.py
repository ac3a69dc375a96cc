"""Keep finished model calls in a journal: each is on disk before its reply is used, and none is made twice."""

from .admin import JournalSummary, prune, summarize
from .call_journal import Journal
from .records import Batch, Entry, JournalError, Spent

__all__ = ["Batch", "Entry", "Journal", "JournalError", "JournalSummary", "Spent", "prune", "summarize"]
