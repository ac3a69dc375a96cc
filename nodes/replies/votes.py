"""Reads which of two texts a reply prefers.

Forms, each alone on its line: ``[[A]]``, ``[[B>>A]]``, ``[[C]]`` for a tie; ``Winner: 1``, ``Vote:
answer 2``; SAMRE's binary pair, ``(1, 0)``; a name, ``Answer 1``; ``Tie``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from .json_fields import Field
from .rules import Rule, vote_by_rule
from .shown import NOTHING, Shown
from .statements import LineGrammar, bare, stated_value
from .vocabulary import NOUN, SIDE, WORDS, Side, alternatives, labels_of, side_of

Vote = Literal["1", "2", "tie"]


def read_vote(text: str, *, shown: Shown = NOTHING, rule: Rule | None = None) -> Vote:
    """Return which text the reply prefers: ``"1"``, ``"2"`` or ``"tie"``.

    Args:
        text: the raw reply.
        shown: the texts that the judge was shown; text repeated from them does not count.
        rule: the rule for a recorded reply to another prompt, which replaces the grammar.

    Raises:
        ReplyError: the reply is empty, gives no verdict or two, refuses or breaks off, or
            everything it states may be repeated from a shown text.

    >>> read_vote("Both are fluent.\\nMy final verdict is: [[B>>A]]")
    '2'
    >>> read_vote("Output (b) is brief.\\nOutput (a)")
    '1'
    """
    return stated_value(text, shown, Votes()) if rule is None else vote_by_rule(text, rule)


_NAMED = re.compile(rf"(?:the\ )?{NOUN}[ _]?(?P<side>{SIDE})", re.IGNORECASE)
# A>B, B << A, A=B
_RELATION = re.compile(
    rf"(?:{NOUN} )?({SIDE}) ?(>{{1,2}}|<{{1,2}}|=|≈|≫|≪) ?(?:{NOUN} )?({SIDE})", re.IGNORECASE
)
_BINARY = re.compile(r"(0|1|0?\.5)(?:\.0)? ?, ?(0|1|0?\.5)(?:\.0)?")
_TIE = re.compile(rf"(?:an? )?{alternatives(WORDS['vote']['ties'])}|c", re.IGNORECASE)
_KEYS = frozenset([
    *("winner", "vote", "verdict", "choice", "preference", "preferred", "better", "best", "decision", "answer"),
    *("result", "judgment", "judgement", "selection", "final_verdict", "final_answer", "better_answer"),
    "better_response",
])  # fmt: skip
_LABEL = alternatives(WORDS["vote"]["labels"])
# The labels with hardly any other meaning.
_PLAIN_LABEL = r"(?:vote|winner|verdict|decision|choice|preference|correction|erratum)"
# A label with a name after it, in the middle of other words: ``Sorry, I meant Vote: 2``.
_MENTION = re.compile(
    rf"""
    (?<![^\W\d_]){_LABEL}[*_\ ]{{0,3}}[:=][*_\ ]{{0,3}}[\[(]{{0,2}}(?:{NOUN}\ ?)?(?P<linked>[12ab])\b
  | \b{_PLAIN_LABEL}\b(?:(?!{_PLAIN_LABEL})[^\n.;!?]){{1,40}}?\b{NOUN}\ [(]?(?P<near>[12ab])\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Votes(LineGrammar[Vote]):
    """The forms of a preference for one of two texts."""

    what: ClassVar[str] = "verdict"

    def names(self, label: tuple[str, ...]) -> bool:
        return label in labels_of("vote")

    def value(self, text: str, *, labelled: bool) -> Vote | None:
        return vote_of(text)

    def disagrees(self, line: str, value: Vote) -> re.Match[str] | None:
        return next(
            (m for m in _MENTION.finditer(line) if side_of(m["linked"] or m["near"]) != value), None
        )

    def from_fields(self, entries: Sequence[Field]) -> list[Vote]:
        named = [
            entry.value
            for entry in entries
            if entry.name in _KEYS and type(entry.value) in (int, str)
        ]
        votes = [vote for name in named if (vote := vote_of(bare(str(name)[:60].strip(" ."))))]
        # SAMRE's binary pair, under any keys.
        numbers = [entry.value for entry in entries if type(entry.value) is int]
        if len(entries) == 2 and sorted(numbers) == [0, 1]:
            votes.append("1" if numbers[0] else "2")
        return votes


def vote_of(text: str) -> Vote | None:
    """Return the vote that a short text without brackets consists of; None for anything else.

    >>> vote_of("A"), vote_of("Output (b)"), vote_of("A>>B"), vote_of("0, 1"), vote_of("tie"), vote_of("A or B")
    ('1', '2', '1', '2', 'tie', None)
    """
    named = _NAMED.fullmatch(text)
    if side := side_of(named["side"] if named else text):
        return side
    if relation := _RELATION.fullmatch(text):
        return _of_relation(side_of(relation[1]), relation[2], side_of(relation[3]))
    if binary := _BINARY.fullmatch(text):
        return _of_binary(float(binary[1]), float(binary[2]))
    return "tie" if _TIE.fullmatch(text) else None


def _of_relation(left: Side | None, sign: str, right: Side | None) -> Vote | None:
    if left == right:
        return None
    return "tie" if sign in "=≈" else left if sign[0] in ">≫" else right


def _of_binary(first: float, second: float) -> Vote | None:
    if first + second != 1:
        return None
    return "1" if first > second else "2" if second > first else "tie"
