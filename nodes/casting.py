"""Ask the planner to write the referees' personas for the question at hand (``roles=auto``).

The personas belong to one verdict: they are kept in its details, and its transcript shows who wrote them. ChatEval
(section 4.1) finds that personas should differ; it writes them by hand, once for all questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..state.errors import ReplyError
from ..state.graph_state import JudgeState
from ..state.settings import RefereeSettings
from ..state.settings.protocol_settings import AUTO
from ..state.tasks import CompareTask
from .agent_runtime import AgentRuntime, Question
from .output_schemas import OutputSchema, Value
from .prompt_context import Prompt, call_metadata, system_text, task_of
from .replies.steps import read_steps


@dataclass(frozen=True)
class PersonasSchema(OutputSchema):
    """Ask for a numbered list of personas, each a name, a colon and a description, in plain text."""

    name: ClassVar[str] = "personas"
    template: ClassVar[str] = "casting/form_personas"

    wanted: int

    def from_text(self, text: str) -> Value:
        read_personas(text, self.wanted)
        return None

    def limits(self) -> dict[str, Any]:
        return {"wanted": self.wanted}


def read_personas(text: str, wanted: int) -> list[dict[str, str]]:
    """Return name and description of each persona in a list.

    Raises:
        ReplyError: there is no list of as many personas, or one has no name, no description, or another one's name.

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
    """Personas that are written for the question need somebody to write them."""
    return "roles_open" if settings.roles == AUTO else "roles_given"


async def casting(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
    """Ask the planner for as many personas as there are referees.

    Shown: the question, or the source and the aspect; none of the texts that are judged, which it could favour.
    """
    task, prompts, wanted = task_of(state), runtime.prompts, runtime.settings.referees
    if isinstance(task, CompareTask):
        material = prompts.render("casting/task", question=task.question, source="", aspect="")
    else:
        material = prompts.render("casting/task", question="", source=task.source, aspect=task.aspect.name)
    own = prompts.instruction("casting/request", wanted=wanted)
    prompt = Prompt(system_text(prompts, alone=True), material, own)
    details = {**call_metadata(task), "wanted": wanted}
    answer = await runtime.ask(Question("planner", "planner", 0, prompt, PersonasSchema(wanted), details))
    personas = read_personas(answer.turn["content"], wanted)
    roles = {f"referee_{number}": persona["name"] for number, persona in enumerate(personas, start=1)}
    return {**answer.update, "details": {"roles": roles, "personas": personas}}
