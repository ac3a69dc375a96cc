"""A rehearsal: a few items through the very graphs of a run, every call answered by the offline judge.

No provider is called. What is heard is how long the prompts are, and whose model they would go to; the words that
the offline judge puts into them are not those of a language model, and stand for them as far as length goes. No
Critic is ever content, so that every debate is heard to its end.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...nodes.models.call import Call, Reply, Send
from ...nodes.models.capabilities import LOGPROBS, SEVERAL
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.resolver import OFFLINE, load
from ...nodes.models.send import Around, around_calls
from ...nodes.planner import steps_kept
from ...state.errors import UsageError
from .tokens import tokens_in


@dataclass
class Heard:
    """One call of a rehearsal: the ``number``-th of its role in one verdict."""

    role: str
    number: int
    model: LoadedModel
    form: str
    input_tokens: float
    several: int
    reply_tokens: float | None = None


class Listener(Around):
    """Has the offline judge answer every call, and takes down what was asked.

    Attributes:
        heard: the calls so far; those of each verdict are numbered once ``begin`` was called for it.
    """

    def __init__(self, stand_in: LoadedModel) -> None:
        self.heard: list[Heard] = []
        self._numbers: Counter[str] = Counter()
        self._stand_in = stand_in

    def begin(self) -> None:
        """Hear the next verdict."""
        self._numbers.clear()

    async def __call__(self, call: Call, send: Send) -> Reply:
        """The offline judge's reply, in the shape that the real model was asked for."""
        heard = self._noted(call)
        reply = await send(replace(call, model=self._stand_in, parameters={}))
        heard.reply_tokens = tokens_in(reply.text)
        return shaped(call, objecting(reply) if call.metadata["form"] == "critique" else reply)

    def _noted(self, call: Call) -> Heard:
        role = str(call.metadata["role"])
        self._numbers[role] += 1
        heard = Heard(
            role=role,
            number=self._numbers[role],
            model=call.model,
            form=str(call.metadata["form"]),
            input_tokens=_prompt_tokens(call),
            several=int(call.parameters.get(SEVERAL, 1)),
        )
        if not call.metadata.get("repair"):
            self.heard.append(heard)
        return heard


async def rehearse(graph: Any, tasks: Iterable[Mapping[str, Any]]) -> list[Heard]:
    """What the calls of these tasks would be.

    A task at which the offline judge fails is heard as far as it went.

    Raises:
        UsageError: what the run itself would stumble over at once.
    """
    listener, problem = Listener(load(OFFLINE, asyncio.get_running_loop())), None
    token = around_calls.set(listener)
    try:
        with steps_kept():
            for task in tasks:
                listener.begin()
                try:
                    await graph.ainvoke({"task": task})
                except UsageError:
                    raise
                except Exception as error:  # the judge that stands in plays no part in the run itself
                    problem = error
    finally:
        around_calls.reset(token)
    if problem is not None and not listener.heard:
        raise problem
    return listener.heard


def _prompt_tokens(call: Call) -> float:
    """Tokens of the messages, and of the reply's schema where one goes with them."""
    schema = json.dumps(call.schema, ensure_ascii=False) if call.schema else ""
    return sum(tokens_in(str(message.text)) for message in call.messages) + tokens_in(schema)


def shaped(call: Call, reply: Reply) -> Reply:
    """With all that the real model was asked for, since a model is not asked again for what it left out."""
    if call.parameters.get(LOGPROBS):
        lowest = f"{call.metadata['low']:g}"
        reply = replace(reply, text=lowest, tokens=[{"token": lowest, "logprob": 0.0}])
    further = int(call.parameters.get(SEVERAL, 1)) - 1
    return replace(reply, others=(replace(reply, requests=0),) * further)


def objecting(reply: Reply) -> Reply:
    said = reply.text.replace("NO ISSUE", "An objection")
    fields = {"feedback": said, "no_issue": False} if reply.fields is not None else None
    return replace(reply, text=said, fields=fields)
