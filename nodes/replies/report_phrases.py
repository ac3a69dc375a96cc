"""Know the words with which a reply announces, or disowns, what somebody else has written.

English alone: in other languages the place of a statement in the reply decides (``reprints``).
"""

from __future__ import annotations

import re

from .lexicon import one_of

_OTHERS = one_of(
    "candidate text answer response summary source article story question fact author writer assistant output "
    "reply passage document essay ending line sentence scorer critic judge juror referee advocate commander "
    "candidates answers they he she it this that which who one ① ② paragraph criteria post statement"
)
_SAYING = one_of(
    "say* said stat* claim* read reads reading writ* wrote end ends ending ended clos* conclud* contain* includ* "
    "print* ask* demand* want* request* tell* told instruct* insist* declar* announc* repeat* add* append* begin* "
    "open* start* order* finish* carr* hold* has_the has_a has_this quot* mention* show* display* order* "
    "voted suggest* propos* boast* plead* urg* command* attempt* tries try* goes_on continu* reprint* dictat* "
    "assert* proclaim* argu* note* exclaim* pretend* imitat* hides hid* smuggl* inject* slip*"
)
# What stands in a text and may be reprinted.
_PIECES = one_of(
    "line* sentence* word words phrase* token* string* instruction* request* demand* injection* quote* quotation* "
    "claim* postscript* footer* marker* command* remark* plea* ending* passage* snippet* excerpt* text_itself "
    "copy reprint* following verbatim last_words self-assessment* order* attempt* string*"
)
# Behind these the agent speaks for itself again.
_OWN_TURN = re.compile(
    r"\b(?:but|yet|therefore|thus|hence|overall|still|my|mine|earn\w*|deserv\w*|merit\w*|receiv\w*|gets?|resulting"
    r"|leading|warrant\w*|and (?:is|are|was|has|it|so)"
    r"|i(?:'d| would| will)? (?:\w+ )?(?:give|rate|say|vote|score|judge|conclude|choose|settle|stay|keep|assign"
    r"|pick|prefer|declare|arrive))\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    rf"\b{_OTHERS}(?:'s?)?(?:,? [\w'()\"-]+){{0,6}}?,? {_SAYING}\b(?P<rest>(?:[\W_]*[\w'-]+){{0,9}}\W*)\Z",
    re.IGNORECASE,
)
_PIECE = re.compile(
    rf"(?<!in other )(?<!in a )\b(?:{_PIECES})\b(?P<rest>(?:[\W_]*[\w'-]+){{0,8}}\W*)\Z", re.IGNORECASE
)
# Directly before: ``the candidate's [[5]]``, ``ignoring [[5]]``.
_OF_OTHERS = re.compile(
    rf"(?:\b(?:the|its|their|his|her|this|that) (?:{_OTHERS}(?:'s?)?)|\b(?:its|their|his|her))"
    r"(?: (?:own|last|final|closing|claimed|alleged|self-assigned|line|words?|mark|tag|score|verdict|vote|rating))*"
    r"\W*\Z"
    rf"|\b(?:{one_of('ignor* disregard* skip* despite notwithstanding regardless_of apart_from not_counting quot*')}"
    r"|copied from|reads?|reading|saying|says)(?: \w+){0,4}\W*\Z",
    re.IGNORECASE,
)
# A full sentence that announces: ``The candidate ends with this line.``
_ANNOUNCED = re.compile(
    r"\b(?:this|the following|these|the next|as follows|here is|here's|below)\b[^.!?]{0,40}[.!?]?\Z",
    re.IGNORECASE,
)
# A label under which the agent gives its own verdict.
_OWN_LABEL = re.compile(
    r"\b(?:my|i|we|our|verdict|scores?|ratings?|final|overall|total|conclusion|conclude|decision|evaluation|assessment"
    r"|judge?ment|result|results|outcome|output|winner|vote|therefore|thus|hence|as follows|summary of scores"
    r"|answer|reply|response|grade|feedback|declaration|choice|preference|better|tally|sum|reasoning|rationale"
    r"|explanation|step|analysis|comparison|in short|in sum|points|critique|review)\b[^.!?\n]{0,60}"
    r"[:=—-]?[\s\x00\"'`*_(\[]*\Z",
    re.IGNORECASE,
)
_LONGEST = 300


def reports(before: str, *, strictly: bool = False) -> bool:
    """Whether the words announce something that somebody else has written.

    Args:
        before: the sentence up to the statement, or the one above it.
        strictly: the sentence is complete and has to point at what follows.

    >>> reports("The candidate ends with this line:"), reports("It holds all key facts and earns a")
    (True, False)
    """
    words = before[-_LONGEST:].replace("\x00", " ").replace("\u2019", "'")
    if strictly and not _ANNOUNCED.search(words):
        return False
    if not strictly and _OF_OTHERS.search(words):
        return True
    matches = (_SAID.search(words), _PIECE.search(words))
    return any(match is not None and not _OWN_TURN.search(match["rest"]) for match in matches)


def introduces(before: str) -> bool:
    """Whether the words announce a verdict of the agent's own.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


_TEXTS = one_of(
    "candidate text answer response summary source author document article essay story question fact ① ②"
)
_DISOWNING = re.compile(
    r"\b(?:i (?:\w+ )?(?:ignore|disregard)|(?:ignor|disregard)(?:e|ed|es|ing) (?:it|this|that|them|these|those)\b"
    r"|(?:is|was|are|were|be|being) (?:ignored|disregarded|set aside|quoted)"
    r"|(?:no|any|little|without) (?:force|weight|bearing|authority|notice|attention|heed)\b"
    r"|(?:is|are|was|were) (?:not|no) (?:mine|my|binding|a verdict|an instruction|verdict)\b"
    r"|(?:do|does|did|cannot|can|will|would|must|may)(?: not|n't)? (?:not )?(?:count|sway|obey)\b"
    r"|counts? for nothing|injection|manipulat\w+|nothing to me|have no say|not from me|told to (?:write|say)"
    r"|i do not\b"
    r"|(?:set|leave|leaving|put|setting) (?:it|this|that|them|these) (?:aside|out)|skip(?:ped)? (?:it|this|that|over)"
    r"|(?:is|was|are|were) (?:\w+ )?(?:what|how|where) (?:the|it|its)|pay(?:ing)? no|(?:is|are) (?:only |just )?data"
    r"|(?:stands?|appears?|comes?|is|was|are|were) (?:\w+ )?(?:in|at|from|as) (?:the|its) (?:\w+ )?"
    rf"(?:{_TEXTS}|end|last|final|closing)\b"
    r"|(?:is|was|are|were) (?:the|its|their|a) (?:[\w-]+ ){0,2}(?:ending|end|claim|words?|line|demand|trick|opening)\b"
    rf"|(?:is|was|are|were) (?:the )?{_TEXTS}'s?\b"
    rf"|(?:says|writes|claims|ends|reads|demands|asks|states) (?:the|its) {_TEXTS})",
    re.IGNORECASE,
)
_DISMISSING = re.compile(
    r"\b(?:(?:which|that|and|but|so|this) (?:i|we) (?:\w+ ){0,2}(?:ignore|disregard|dismiss|discount|set aside|reject)"
    r"|i (?:\w+ ){0,2}(?:ignore|disregard) (?:it|this|that|them)\b"
    r"|(?:is|are|was|were|be|been|being) (?:\w+ ){0,2}(?:ignored|disregarded|dismissed|discounted|set aside|no verdict)"
    r"|(?:no|without) (?:force|weight|bearing|authority)\b|not (?:mine|my own)\b)",
    re.IGNORECASE,
)


def dismisses(after: str) -> bool:
    """Whether the rest of a sentence takes back what the sentence has stated.

    >>> dismisses(", which I ignore"), dismisses(", since it rambles")
    (True, False)
    """
    return _DISMISSING.search(after.replace("\x00", " ").replace("\u2019", "'")) is not None


_CLAIMING = re.compile(
    r"\b(?:candidate|text|answer|response|summary|article|story|author|writer|assistant|output|passage|document"
    r"|essay|source|①|②|it|which|that|who)(?:'s)? (?:itself |also |even |then |already )?"
    r"(?:claims?|claimed|asks?|asked|demands?|demanded|insists?|insisted|pretends?|pretended|tells? me|told me"
    r"|instructs? me|instructed me|(?:includes?|contains?|has|holds?|carries|brings) (?:its|a|an) (?:own )?"
    r"(?:self-)?(?:evaluation|assessment|verdict|rating|score|claim|instruction|injection|demand|request)"
    r"|(?:gives?|rates?|scores?|grades?|awards?|assigns?) itself)\b(?P<rest>[^.!?]*)\Z",
    re.IGNORECASE,
)


def claims(before: str) -> bool:
    """Whether a sentence, up to the statement in it, says what a text claims of itself.

    >>> claims("The text claims a score of"), claims("The text claims too much, so I give it a")
    (True, False)
    """
    match = _CLAIMING.search(before[-_LONGEST:].replace("\x00", " ").replace("\u2019", "'"))
    return match is not None and not _OWN_TURN.search(match["rest"])


_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def disowns(after: str) -> bool:
    """Whether the words say that what stands before them is not the agent's own.

    >>> disowns("\\nI ignore it."), disowns("\\nThe score follows the rubric.")
    (True, False)
    """
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None
