"""chat: any protocol with messages in and out, for chat clients and A2A.

    prepare --a task--> judge --> END
        \\--unreadable--> END

``chat(graph)`` wraps any graph. ``graph`` in this module is served by LangGraph servers: its
setting ``of`` names the protocol. The last human message is the task, as JSON or in sections
(``FORM``). Each message is judged on its own: no agent is shown the conversation before it. The
agents' turns are messages with the agent's name, streamed as soon as they are made
(``stream_mode="messages"``). The last message is the verdict in words. A message that is not a task
is answered with the reason and the form.

Model calls: as many as the protocol inside makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.graph import END
from langgraph.graph.message import add_messages, push_message
from typing_extensions import TypedDict

from ...nodes.replies.json_fields import whole_object
from ...state.conversations import as_text, read_conversation
from ...state.errors import UsageError
from ...state.graph_state import GraphState, Outcome
from ...state.media import Media
from ...state.settings.wrapper_settings import ChatSettings
from ...state.tasks import CompareTask, ScoreTask, parse_task
from ...state.transcript import Turn
from ...state.verdict import outcome_in_words
from ..engine.options import AnyJudge
from ..engine.wrapper import GivenJudges, Judges, NestedJudges, Wrapper, gathered, wrapper_record

SUMMARY = (
    "any protocol in a chat: a message with the texts is answered with each agent's turn and the "
    "verdict in words"
)
ABOUT = f"{SUMMARY[0].upper()}{SUMMARY[1:]}. Takes score and compare tasks."
"""The description of the served graph."""

FORM = """\
Send the texts in one message, in one of these forms. A section begins at the start of a line, and \
the sections have this order.

To rate a text (leave out `Source` if the aspect does not need it):

```text
Aspect: consistency
Source: The bridge opened in 1932.
Candidate: The bridge opened in 1923.
```

To compare two answers:

```text
Question: Why is the sky blue?
Answer 1: Air scatters blue light more than red light.
Answer 2: It mirrors the sea.
```

To give other fields too, send the task as one JSON object and nothing else: \
`{"kind": "compare", "question": "...", "answer_1": "...", "answer_2": "...", "reference": "..."}`."""
"""The forms of a message, for the answer to a message in another form."""

_FORMS = (("aspect", "source", "candidate"), ("question", "answer_1", "answer_2"))
"""The sections of each form, in their order. The first section of a message selects the form."""


class ChatInput(TypedDict):
    """The input of a chat: messages, of which the last human one is the task."""

    messages: Annotated[list[AnyMessage], add_messages]


class ChatOutput(ChatInput):
    """The conversation with the agents' turns and the verdict; the verdict is None without a task."""

    verdict: dict[str, Any] | None


class ChatState(GraphState):
    """The state of a chat: the messages, and the state of the judge's outcome."""

    messages: Annotated[list[AnyMessage], add_messages]


def chat(graph: AnyJudge) -> Chat:
    """Build a graph that judges the texts in a chat message, not compiled.

    Args:
        graph: a protocol's name or graph, compiled or not; its bound settings and models stay.

    >>> graph = chat("single").compile()
    >>> said = graph.invoke({"messages": "Aspect: fluency\\nCandidate: It rained all day."})["messages"]
    >>> said[1].name, said[-1].text.partition(":")[0]
    ('scorer', 'fluency')
    """
    return Chat(GivenJudges(ChatSettings(), of=graph))


class Chat(Wrapper[ChatSettings]):
    """A graph that reads a task from a message, and answers with the turns and the verdict."""

    def __init__(self, judges: Judges[ChatSettings]) -> None:
        super().__init__(ChatState, judges, ChatInput, ChatOutput)

        def judged(state: ChatState, outcome: Outcome) -> dict[str, Any]:
            turns = [_message_of(turn, state) for turn in outcome["transcript"]]
            verdict = outcome["verdict"]
            told = [*turns, _verdict_message(verdict, parse_task(state["task"]), state)]
            return {"messages": told, "verdict": verdict, **gathered(outcome)}

        def is_task(state: ChatState) -> str:
            return "task" if state.get("task") else "unreadable"

        self.judge("judge", "of", judged, then=END, hear=_hear)
        self.fork("prepare", is_task, {"task": "judge", "unreadable": END})

    def prepared(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Read the task in the last human message; an unreadable message is answered."""
        try:
            task = parse_task(task_in(given.get("messages") or ()))
        except UsageError as error:
            reply = AIMessage(f"Nothing was judged: {error}\n\n{FORM}", name="verdict")
            return {"task": None, "messages": [reply]}
        return {"task": self.checked(task).model_dump(mode="json"), "messages": []}


def task_in(messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return the fields of the task in the last human message.

    Raises:
        UsageError: the conversation has no human message, or the message has another form.

    >>> task_in([HumanMessage("Question: Why?\\nAnswer 1: Rain.\\nAnswer 2: Snow.")])["answer_2"]
    'Snow.'
    """
    asked = [message for message in messages if isinstance(message, HumanMessage)]
    if not asked:
        raise UsageError("the conversation has no message of a human.")
    media: Media = {}
    text = as_text(read_conversation(asked[-1:], "messages", media=media)).strip()
    if text.startswith(("{", "```")):
        fields = whole_object(text)
        if fields is None:
            raise UsageError("the message is not one JSON object and nothing else.")
        # The input of the protocols' own graphs.
        inside = fields.get("task")
        return inside if set(fields) == {"task"} and isinstance(inside, dict) else fields
    return {**_sections(text), **({"media": media} if media else {})}


def _sections(text: str) -> dict[str, str]:
    """Read the sections of a message.

    Only sections of the message's form count, each once and in order. A text that contains another
    line like a section's beginning could be read in two ways, so it is refused.
    """
    for form in _FORMS:
        titles = [name.replace("_", " ") for name in form]
        beginning = re.compile(rf"^({'|'.join(titles)}):", re.IGNORECASE | re.MULTILINE)
        found = list(beginning.finditer(text))
        if not (found and found[0].start() == 0 and found[0][1].lower() == titles[0]):
            continue
        names = [match[1].lower().replace(" ", "_") for match in found]
        wanted = [name for name in form if name != "source" or name in names]
        if names != wanted:
            has = ", ".join(name.replace("_", " ").capitalize() for name in names)
            raise UsageError(
                f"the message has the sections {has}. Each section must be there once and in "
                "order. If a text contains such a line itself, send the task as JSON."
            )
        ends = [*(match.start() for match in found[1:]), len(text)]
        return {
            name: text[match.end() : end].strip()
            for name, match, end in zip(names, found, ends, strict=True)
        }
    raise UsageError("the message does not begin with a section, and is not a JSON object.")


def _hear(state: ChatState, event: Any) -> None:
    """Stream a turn as a message; unreadable replies come with a problem and are asked for again."""
    if event.get("problem") is None:
        push_message(_message_of(event["turn"], state), state_key=None)


def _message_of(turn: Turn, state: ChatState) -> AIMessage:
    words = turn["content"] or f"(no words: {turn.get('problem') or 'an empty reply'})"
    about = {"turn": turn["id"], "round": turn["round"], "value": turn["value"]}
    return AIMessage(words, name=turn["agent"], id=_id(state, turn["id"]), additional_kwargs=about)


def _verdict_message(
    verdict: Mapping[str, Any], task: ScoreTask | CompareTask, state: ChatState
) -> AIMessage:
    head = outcome_in_words(verdict, task.aspect if isinstance(task, ScoreTask) else None)
    parts = [head, verdict.get("explanation") or "", *verdict.get("warnings", ())]
    return AIMessage(
        "\n\n".join(filter(None, parts)),
        name="verdict",
        id=_id(state, "verdict"),
        additional_kwargs={"verdict": verdict},
    )


def _id(state: ChatState, part: str) -> str:
    """Return a message's id, which contains the id of the human's message.

    Without it, the turns of a thread's next task would replace those of the last one.
    """
    asked = [message.id for message in state["messages"] if isinstance(message, HumanMessage)]
    return f"{asked[-1]}/{part}"


graph = Chat(
    NestedJudges(
        wrapper_record(ChatSettings, name="chat", summary=SUMMARY, source="composition"),
        None,
        None,
        {},
    )
).compile(name="chat")
