"""The settings of the bundled protocols, one class each.

DEBATE comes first, then ChatEval and its baselines, G-Eval and FairEval, and the courtroom
protocols.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..aggregation import Combination
from ..checked import Checked, did_you_mean, parts, shortened
from ..panels import Quorum
from .base_settings import (
    Agents,
    ModelName,
    ModelSpec,
    Rounds,
    Samples,
    Settings,
    explicitly_set,
)
from .caller_rules import ForCallers, PromptText, one_of
from .option_types import TypedAs
from .tool_settings import ToolSettings

Persona = Literal["strict", "moderate", "weak", "plain", "sophisticated"]
PERSONAS: tuple[str, ...] = get_args(Persona)
LONGEST_PERSONA = 500
"""In characters; a longer persona is a prompt, and belongs in a template."""
PersonaOrText = Annotated[
    Persona | Annotated[PromptText, Field(max_length=LONGEST_PERSONA)], TypedAs("Persona | OwnText")
]
Fallback = Literal["last", "tie_breaker", "human"]

StopRule = Literal["decided", "stable", "predicted"]
"""The rules that end a vote or a debate early; each protocol knows some of them."""

Tokens = Annotated[int, Field(ge=1)]
Risk = Annotated[float, Field(gt=0, lt=1)]


_LISTED = BeforeValidator(parts(","), json_schema_input_type=list[StopRule])
_TYPED_STOPS = TypedAs("StopRule | Sequence[StopRule]")
StopsOfPanel = Annotated[tuple[Literal["decided"], ...], _LISTED, _TYPED_STOPS]
StopsOfDebate = Annotated[tuple[Literal["stable"], ...], _LISTED, _TYPED_STOPS]
StopsOfCourt = Annotated[tuple[StopRule, ...], _LISTED, _TYPED_STOPS]

Prior = Annotated[
    tuple[
        Annotated[float, Field(gt=0, allow_inf_nan=False)],
        Annotated[float, Field(gt=0, allow_inf_nan=False)],
    ],
    BeforeValidator(parts(","), json_schema_input_type=list[float]),
    TypedAs("str | Sequence[float]"),
]


def _refuse_unused(settings: Settings, names: Collection[str], needs: str) -> None:
    """Refuse settings that have no effect without another one."""
    fields = type(settings).model_fields
    for name in names:
        if getattr(settings, name) != fields[name].default:
            raise ValueError(f"{name} has no effect without {needs}; leave it out, or add {needs}")


MOST_AUTO_ROUNDS = 4
"""The maximum number of rounds with ``n="auto"``: the best fixed number in Kim et al. 2024."""


class DebateSettings(ToolSettings):
    """Settings of DEBATE (Kim et al. 2024: section 2, Figure 2, appendices C, E.3).

    >>> DebateSettings(tie_breaker=True).fallback
    'tie_breaker'
    >>> DebateSettings(on_unresolved="human").over(DebateSettings(tie_breaker=True)).fallback
    'human'
    """

    n: Rounds | Literal["auto"] = 4
    """Maximum rounds of criticism; `auto`: up to 4, and the debate ends before a round that has a
    chance below `risk` to change the score."""
    persona: PersonaOrText = Field(
        default="strict", examples=["You are a nurse who looks for harm."]
    )
    """How critical the Critic is: a strict, moderate or weak devil's advocate, a plain (neutral)
    reviewer, or a sophisticated devil's advocate; or your own persona in one line."""
    tie_breaker: bool = False
    """Short for `on_unresolved=tie_breaker`."""
    on_unresolved: Fallback = "last"
    """What decides if the Critic still objects after n rounds: the last score, a tie-breaker agent,
    or a human (the graph pauses)."""
    commander: Literal["relay", "llm"] = "relay"
    """`relay`: messages are passed on without a model call; `llm`: a model writes them."""
    termination: Literal["declared", "substring"] = "declared"
    """`declared`: NO ISSUE ends the debate if the Critic declares it; `substring`: if the words
    occur anywhere (the paper's literal test)."""
    on_overflow: Literal["last", "error"] = "error"
    """If the debate no longer fits into a model's context: `last`: the last score stands, with a
    warning; `error`: there is no verdict."""
    stop: StopsOfDebate = ()
    """Further rules that end the debate: `stable` (no score changed by more than `eps` in two
    rounds)."""
    eps: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """With `stop=stable`, the largest change of a score that counts as none."""
    budget_tokens: Tokens | None = None
    """The debate ends before the round that would exceed this number of tokens."""
    risk: Risk = 0.1
    """With `n=auto`, the chance that another round changes the score, below which the debate
    ends."""
    prior: Prior = (1.0, 1.0)
    """With `n=auto`, alpha and beta of the chance that a round changes the score, such as those
    fitted to earlier debates; 1 and 1 assume nothing."""

    newer: ClassVar[frozenset[str]] = frozenset({"stop", "eps", "budget_tokens", "risk", "prior"})

    @model_validator(mode="after")
    def _stops_are_used(self) -> Self:
        if "stable" not in self.stop:
            _refuse_unused(self, ["eps"], "stop=stable")
        if self.n != "auto":
            _refuse_unused(self, ["risk", "prior"], "n=auto")
        return self

    @property
    def most_rounds(self) -> int:
        """The maximum number of rounds."""
        return MOST_AUTO_ROUNDS if self.n == "auto" else self.n

    @field_validator("persona", mode="before")
    @classmethod
    def _known_or_described(cls, persona: Any) -> Any:
        """Accept a name or a description of several words, so that misspelt names are refused."""
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
            raise ValueError(
                f"tie_breaker={str(self.tie_breaker).lower()} "
                f"and on_unresolved={self.on_unresolved} contradict each other; give one of them"
            )
        return self

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Drop ``tie_breaker`` and ``on_unresolved`` of ``base`` if these settings contradict them.

        Both name the same setting, so a value set here under one name must override the other name
        in ``base``.
        """
        kept = super()._inherited(base)
        # Each side is consistent, so a contradiction comes from the combination.
        if not _contradict({**kept, **explicitly_set(self)}):
            return kept
        return {
            name: value
            for name, value in kept.items()
            if name not in ("tie_breaker", "on_unresolved")
        }

    @property
    def fallback(self) -> Fallback:
        """What decides an unresolved debate, from whichever of the two settings was given."""
        return "tie_breaker" if self.tie_breaker else self.on_unresolved


class MultiagentSettings(DebateSettings):
    """Settings of DEBATE with a plain Critic, not a devil's advocate (section 3, "MultiAgent")."""

    persona: PersonaOrText = "plain"


def _contradict(given: Mapping[str, Any]) -> bool:
    """Return whether both names of the setting were given with different meanings."""
    both = "tie_breaker" in given and "on_unresolved" in given
    return both and given["tie_breaker"] != (given["on_unresolved"] == "tie_breaker")


GROUPS: dict[str, tuple[str, ...]] = {
    "diverse": ("general_public", "critic", "news_author", "psychologist", "scientist"),
    "generic": ("general_public", "news_author", "critic"),
    "knowledge": ("encyclopedist", "fact_checker", "teacher"),
    "writing": ("novelist", "copy_editor", "literary_critic"),
    "coding": ("guido_van_rossum", "code_reviewer", "test_engineer"),
}
"""The roles of each group of referees in speaking order (Chan et al. 2024, 4.1, appendix A)."""

# Some roles are in several groups. List each once.
ROLES = tuple(dict.fromkeys(role for group in GROUPS.values() for role in group))
SAME = "same"
AUTO = "auto"
ROLE_FILES = (".yaml", ".yml")
RoleGroup = Annotated[str, one_of(*GROUPS, SAME, AUTO)]
RoleName = Annotated[str, one_of(*ROLES)]


class PositionSettings(Settings):
    """Settings of a protocol that can run a comparison in both orders of the answers."""

    position_calibration: bool = True
    """Compare two answers in both orders and average; a score task has only one order."""


class SingleSettings(PositionSettings, ToolSettings):
    """Settings of the single scorer (Chan et al. 2024, section 3.3)."""


class Role(Checked):
    """A custom role of a referee: a name and a description."""

    called: ClassVar[str] = "a role"

    name: PromptText
    """The name of the referee."""
    description: PromptText
    """The description of the referee and its focus."""


class RefereeSettings(PositionSettings):
    """Settings of a protocol with several referees."""

    referees: Agents = 2
    """The number of referees; an expert group or a list of roles by default has all of them."""
    roles: Annotated[
        RoleGroup | tuple[RoleName | Role, ...],
        TypedAs("RoleGroup | RoleName | OwnText | Sequence[RoleName | Role | Mapping[str, str]]"),
    ] = Field(
        default="diverse",
        examples=[["critic", {"name": "Nurse", "description": "You look after patients."}]],
    )
    """The referees: the first of the five personas (`diverse`), neutral annotators (`same`),
    personas that a model writes for each question (`auto`), an expert group (`generic`,
    `knowledge`, `writing`, `coding`), a list of known or custom roles, or a YAML file with such a
    list."""

    @field_validator("roles", mode="before")
    @classmethod
    def _split(cls, roles: Any) -> Any:
        """Split `critic,scientist` into a list; a group, a file or a list is unchanged."""
        if not isinstance(roles, str) or roles.endswith(ROLE_FILES):
            return roles
        names = [name.strip() for name in roles.split(",")]
        # A single name is a role (a list of one) or a group. ``critic`` is a role.
        return names if len(names) > 1 or names[0] in ROLES else names[0]

    @field_validator("roles", mode="after")
    @classmethod
    def _known(cls, roles: str | tuple[str | Role, ...]) -> str | tuple[str | Role, ...]:
        if isinstance(roles, str):
            if roles not in (*GROUPS, SAME, AUTO) and not roles.endswith(ROLE_FILES):
                known = f"groups are {', '.join(GROUPS)}, {SAME} and {AUTO}, roles are {', '.join(ROLES)}"
                raise ValueError(
                    f"{roles!r} is not a group of referees; {known}; "
                    "or give the name of a YAML file, or a list"
                )
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
        # Without names, any number is possible, or a file has yet to be read.
        group = GROUPS.get(self.roles) if isinstance(self.roles, str) else self.roles
        if group is None:
            return self
        names = [role.name if isinstance(role, Role) else role for role in group]
        given = explicitly_set(self)
        if not isinstance(self.roles, str) and "referees" in given and self.referees != len(names):
            raise ValueError(
                f"referees={self.referees}, but {len(names)} roles are listed; give one of them"
            )
        if "referees" not in given and self.roles != "diverse":
            # Set the number of referees. The model is frozen, but not in use yet.
            object.__setattr__(self, "referees", len(names))
            self.model_fields_set.add("referees")
        if self.referees > len(names):
            raise ValueError(
                f"referees={self.referees}, but there are only {len(names)} in {self.roles}: "
                f"{', '.join(names)}; list roles of your own, or use roles={SAME}"
            )
        return self

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Drop the number of referees in ``base`` if roles with their own number are set here."""
        kept = super()._inherited(base)
        given = explicitly_set(self)
        if (
            "roles" in given
            and self.roles not in ("diverse", SAME, AUTO)
            and "referees" not in given
        ):
            # ``diverse``, ``same`` and ``auto`` allow any number, so a bound number stays.
            kept.pop("referees", None)
        return kept

    def _is_open(self) -> bool:
        """Return whether the number of referees comes from a file that has yet to be read."""
        return (
            isinstance(self.roles, str)
            and self.roles.endswith(ROLE_FILES)
            and "referees" not in explicitly_set(self)
        )


RefereeSettingsT = TypeVar("RefereeSettingsT", bound=RefereeSettings)


def _quorum(quorum: Any) -> Any:
    number = int(quorum) if isinstance(quorum, str) and quorum.strip().isdecimal() else quorum
    if quorum not in ("majority", "all") and not (type(number) is int and number >= 1):
        raise ValueError(
            f"must be 'majority', 'all' or a whole number from 1, got {shortened(quorum)}"
        )
    return number


QuorumOfPanel = Annotated[
    Quorum, BeforeValidator(_quorum), TypedAs('Literal["majority", "all"] | int')
]


def _refuse_quorum_above(quorum: Quorum, members: int, called: str) -> None:
    if isinstance(quorum, int) and quorum > members:
        raise ValueError(f"quorum={quorum}, but there are only {members} {called}")


def _refuse_decided_with_all(stop: Sequence[StopRule], quorum: Quorum) -> None:
    if "decided" in stop and quorum == "all":
        raise ValueError(
            "stop=decided leaves members unasked, and quorum=all needs the vote of each; "
            "give one of them"
        )


class SeatSettings(Settings):
    """Settings of agents whose seats another model may take."""

    replacements: Annotated[
        tuple[ModelName, ...],
        BeforeValidator(parts(";"), json_schema_input_type=list[str | ModelSpec]),
        TypedAs("str | Sequence[Model]"),
    ] = ()
    """Models that take the seat of a member whose call failed: the first that is not the failed
    model, once per seat (on a command line: separated by semicolons)."""

    newer: ClassVar[frozenset[str]] = frozenset({"replacements"})

    @field_validator("replacements", mode="after")
    @classmethod
    def _each_once(cls, replacements: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        names = [str(model) for model in replacements]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} is listed twice")
        return replacements


class PanelSettings(SeatSettings):
    """Settings of a panel whose members may fail; those of your own panel can be a subclass."""

    recuse: Literal["none", "family"] = "none"
    """`family`: a member does not vote if a model of its family wrote the candidate, or one of the
    two answers (`system`, or `model_1` and `model_2`, of the task)."""

    newer: ClassVar[frozenset[str]] = SeatSettings.newer | {"recuse"}


class EnsembleSettings(RefereeSettings, PanelSettings, ToolSettings):
    """Settings of the ensemble: referees that do not discuss (Chan et al. 2024, section 3.2)."""

    referees: Agents = 3
    quorum: QuorumOfPanel = "majority"
    """The number of referees that must vote: more than half (`majority`), `all`, or a number. The
    others may fail, and the verdict names them."""
    combine: Combination = "mean"
    """The rule that makes one score of the referees' scores: `mean`, `median`, `trimmed` (the mean
    without the highest and the lowest), `geometric_median` (of pairs), `majority` (of votes), or
    `weighted`."""
    weights: (
        Annotated[
            dict[Annotated[str, ForCallers()], Annotated[float, Field(gt=0, allow_inf_nan=False)]],
            TypedAs("Mapping[str, float]"),
        ]
        | None
    ) = None
    """With `combine=weighted`, the weight of each referee by name, such as `referee_1`."""

    stop: StopsOfPanel = ()
    """`decided`: the referees are asked one after the other, until no outstanding vote can change
    the winner."""

    newer: ClassVar[frozenset[str]] = PanelSettings.newer | {"combine", "weights", "stop"}

    @model_validator(mode="after")
    def _can_be_decided(self) -> Self:
        _refuse_decided_with_all(self.stop, self.quorum)
        if "decided" in self.stop and self.combine == "geometric_median":
            raise ValueError(
                "stop=decided cannot tell when combine=geometric_median is decided; "
                "use another rule, such as combine=median"
            )
        return self

    @model_validator(mode="after")
    def _quorum_within_reach(self) -> Self:
        if not self._is_open():
            _refuse_quorum_above(self.quorum, self.referees, "referees")
        return self

    @model_validator(mode="after")
    def _can_be_combined(self) -> Self:
        if self.combine == "trimmed" and self.referees < 3 and not self._is_open():
            raise ValueError(
                f"combine=trimmed leaves out two scores, but there are {self.referees} referees"
            )
        if (self.combine == "weighted") is (self.weights is None):
            raise ValueError("combine=weighted needs weights, and weights need combine=weighted")
        if self.weights is not None and not self._is_open():
            members = [f"referee_{number}" for number in range(1, self.referees + 1)]
            if set(self.weights) != set(members):
                raise ValueError(
                    f"weights must name each of {', '.join(members)}; "
                    f"they name {', '.join(self.weights) or 'nobody'}"
                )
        return self


class ChatEvalSettings(RefereeSettings, PanelSettings, ToolSettings):
    """Settings of ChatEval (Chan et al. 2024: sections 2, 3.3 and 4, appendices A to C).

    >>> ChatEvalSettings(roles=["critic", "scientist", "critic"]).referees
    3
    """

    turns: Rounds = 2
    """The number of turns of every referee, which is the number of rounds."""
    strategy: Literal["one_by_one", "simultaneous", "summarizer"] = "one_by_one"
    """`one_by_one`: the referees speak in a fixed order and read everything so far; `simultaneous`:
    all at once, reading earlier turns only; `summarizer`: the same, with a summary after each turn.
    """
    summary: Literal["replace", "append"] = "replace"
    """With a summarizer, the referees read summaries instead of turns: the last summary
    (`replace`), or all summaries so far (`append`)."""
    summarize_last: bool = False
    """Sum up the last turn as well, although no referee reads it."""
    score_each_turn: bool = False
    """Ask for scores in every turn; otherwise in the last one only."""
    stop: StopsOfPanel = ()
    """`decided`: the last turn of a comparison ends when no outstanding referee can change the
    winner."""
    quorum: QuorumOfPanel = "majority"
    """The number of referees that must vote in the last turn: more than half (`majority`), `all`,
    or a number. The others may fail, and the verdict names them."""

    budget_tokens: Tokens | None = None
    """The referees vote before the turn that would exceed this number of tokens; the turn with the
    votes is always held."""

    newer: ClassVar[frozenset[str]] = PanelSettings.newer | {"stop", "quorum", "budget_tokens"}

    @model_validator(mode="after")
    def _budget_is_used(self) -> Self:
        needed = 2 if self.score_each_turn else 3
        if self.budget_tokens is not None and self.turns < needed:
            raise ValueError(
                f"budget_tokens has no effect with turns={self.turns}, because the last turn has the "
                f"votes; leave it out, or set turns={needed} or more"
            )
        return self

    @model_validator(mode="after")
    def _quorum_within_reach(self) -> Self:
        _refuse_decided_with_all(self.stop, self.quorum)
        if not self._is_open():
            _refuse_quorum_above(self.quorum, self.referees, "referees")
        return self

    @model_validator(mode="after")
    def _speak_in_turn(self) -> Self:
        if "decided" in self.stop and self.strategy != "one_by_one":
            raise ValueError(
                f"stop=decided needs referees who speak in turn, but strategy={self.strategy} asks "
                "all at once; use strategy=one_by_one"
            )
        if self.stop and self.score_each_turn:
            raise ValueError(
                "stop=decided leaves referees without a vote in the last turn, and with "
                "score_each_turn their earlier scores would count; give one of them"
            )
        return self


def _steps(value: Any) -> Any:
    """Split a text at semicolons and line ends; a form may send null."""
    return () if value is None else parts(";\n")(value)


Steps = Annotated[
    tuple[PromptText, ...],
    BeforeValidator(_steps, json_schema_input_type=list[PromptText]),
    TypedAs("str | Sequence[str]"),
]


class GEvalSettings(Settings):
    """Settings of G-Eval (Liu et al. 2023, section 2).

    >>> GEvalSettings(steps="Read both texts; Give a score").steps
    ('Read both texts', 'Give a score')
    """

    weighting: Literal["auto", "logprobs", "sampling"] = "auto"
    """The source of the scores' probabilities: `logprobs` (of tokens), `sampling` (several
    replies), or `auto`: log-probabilities if the model returns them, otherwise samples."""
    samples: Samples = 20
    """The number of replies for sampling."""
    steps: Steps = ()
    """The evaluation steps (on a command line: separated by semicolons); none: the planner writes
    them from the aspect's criteria, once per run."""


class FairEvalSettings(PositionSettings):
    """Settings of FairEval (Wang et al. 2024, section 3)."""

    k: Samples = 3
    """The number of judgements, evidence first, for each order."""


class CommitFirstSettings(Settings):
    """Settings of the judge that answers first: only those of every protocol."""

    called: ClassVar[str] = "commit_first"


MOST_AT_ONCE = 50
"""The criteria of a rubric that one call can answer."""


class ChecklistSettings(Settings):
    """Settings of the checklist (HealthBench: Arora et al. 2025).

    >>> ChecklistSettings(group="5").group
    5
    """

    most_at_once: ClassVar[int] = MOST_AT_ONCE

    group: Literal["all"] | Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1
    """How many criteria of the rubric one call answers: a number from 1 to 50, or `all`."""

    @field_validator("group", mode="before")
    @classmethod
    def _known_group(cls, group: Any) -> Any:
        number = int(group) if isinstance(group, str) and group.strip().isdecimal() else group
        if group != "all" and not (type(number) is int and 1 <= number <= MOST_AT_ONCE):
            raise ValueError(
                f"must be 'all' or a whole number from 1 to {MOST_AT_ONCE}, got {shortened(group)}"
            )
        return number


BACKGROUNDS = (
    "a retired ethics professor",
    "a young environmental activist",
    "a middle-aged business owner",
    "a social worker in community development",
    "a tech entrepreneur at home in AI",
)
"""The default backgrounds of the jurors (SAMRE, appendix C.3)."""


Backgrounds = Annotated[
    tuple[PromptText, ...],
    BeforeValidator(parts(";"), json_schema_input_type=list[PromptText]),
    TypedAs("str | Sequence[str]"),
]


class BaselineSettings(Settings):
    """Settings of the single judge (courtroom paper, Algorithm 3): only those of every protocol."""


class MoreSettings(SeatSettings):
    """Settings of MORE (courtroom paper, sections 3.1 and 3.3)."""

    advocates: Agents = 3
    """Advocates on each side: for each answer, or for a high and for a low score of one text."""
    rounds: Rounds = 1
    """Number of rounds; the scores of the last one decide."""
    aggregate: Literal["llm", "concat", "best"] = "llm"
    """The judge's input from a team's defences: one that a model makes from them (`llm`), all of
    them (`concat`), or the one with the best score when each is scored alone (`best`; of one text,
    the mean of both sides' best scores counts)."""
    collaborate: bool = False
    """Whether advocates of one team speak in turn and read the earlier defences of their team."""
    tau: float = Field(default=0.1, gt=0)
    """Temperature of the softmax weights that `aggregate=best` records; they do not affect the
    verdict."""
    quorum: QuorumOfPanel = "majority"
    """The number of all advocates that must argue in each round: more than half (`majority`),
    `all`, or a number; each side needs at least one. The others may fail, and the verdict names
    them."""

    budget_tokens: Tokens | None = None
    """The rounds end before the one that would exceed this number of tokens."""

    newer: ClassVar[frozenset[str]] = SeatSettings.newer | {"quorum", "budget_tokens"}

    @model_validator(mode="after")
    def _budget_is_used(self) -> Self:
        if self.rounds == 1:
            _refuse_unused(self, ["budget_tokens"], "rounds above 1")
        return self

    @model_validator(mode="after")
    def _quorum_within_reach(self) -> Self:
        _refuse_quorum_above(self.quorum, 2 * self.advocates, "advocates")
        return self


class SamreSettings(PanelSettings, ToolSettings):
    """Settings of SAMRE (courtroom paper, section 3.2, appendix C.3).

    >>> SamreSettings(backgrounds="a farmer; a nurse").backgrounds
    ('a farmer', 'a nurse')
    """

    max_rounds: Rounds = 4
    """Maximum rounds."""
    jurors: int = Field(default=5, ge=0, le=100)
    """The number of jurors that vote; 0: the mean scores decide."""
    backgrounds: Backgrounds = Field(default=BACKGROUNDS, min_length=1)
    """The jurors' backgrounds in order, repeated from the start for more jurors (on a command line:
    separated by semicolons); `auto`: a model writes them for each question."""
    ballot: Literal["vote", "score"] = "vote"
    """`vote`: a juror names the better answer; `score`: it scores both from 1 to 20, and the sums
    count."""
    memory: Literal["full", "summary"] = "full"
    """The memory of earlier rounds: all words (`full`), or a summary of 50 words (`summary`)."""
    cross_examine: bool = False
    """Whether each advocate asks the other side one question in the first round, and answers one,
    before the judge rules."""
    stop: StopsOfCourt = ()
    """Further rules that end a part of the hearing: `decided` (jurors vote one after the other,
    until no outstanding vote can change the winner), `stable` (no total changed by more than `eps`
    in two rounds), `predicted` (another round changes the winner with a chance below `risk`)."""
    eps: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """With `stop=stable`, the largest change of a total that counts as none."""
    risk: Risk = 0.1
    """With `stop=predicted`, the chance that another round changes the winner, below which the
    rounds end."""
    prior: Prior = (1.0, 1.0)
    """With `stop=predicted`, alpha and beta of the gap's distribution, such as those that a report
    fits to earlier debates; 1 and 1 are the paper's."""
    budget_tokens: Tokens | None = None
    """The rounds end before the one that would exceed this number of tokens; the jury votes
    afterwards."""
    quorum: QuorumOfPanel = "majority"
    """The number of jurors that must vote: more than half (`majority`), `all`, or a number. With
    fewer valid votes, the mean scores decide."""

    newer: ClassVar[frozenset[str]] = PanelSettings.newer | {
        *("cross_examine", "stop", "eps", "risk", "prior", "budget_tokens", "quorum"),
    }

    @property
    def writes_backgrounds(self) -> bool:
        """Whether a model writes the jurors' backgrounds for each question."""
        return self.backgrounds == (AUTO,)

    @model_validator(mode="after")
    def _stops_are_used(self) -> Self:
        if "stable" not in self.stop:
            _refuse_unused(self, ["eps"], "stop=stable")
        if "predicted" not in self.stop:
            _refuse_unused(self, ["risk", "prior"], "stop=predicted")
        if self.writes_backgrounds and not self.jurors:
            raise ValueError("backgrounds=auto writes jurors, but jurors=0; give one of them")
        _refuse_quorum_above(self.quorum, self.jurors, "jurors")
        if "decided" in self.stop and not self.jurors:
            raise ValueError("stop=decided asks jurors in turn, but jurors=0; give one of them")
        if self.juror_tools and not self.jurors:
            raise ValueError("juror_tools gives tools to jurors, but jurors=0; give one of them")
        return self
