"""Read which of two texts a reply prefers.

Forms, strongest first: a verdict in double brackets; a labelled verdict, a binary pair or a relation such as
``A>B``; a sentence that says which is better, or a name on a line of its own; a tie; a comparative in the closing
sentence. The last statement of the strongest form present is the vote. Naming both texts is no verdict.

The bracket forms are those of MT-Bench and Arena-Hard judges, the binary pair that
of SAMRE's jurors.
"""

from __future__ import annotations

from collections.abc import Iterator

from .faults import breaks_off, contradictory, unreadable
from .markup import unmarked
from .names import marked
from .structured import Field, closing_fields, fields
from .text import own_words, plain
from .verdicts import BRACKETS, Ballot, Vote, ballots, named

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
_FIELD = BRACKETS + 1


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
    cast = list(_from_fields(entries) if entries is not None else _from_words(words))
    held = [ballot for ballot in cast if ballot.conclusive] if breaks_off(text) else cast
    if not held:
        raise unreadable(text, words, "verdict", cut_off=cut_off or bool(cast))
    strongest = max(ballot.strength for ballot in held)
    finalists = sorted(
        (ballot for ballot in held if ballot.strength == strongest), key=lambda ballot: ballot.at
    )
    if strongest >= BRACKETS:
        for ballot in finalists:
            if ballot.vote != finalists[-1].vote:
                raise contradictory(text, ballot.vote, finalists[-1].vote, "verdict")
    return finalists[-1].vote


def _from_words(words: str) -> Iterator[Ballot]:
    closing = closing_fields(words)
    if closing is not None:
        yield from _from_fields(closing[1])
    yield from ballots(marked(words))


def _from_fields(entries: list[Field]) -> Iterator[Ballot]:
    for entry in entries:
        if entry.name in _KEYS and isinstance(entry.value, str | int) and not isinstance(entry.value, bool):
            vote = named(marked(str(entry.value)[:60]))
            if vote is not None:
                yield Ballot(_FIELD, 0, vote)
    numbers = [
        entry.value for entry in entries if isinstance(entry.value, int) and not isinstance(entry.value, bool)
    ]
    if len(entries) == 2 and sorted(numbers) == [0, 1]:
        yield Ballot(_FIELD, 0, "1" if numbers[0] else "2")
