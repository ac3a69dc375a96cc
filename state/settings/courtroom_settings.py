"""Define the settings of the courtroom protocols: one judge alone, MORE, SAMRE."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..checked import FilledText, parts
from .base_settings import Agents, Rounds, Settings

BACKGROUNDS = (
    "a retired ethics professor",
    "a young environmental activist",
    "a middle-aged business owner",
    "a social worker in community development",
    "a tech entrepreneur at home in AI",
)
"""The jurors' backgrounds unless the settings say otherwise (SAMRE, appendix C.3)."""


Backgrounds = Annotated[
    tuple[FilledText, ...], BeforeValidator(parts(";"), json_schema_input_type=list[FilledText])
]


class BaselineSettings(Settings):
    """Settings of the single judge (courtroom paper, Algorithm 3): those that every protocol has."""


class MoreSettings(Settings):
    """Settings of MORE (courtroom paper, sections 3.1 and 3.3)."""

    advocates: Agents = 3
    """Advocates for each answer."""
    rounds: Rounds = 1
    """Rounds held; the last one's scores decide."""
    aggregate: Literal["llm", "concat", "best"] = "llm"
    """What of a team's defences comes before the judge: one that a model makes of them, all of them, or the
    one that scores best when each is scored alone."""
    collaborate: bool = False
    """Whether advocates of one team read those of them who spoke before, and so speak in turn."""
    tau: float = Field(default=0.1, gt=0)
    """Temperature of the softmax weights that `aggregate=best` records; they decide nothing."""


class SamreSettings(Settings):
    """Settings of SAMRE (courtroom paper, section 3.2, appendix C.3).

    >>> SamreSettings(backgrounds="a farmer; a nurse").backgrounds
    ('a farmer', 'a nurse')
    """

    max_rounds: Rounds = 4
    """At most so many rounds."""
    jurors: int = Field(default=5, ge=0, le=100)
    """How many jurors vote; 0: the mean scores decide."""
    backgrounds: Backgrounds = Field(default=BACKGROUNDS, min_length=1)
    """Who the jurors are, in order, and again from the start where there are more of them (on a command line:
    separated by semicolons)."""
    ballot: Literal["vote", "score"] = "vote"
    """`vote`: a juror names the better answer; `score`: it scores both from 1 to 20, and sums count."""
    memory: Literal["full", "summary"] = "full"
    """What is remembered of earlier rounds: every word, or a summarizer's 50 words."""
