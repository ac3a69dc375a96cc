"""Sentences that the roles share. No sentence has a colon before a number: values stand on the last line only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .aspects import Piece
from .reading import Qualities


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent says: its prose, and of the rest what its form asks for.

    Attributes:
        prose: the reasons, the objection, or the whole message.
        values: one score, or one for each answer.
        no_issue: whether a critic declares that there is nothing to object to.
        winner: ``"1"`` or ``"2"`` of a vote.
    """

    prose: str
    values: tuple[float, ...] = ()
    no_issue: bool = False
    winner: str = ""


def told(piece: Piece) -> str:
    """A piece of evidence as one sentence.

    >>> told(Piece("substance", 1, True, (0.5,), ("the candidate offers 6 content words",)))
    'On substance, the candidate offers 6 content words.'
    """
    return f"On {piece.name}, {' while '.join(piece.words)}."


def spoken_values(values: Sequence[float]) -> str:
    """Numbers inside a sentence.

    >>> spoken_values((4.0,)), spoken_values((8.0, 6.5))
    ('4', '8 and 6.5')
    """
    return " and ".join(f"{v:g}" for v in values)


def strongest(pieces: Iterable[Piece], most: int = 2) -> list[Piece]:
    """The pieces that weigh most and are farthest from the middle (or set the two answers most apart)."""
    return sorted(pieces, key=lambda p: -p.weight * _distance(p.qualities))[:most]


def _distance(qualities: Qualities) -> float:
    return abs(qualities[0] - (0.5 if len(qualities) == 1 else qualities[1]))


def standing(qualities: Qualities) -> str:
    """Where on the scale that is, in words.

    >>> standing((0.9,)), standing((0.3, 0.7))
    ('near the top of the scale', 'answer 2 ahead of answer 1')
    """
    if len(qualities) == 2:
        gap = round(qualities[0] - qualities[1], 6)
        ahead = "answer 1 ahead of answer 2" if gap > 0 else "answer 2 ahead of answer 1"
        return ahead if gap else "both answers level"
    places = ["near the bottom", "in the lower part", "in the middle", "in the upper part", "near the top"]
    return f"{places[min(4, int(qualities[0] * 5))]} of the scale"


def listed(names: Sequence[str]) -> str:
    """Names in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shortened(text: str, most: int) -> str:
    """At most so many words.

    >>> shortened("one two three", 2)
    'one two ...'
    """
    words = text.split()
    return text if len(words) <= most else f"{' '.join(words[:most])} ..."
