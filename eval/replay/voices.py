"""Who says what in a verdict: what tells one recorded reply from another, and which of them a call asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_core.runnables.config import var_child_runnable_config

from ...nodes.models.call import Call


class Voice(NamedTuple):
    """One contribution to a verdict, as the turns of a transcript name it (see ``Turn``).

    ``sample`` is 0 where the agent was asked once; ``repeat`` counts the runs inside a repeated protocol.
    """

    agent: str
    round: int
    sample: int = 0
    order: int = 1
    repeat: int = 0
    stage: str = ""

    def __str__(self) -> str:
        parts = [self.agent, f"round {self.round}"]
        parts += [f"sample {self.sample}"] if self.sample else []
        parts += ["answers swapped"] if self.order == 2 else []
        parts += [f"run {self.repeat + 1}"] if self.repeat else []
        parts += [f"{self.stage} stage"] if self.stage else []
        return ", ".join(parts)


class Said(NamedTuple):
    """The words of a reply, and the name of the model that wrote them, where it is known."""

    text: str
    model: str | None


Recorded = Mapping[Voice, Sequence[Said]]
"""What was said in one verdict; a voice that spoke several times in a round has its replies in order."""


class Asked(NamedTuple):
    """The voice that a call asks for.

    ``nth`` is above 0 where a calibrated protocol is held in both orders inside another one that is: the turns of
    such a transcript share their names two by two.
    """

    voice: Voice
    nth: int


def asked_for(call: Call) -> Asked:
    """Whose reply a call wants; order, stage and repeat are told by where in the graph it was made."""
    config = var_child_runnable_config.get() or {}
    marks = config.get("metadata") or {}
    nodes = [part.partition(":")[0] for part in str(marks.get("langgraph_checkpoint_ns", "")).split("|")]
    flips = [name == "swapped" for name in nodes if name in ("straight", "swapped")]
    about = call.metadata
    voice = Voice(
        agent=str(about["agent"]),
        round=int(about["round"]),
        sample=int(about.get("sample", 0)),
        order=1 + sum(flips) % 2,
        repeat=int(marks.get("repeat", 0)),
        stage=".".join(name for name in nodes if name in ("cheap", "expensive")),
    )
    return Asked(voice, sum(flip << place for place, flip in enumerate(reversed(flips[:-1]))))


_ALIKE = {0: (0, 1), 1: (1, 0)}


def found(recorded: Recorded, voice: Voice, nth: int) -> Said | None:
    """The recorded reply of a voice, the ``nth`` of several; ``None`` where there is none.

    One reply that was asked for alone and the first of several samples stand for each other.

    >>> said = Said("Score: 4", None)
    >>> found({Voice("scorer", 1): [said]}, Voice("scorer", 1, sample=1), 0) == said
    True
    >>> found({Voice("scorer", 1): [said]}, Voice("scorer", 1, sample=2), 0) is None
    True
    """
    for sample in _ALIKE.get(voice.sample, (voice.sample,)):
        if replies := recorded.get(voice._replace(sample=sample)):
            return replies[nth] if nth < len(replies) else None
    return None
