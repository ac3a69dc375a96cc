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
from dataclasses import dataclass
from typing import ClassVar, Literal

from .json_fields import Field
from .provenance import Grammar, Statement, Strength
from .shown import NOTHING, Shown
from .statements import agreed, breaks_off, final_statements, strongest
from .vocabulary import FIRST, NUMBERED_LINE, WORDS, in_any_case, marked, one_of, pattern, side_of, word_set

Vote = Literal["1", "2", "tie"]


def read_vote(text: str, *, shown: Shown = NOTHING) -> Vote:
    """Return which text the reply prefers: ``"1"``, ``"2"`` or ``"tie"``.

    Args:
        text: the raw reply.
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
    votes = final_statements(text, shown, _Votes(concluded=breaks_off(text)))
    return agreed(text, [vote.value for vote in votes], "verdict")


_KEYS = word_set(WORDS["keys"])


@dataclass(frozen=True)
class _Votes(Grammar[Vote]):
    what: ClassVar[str] = "verdict"
    concluded: bool = False

    def prepare(self, words: str) -> str:
        return marked(words)

    def from_fields(self, entries: Sequence[Field]) -> list[Vote]:
        named = [entry.value for entry in entries if entry.name in _KEYS and type(entry.value) in (int, str)]
        votes = [vote for name in named if (vote := _named(marked(str(name)[:60])))]
        # SAMRE's binary pair, under whatever keys
        numbers = [entry.value for entry in entries if type(entry.value) is int]
        if len(entries) == 2 and sorted(numbers) == [0, 1]:
            votes.append("1" if numbers[0] else "2")
        return votes

    def find(self, words: str) -> list[Statement[Vote]]:
        """Return all formal verdicts, which must agree, or else the last of the strongest."""
        forms = (_formal, _labelled, _binary_pairs, _sentences, _lines, _closing_comparison)
        matches = [match for form in forms for match in form(words)]
        votes = strongest([match for match in matches if match.conclusive or not self.concluded])
        # Of sentences the last one counts, since a judge may change its mind.
        return votes if votes and votes[0].strength >= Strength.BRACKETS else votes[-1:]


# --- names, brackets, labels, relations and binary pairs ------------------------------------------------------------

_EVEN = in_any_case(rf"{one_of(WORDS['even'])}|a tie")
# ``A > B``, ``B<<A``, ``A = B``.
_RELATION = re.compile(r"([AB12①②]) ?(>{1,2}|<{1,2}|=|≈|≫|≪) ?([AB12①②])")


def _named(name: str) -> Vote | None:
    """Return the vote that a short phrase names (``A``, ``②``, ``A>>B``, ``tie``), or None."""
    name = name.strip(" .[]")
    if relation := _RELATION.fullmatch(name.upper()):
        left, right, sign = side_of(relation[1]), side_of(relation[3]), relation[2]
        if left == right:
            return None
        return "tie" if sign in "=≈" else left if sign[0] in ">≫" else right
    return "tie" if _EVEN.fullmatch(name) else side_of(name)


# MT-Bench's and Arena-Hard's form: ``[[A]]``, ``[[B>>A]]``, ``[[tie]]``.
_BRACKETED = re.compile(r"(?P<named>\[\[[^\[\]\n]{1,42}\]\])")
_RELATION_LINE = pattern("relation_line", re.MULTILINE)


def _formal(text: str) -> Iterator[Statement[Vote]]:
    """Find ``[[A]]``, and ``A > B`` on a line of its own."""
    for match in (*_BRACKETED.finditer(text), *_RELATION_LINE.finditer(text)):
        if vote := _named(match["named"]):
            strength = Strength.BRACKETS if match.re is _BRACKETED else Strength.LABEL
            yield Statement(strength, *match.span("named"), vote)


_LABELLED = pattern("labelled_vote", re.IGNORECASE | re.MULTILINE)
_VERDICT_ENDS = pattern("after_vote")


def _labelled(text: str) -> Iterator[Statement[Vote]]:
    """Find ``Winner: Answer 2``, ``My vote goes to ①``."""
    for match in _LABELLED.finditer(text):
        # "Better for A ..." names what is better for whom; a vote is for somebody.
        gives = match["link"] != " for" or "vote" in match[0].casefold()
        names = gives and _VERDICT_ENDS.match(match["after"])
        vote: Vote | None = "tie" if match["even"] else _named(match["vote"]) if names else None
        if vote is not None and not _supposed(text, match.start()):
            yield Statement(Strength.LABEL, match.start(), match.start("after"), vote)


# SAMRE's binary pair: ``(1, 0)``.
_PAIR = re.compile(r"[(\[] ?(0|1|0?\.5)(?:\.0)? ?, ?(0|1|0?\.5)(?:\.0)? ?[)\]]")
# A label in front of a binary pair: ``Vote: (1, 0)``.
_PAIR_LABEL = in_any_case(rf"{one_of(WORDS['pair_labels'])}\W{{0,3}}\Z")


def _binary_pairs(text: str) -> Iterator[Statement[Vote]]:
    """Find ``(1, 0)``, alone or behind a label."""
    for pair in _PAIR.finditer(text):
        before = text[max(0, pair.start() - 20) : pair.start()].rpartition("\n")[2]
        left, right = float(pair[1]), float(pair[2])
        if left + right == 1 and (not before.strip(" -•") or _PAIR_LABEL.search(before)):
            vote: Vote = "1" if left > right else "2" if right > left else "tie"
            yield Statement(Strength.LABEL, *pair.span(), vote)


# --- sentences ------------------------------------------------------------------------------------------------------

_BETTER, _TIES = pattern("better"), pattern("ties")
# Words that make what follows a concession or a supposition: ``while ① is better at ...``.
_HYPOTHETICAL = in_any_case(rf"(?:\b{one_of(WORDS['concessions'])}\b|n't)[^.;,①②\n]{{0,40}}\Z")
_QUESTION = re.compile(r"[^.!?\n]{0,80}\?")
# Words with which a conclusion begins.
_CONCLUSION = in_any_case(rf"\b{one_of(WORDS['concludes'])}\b")
_SENTENCES = re.compile(r"(?<=[.!?]) |\n+")


def _supposed(text: str, at: int) -> bool:
    """Whether what stands at ``at`` is only supposed, denied or conceded in its clause."""
    return _HYPOTHETICAL.search(text[max(0, at - 60) : at]) is not None


def _sentences(text: str) -> Iterator[Statement[Vote]]:
    """Find ``Output (a) is better``, ``I prefer ②``, ``It is a tie``."""
    first_line = text.find("\n")
    for match in (*_BETTER.finditer(text), *_TIES.finditer(text)):
        at, end = match.span()
        # A group that ties have not.
        prefers = "chosen" in match.re.groupindex
        if _supposed(text, at) or (prefers and _QUESTION.match(text, end)):
            continue
        vote: Vote = "tie"
        if prefers:
            name = match["is"] or match["wins"] or match["chosen"] or match["follows"] or match["named"]
            worse = match["is_worse"] or match["loses"] or match["was_worse"]
            vote = "1" if (name == FIRST) != bool(worse) else "2"
        sentence = _SENTENCES.split(text[max(0, at - 160) : at])[-1]
        concludes = first_line < 0 or at < first_line or _CONCLUSION.search(sentence) is not None
        yield Statement(Strength.PHRASE if prefers else Strength.TIE, at, end, vote, conclusive=concludes)


_WHOLE_LINE = pattern("vote_line")


def _lines(text: str) -> Iterator[Statement[Vote]]:
    """Find a name, a letter or ``tie`` as the first line, with an explanation or without, or as the last line."""
    first, last = text.partition("\n")[0], text.rpartition("\n")[2]
    for at, line in ((0, first), (len(text) - len(last), last)):
        match = _WHOLE_LINE.fullmatch(line.strip()) if len(line) < 2000 else None
        # "1. The first answer ..." and "2. ..." number a list.
        if match is None or (match["vote"] in "12" and len(NUMBERED_LINE.findall(text)) > 1):
            continue
        explained = len(match["rest"]) > 1
        if explained and (at > 0 or (match["vote"] not in "①②" and match["rest"][0] not in ":.")):
            continue
        if vote := _named(match["vote"]):
            yield Statement(Strength.PHRASE, at, at + len(line), vote)


# A text that is more of something: ``② gives a clearer account``.
_MORE = in_any_case(rf"(?P<vote>[①②])(?P<between>[^.①②\n]{{0,60}}?)\b{one_of(WORDS['comparatives'])}\b")
_NEGATION = in_any_case(r"\b(?:not|no|never|neither|nor|less|hardly)\b|n't")


def _closing_comparison(text: str) -> Iterator[Statement[Vote]]:
    """Find the text of which alone the closing sentence says that it is more of something."""
    closing = _SENTENCES.split(text[-1000:].strip())[-1]
    if closing.endswith("?"):
        return
    comparisons = (match for match in _MORE.finditer(closing) if not _NEGATION.search(match["between"]))
    praised = {match["vote"] for match in comparisons if not _supposed(closing, match.start())}
    if len(praised) == 1 and (vote := _named(praised.pop())):
        at = text.rindex(closing)
        yield Statement(Strength.COMPARISON, at, at + len(closing), vote, conclusive="\n" not in text[:2000])
