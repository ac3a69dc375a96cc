"""Read which of two texts a reply prefers.

Forms, strongest first: a verdict in double brackets; a labelled verdict, a binary pair or a relation such as
``A>B``; a sentence that says which is better, a name on a line of its own, or a tie; a comparative in the closing sentence.
The last statement of the strongest form present is the vote. Naming both texts is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from .faults import breaks_off, contradictory, unreadable
from .markup import unmarked
from .names import marked, side_of
from .structured import Field, closing_fields, fields
from .text import own_words, plain

Vote = Literal["1", "2", "tie"]


class _Ballot(NamedTuple):
    strength: int
    at: int
    vote: Vote
    conclusive: bool = True


_KEYS = (
    "winner",
    "vote",
    "verdict",
    "choice",
    "preference",
    "preferred",
    "better",
    "best",
    "decision",
    "answer",
    "final_verdict",
    "result",
    "judgment",
    "judgement",
    "selection",
    "final_answer",
    "better_answer",
    "better_response",
)

_TIE = r"(?:tied?|draw|equal(?:ly good)?|both|neither|c|none|no winner|even)"
_SIDES = r"(?P<vote>[①②]|[(\[]{0,2}[ABab12][)\]]{0,2}(?![\w'’])(?! ?[<>=]))"
_BRACKETS = re.compile(r"\[\[ ?([^\[\]\n]{1,40}?) ?\]\]")
_RELATION = re.compile(r"([AB12①②]) ?(>{1,2}|<{1,2}|=|≈|≫|≪) ?([AB12①②])")
_LABEL = (
    r"(?<!'s )(?:\b(?:(?:final|my|overall|the|our) ){0,3}(?:verdict|winner|decision|vote|choice|preference|judge?ment|conclusion|selection|preferred|better|best|pick|"
    r"ganador|gagnant|vincitore|sieger|победитель)(?: (?:answer|output|response|summary|one|assistant|option|is|goes to|would be|for|between the two|of the two)){0,3}"
    r"|^(?:[-•] )?(?:(?:the )?final )?(?:answer|result)(?=:))"
)
_LABELLED = re.compile(
    rf"{_LABEL}(?P<link> ?[:=-]| (?:is|goes to|for))(?: that)?[ \n]{{1,2}}?(?:(?:is|goes to|for|that|option|a|an|the|it's|it is|to) ){{0,3}}(?:{_SIDES}|(?P<tie>{_TIE}(?!\w)(?=[ .!,]{{0,2}}(?:\Z|[\n.(-]|relatively|of them)|,| are| is| as| since| because)))(?P<after>[^\n.]{{0,60}})",
    re.IGNORECASE | re.MULTILINE,
)
_PAIR = re.compile(r"[(\[] ?(0|1|0?\.5|1\.0|0\.0)(?:\.0)? ?, ?(0|1|0?\.5|1\.0|0\.0) ?[)\]]")
_MUCH = r"(?:(?:the|a|an|also|therefore|thus|clearly|slightly|significantly|marginally|much|far|overall|still|indeed|generally|definitely|considered|deemed|judged|somewhat|notably|considerably|clear|likely|obviously|arguably|simply|just|ultimately|now|to be|substantially|obvious|overwhelmingly|by far|,) ?){0,4}"
_BETTER = re.compile(
    rf"(?P<vote>[①②])(?: (?:is|was|would be|seems|appears|are|comes out|emerges|remains|to be|as)) {_MUCH}(?P<word>better|superior|preferable|preferred|winner|best|stronger|stronger one|the one|worse|inferior|weaker|winning|more preferable|worst)\b"
    rf"(?! (?:at|suited to|known))"
    rf"|(?P<vote2>[①②]) (?:clearly |narrowly |also |has )?(?P<word2>wins|won|prevails|outperforms|outperformed|beats|surpasses|loses|performed better|performs better|does better|did better|excels over|takes the lead|edges out|has the edge|is ahead)\b"
    rf"|\b(?:prefer|choose|select|favou?r|pick|vote (?:is )?for|vote goes to|go with|side with|opt for|lean towards?|recommend|declare|award the win to|give the edge to)(?: to| that)? (?P<vote3>[①②])"
    rf"|(?P<vote5>[①②]) (?:\w+ly )?better \w+s\b"
    rf"|\b(?P<word4>better|best|winner|superior|stronger|preferred|worse|weaker)(?: (?:one|choice|of the two|between the two|option|overall|than the other|output|answer|summary|response|assistant)){{0,2}}(?: (?:for|to|in|of) [\w ]{{1,40}}?| here)? (?:is|was|would be)(?: (?:clearly|therefore|thus|indeed))? (?P<vote4>[①②])",
    re.IGNORECASE,
)
_COMPARATIVE = re.compile(
    rf"(?P<vote>[①②])(?: (?:also|therefore|thus|clearly|still|generally|simply|slightly|better|more))?[^.①②\n]{{0,60}}?\b(?:more|better|superior|greater|higher|clearer|stronger|richer|deeper|best)\b",
    re.IGNORECASE,
)
_TIES = re.compile(
    r"\b(?:it(?:'s| is)|this is|is|as|be|call it|declare|results? in|ends? in|to be|would be) (?:therefore |thus |essentially |effectively |basically |considered )?a (?:\w+ )?(?:tie|draw)\b"
    r"|\bboth (?:[\w#①②]+ ){0,8}?(?:are|is|were|perform(?:ed)?|did) (?:\w+ ){0,2}?(?:equal|equally (?:good|bad|well|helpful|poor|poorly|strong|valid|correct|matched|effective|accurate|relevant|consistent|coherent|fluent|engaging|natural|informative|useful|preferable))\b"
    r"|① and ② (?:are|were|perform(?:ed)?|did) (?:\w+ ){0,2}?(?:equal|equally (?:\w+)|tied)\b"
    r"|\b(?:are|is) (?:tied|equally (?:good|matched|bad))\b"
    r"|\bneither (?:[\w#①②]+ ){0,5}?(?:is|was|wins|stands out as) (?:\w+ ){0,2}?(?:better|superior|preferable|a winner|the winner|more)?\b"
    r"|\b(?:no|without a) (?:clear |obvious |real )?(?:winner|preference|difference in (?:overall )?quality)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:while|although|though|if|whether|unless|even if|even though|despite|not|why|n't|may be argued that|argue[sd]? that|claims? that|claimed that)[^.;,①②\n]{0,40}\Z",
    re.IGNORECASE,
)
_VERDICT_ENDS = re.compile(
    r" ?(?:\Z|\n|[.,;:!)\]*—(-](?! ?[①②])| (?:is|was) (?:\w+ )?(?:better|superior|preferable|preferred|the (?:winner|better|best))|(?:because|as|since|for|due|with|over|by|wins|than|overall|here)\b)",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"\b(?:therefore|thus|hence|overall|in conclusion|in summary|conclude|concluded|determined?|decided|i must|i would|i believe|i evaluate|i find|i prefer|i choose|considering|as a result|ultimately|so)\b",
    re.IGNORECASE,
)
_WHOLE_LINE = re.compile(
    r"(?:[-•] )?(?P<vote>[①②]|[(\[]?[ABab12][)\]]?(?![\w'’])|tie|draw|c\b|\(c\)|both|neither)(?P<rest>[.!]?|(?:[.:]| -| —) [^\n]*| \([^\n]*)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?]) |\n+")


def read_vote(text: str, *, cut_off: bool = False) -> Vote:
    """Which text the reply prefers: ``"1"``, ``"2"`` or ``"tie"``.

    Args:
        text: the raw reply.
        cut_off: the reply is known to have hit its length limit; only the fault of an unreadable reply depends on it.

    Raises:
        ReplyError: the reply is empty, gives no verdict, refuses, breaks off or gives two.

    >>> read_vote("Both are fluent. My final verdict is: [[B>>A]]")
    '2'
    >>> read_vote("Output (b) is brief. Therefore, Output (a) is better.")
    '1'
    """
    whole = plain(text)
    entries = fields(whole)
    words = "" if entries is not None else unmarked(own_words(whole))
    ballots = list(_from_fields(entries) if entries is not None else _from_words(words))
    if not ballots:
        raise unreadable(text, words, "verdict", cut_off=cut_off)
    ballots = _concluded(ballots, text)
    if not ballots:
        raise unreadable(text, words, "verdict", cut_off=True)
    strongest = max(ballot.strength for ballot in ballots)
    finalists = [ballot for ballot in ballots if ballot.strength == strongest]
    if strongest >= 5:
        for ballot in finalists:
            if ballot.vote != finalists[-1].vote:
                raise contradictory(text, ballot.vote, finalists[-1].vote, "verdict")
    return max(finalists, key=lambda ballot: ballot.at).vote


def _concluded(ballots: list[_Ballot], reply: str) -> list[_Ballot]:
    """Of a reply that breaks off, only the verdicts that it opens with or draws as a conclusion."""
    return [ballot for ballot in ballots if ballot.conclusive] if breaks_off(reply) else ballots


def _concludes(text: str, at: int) -> bool:
    """Whether what stands at ``at`` belongs to the first line or to a sentence that concludes."""
    before = text[max(0, at - 160) : at]
    sentence = re.split(r"(?<=[.!?]) |\n", before)[-1]
    return "\n" not in text[:at].strip() or _CONCLUSION.search(sentence) is not None


def _from_fields(entries: Iterable[Field]) -> Iterator[_Ballot]:
    entries = list(entries)
    for entry in entries:
        if entry.name in _KEYS and isinstance(entry.value, str | int) and not isinstance(entry.value, bool):
            vote = _named(marked(str(entry.value)[:60]))
            if vote is not None:
                yield _Ballot(6, 0, vote)
    numbers = [
        entry.value
        for entry in entries
        if isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
    ]
    if len(entries) == 2 and len(numbers) == 2 and sorted(numbers) == [0, 1]:
        yield _Ballot(6, 0, "1" if numbers[0] else "2")


def _from_words(words: str) -> Iterator[_Ballot]:
    closing = closing_fields(words)
    if closing is not None:
        yield from _from_fields(closing[1])
    text = marked(words)
    for match in _BRACKETS.finditer(text):
        vote = _named(match[1])
        if vote is not None:
            yield _Ballot(5, match.start(), vote)
    yield from _labelled(text)
    yield from _sentences(text)
    yield from _lines(text)
    yield from _closing_comparative(text)


def _named(name: str) -> Vote | None:
    """The vote that a short phrase names: ``A``, ``②``, ``A>>B``, ``tie``."""
    name = name.strip(" .")
    relation = _RELATION.fullmatch(name.upper())
    if relation:
        return _related(relation)
    if re.fullmatch(rf"{_TIE}|a tie", name, re.IGNORECASE):
        return "tie"
    side = side_of(name)
    return _vote(side) if side is not None else None


def _related(match: re.Match[str]) -> Vote | None:
    left, right = side_of(match[1]), side_of(match[3])
    if left is None or right is None or left == right:
        return None
    if match[2] in "=≈":
        return "tie"
    return _vote(left if match[2][0] in ">≫" else right)


def _vote(side: str) -> Vote:
    return "1" if side == "1" else "2"


def _labelled(text: str) -> Iterator[_Ballot]:
    for match in _LABELLED.finditer(text):
        if _HYPOTHETICAL.search(text[max(0, match.start() - 60) : match.start()]):
            continue
        if match["tie"]:
            yield _Ballot(4, match.start(), "tie")
            continue
        after = match["after"]
        if not _VERDICT_ENDS.match(after) or (match["link"] == " for" and "vote" not in match[0].lower()):
            continue
        vote = _named(match["vote"])
        if vote is not None:
            yield _Ballot(4, match.start(), vote)
    for line in re.finditer(r"[^\n]+", text):
        yield from _pair_line(line)


def _pair_line(line: re.Match[str]) -> Iterator[_Ballot]:
    relation = re.fullmatch(rf"(?:[^\n:]{{0,40}}: ?)?{_RELATION.pattern}[.! ]*", line[0])
    if relation:
        vote = _related(relation)
        if vote is not None:
            yield _Ballot(4, line.start(), vote)
    for pair in _PAIR.finditer(line[0]):
        left, right = float(pair[1]), float(pair[2])
        alone = not line[0][: pair.start()].strip(" -•") or re.search(
            r"(?:vote|verdict|decision|ballot|tuple|answer|result|is|score|scores|choice)\W{0,3}\Z",
            line[0][: pair.start()],
            re.IGNORECASE,
        )
        if alone and left + right == 1:
            yield _Ballot(
                4, line.start() + pair.start(), "1" if left > right else "2" if right > left else "tie"
            )


def _sentences(text: str) -> Iterator[_Ballot]:
    for match in _BETTER.finditer(text):
        if _HYPOTHETICAL.search(text[max(0, match.start() - 60) : match.start()]):
            continue
        name = match["vote"] or match["vote2"] or match["vote3"] or match["vote4"] or match["vote5"]
        word = (match["word"] or match["word2"] or match["word4"] or "").casefold()
        vote = _vote("1" if name == "①" else "2")
        if word in ("worse", "inferior", "weaker", "loses", "worst"):
            vote = "2" if vote == "1" else "1"
        yield _Ballot(3, match.start(), vote, _concludes(text, match.start()))
    for match in _TIES.finditer(text):
        if not _HYPOTHETICAL.search(text[max(0, match.start() - 60) : match.start()]):
            yield _Ballot(2, match.start(), "tie", _concludes(text, match.start()))


def _lines(text: str) -> Iterator[_Ballot]:
    lines = list(re.finditer(r"[^\n]+", text))
    for line in (*lines[:1], *lines[-1:]):
        match = _WHOLE_LINE.fullmatch(line[0].strip())
        if match is None:
            continue
        rest = match["rest"]
        if len(rest) > 1 and match["vote"] not in "①②" and rest[0] not in ":.":
            continue
        if len(rest) > 1 and line is not lines[0]:
            continue
        vote = _named(match["vote"])
        if vote is not None:
            yield _Ballot(3, line.start(), vote)


def _closing_comparative(text: str) -> Iterator[_Ballot]:
    parts = [part for part in _SENTENCE.split(text) if part.strip()]
    if not parts:
        return
    votes = {
        match["vote"]
        for match in _COMPARATIVE.finditer(parts[-1])
        if not _HYPOTHETICAL.search(parts[-1][: match.start()])
    }
    if len(votes) == 1:
        yield _Ballot(1, len(text), _vote("1" if votes == {"①"} else "2"), "\n" not in text)
