"""What one call brings along: who speaks (from its metadata) and what lies on the table (from its prompt)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..fences import Section
from .aspects import MEASURES, Piece, evidence, witnesses_of
from .measures import Case
from .reading import Qualities, Scale
from .texts import profile

_SPOKEN = re.compile(r"^(?P<agent>.+), round (?P<round>\d+)$")
_QUOTED = re.compile(r'"[^"\s]{1,40}"')


@dataclass(frozen=True, slots=True)
class Call:
    """Who the offline judge plays, and the form of the answer.

    ``index`` tells several agents of one role apart (the number that ends the agent's name, plus the number of
    the sample); ``side`` is the answer that an advocate stands for.
    """

    role: str
    agent: str
    round: int
    kind: str
    aspect: str
    scale: Scale
    form: str
    persona: str
    last: tuple[float, ...] | None
    index: int
    side: int

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Call:
        """Read the metadata of a call.

        Raises:
            ValueError: the metadata names no role.
        """
        role = _role(metadata)
        kind = str(metadata.get("kind") or "score")
        agent = str(metadata.get("agent") or role)
        index, side = _index_and_side(agent)
        return cls(
            role=role,
            agent=agent,
            round=int(metadata.get("round") or 0),
            kind=kind,
            aspect=str(metadata.get("aspect") or ""),
            scale=_scale(metadata, kind),
            form=str(metadata.get("form") or _usual_form(role, kind)),
            persona=str(metadata.get("persona") or "strict"),
            last=_numbers(metadata.get("last_value")),
            index=index + int(metadata.get("sample") or 0),
            side=int(metadata.get("side") or side),
        )


def _role(metadata: Mapping[str, Any]) -> str:
    if role := str(metadata.get("role") or ""):
        return role
    raise ValueError(
        "the offline judge answers only calls that name their role, "
        'as in config={"metadata": {"role": "scorer"}}'
    )


def _index_and_side(agent: str) -> tuple[int, int]:
    """``advocate_2_3`` is the third voice of answer 2, ``referee_4`` the fourth referee."""
    numbers = [int(n) for n in re.findall(r"\d+", agent)]
    return (numbers[-1] if numbers else 0), (numbers[0] if numbers and numbers[0] in (1, 2) else 1)


def _scale(metadata: Mapping[str, Any], kind: str) -> Scale:
    low, high = metadata.get("low"), metadata.get("high")
    usual_high = 5.0 if kind == "score" else 10.0
    scale = Scale(1.0 if low is None else float(low), usual_high if high is None else float(high))
    if scale.low >= scale.high:
        raise ValueError(f"a scale needs low < high, not low={scale.low:g}, high={scale.high:g}")
    return scale


def _usual_form(role: str, kind: str) -> str:
    if role in ("commander", "summarizer", "planner", "advocate", "aggregator"):
        return "text"
    return "critique" if role == "critic" else "pair" if kind == "compare" else "score"


def _numbers(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(float(v) for v in value) if isinstance(value, Sequence) else (float(value),)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A turn of the debate so far, as the prompt quotes it."""

    agent: str
    round: int
    text: str

    def names(self, piece: str) -> bool:
        """Whether it speaks of a piece of evidence; what it quotes from the texts does not count."""
        return piece in _QUOTED.sub(" ", self.text).lower()


class View:
    """All that an agent sees: the call, the evidence on the texts, and what was said before.

    Attributes:
        call: who speaks.
        log: the turns so far, in order.
    """

    def __init__(self, call: Call, sections: Iterable[Section]) -> None:
        self.call = call
        self._texts: dict[str, str] = {}
        spoken = []
        for label, text in sections:
            if match := _SPOKEN.match(label):
                spoken.append(Spoken(match["agent"], int(match["round"]), text))
            else:
                self._texts.setdefault(label, text)
        self.log = tuple(spoken)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All evidence on what is to be judged.

        Raises:
            ValueError: the prompt holds no fenced text to be judged.
        """
        aspect = "answers" if self.call.kind == "compare" else self.call.aspect
        return evidence(self._cases(), witnesses_of(aspect))

    @property
    def width(self) -> int:
        """How many texts are judged at once."""
        return 2 if self.call.kind == "compare" else 1

    @property
    def last(self) -> Qualities | None:
        """The latest score as qualities, where there is one of the right shape."""
        last = self.call.last
        return tuple(map(self.call.scale.quality, last)) if last and len(last) == self.width else None

    def values(self, qualities: Qualities) -> tuple[float, ...]:
        """The numbers that say these qualities."""
        return tuple(map(self.call.scale.value, qualities))

    def said_by(self, role: str) -> tuple[Spoken, ...]:
        """The turns of one role (``critic``; also ``referee_1`` and ``referee_2`` for ``referee``)."""
        return tuple(turn for turn in self.log if turn.agent.rstrip("_0123456789") == role)

    def cited(self, turns: Iterable[Spoken]) -> tuple[Piece, ...]:
        """The pieces of evidence that these turns speak of."""
        held = list(turns)
        return tuple(p for p in self.pieces if any(turn.names(p.name) for turn in held))

    def topics(self, turns: Iterable[Spoken]) -> list[str]:
        """Names of all evidence that these turns speak of, in the order in which it first came up."""
        found: dict[str, None] = {}
        for turn in turns:
            found |= dict.fromkeys(name for name in MEASURES if turn.names(name))
        return list(found)

    def _cases(self) -> list[Case]:
        texts = self._texts
        wanted = ["answer 1", "answer 2"] if self.call.kind == "compare" else ["candidate"]
        if missing := [label for label in wanted if label not in texts]:
            raise ValueError(
                f"the offline judge found no fenced {' and no fenced '.join(missing)} in the prompt"
            )
        fact = texts.get("reference") if self.call.kind == "compare" else texts.get("fact")
        source = texts.get("question", "") if self.call.kind == "compare" else texts.get("source", "")
        return [
            Case(
                profile(texts[label]),
                profile(source),
                None if fact is None else profile(fact),
                "the candidate" if label == "candidate" else label,
            )
            for label in wanted
        ]
