"""Read which of two texts a reply prefers.

Forms, strongest first: a verdict in double brackets; a labelled verdict, a binary pair or a relation such as
``A>B``; a sentence that says which is better, or a name on a line of its own; a tie; a comparative in the closing
sentence. The last statement of the strongest form present is the vote. Naming both texts is no verdict.

The bracket forms are those of MT-Bench and Arena-Hard judges, the binary pair that of SAMRE's jurors. Names of the two
texts are replaced by ① and ② before anything is read (``vocabulary.marked``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from .json_fields import Field
from .reading import breaks_off, contradictory, statements, unreadable
from .shown import NOTHING, Shown
from .vocabulary import marked, one_of, side_of

_KEYS = (
    *(
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
        "result",
    ),
    *(
        "judgment",
        "judgement",
        "selection",
        "final_verdict",
        "final_answer",
        "better_answer",
        "better_response",
    ),
)
BRACKETS = 5
_FIELD = BRACKETS + 1


def read_vote(text: str, *, cut_off: bool = False, shown: Shown = NOTHING) -> Vote:
    """Return which text the reply prefers: ``"1"``, ``"2"`` or ``"tie"``.

    Args:
        text: the raw reply.
        cut_off: the reply is known to have hit its length limit; only the fault of an unreadable reply depends on it.
        shown: the texts that the judge was shown; what it reprints of them does not count.

    Raises:
        ReplyError: the reply is empty, gives no verdict, refuses, breaks off or gives two, or all that it states may
            be a reprint.

    >>> read_vote("Both are fluent. My final verdict is: [[B>>A]]")
    '2'
    >>> read_vote("Output (b) is brief. Therefore, Output (a) is better.")
    '1'
    """
    # In a reply that breaks off, a remark in the middle ("answer 1 is better at ...") is no verdict.
    concluded = breaks_off(text)
    find = partial(_counting, concluded=concluded)
    votes, words = statements(text, shown, "verdict", _from_fields, find, marked)
    if not votes:
        cut_off = cut_off or (concluded and bool(_counting(marked(words))))
        raise unreadable(text, words, "verdict", cut_off=cut_off)
    for match in votes:
        if match.vote != votes[-1].vote:
            raise contradictory(text, match.vote, votes[-1].vote, "verdict")
    return votes[-1].vote


def _counting(text: str, *, concluded: bool = False) -> list[VoteMatch]:
    """Return the matches that count: all formal verdicts, which must agree, or else the last of the strongest."""
    valid = [match for match in vote_matches(text) if match.conclusive or not concluded]
    if not valid:
        return []
    strongest = max(match.strength for match in valid)
    finalists = sorted((match for match in valid if match.strength == strongest), key=lambda match: match.at)
    # Of sentences the last one counts, since a judge may change its mind.
    return finalists if strongest >= BRACKETS else finalists[-1:]


def _from_fields(entries: Sequence[Field]) -> list[VoteMatch]:
    votes = []
    for entry in entries:
        if entry.name in _KEYS and isinstance(entry.value, str | int) and not isinstance(entry.value, bool):
            vote = named(marked(str(entry.value)[:60]))
            if vote is not None:
                votes.append(VoteMatch(_FIELD, 0, vote))
    numbers = [
        entry.value for entry in entries if isinstance(entry.value, int) and not isinstance(entry.value, bool)
    ]
    if len(entries) == 2 and sorted(numbers) == [0, 1]:
        votes.append(VoteMatch(_FIELD, 0, "1" if numbers[0] else "2"))
    return votes


Vote = Literal["1", "2", "tie"]


class VoteMatch(NamedTuple):
    """A stated verdict: how clearly, at which position, for which text, and whether it opens or concludes the reply."""

    strength: int
    at: int
    vote: Vote
    conclusive: bool = True
    end: int = 0

    def placed(self, at: int, end: int) -> VoteMatch:
        """Return the same verdict at another place."""
        return self._replace(at=at, end=end)

    @property
    def stated(self) -> object:
        """What it states."""
        return self.vote

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The part of the text that states it."""
        return ((self.at, max(self.at, self.end)),)


_LABEL, _SENTENCE, _TIE, _COMPARISON = 4, 3, 2, 1
_EVEN = one_of("tie tied draw equal equally_good both neither c none no_winner even")
# The name of one text: ``①``, ``A``, ``(b)``, ``2``.
_SIDES = r"(?P<vote>[①②]|[(\[]{0,2}[ABab12][)\]]{0,2}(?![\w'])(?! ?[<>=]))"
# MT-Bench's and Arena-Hard's form: ``[[A]]``, ``[[B>>A]]``, ``[[tie]]``.
_BRACKETED = re.compile(r"\[\[ ?([^\[\]\n]{1,40}?) ?\]\]")
# ``A > B``, ``B<<A``, ``A = B``.
_RELATION = re.compile(r"([AB12①②]) ?(>{1,2}|<{1,2}|=|≈|≫|≪) ?([AB12①②])")
_RELATION_LINE = re.compile(rf"(?:[^\n:<>=]{{0,40}}: ?)?(?P<relation>{_RELATION.pattern})[.! ]{{0,3}}")
_CALLED = one_of(
    "verdict winner decision vote choice preference judgment judgement conclusion selection preferred "
    "better best pick ganador gagnant vincitore sieger победитель"
)
_CALLED_MORE = one_of(
    "answer output response summary one assistant option is goes_to would_be for between_the_two of_the_two"
)
_SMALL_WORDS = one_of("is goes_to for that option a an the it_is it's to")
# A label and a text or a tie: ``Winner: ②``, ``My vote goes to A``, ``Verdict: tie``.
_LABELLED = re.compile(
    rf"(?<!'s )(?:\b(?:(?:final|my|overall|the|our) ){{0,3}}{_CALLED}(?: {_CALLED_MORE}){{0,3}}"
    r"|^(?:[-•] )?(?:(?:the )?final )?(?:answer|result)(?=:))"
    r"(?P<link> ?[:=-]| (?:is|goes to|for))(?: that)?[ \n]{1,2}?"
    rf"(?:{_SMALL_WORDS} ){{0,3}}"
    rf"(?:{_SIDES}|(?P<even>{_EVEN}(?!\w)(?=[ .!,]{{0,2}}(?:\Z|[\n.(-]|relatively|of them)|,| (?:are|is|as|since"
    rf"|because)\b)))"
    r"(?P<after>[^\n.]{0,60})",
    re.IGNORECASE | re.MULTILINE,
)
# ``clearly better``, ``the winner``.
_PRAISE = rf"(?:\w{{1,20}} )?{one_of('better superior preferable preferred the_winner the_better the_best')}"
# What may follow a text that a label names; ``Better: A clear answer`` names none.
_VERDICT_ENDS = re.compile(
    rf" ?(?:\Z|\n|[.,;:!)\]*—(-](?! ?[①②])| (?:is|was) {_PRAISE}"
    rf"|{one_of('because as since for due with over by wins than overall here')}\b)",
    re.IGNORECASE,
)
# SAMRE's binary pair: ``(1, 0)``.
_PAIR = re.compile(r"[(\[] ?(0|1|0?\.5)(?:\.0)? ?, ?(0|1|0?\.5)(?:\.0)? ?[)\]]")
# A label in front of a binary pair: ``Vote: (1, 0)``.
_PAIR_LABEL = re.compile(
    rf"{one_of('vote verdict decision ballot tuple answer result is score scores choice')}\W{{0,3}}\Z",
    re.IGNORECASE,
)
_DEGREES = one_of(
    "the a an also therefore thus clearly slightly significantly marginally much far overall still indeed "
    "generally definitely considered deemed judged somewhat notably considerably clear likely obviously "
    "arguably simply just ultimately now to_be substantially obvious overwhelmingly by_far"
)
_LEADS = one_of("better superior preferable preferred winner best stronger the_one winning more_preferable")
_TRAILS = one_of("worse inferior weaker worst")
_WINS = one_of(
    "wins won prevails outperforms outperformed beats surpasses performed_better performs_better "
    "does_better did_better excels_over takes_the_lead edges_out has_the_edge is_ahead"
)
_CHOOSING = one_of(
    "prefer choose select favor favour pick vote_for vote_is_for vote_goes_to go_with side_with opt_for "
    "lean_toward lean_towards recommend declare award_the_win_to give_the_edge_to"
)
_COPULAS = one_of("is was would_be seems appears are comes_out emerges remains to_be as")
_CALLED_BETTER = one_of(
    "one choice of_the_two between_the_two option overall than_the_other output answer summary response assistant"
)
# Sentences that prefer a text: ``① is better``, ``② wins``, ``I prefer ①``, ``The better answer is ②``.
_BETTER = re.compile(
    rf"(?P<is>[①②]),? {_COPULAS},? (?:{_DEGREES},? ){{0,4}}"
    rf"(?:{_LEADS}|(?P<is_worse>{_TRAILS}))\b(?! (?:at|suited to|known)\b)"
    rf"|(?P<wins>[①②]) (?:clearly |narrowly |also |has )?(?:{_WINS}|(?P<loses>loses))\b"
    rf"|\b{_CHOOSING}(?: to| that)? (?P<chosen>[①②])"
    r"|(?P<follows>[①②]) (?:\w{1,20}ly )?better \w{1,20}s\b"
    rf"|\b(?:{_LEADS}|(?P<was_worse>{_TRAILS}))(?: {_CALLED_BETTER}){{0,2}}"
    r"(?: (?:for|to|in|of) [\w ]{1,40}?| here)? (?:is|was|would be)(?: (?:clearly|therefore|thus"
    r"|indeed))? (?P<named>[①②])",
    re.IGNORECASE,
)
_COMPARATIVES = one_of("more better superior greater higher clearer stronger richer deeper best")
# A text that is more of something: ``② gives a clearer account``.
_MORE = re.compile(rf"(?P<vote>[①②])(?P<between>[^.①②\n]{{0,60}}?)\b{_COMPARATIVES}\b", re.IGNORECASE)
_ALIKE = one_of("tied equal equally_matched") + r"|equally (?:as )?(?!clear that)\w{3,16}"
# Sentences that prefer neither: ``It is a tie``, ``Both are equally good``, ``Neither is better``.
_TIES = re.compile(
    r"\b(?:it's|is|as|be|call it|declare|results? in|ends? in) (?:therefore |thus |essentially |effectively "
    r"|basically |considered )?an? (?:\w{1,20} )?(?:tie|draw)\b"
    rf"|\b(?:both|① and ②)(?: [\w#①②()]{{1,20}}){{0,8}}? (?:are|is|were|performed|perform"
    rf"|did) (?:\w{{1,20}} ){{0,2}}?(?:{_ALIKE})\b"
    r"|\b(?:are|is) (?:tied|equally (?:good|matched|bad))\b"
    r"|\bneither(?: [\w#①②()]{1,20}){0,5}? (?:is|was|stands out as) (?:\w{1,20} ){0,2}?(?:better|superior"
    r"|preferable|a winner|the winner)\b|\bneither(?: [\w#①②()]{1,20}){0,3}? wins\b"
    r"|\b(?:no|without a) (?:clear |obvious |real )?(?:winner|preference|difference in (?:overall )?quality)\b",
    re.IGNORECASE,
)
# Words that make what follows a concession or a supposition: ``while ① is better at ...``.
_CONCESSIONS = one_of(
    "while although though if whether unless despite not why may_be_argued_that argue_that argued_that "
    "argues_that claim_that claims_that claimed_that"
)
_HYPOTHETICAL = re.compile(
    rf"(?:\b{_CONCESSIONS}\b|n't)"
    r"[^.;,①②\n]{0,40}\Z",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|no|never|neither|nor|less|hardly)\b|n't", re.IGNORECASE)
# Words with which a conclusion begins.
_CONCLUDING = one_of(
    "therefore thus hence overall in_conclusion in_summary conclude concluded determine determined decided "
    "i_must i_would i_believe i_evaluate i_find i_prefer i_choose considering as_a_result ultimately so"
)
_CONCLUSION = re.compile(rf"\b{_CONCLUDING}\b", re.IGNORECASE)
# A line that is a name, a letter or ``tie``, with or without an explanation behind it.
_WHOLE_LINE = re.compile(
    r"(?:[-•] )?(?P<vote>[①②]|[(\[]?[ABab12][)\]]?(?![\w'])|tie|draw|c\b|\(c\)|both|neither)(?P<rest>[.!]?"
    r"|(?:[.:]| -| —) [^\n]*| \([^\n]*)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^\(?\d{1,2}[.)] ", re.MULTILINE)
_SENTENCES = re.compile(r"(?<=[.!?]) |\n+")


def vote_matches(text: str) -> Iterator[VoteMatch]:
    """Find every verdict in ``text``, in which the names of the two texts are marked."""
    for match in _BRACKETED.finditer(text):
        vote = named(match[1])
        if vote is not None:
            yield VoteMatch(BRACKETS, match.start(), vote, end=match.end())
    yield from _labelled(text)
    yield from _relations_and_pairs(text)
    yield from _sentences(text)
    yield from _lines(text)
    yield from _closing_comparison(text)


def named(name: str) -> Vote | None:
    """Return the vote that a short phrase names (``A``, ``②``, ``A>>B``, ``tie``), or None.

    >>> named("B>>A"), named("(a)"), named("a tie"), named("both texts")
    ('2', '1', 'tie', None)
    """
    name = name.strip(" .")
    relation = _RELATION.fullmatch(name.upper())
    if relation:
        return _related(relation[1], relation[2], relation[3])
    if re.fullmatch(rf"{_EVEN}|a tie", name, re.IGNORECASE):
        return "tie"
    side = side_of(name)
    return _vote(side) if side is not None else None


def _related(first: str, sign: str, second: str) -> Vote | None:
    left, right = side_of(first), side_of(second)
    if left is None or right is None or left == right:
        return None
    if sign in "=≈":
        return "tie"
    return _vote(left if sign[0] in ">≫" else right)


def _vote(side: str) -> Vote:
    return "1" if side in ("1", "①") else "2"


def _other(vote: Vote) -> Vote:
    return "2" if vote == "1" else "1"


def _supposed(text: str, at: int) -> bool:
    """Whether what stands at ``at`` is only supposed, denied or conceded in its clause."""
    return _HYPOTHETICAL.search(text[max(0, at - 60) : at]) is not None


def _labelled(text: str) -> Iterator[VoteMatch]:
    """Find ``Winner: Answer 2``, ``My vote goes to ①``."""
    for match in _LABELLED.finditer(text):
        if _supposed(text, match.start()):
            continue
        if match["even"]:
            yield VoteMatch(_LABEL, match.start(), "tie", end=match.start("after"))
        elif _VERDICT_ENDS.match(match["after"]) and (
            match["link"] != " for" or "vote" in match[0].casefold()
        ):
            vote = named(match["vote"])
            if vote is not None:
                yield VoteMatch(_LABEL, match.start(), vote, end=match.start("after"))


def _relations_and_pairs(text: str) -> Iterator[VoteMatch]:
    """Find ``A > B`` on a line of its own, ``(1, 0)`` alone or behind a label."""
    for line in re.finditer(r"[^\n]+", text):
        relation = _RELATION_LINE.fullmatch(line[0]) if len(line[0]) < 80 else None
        vote = _related(relation[2], relation[3], relation[4]) if relation else None
        if relation and vote is not None:
            start, end = relation.span("relation")
            yield VoteMatch(_LABEL, line.start() + start, vote, end=line.start() + end)
        for pair in _PAIR.finditer(line[0]):
            before = line[0][max(0, pair.start() - 20) : pair.start()]
            left, right = float(pair[1]), float(pair[2])
            if left + right == 1 and (not before.strip(" -•") or _PAIR_LABEL.search(before)):
                vote = "1" if left > right else "2" if right > left else "tie"
                at = line.start()
                yield VoteMatch(_LABEL, at + pair.start(), vote, end=at + pair.end())


def _sentences(text: str) -> Iterator[VoteMatch]:
    """Find ``Output (a) is better``, ``I prefer ②``, ``It is a tie``."""
    first_line = text.find("\n")
    for match in _BETTER.finditer(text):
        if _supposed(text, match.start()) or _asks(text, match.end()):
            continue
        name = match["is"] or match["wins"] or match["chosen"] or match["follows"] or match["named"]
        vote = _vote(name)
        worse = match["is_worse"] or match["loses"] or match["was_worse"]
        yield VoteMatch(
            _SENTENCE,
            match.start(),
            _other(vote) if worse else vote,
            _concludes(text, match.start(), first_line),
            match.end(),
        )
    for match in _TIES.finditer(text):
        if not _supposed(text, match.start()):
            concludes = _concludes(text, match.start(), first_line)
            yield VoteMatch(_TIE, match.start(), "tie", concludes, match.end())


def _asks(text: str, end: int) -> bool:
    """Whether the sentence that goes on at ``end`` is a question."""
    return re.match(r"[^.!?\n]{0,80}\?", text[end : end + 90]) is not None


def _concludes(text: str, at: int, first_line: int) -> bool:
    """Whether what stands at ``at`` belongs to the first line or to a sentence that concludes."""
    sentence = _SENTENCES.split(text[max(0, at - 160) : at])[-1]
    return first_line < 0 or at < first_line or _CONCLUSION.search(sentence) is not None


def _lines(text: str) -> Iterator[VoteMatch]:
    """Find a name, a letter or ``tie`` as the first line, with an explanation or without, or as the last line."""
    first, last = text.partition("\n")[0], text.rpartition("\n")[2]
    for at, line in ((0, first), (len(text) - len(last), last)):
        match = _WHOLE_LINE.fullmatch(line.strip()) if len(line) < 2000 else None
        # "1. The first answer ..." and "2. ..." number a list.
        if match is None or (match["vote"] in "12" and len(_NUMBERED.findall(text)) > 1):
            continue
        explained = len(match["rest"]) > 1
        if explained and (at > 0 or (match["vote"] not in "①②" and match["rest"][0] not in ":.")):
            continue
        vote = named(match["vote"])
        if vote is not None:
            yield VoteMatch(_SENTENCE, at, vote, end=at + len(line))


def _closing_comparison(text: str) -> Iterator[VoteMatch]:
    """Find the text of which alone the closing sentence says that it is more of something."""
    closing = _SENTENCES.split(text[-1000:].strip())[-1]
    if closing.endswith("?"):
        return
    praised = {
        match["vote"]
        for match in _MORE.finditer(closing)
        if not _NEGATION.search(match["between"]) and not _HYPOTHETICAL.search(closing[: match.start()][-60:])
    }
    if len(praised) == 1:
        conclusive = "\n" not in text[:2000]
        at = text.rindex(closing)
        yield VoteMatch(_COMPARISON, at, _vote(praised.pop()), conclusive, at + len(closing))
