"""Who the referees are: personas, expert groups, neutral annotators, or roles of one's own (ChatEval, section 4.1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..state.errors import UsageError
from ..state.settings import RefereeSettings, Role
from ..state.settings.referee_settings import GROUPS, ROLE_FILES, SAME, RefereeSettingsT
from ..state.tasks import CompareTask, ScoreTask
from .prompt_templates import Prompts


@dataclass(frozen=True)
class Referee:
    """A referee: its place in the order of speakers, and who sits there."""

    number: int
    role: str | Role

    @property
    def agent(self) -> str:
        """The name under which it speaks."""
        return f"referee_{self.number}"

    @property
    def name(self) -> str:
        """Its role's name, as settings spell it."""
        return self.role if isinstance(self.role, str) else self.role.name

    @property
    def title(self) -> str:
        """Its role's name, as people read it.

        >>> Referee(1, "news_author").title
        'News Author'
        """
        return self.role.replace("_", " ").title() if isinstance(self.role, str) else self.role.name

    def words(self, prompts: Prompts, task: ScoreTask | CompareTask) -> str:
        """The description of the role, as the referee itself is given it."""
        compare = isinstance(task, CompareTask)
        about: dict[str, Any] = {
            "number": self.number,
            "question": "which answer is the better one" if compare else "how good the candidate is",
            "texts": "answers" if compare else "judgments",
        }
        if isinstance(self.role, str):
            return prompts.render(f"chateval/role_{self.role}", **about)
        return prompts.render(
            "chateval/role_own", title=self.role.name, description=self.role.description, **about
        )


async def load_referees(settings: RefereeSettings) -> list[Referee]:
    """The referees of a run, in the order in which they speak. A file of roles is read off the event loop."""
    if names_a_file(settings):
        settings = await asyncio.to_thread(with_roles, settings)
    roles = settings.roles
    if isinstance(roles, str):
        roles = ("annotator",) * settings.referees if roles == SAME else GROUPS[roles]
    return [Referee(number, role) for number, role in enumerate(roles[: settings.referees], start=1)]


def names_a_file(settings: RefereeSettings) -> bool:
    """Whether the roles stand in a file that has not been read."""
    return isinstance(settings.roles, str) and settings.roles.endswith(ROLE_FILES)


def with_roles(settings: RefereeSettingsT) -> RefereeSettingsT:
    """The settings with the roles that stand in their YAML file, where they name one. Reads files: blocking.

    Raises:
        UsageError: no such file, or no list of roles in it.
        pydantic.ValidationError: more or fewer roles than referees.
    """
    if not names_a_file(settings):
        return settings
    path = Path(str(settings.roles))
    roles = _read(path)
    try:
        return type(settings).model_validate({**settings.given, "roles": roles})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{path}: {first['msg'].removeprefix('Value error, ')}") from error


def _read(path: Path) -> list[Any]:
    try:
        roles = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"roles={str(path)!r}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(roles, list):
        raise UsageError(f"{path}: expected a list of roles, each a known name or `name` and `description`")
    return roles
