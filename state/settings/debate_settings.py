"""Define the settings of DEBATE and of its variant with a neutral Critic."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from ..checked import FilledText, shortened
from .base_settings import Rounds, Settings, explicitly_set

Persona = Literal["strict", "moderate", "weak", "plain", "sophisticated"]
PERSONAS: tuple[str, ...] = get_args(Persona)
LONGEST_PERSONA = 500
"""In characters; a longer one is a prompt, and belongs into a template."""
Fallback = Literal["last", "tie_breaker", "human"]


class DebateSettings(Settings):
    """Settings of DEBATE (Kim et al. 2024: section 2, Figure 2, appendices C, E.3).

    >>> DebateSettings(tie_breaker=True).fallback
    'tie_breaker'
    >>> DebateSettings(on_unresolved="human").over(DebateSettings(tie_breaker=True)).fallback
    'human'
    """

    n: Rounds = 4
    """At most so many rounds of criticism."""
    persona: Persona | Annotated[FilledText, Field(max_length=LONGEST_PERSONA)] = Field(
        default="strict", examples=["You are a nurse who looks for harm."]
    )
    """How critical the Critic is: a devil's advocate that is strict, moderate or weak, a plain (neutral)
    reviewer, or a sophisticated devil's advocate; or who else it is, in one line."""
    tie_breaker: bool = False
    """Short for `on_unresolved=tie_breaker`."""
    on_unresolved: Fallback = "last"
    """What decides when the Critic still objects after n rounds: the last score, a tie-breaker agent, or a
    human (the graph pauses)."""
    commander: Literal["relay", "llm"] = "relay"
    """`relay`: messages are passed on without a model call; `llm`: a model writes them."""
    termination: Literal["declared", "substring"] = "declared"
    """`declared`: NO ISSUE ends the debate where the Critic declares it; `substring`: wherever the words
    occur (the paper's literal test)."""
    on_overflow: Literal["last", "error"] = "error"
    """Where the debate no longer fits into a model's context: `last`: the last score stands, with a warning;
    `error`: there is no verdict."""

    @field_validator("persona", mode="before")
    @classmethod
    def _known_or_described(cls, persona: Any) -> Any:
        """Take a name, or a description: several words in one line, so that no misspelt name becomes a persona."""
        if not isinstance(persona, str) or persona in PERSONAS:
            return persona
        persona = persona.strip()
        if " " in persona and persona.isprintable() and len(persona) <= LONGEST_PERSONA:
            return persona
        close = difflib.get_close_matches(persona.lower(), PERSONAS, 1)
        known = ", ".join(map(repr, PERSONAS))
        raise ValueError(
            f"must be {known}, or several words in one line of at most {LONGEST_PERSONA} characters, such as "
            f"'You are a nurse who looks for harm.', got {shortened(persona)}"
            + (f"; did you mean {close[0]}?" if close else "")
        )

    @model_validator(mode="after")
    def _one_fallback(self) -> Self:
        if _contradict(explicitly_set(self)):
            raise ValueError(
                f"tie_breaker={str(self.tie_breaker).lower()} and on_unresolved={self.on_unresolved} contradict "
                "each other; give one of them"
            )
        return self

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Drop ``tie_breaker`` and ``on_unresolved`` of ``base`` where these settings contradict them.

        The two are names of one setting, so what is set here under one name must win over the other name in ``base``.
        """
        kept = super()._inherited(base)
        # Each side is consistent in itself, so a contradiction of both together comes from the mixture.
        if not _contradict({**kept, **explicitly_set(self)}):
            return kept
        return {name: value for name, value in kept.items() if name not in ("tie_breaker", "on_unresolved")}

    @property
    def fallback(self) -> Fallback:
        """The name of what decides an unresolved debate, from whichever of the two settings was given."""
        return "tie_breaker" if self.tie_breaker else self.on_unresolved


class MultiagentSettings(DebateSettings):
    """Settings of DEBATE with a Critic that is no devil's advocate (section 3, "MultiAgent")."""

    persona: Persona | Annotated[FilledText, Field(max_length=LONGEST_PERSONA)] = "plain"


def _contradict(given: Mapping[str, Any]) -> bool:
    """Tell whether both names of the one setting were given, and say different things."""
    both = "tie_breaker" in given and "on_unresolved" in given
    return both and given["tie_breaker"] != (given["on_unresolved"] == "tie_breaker")
