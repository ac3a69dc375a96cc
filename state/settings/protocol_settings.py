"""Define the settings of the bundled protocols, one class for each: DEBATE; ChatEval and its
baselines; G-Eval and FairEval; the courtroom protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..checked import Checked, FilledText, did_you_mean, parts, shortened
from ..word_files import words_beside
from .base_settings import Agents, Rounds, Samples, Settings, explicitly_set

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
        known = ", ".join(map(repr, PERSONAS))
        raise ValueError(
            f"must be {known}, or several words in one line of at most {LONGEST_PERSONA} characters, such as "
            f"'You are a nurse who looks for harm.', got {shortened(persona)}"
            + did_you_mean(persona, PERSONAS, cutoff=0.6)
        )

    @model_validator(mode="after")
    def _one_fallback(self) -> Self:
        if _contradict(explicitly_set(self)):
            both = f"tie_breaker={str(self.tie_breaker).lower()} and on_unresolved={self.on_unresolved}"
            raise ValueError(f"{both} contradict each other; give one of them")
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


_PEOPLE = words_beside(__file__, "people.toml")
GROUPS: dict[str, tuple[str, ...]] = {name: tuple(roles.split()) for name, roles in _PEOPLE["groups"].items()}
"""The roles of each group of referees (Chan et al. 2024, section 4.1 and appendix A), in speaking order."""

# Some roles are in several groups; each is listed once.

ROLES = tuple(dict.fromkeys(role for group in GROUPS.values() for role in group))
SAME = "same"
AUTO = "auto"
ROLE_FILES = (".yaml", ".yml")


class PositionSettings(Settings):
    """Settings of a protocol that can run a comparison in both orders of the answers."""

    position_calibration: bool = True
    """Compare two answers in both orders and average; a score task has one order only."""


class SingleSettings(PositionSettings):
    """Settings of the single scorer (Chan et al. 2024, section 3.3)."""


class Role(Checked):
    """A referee's role of your own: a name and a description."""

    called: ClassVar[str] = "a role"

    name: FilledText
    """What the referee is called."""
    description: FilledText
    """Who the referee is and what it looks at."""


class RefereeSettings(PositionSettings):
    """Settings of a protocol with several referees."""

    referees: Agents = 2
    """How many referees; where an expert group or a list of roles is given: all of them."""
    roles: str | tuple[str | Role, ...] = Field(
        default="diverse", examples=[["critic", {"name": "Nurse", "description": "You look after patients."}]]
    )
    """Who the referees are: the first of the five personas (`diverse`), neutral annotators (`same`), personas
    that a model writes for each question (`auto`), an expert group (`generic`, `knowledge`, `writing`,
    `coding`), a list of known roles or of roles of your own, or a YAML file with such a list."""

    @field_validator("roles", mode="before")
    @classmethod
    def _split(cls, roles: Any) -> Any:
        """Turn `critic,scientist` into a list; a group, a file or a list passes through."""
        if not isinstance(roles, str) or roles.endswith(ROLE_FILES):
            return roles
        names = [name.strip() for name in roles.split(",")]
        # A single name is a role (a list of one) or a group; ``critic`` is the former.
        return names if len(names) > 1 or names[0] in ROLES else names[0]

    @field_validator("roles", mode="after")
    @classmethod
    def _known(cls, roles: str | tuple[str | Role, ...]) -> str | tuple[str | Role, ...]:
        if isinstance(roles, str):
            if roles not in (*GROUPS, SAME, AUTO) and not roles.endswith(ROLE_FILES):
                known = f"groups are {', '.join(GROUPS)}, {SAME} and {AUTO}, roles are {', '.join(ROLES)}"
                remedy = "or give the name of a YAML file, or a list"
                raise ValueError(f"{roles!r} is not a group of referees; {known}; {remedy}")
            return roles
        if not roles:
            raise ValueError("the list of roles is empty")
        for role in roles:
            if isinstance(role, str) and role not in ROLES:
                known = f"known are {', '.join(ROLES)}"
                raise ValueError(f"unknown role {role!r}; {known}; or give name and description")
        return roles

    @model_validator(mode="after")
    def _match_number_to_roles(self) -> Self:
        # Any number is possible, or a file is yet to be read, where there are no names.
        group = GROUPS.get(self.roles) if isinstance(self.roles, str) else self.roles
        if group is None:
            return self
        names, given = [role.name if isinstance(role, Role) else role for role in group], explicitly_set(self)
        if not isinstance(self.roles, str) and "referees" in given and self.referees != len(names):
            raise ValueError(f"referees={self.referees}, but {len(names)} roles are listed; give one of them")
        if "referees" not in given and self.roles != "diverse":
            # Set, so that the settings say how many referees there are. The model is frozen, but nobody holds it yet.
            object.__setattr__(self, "referees", len(names))
            self.model_fields_set.add("referees")
        if self.referees > len(names):
            known = f"there are only {len(names)} in {self.roles}: {', '.join(names)}"
            remedy = f"list roles of your own, or use roles={SAME}"
            raise ValueError(f"referees={self.referees}, but {known}; {remedy}")
        return self

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Drop the number of referees in ``base`` where a list or a group with its own number is set here."""
        kept, given = super()._inherited(base), explicitly_set(self)
        if "roles" in given and self.roles not in ("diverse", SAME, AUTO) and "referees" not in given:
            # ``diverse``, ``same`` and ``auto`` allow for any number, so a number that was bound still fits them.
            kept.pop("referees", None)
        return kept


RefereeSettingsT = TypeVar("RefereeSettingsT", bound=RefereeSettings)


class EnsembleSettings(RefereeSettings):
    """Settings of the ensemble: referees with roles who do not discuss (Chan et al. 2024, section 3.2)."""

    referees: Agents = 3


class ChatEvalSettings(RefereeSettings):
    """Settings of ChatEval (Chan et al. 2024: sections 2, 3.3 and 4, appendices A to C).

    >>> ChatEvalSettings(roles=["critic", "scientist", "critic"]).referees
    3
    """

    turns: Rounds = 2
    """How often every referee speaks: the number of rounds."""
    strategy: Literal["one_by_one", "simultaneous", "summarizer"] = "one_by_one"
    """`one_by_one`: the referees speak in a fixed order and read all that was said before; `simultaneous`:
    all at once, reading earlier turns only; `summarizer`: the same, and each turn is summed up."""
    summary: Literal["replace", "append"] = "replace"
    """Whether a summary replaces what the referees are shown of the discussion, or is added to it."""
    summarize_last: bool = False
    """Sum up the last turn as well, though no referee reads it."""
    score_each_turn: bool = False
    """Ask for scores in every turn; otherwise in the last one only."""


def _steps(value: Any) -> Any:
    """Split a line at semicolons (from a command line) or a text into lines (from a form, which may send null)."""
    return () if value is None else parts(";\n")(value)


Steps = Annotated[tuple[FilledText, ...], BeforeValidator(_steps, json_schema_input_type=list[FilledText])]


class GEvalSettings(Settings):
    """Settings of G-Eval (Liu et al. 2023, section 2).

    >>> GEvalSettings(steps="Read both texts; Give a score").steps
    ('Read both texts', 'Give a score')
    """

    weighting: Literal["auto", "logprobs", "sampling"] = "auto"
    """Where the probabilities of the scores come from: `logprobs` (of tokens), `sampling` (several replies),
    or `auto`: log-probabilities where the model returns them, else samples."""
    samples: Samples = 20
    """How many replies, where they are sampled."""
    steps: Steps = ()
    """The evaluation steps (on a command line: separated by semicolons); none: the planner writes them from
    the aspect's criteria, once a run."""


class FairEvalSettings(PositionSettings):
    """Settings of FairEval (Wang et al. 2024, section 3)."""

    k: Samples = 3
    """How many judgements, evidence first, for each order."""


BACKGROUNDS: tuple[str, ...] = tuple(_PEOPLE["jurors"]["backgrounds"])
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
