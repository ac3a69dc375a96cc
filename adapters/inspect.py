"""A judge as a scorer of Inspect (``inspect_ai``)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .host_judge import AnyJudge, HostJudge

try:
    from inspect_ai.model import ChatMessage
    from inspect_ai.scorer import Score, Scorer, Target, mean, stderr
    from inspect_ai.scorer import scorer as inspect_scorer
    from inspect_ai.solver import TaskState
except ImportError as error:
    raise ImportError(
        'jurygraph.adapters.inspect needs Inspect: pip install "jurygraph[inspect]"'
    ) from error


def scorer(judge: AnyJudge, *, scaled: bool = False) -> Scorer:
    """Return a scorer for ``Task(scorer=...)``.

    The judge is shown the sample's input, the model's completion and, as the reference, the
    target. If tools were called, it is shown the whole conversation. The score has the explanation,
    and its metadata the verdict. A judgement that fails is the sample's error.

    Args:
        judge: a judge from ``create_judge`` with an aspect.
        scaled: hand over the score from 0 to 1, instead of on the aspect's scale. The metadata has
            both.

    Raises:
        UsageError: it is not such a judge.
    """
    host = HostJudge.of(judge, "inspect.scorer")
    name = re.sub(r"\W+", "_", host.judge.key)

    # The log names the scorer with these arguments.
    @inspect_scorer(metrics=[mean(), stderr()], name=name)
    def jurygraph_judge(protocol: str, scale: str) -> Scorer:  # noqa: ARG001
        async def score(state: TaskState, target: Target) -> Score:
            reference = target.text or None
            found = await host.ajudged(**_shown(state), reference_outputs=reference)
            return Score(
                value=found.scaled if scaled else found.score,
                answer=state.output.completion,
                explanation=found.explanation,
                metadata={
                    "score": found.score,
                    "scaled": found.scaled,
                    "scale": host.scale,
                    "verdict": dict(found.verdict),
                },
            )

        return score

    return jurygraph_judge(host.judge.name, "0 to 1" if scaled else host.scale)


def _shown(state: TaskState) -> dict[str, Any]:
    """Return the arguments of a judge for a sample."""
    if any(message.role == "tool" for message in state.messages):
        return {"outputs": _messages(state.messages)}
    asked = state.input if isinstance(state.input, str) else _messages(state.input)
    return {"inputs": asked, "outputs": state.output.completion}


def _messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages in OpenAI's form, which judges read."""
    return [_message(message) for message in messages]


def _message(message: ChatMessage) -> dict[str, Any]:
    content: Any = message.content
    if not isinstance(content, str):
        content = [part.model_dump(exclude_none=True) for part in content]
    form: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        form["tool_call_id"] = message.tool_call_id
    if message.role == "assistant" and message.tool_calls:
        form["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return form
