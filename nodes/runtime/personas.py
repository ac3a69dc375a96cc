"""The referees of a run: personas, expert groups, neutral annotators, or custom roles.

They follow ChatEval, section 4.1. This module reads YAML files of roles outside the event loop.
With ``roles=auto``, the planner writes the personas for the question. They belong to one verdict:
its details contain them, and its transcript shows the planner's turn. ChatEval finds that personas
should differ, and its own are written by hand, once for all questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import yaml

from ...state.errors import InputError, ReplyError, UsageError
from ...state.graph_state import JudgeState
from ...state.settings import RefereeSettings, Role, SamreSettings
from ...state.settings.base_settings import explicitly_set
from ...state.settings.protocol_settings import AUTO, GROUPS, ROLE_FILES, SAME, RefereeSettingsT
from ...state.tasks import CompareTask, ScoreTask
from ..common.yaml_files import read_yaml
from ..replies.steps import read_steps
from .agent_runtime import AgentRuntime, Question
from .output_schemas import OutputSchema, Value
from .prompt_context import Prompt, Prompts, call_metadata, system_text, task_of


class Referee(NamedTuple):
    """A referee's number in the speaking order and its role.

    ``numbered``: others have the same role. ``written``: a model wrote the role for the question.
    It is then shown as data, because it may contain words of the question.
    """

    number: int
    role: str | Role
    numbered: bool = False
    written: bool = False

    @property
    def agent(self) -> str:
        """The agent's name in turns, such as ``referee_1``."""
        return f"referee_{self.number}"

    @property
    def name(self) -> str:
        """The role's name as settings spell it."""
        return self.role if isinstance(self.role, str) else self.role.name

    @property
    def title(self) -> str:
        """The role's name as people read it.

        >>> Referee(1, "news_author").title
        'News Author'
        """
        # Custom roles are shown as their author spelled them.
        title = (
            self.role.replace("_", " ").title() if isinstance(self.role, str) else self.role.name
        )
        return f"{title} {self.number}" if self.numbered else title

    def words(self, prompts: Prompts, task: ScoreTask | CompareTask, others: bool) -> str:
        """Return the description of the role for the referee's own prompt.

        Args:
            prompts: the templates.
            task: the task to judge.
            others: whether the referee discusses with others; if not, the text mentions none.
        """
        compare = isinstance(task, CompareTask)
        about: dict[str, Any] = {"number": self.number, "title": self.title, "others": others}
        about["question"] = "which answer is better" if compare else "how good the candidate is"
        about["texts"] = "answers" if compare else "judgments"
        if isinstance(self.role, str):
            return prompts.render(f"chateval/role_{self.role}", **about)
        template = "casting/role" if self.written else "chateval/role_own"
        return prompts.render(template, description=self.role.description, **about)


async def load_referees(
    settings: RefereeSettings, written: Sequence[Mapping[str, str]] = ()
) -> list[Referee]:
    """Return the referees of a run in speaking order; read a file of roles outside the event loop.

    Args:
        settings: the settings that choose the referees.
        written: the name and description of each persona that ``roles=auto`` wrote.
    """
    if settings.roles == AUTO:
        personas = map(Role.model_validate, written)
        return [
            Referee(number, persona, written=True)
            for number, persona in enumerate(personas, start=1)
        ]
    if names_a_file(settings):
        settings = await asyncio.to_thread(with_roles, settings)
    roles = settings.roles
    if isinstance(roles, str):
        roles = ("annotator",) * settings.referees if roles == SAME else GROUPS[roles]
    chosen = roles[: settings.referees]
    # Referees with the same words are numbered, so that they remain different voices.
    return [
        Referee(n, role, numbered=chosen.count(role) > 1) for n, role in enumerate(chosen, start=1)
    ]


def names_a_file(settings: RefereeSettings) -> bool:
    """Return whether the roles are in a file that has not been read yet."""
    return isinstance(settings.roles, str) and settings.roles.endswith(ROLE_FILES)


def with_roles(settings: RefereeSettingsT) -> RefereeSettingsT:
    """Replace the name of a YAML file by its roles, and leave other settings unchanged. Blocking.

    Raises:
        UsageError: the file does not exist or has no list of roles, or their number differs from
            the number of referees.
    """
    if not names_a_file(settings):
        return settings
    path = Path(str(settings.roles))
    try:
        roles = read_yaml(path)
    except OSError as error:
        raise UsageError(f"roles={str(path)!r}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(roles, list):
        raise UsageError(
            f"{path}: expected a list of roles, each a known name or `name` and `description`"
        )
    try:
        # Validate the original settings, so that the number of referees follows from the list.
        return type(settings).model_validate({**explicitly_set(settings), "roles": roles})
    except InputError as error:
        raise UsageError(f"{path}: {error}") from error


@dataclass(frozen=True)
class PersonasSchema(OutputSchema):
    """Request a numbered list of personas in plain text: a name, a colon and a description each."""

    name: ClassVar[str] = "personas"
    template: ClassVar[str] = "casting/form_personas"

    wanted: int

    def from_text(self, text: str) -> Value:
        read_personas(text, self.wanted)
        return None

    def limits(self) -> dict[str, Any]:
        return {"wanted": self.wanted}


def read_personas(text: str, wanted: int) -> list[dict[str, str]]:
    """Return the name and description of each persona in a list.

    Raises:
        ReplyError: the list has another length, or a persona lacks a name, a description or a
            unique name.

    >>> read_personas("1. Nurse: You look after patients.\\n2. Lawyer: You know what is owed.", 2)[1]
    {'name': 'Lawyer', 'description': 'You know what is owed.'}
    """
    personas = []
    for item in read_steps(text):
        name, colon, description = (part.strip() for part in item.partition(":"))
        if not (name and colon and description) or len(name) > 60:
            raise ReplyError(f"Not a name, a colon and a description: {item[:60]!r}.", text)
        personas.append({"name": name, "description": description})
    if len(personas) != wanted:
        raise ReplyError(f"The list has {len(personas)} personas, not {wanted}.", text)
    if len({persona["name"].casefold() for persona in personas}) < wanted:
        raise ReplyError("Two personas have the same name.", text)
    return personas


def roles_are_open(_state: JudgeState, settings: RefereeSettings) -> str:
    """Return whether a planner has to write the personas for the question."""
    return "roles_open" if settings.roles == AUTO else "roles_given"


async def casting(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
    """Ask the planner for as many personas as there are referees.

    Shown: the question, or the source and the aspect, without the texts to judge, which it could
    favour.
    """
    wanted = runtime.settings.referees
    update, personas = await _cast(state, runtime, wanted, "casting/request")
    roles = {
        f"referee_{number}": persona["name"] for number, persona in enumerate(personas, start=1)
    }
    return {**update, "details": {"roles": roles, "personas": personas}}


async def casting_of_jury(
    state: JudgeState, runtime: AgentRuntime[SamreSettings]
) -> dict[str, Any]:
    """Ask the planner for as many backgrounds as there are jurors; shown as in ``casting``."""
    update, personas = await _cast(state, runtime, runtime.settings.jurors, "jury/request")
    return {**update, "details": {"personas": personas}}


async def _cast(
    state: JudgeState, runtime: AgentRuntime[Any], wanted: int, request: str
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    task = task_of(state)
    prompts = runtime.prompts
    if isinstance(task, CompareTask):
        material = prompts.render("casting/task", question=task.question, source="", aspect="")
    else:
        material = prompts.render(
            "casting/task", question="", source=task.source or "", aspect=task.aspect.name
        )
    own = prompts.instruction(request, wanted=wanted)
    prompt = Prompt(system_text(prompts, alone=True), material, own)
    details = {**call_metadata(task), "wanted": wanted}
    answer = await runtime.ask(
        Question("planner", "planner", 0, prompt, PersonasSchema(wanted), details)
    )
    return answer.update, read_personas(answer.turn["content"], wanted)
