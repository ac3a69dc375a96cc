"""Two judges: an optimist and a pessimist grade in turn, each knowing what was said before; their
mean counts.

    prepare --> optimist --> pessimist --+--> conclude
                   ^---- another_round --+

Model calls: two for each round.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.protocol import Ablation, Protocol, conclude, prepare
from jurygraph.nodes.runtime.agent_runtime import AgentRuntime, Answer, Question
from jurygraph.nodes.runtime.bound_judge import Models
from jurygraph.nodes.runtime.output_schemas import OutputSchema, ScoreSchema, Value
from jurygraph.nodes.runtime.prompt_context import (
    build_prompt,
    call_metadata,
    requested_output,
    score_schema,
    task_of,
)
from jurygraph.state import ReplyError
from jurygraph.state.graph_state import JudgeState
from jurygraph.state.protocols import CallsByRole, Can, exactly
from jurygraph.state.settings import Settings
from jurygraph.state.tasks import CompareTask, ScoreTask, TaskKind
from langgraph.graph import END, START
from pydantic import Field


class TwoJudgesSettings(Settings):
    """Settings of the two judges."""

    rounds: int = Field(default=1, ge=1, description="How often each judge grades.")


@dataclass(frozen=True)
class GradeSchema(ScoreSchema):
    """A grade with its grounds, in words of this package's own."""

    name: ClassVar[str] = "grade"
    template: ClassVar[str] = "two_judges/form_grade"

    def schema(self) -> dict[str, Any]:
        return {
            "title": "grade_reply",
            "type": "object",
            "properties": {"grounds": {"type": "string"}, "grade": {"type": "number"}},
            "required": ["grounds", "grade"],
            "additionalProperties": False,
        }

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        grade = fields.get("grade")
        if not isinstance(grade, int | float) or not self.low <= grade <= self.high:
            raise ReplyError("The field grade is no number of the scale.", raw, "missing")
        return f"{fields.get('grounds', '')}\nScore: {grade:g}".strip(), float(grade)


def calls(settings: TwoJudgesSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """One of each judge in each round."""
    return {"optimist": exactly(settings.rounds), "pessimist": exactly(settings.rounds)}


protocol = Protocol(
    name="two_judges",
    summary="an optimist and a pessimist grade in turn",
    source="made up for this package",
    kinds=("score", "compare"),
    roles=("optimist", "pessimist"),
    settings=TwoJudgesSettings,
    prompts=("shared", "two_judges"),
    calls=calls,
    templates=Path(__file__).parent / "prompts",
    role_kinds={"optimist": "panel", "pessimist": "panel"},
    ablations=(
        Ablation(
            name="second-thoughts",
            question="whether a second round changes anything",
            source="made up for this package",
            axes={"rounds": [1, 2]},
            data=("weather",),
        ),
    ),
)


async def optimist(state: JudgeState, runtime: AgentRuntime[TwoJudgesSettings]) -> dict[str, Any]:
    """Begin a round."""
    return (await _ask("optimist", state["round"] + 1, state, runtime)).update


async def pessimist(state: JudgeState, runtime: AgentRuntime[TwoJudgesSettings]) -> dict[str, Any]:
    """End a round: its score is the mean of what the two said in it, as of all roles of the kind
    ``panel``.
    """
    return (await _ask("pessimist", state["round"], state, runtime)).update


def after_pessimist(state: JudgeState, settings: TwoJudgesSettings) -> str:
    """Whether the judges go on."""
    return "another_round" if state["round"] < settings.rounds else "all_rounds_held"


async def _ask(
    role: str, round: int, state: JudgeState, runtime: AgentRuntime[TwoJudgesSettings]
) -> Answer:
    task = task_of(state)
    own = runtime.prompts.instruction("two_judges/judge", role=role, wanted=requested_output(task))
    return await runtime.ask(
        Question(
            agent=role,
            role=role,
            round=round,
            prompt=build_prompt(state, runtime.prompts, own, state["transcript"]),
            form=_form(task),
            details=call_metadata(task),
        )
    )


def _form(task: ScoreTask | CompareTask) -> OutputSchema:
    if isinstance(task, CompareTask):
        return score_schema(task)
    return GradeSchema(task.aspect.low, task.aspect.high, task.aspect.name)


def build(
    settings: TwoJudgesSettings | Mapping[str, Any] | None = None,
    models: Models | None = None,
    **fields: Any,
) -> ProtocolGraph[TwoJudgesSettings]:
    """The graph, to be compiled."""
    graph = ProtocolGraph(protocol, TwoJudgesSettings, settings, models, fields)
    graph.agent("prepare", prepare(protocol))
    graph.agent("optimist", optimist)
    graph.agent("pessimist", pessimist)
    graph.agent("conclude", conclude(protocol))
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "optimist")
    graph.add_edge("optimist", "pessimist")
    graph.route(
        "pessimist", after_pessimist, {"another_round": "optimist", "all_rounds_held": "conclude"}
    )
    graph.add_edge("conclude", END)
    return graph


graph = build().compile(name="two_judges")
