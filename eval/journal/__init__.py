"""Keep finished model calls in a journal: each is on disk before its reply is used, and none is made twice."""

from .admin import JournalSummary, prune, summarize
from .call_journal import Journal
from .records import Amounts, Batch, Entry, Grant, GrantRequest, JournalError, Notice, Spent

__all__ = [
    "Amounts",
    "Batch",
    "Entry",
    "Grant",
    "GrantRequest",
    "Journal",
    "JournalError",
    "JournalSummary",
    "Notice",
    "Spent",
    "prune",
    "summarize",
]
