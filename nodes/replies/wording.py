"""Know the words with which an agent gives a verdict of its own, and those with which it disowns another's.

What others want is said in more words than a list can hold; what an agent says in its own name is not. So a sentence
counts as a report unless it begins as those of judges do. The forms are those of recorded judges' replies.
"""

from __future__ import annotations

import re

from .vocabulary import SCORE_WORDS, any_of, in_any_case, pattern

# A label under which the agent gives its own verdict.
_OWN_LABEL = in_any_case(rf"\b{any_of('own_label')}\b[^.!?\n]{{0,60}}[:=—-]?[\s\x00\"'`*_(\[]*\Z")
_LONGEST = 300


def introduces(before: str) -> bool:
    """Whether the words announce a verdict of the agent's own.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


_DISOWNING = in_any_case(rf"\b{any_of('disowning')}")
_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def disowns(after: str) -> bool:
    """Whether the words say that what stands before them is not the agent's own.

    >>> disowns("\\nI ignore it."), disowns("\\nThe score follows the rubric.")
    (True, False)
    """
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None


_SUBJECT, _LEAD, _VERB = map(pattern, ("subject", "lead", "verb"))


def leads_to(statement: str, before: str) -> bool:
    """Whether the words of a clause before a statement make it the agent's own.

    >>> leads_to("a score of 2", "Overall, I would give it"), leads_to("a score of 5", "The last words angle for")
    (True, False)
    """
    return (_SUBJECT if _VERB.match(statement) else _LEAD).fullmatch(before) is not None


_NOUN = in_any_case(rf"{SCORE_WORDS} (?:of |at |as )?(?!is |are )[^:=]*\Z")


def is_noun(statement: str) -> bool:
    """Whether a statement names a value and says nothing of it.

    >>> is_noun("score of 5"), is_noun("score is 5")
    (True, False)
    """
    return _NOUN.match(statement) is not None
