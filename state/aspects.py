"""Define an aspect of quality and its scale, and the ready-made aspects of SummEval, Topical-Chat and HANNA.

Names and scales are those of the benchmarks (Fabbri et al. 2021; Mehri and Eskenazi 2020, as used in
DEBATE, section 3 and appendix E.5; Chhun et al. 2022); criteria and steps are in our own words. A bare name that
several benchmarks share means SummEval's.
"""

from __future__ import annotations

import difflib
from functools import partial
from typing import ClassVar

from pydantic import ConfigDict, Field, model_validator

from .checked import Checked, FilledText

LONGEST_NAME = 80


class Aspect(Checked):
    """One aspect of quality and the scale it is rated on.

    >>> Aspect(name="wit", criteria="Does the text amuse?", low=1, high=5).label
    'wit (1 to 5)'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    called: ClassVar[str] = "an aspect"

    name: FilledText = Field(description="The aspect's name, as reports print it.")
    criteria: FilledText = Field(description="What makes a text good in this respect.")
    low: float = Field(default=1, description="The lowest score.")
    high: float = Field(default=5, description="The highest score.")
    steps: tuple[FilledText, ...] = Field(
        default=(), description="How to arrive at a score, step by step (optional)."
    )
    source_name: str = Field(default="source", description="What the source is: `news article`, `dialogue`.")
    candidate_name: str = Field(default="text", description="What the candidate is: `summary`, `response`.")

    @model_validator(mode="after")
    def _fits_into_prompts(self) -> Aspect:
        # They stand in the middle of sentences of the prompts, outside every fence.
        for field in ("name", "source_name", "candidate_name"):
            value = getattr(self, field)
            if len(value) > LONGEST_NAME or not value.isprintable():
                raise ValueError(
                    f"{field} must be one line of at most {LONGEST_NAME} characters, got {value[:50]!r}"
                )
        check_scale(self.low, self.high)
        return self

    @property
    def label(self) -> str:
        """The aspect's name and scale, as reports and prompts show them."""
        return f"{self.name} ({self.low:g} to {self.high:g})"


def check_scale(low: float, high: float) -> None:
    """Check that a scale runs upwards.

    Raises:
        ValueError: it does not.
    """
    if not low < high:
        raise ValueError(f"low must be below high, got low={low:g} and high={high:g}")


def find_aspect(name: str) -> Aspect:
    """Look up a ready-made aspect by ``benchmark/name``, or by the bare name, in any case.

    Raises:
        ValueError: no such aspect; the message lists the known ones.

    >>> find_aspect("topical-chat/coherence").high
    3.0
    """
    key = name.strip().lower()
    # The order decides whose aspect a bare name means where several benchmarks have it.
    for prefix in ("", "summeval/", "topical-chat/", "hanna/"):
        if (aspect := ASPECTS.get(prefix + key)) is not None:
            return aspect
    close = difflib.get_close_matches(key, [*ASPECTS, *(full.partition("/")[2] for full in ASPECTS)], n=1)
    meant = f"; did you mean {close[0]}?" if close else ";"
    raise ValueError(
        f"unknown aspect {name!r}{meant} known are {', '.join(ASPECTS)}; or give a whole aspect of your own"
    )


def full_names(bare: str) -> list[str]:
    """Return the full names of the ready-made aspects with this bare name.

    >>> full_names("relevance")
    ['summeval/relevance', 'hanna/relevance']
    """
    return [full for full in ASPECTS if full.partition("/")[2] == bare]


def _aspect(
    source: str, candidate: str, low: float, high: float, name: str, criteria: str, *steps: str
) -> Aspect:
    texts = {"source_name": source, "candidate_name": candidate}
    return Aspect(name=name, criteria=criteria, low=low, high=high, steps=steps, **texts)


_summary = partial(_aspect, "news article", "summary", 1, 5)
_story = partial(_aspect, "writing prompt", "story", 1, 5)


def _response(name: str, low: float, high: float, criteria: str, *steps: str) -> Aspect:
    return _aspect("dialogue so far", "next response", low, high, name, criteria, *steps)


# In the order in which lists of them are shown; a bare name that two benchmarks share is settled by ``find_aspect``.
ASPECTS: dict[str, Aspect] = {
    "summeval/coherence": _summary(
        "coherence",
        "How well the sentences of the summary hold together as one text. A coherent summary has an order a "
        "reader can follow: each sentence leads on to the next and all of them build one account of the "
        "subject. A loose heap of facts, however true, is not coherent.",
        "Find out what the article is about and which points carry it.",
        "Follow the summary from sentence to sentence: does each connect to what came before, and does the "
        "order make sense?",
        "Give 1 to a heap of unconnected statements and 5 to a text that reads as one well-built whole.",
    ),
    "summeval/consistency": _summary(
        "consistency",
        "Whether the summary agrees with the article in its facts. Everything that a consistent summary states "
        "is supported by the article; it neither contradicts the article nor adds claims of its own.",
        "List the claims that the summary makes: names, numbers, events and who did what.",
        "Look for each claim in the article; mark those that it contradicts or does not support.",
        "Give 5 where every claim is supported, less for each claim that is not, and 1 where most are not.",
    ),
    "summeval/fluency": _summary(
        "fluency",
        "The quality of the single sentences: grammar, spelling, punctuation, capital letters, choice of words "
        "and sentence structure. Nothing should make a sentence hard to read.",
        "Read the summary sentence by sentence, leaving its content aside.",
        "Note mistakes and formatting faults, and how far each of them gets in a reader's way.",
        "Give 1 where mistakes make the text hard to understand and 5 where there are hardly any.",
    ),
    "summeval/relevance": _summary(
        "relevance",
        "Whether the summary picks what matters. It should hold the important content of the article and only "
        "that, without padding, side issues or the same thing said twice.",
        "Decide which points of the article a reader must know.",
        "Check which of them the summary holds, and what else it spends its words on.",
        "Give 1 where it misses the point or is mostly padding and 5 where it holds what matters and no more.",
    ),
    "topical-chat/naturalness": _response(
        "naturalness",
        1,
        3,
        "Whether the response is something that a person would naturally say at this point of the dialogue.",
        "Read the dialogue and imagine the person who answers.",
        "Judge wording and tone of the response: would somebody really put it so?",
        "Give 1 for an unnatural response, 2 for a somewhat natural one and 3 for one that sounds like a person.",
    ),
    "topical-chat/coherence": _response(
        "coherence",
        1,
        3,
        "Whether the response is a fitting continuation of the dialogue: it takes up what has been said and "
        "stays with the subject or leaves it in an understandable way.",
        "Note what the last turns are about and what they ask for.",
        "Check whether the response takes that up.",
        "Give 1 where it ignores the dialogue, 2 where it loosely refers to it and 3 where it follows on from it.",
    ),
    "topical-chat/engagingness": _response(
        "engagingness",
        1,
        3,
        "Whether the response is interesting: it brings in a thought, a fact or a question that makes the other "
        "person want to go on, rather than something dull or general.",
        "Read the dialogue and the fact that the response could draw on.",
        "Ask what the response adds and whether it invites an answer.",
        "Give 1 for a dull response, 2 for a somewhat interesting one and 3 for an interesting one.",
    ),
    "topical-chat/groundedness": _response(
        "groundedness",
        0,
        1,
        "Whether the response makes use of the given fact: it states the fact, or something that plainly "
        "depends on knowing it.",
        "Read the fact and keep its content in mind.",
        "Look for that content in the response, in whatever words.",
        "Give 1 where the response uses the fact and 0 where it does not.",
    ),
    "topical-chat/understandability": _response(
        "understandability",
        0,
        1,
        "Whether the response can be understood, given the dialogue before it: a reader knows what it says, "
        "even if it is clumsy or wrong.",
        "Read the response after the dialogue.",
        "Say in your own words what it means.",
        "Give 1 where that can be done and 0 where the meaning stays unclear.",
    ),
    "hanna/relevance": _story(
        "relevance",
        "How well the story answers its prompt: it takes up the situation, the people and the turn that the prompt "
        "gives, rather than telling something else.",
        "Note what the prompt asks for.",
        "Look for each of these points in the story, and for what has nothing to do with them.",
        "Give 1 to a story that could stand under any prompt and 5 to one that is plainly an answer to this one.",
    ),
    "hanna/coherence": _story(
        "coherence",
        "How much sense the story makes from beginning to end: who acts, where and why stays clear, one event leads "
        "to the next, and nothing contradicts what was told before.",
        "Retell the story to yourself in a few sentences.",
        "Note where people, places or events appear, change or vanish without a reason.",
        "Give 1 where no story can be followed and 5 where everything fits together.",
    ),
    "hanna/empathy": _story(
        "empathy",
        "How well a reader can feel with the people in the story: their feelings show, have reasons, and move "
        "somebody who reads of them.",
        "Find out what each person in the story wants, fears or feels.",
        "Judge whether the story lets a reader share that, or only names it, or leaves it out.",
        "Give 1 where the people leave a reader cold and 5 where one lives through it with them.",
    ),
    "hanna/surprise": _story(
        "surprise",
        "How little the story's course, and above all its end, could be foreseen, while it still makes sense "
        "afterwards.",
        "Stop in the middle and guess how the story will end.",
        "Compare the guess with the end, and ask whether that end follows from what was told.",
        "Give 1 where everything comes as expected, or only at random, and 5 to an unforeseen turn that fits.",
    ),
    "hanna/engagement": _story(
        "engagement",
        "How far the story draws its reader in: one wants to know how it goes on and does not wish to stop.",
        "Read the story as somebody who came across it would.",
        "Note where attention is caught and where it slackens.",
        "Give 1 where one would stop after the first lines and 5 where one would gladly read more.",
    ),
    "hanna/complexity": _story(
        "complexity",
        "How elaborate the story is: the number and depth of its people, places, events and thoughts, and how they "
        "are interwoven.",
        "List who and what occurs in the story, and what is told of each.",
        "Judge how much of it is worked out, and how it is connected.",
        "Give 1 to a bare sketch and 5 to a rich story with several threads.",
    ),
}
"""Ready-made aspects by ``benchmark/name``."""
