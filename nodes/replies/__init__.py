"""Read the value that a model's reply states: text in, value or ``ReplyError`` out; pure, and linear in its length.

Every reader works in the same steps (``reading``): whose words the reply's reasoning tags and objects are is decided
first, ``json_fields`` reads a reply that is JSON, and where it is text, ``own_words`` removes quotations and patterns
find all statements of a value. Each statement has a strength, by how clearly its form says that it is the verdict; the
last of the strongest counts.

scores, score_statements   one score; the forms in which a text states it
pairs                      a score for each of two answers
votes                      a preference for one of two answers
declarations               NO ISSUE
reading                    the steps that all of them share, and what is wrong with a reply that states nothing usable
reasoning, json_fields     which tags cut reasoning away, and which objects state a value
shown, reprints            the texts that an agent was shown, and what a reply reprints of them
numbers, vocabulary        how numbers are written; what scores and answers are called, how others' words are announced
"""

from __future__ import annotations

from ...state.errors import ReplyError
from .declarations import contains_no_issue, declares_no_issue
from .own_words import LONGEST_READ_WHOLE
from .pairs import read_pair
from .scores import read_score
from .shown import Shown
from .votes import read_vote

__all__ = [
    "LONGEST_READ_WHOLE",
    "ReplyError",
    "Shown",
    "contains_no_issue",
    "declares_no_issue",
    "read_pair",
    "read_score",
    "read_vote",
]
