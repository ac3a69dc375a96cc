"""Text of a model's reply in, value or `ReplyError` out; pure and linear in the length of the reply."""

from __future__ import annotations

from ...state.errors import ReplyError
from .declarations import contains_no_issue, declares_no_issue
from .pairs import read_pair
from .scores import read_score
from .votes import read_vote

__all__ = [
    "ReplyError",
    "contains_no_issue",
    "declares_no_issue",
    "read_pair",
    "read_score",
    "read_vote",
]
