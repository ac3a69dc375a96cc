"""audit: labels each turn of a finished debate and whether it answers the turn before.

    prepare --each speech--> auditor x turns -> END

This is a graph of its own, not a protocol: it does not judge a text. Its input is a verdict's
transcript. Its output is a label for each turn of the roles that score, object, argue, vote or
decide: a new argument, a repetition or a concession, and the behaviour that ChatEval's authors
describe (Chan et al. 2023, section 4.4): an opening statement, an alternative proposal, the
maintenance of a stance, or seeking consensus.

Model calls: one for each such turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NotRequired

from langgraph.graph import END
from langgraph.runtime import get_runtime
from langgraph.types import Send
from typing_extensions import TypedDict

from ...nodes.runtime.agent_runtime import Question
from ...nodes.runtime.bound_judge import Models, bound_agent
from ...nodes.runtime.output_schemas import OutputSchema, Value, object_schema
from ...nodes.runtime.prompt_context import Prompt
from ...state.errors import ReplyError, UsageError
from ...state.graph_state import append, merge_turns
from ...state.transcript import Turn, TurnIds
from ...state.turn_labels import BEHAVIOURS, KINDS, TurnLabel
from ..engine._langgraph import SyncFunction
from ..engine.base import AsyncNode
from ..engine.registry import role_kinds
from ..engine.wrapper import StepGraph

_AUDITED = ("scores", "panel", "objects", "argues", "decides", "votes")
"""The kinds of roles whose turns are labelled; other roles relay, summarize or plan."""


class AuditInput(TypedDict):
    """A finished debate: the protocol's name, and the turns in order."""

    protocol: str
    turns: list[dict[str, Any]]


class AuditOutput(TypedDict):
    """The labels of the turns in order, and the auditor's own turns."""

    labels: Annotated[list[TurnLabel], append]
    transcript: Annotated[list[Turn], merge_turns]


class AuditState(AuditInput, AuditOutput):
    """The state while turns are labelled; ``place`` is the index of the turn in one task."""

    place: NotRequired[int]


_KIND = re.compile(r"^\W*kind\W*(argument|repetition|concession)\W*$", re.IGNORECASE | re.MULTILINE)
_BEHAVIOUR = re.compile(
    r"^\W*behaviou?r\W*(opening|alternative|maintenance|consensus|none)\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWERS = re.compile(r"^\W*answers\W*(yes|no)\W*$", re.IGNORECASE | re.MULTILINE)


class TurnLabelSchema(OutputSchema):
    """Request the kind of a turn, its behaviour, and whether it answers the turn before it.

    The value is one word for each.
    """

    name: ClassVar[str] = "turn_label"
    template: ClassVar[str] = "audit/form_label"

    def schema(self) -> dict[str, Any]:
        kind = {"type": "string", "enum": [*KINDS]}
        behaviour = {"type": "string", "enum": [*BEHAVIOURS]}
        answers = {"type": "boolean"}
        return object_schema("turn_label_reply", kind=kind, behaviour=behaviour, answers=answers)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        kind = fields.get("kind")
        behaviour = fields.get("behaviour")
        answers = fields.get("answers")
        if kind not in KINDS or behaviour not in BEHAVIOURS or not isinstance(answers, bool):
            raise ReplyError(
                f"`kind` must be one of {', '.join(KINDS)}, `behaviour` one of "
                f"{', '.join(BEHAVIOURS)}, and `answers` true or false.",
                raw,
            )
        said = "yes" if answers else "no"
        return (
            f"Kind: {kind}\nBehaviour: {behaviour}\nAnswers: {said}",
            f"{kind} {behaviour} {said}",
        )

    def from_text(self, text: str) -> Value:
        kinds = _KIND.findall(text)
        behaviours = _BEHAVIOUR.findall(text)
        answers = _ANSWERS.findall(text)
        if not len(kinds) == len(behaviours) == len(answers) == 1:
            raise ReplyError(
                "The reply must have one line `Kind: ...`, one line `Behaviour: ...` and one line "
                "`Answers: yes` or `no`.",
                text,
            )
        return f"{kinds[0].lower()} {behaviours[0].lower()} {answers[0].lower()}"


def audit(models: Models | None = None, **settings: Any) -> StepGraph:
    """Build the auditor's graph, not compiled.

    Args:
        models: a chat model or its name for the role ``auditor``, or ``"*"``.
        **settings: settings that all protocols share, such as ``structured="off"``.

    Raises:
        UsageError: another role, an unknown model, or a missing key.

    >>> from jurygraph.graphs import debate
    >>> task = {"kind": "score", "source": "It rained.", "candidate": "Rain.", "aspect": "consistency"}
    >>> turns = debate.graph.invoke({"task": task})["transcript"]
    >>> labels = audit().compile().invoke({"protocol": "debate", "turns": turns})["labels"]
    >>> labels[0]["agent"], labels[0]["answers"]
    ('scorer', None)
    """
    bound = bound_agent("audit", "auditor", ("audit",), models, settings)

    async def label(state: AuditState) -> dict[str, Any]:
        turns = state["turns"]
        place = state["place"]
        earlier = _heard_before(state["protocol"], turns, place)
        runtime = await bound.runtime(None, get_runtime().stream_writer, TurnIds(()))
        speech = turns[place]
        prompts = runtime.prompts
        material = prompts.render("audit/speeches", earlier=earlier, speech=speech)
        own_part = prompts.instruction("audit/auditor", earlier=bool(earlier), speech=speech)
        prompt = Prompt(prompts.render("audit/system"), material, own_part)
        # The place makes each turn a call of its own, even if two turns have the same text.
        question = Question(
            "auditor", "auditor", place, prompt, TurnLabelSchema(), {"earlier": len(earlier)}
        )
        answer = await runtime.ask(question)
        kind, behaviour, answers = str(answer.turn["value"]).split()
        turn_id = str(speech.get("id", place))
        answered = {**answer.turn, "id": f"auditor/{turn_id}"}
        about = {"turn": turn_id, **{name: speech[name] for name in ("agent", "role", "round")}}
        taken_up = answers == "yes" if earlier else None
        turn_label = {**about, "kind": kind, "behaviour": behaviour, "answers": taken_up}
        return {"labels": [turn_label], "transcript": [answered]}

    builder = StepGraph(AuditState, input_schema=AuditInput, output_schema=AuditOutput)
    builder.begin(_prepared)
    builder.place("auditor", AsyncNode("auditor", label, one_of_several=True), then=END)
    builder.add_conditional_edges(
        "prepare", SyncFunction("each_speech", _each_speech), ["auditor", END]
    )
    return builder


def audited_places(protocol: str, turns: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the turns to label; none if no turn has another one before it."""
    kinds = role_kinds(protocol)
    places = [
        place for place, turn in enumerate(turns) if kinds.get(turn["role"], "scores") in _AUDITED
    ]
    return places if any(_heard_before(protocol, turns, place) for place in places) else []


def _prepared(state: AuditState) -> dict[str, Any]:
    turns = state.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise UsageError("turns must be a list of turns, as in a verdict's transcript")
    for number, turn in enumerate(turns, start=1):
        if missing := [name for name in ("agent", "role", "round", "content") if name not in turn]:
            raise UsageError(
                f"turn {number} has no {missing[0]}: give the turns of a verdict's transcript"
            )
    return {"labels": None, "transcript": None}


def _each_speech(state: AuditState) -> list[Send] | str:
    places = audited_places(state["protocol"], state["turns"])
    about = {"protocol": state["protocol"], "turns": state["turns"]}
    return [Send("auditor", {**about, "place": place}) for place in places] or END


def _heard_before(
    protocol: str, turns: Sequence[Mapping[str, Any]], place: int
) -> list[Mapping[str, Any]]:
    """Return the turns before a turn in the same discussion, that is, in the same order.

    Messages that a commander relays and a planner's texts are left out.
    """
    kinds = role_kinds(protocol)
    speech = turns[place]
    speeches = [turn for turn in turns[:place] if kinds.get(turn["role"], "scores") in _AUDITED]
    marks = ("order", "repeat", "stage")
    return [turn for turn in speeches if all(turn.get(mark) == speech.get(mark) for mark in marks)]
