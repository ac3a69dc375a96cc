"""Define the settings of ChatEval and of its two baselines without discussion: a single scorer, and an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from ..checked import Checked, FilledText
from .base_settings import Agents, Rounds, Settings, explicitly_set

GROUPS: dict[str, tuple[str, ...]] = {
    "diverse": ("general_public", "critic", "news_author", "psychologist", "scientist"),
    "generic": ("general_public", "news_author", "critic"),
    "knowledge": ("encyclopedist", "fact_checker", "teacher"),
    "writing": ("novelist", "copy_editor", "literary_critic"),
    "coding": ("guido_van_rossum", "code_reviewer", "test_engineer"),
}
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
                raise ValueError(
                    f"{roles!r} is not a group of referees; groups are {', '.join(GROUPS)}, {SAME} and {AUTO}, roles "
                    f"are {', '.join(ROLES)}; or give the name of a YAML file, or a list"
                )
            return roles
        if not roles:
            raise ValueError("the list of roles is empty")
        for role in roles:
            if isinstance(role, str) and role not in ROLES:
                raise ValueError(
                    f"unknown role {role!r}; known are {', '.join(ROLES)}; or give name and description"
                )
        return roles

    @model_validator(mode="after")
    def _match_number_to_roles(self) -> Self:
        names = self._referee_names()
        if names is None:
            return self
        if not isinstance(self.roles, str) and "referees" in self.given and self.referees != len(names):
            raise ValueError(f"referees={self.referees}, but {len(names)} roles are listed; give one of them")
        if "referees" not in self.given and self.roles != "diverse":
            # Set, so that the settings say how many referees there are. The model is frozen, but nobody holds it yet.
            object.__setattr__(self, "referees", len(names))
            self.model_fields_set.add("referees")
        if self.referees > len(names):
            raise ValueError(
                f"referees={self.referees}, but there are only {len(names)} in {self.roles}: {', '.join(names)}; "
                f"list roles of your own, or use roles={SAME}"
            )
        return self

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Drop the number of referees in ``base`` where a list or a group with its own number is set here."""
        kept, given = super()._inherited(base), self.given
        if "roles" in given and self.roles not in ("diverse", SAME, AUTO) and "referees" not in given:
            # ``diverse``, ``same`` and ``auto`` allow for any number, so a number that was bound still fits them.
            kept.pop("referees", None)
        return kept

    @property
    def given(self) -> Mapping[str, Any]:
        """The fields that were set on purpose."""
        return explicitly_set(self)

    def _referee_names(self) -> Sequence[str] | None:
        """Return the names of the roles to choose from; None if any number is possible or a file is yet to be read."""
        if isinstance(self.roles, str):
            return GROUPS.get(self.roles)
        return [role if isinstance(role, str) else role.name for role in self.roles]


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
