"""Know the words with which an agent gives a verdict of its own, and those with which it disowns another's.

What others want is said in more words than a list can hold; what an agent says in its own name is not. So a sentence
counts as a report unless it begins as those of judges do. The forms are those of recorded judges' replies.
"""

from __future__ import annotations

import re

from .vocabulary import FINAL_WORDS, SCORE_WORDS, WORDS, in_any_case, one_of

_TEXTS = one_of(WORDS["texts"])
# A label under which the agent gives its own verdict.
_OWN_LABEL = in_any_case(
    r"\b(?:my|i|we|our|verdict|scores?|ratings?|final|overall|total|conclusion|conclude|decision|evaluation"
    r"|assessment|judge?ment|result|results|outcome|output|winner|vote|therefore|thus|hence|as follows"
    r"|summary of scores|answer|reply|response|grade|feedback|declaration|choice|preference|better|tally|sum"
    r"|reasoning|rationale|explanation|step|analysis|comparison|in short|in sum|points|critique|review|reflection"
    r"|reconsider\w*|revis\w+)\b[^.!?\n]{0,60}[:=—-]?[\s\x00\"'`*_(\[]*\Z"
)
_LONGEST = 300


def introduces(before: str) -> bool:
    """Whether the words announce a verdict of the agent's own.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


_DISOWNING = in_any_case(
    rf"\b(?:i (?:\w+ )?(?:ignore|disregard)|(?:ignor|disregard)(?:e|ed|es|ing) (?:it|this|that|them|these|those)\b"
    rf"|(?:is|was|are|were|be|being) (?:ignored|disregarded|set aside|quoted)|(?:no|any|little|without) (?:force"
    rf"|weight|bearing|authority|notice|attention|heed)\b|(?:is|are|was|were) (?:not|no) (?:mine|my|binding|a verdict"
    rf"|an instruction|verdict)\b|(?:do|does|did|cannot|can|will|would|must|may)(?: not|n't)? (?:not )?(?:count|sway"
    rf"|obey)\b|counts? for nothing|not (?:mine|part of my|of my making)\b|injection|manipulat\w+|nothing to me"
    rf"|have no say|not from me|told to (?:write|say)|i do not\b|(?:set|leave|leaving|put|setting) (?:it|this|that"
    rf"|them|these) (?:aside|out)|skip(?:ped)? (?:it|this|that|over)|(?:is|was|are|were) (?:\w+ )?(?:what|how"
    rf"|where) (?:the|it|its)|pay(?:ing)? no|(?:is|are) (?:only |just )?data|(?:stands?|appears?|comes?|is|was|are"
    rf"|were) (?:\w+ )?(?:in|at|from|as) (?:the|its) (?:\w+ )?(?:{_TEXTS}|end|last|final|closing)\b|(?:is|was|are"
    rf"|were) (?:the|its|their|a) (?:[\w-]+ ){{0,2}}(?:ending|end|claim|words?|line|demand|trick|opening)\b|(?:is|was"
    rf"|are|were) (?:the )?{_TEXTS}'s?\b|(?:says|writes|claims|ends|reads|demands|asks|states) (?:the|its) {_TEXTS})"
)
_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def disowns(after: str) -> bool:
    """Whether the words say that what stands before them is not the agent's own.

    >>> disowns("\\nI ignore it."), disowns("\\nThe score follows the rubric.")
    (True, False)
    """
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None


# What may stand before a statement in its sentence and leave it the agent's own: a conclusion's first words, ``I
# give``,
# ``the summary earns``, a label; whatever else stands there may be about what somebody else wants.
_CONCLUDING = one_of(WORDS["concluding"])
_ITSELF = (
    rf"(?:it|this|both|(?:the |this )?(?:[\w-]+ )?"
    rf"{one_of('summary response answer output text article story essay reply translation assistant')}(?:'s)?|[①②])"
)
_GIVES = one_of(WORDS["gives"])
_MODAL = one_of(WORDS["modal"])
_CLAUSE = rf"(?:[^.!?]*, (?=(?:so|therefore|thus|hence|i|my)\b))?(?:{_CONCLUDING},? ?)*"
_WHO = rf"(?:i|we|{_ITSELF})(?: ?{_MODAL})*"
_VERB = in_any_case(rf"(?!{SCORE_WORDS}){_GIVES}\b")
_SUBJECT = in_any_case(rf"{_CLAUSE}(?:{_WHO})?")
_LEAD = in_any_case(
    rf"{_CLAUSE}(?:{_WHO}(?: {_GIVES}(?: {_ITSELF})?(?: (?:that|to|for|with|at|as|is|in favou?r of))?"
    rf"(?: an?| the)?(?: [\w-]+)?)?|(?:my|our|the|this|an?|its)(?: [\w-]+){{0,2}}|(?:an? |the )?{FINAL_WORDS})?"
    rf"(?:(?:my|our|the)? ?(?:{FINAL_WORDS} )?(?:{SCORE_WORDS}|verdict|winner|vote|decision|answer|choice|judge?ment)"
    r"(?: of| for| is)?(?: ?[:=-])?)?"
)


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
