"""Define a protocol in one file: the mean score of three scorers who do not read each other.

Run it with ``python examples/own_protocol.py``. It prints each score. Commands take the path as a
name: ``jurygraph run examples/own_protocol.py,single --data demo``. It needs no key: without a
model, scores come from word counts. ``docs/own-protocol.md`` explains each part.
"""

from collections.abc import Mapping
from typing import Any

from jurygraph.graphs import protocol as parts

NAMES = ["scorer_1", "scorer_2", "scorer_3"]

protocol = parts.Protocol(
    name="mean_of_three",
    summary="the mean of three scorers who do not read each other",
    source="an example",
    kinds=("score",),
    roles=("scorer",),
    settings=parts.Settings,
    prompts=("shared", "debate"),
    calls=lambda _settings, _kind, _can: {"scorer": parts.exactly(len(NAMES))},
)


async def scorer(state: parts.AgentState, runtime: parts.AgentRuntime[Any]) -> dict[str, Any]:
    """Ask one scorer. Its prompt has the texts and the rubric, then its own instruction."""
    task = parts.task_of(state)
    own = runtime.prompts.instruction("debate/scorer_first", wanted=parts.requested_output(task))
    prompt = parts.build_prompt(state, runtime.prompts, own)
    schema = parts.score_schema(task)
    details = parts.call_metadata(task)
    question = parts.Question(state["agent"], "scorer", 1, prompt, schema, details)
    answer = await runtime.ask(question)
    return answer.update


def build(
    settings: parts.Settings | Mapping[str, Any] | None = None,
    models: parts.Models | None = None,
    **fields: Any,
) -> parts.ProtocolGraph[parts.Settings]:
    """Build the graph, uncompiled."""
    graph = parts.ProtocolGraph(protocol, parts.Settings, settings, models, fields)
    graph.panel("scorer", scorer, lambda _state, _settings: NAMES)
    return graph


graph = build().compile(name="mean_of_three")

if __name__ == "__main__":
    text = "It snowed."
    task = {"kind": "score", "source": text, "candidate": text, "aspect": "consistency"}
    result = graph.invoke({"task": task})
    for turn in result["transcript"]:
        print(turn["agent"], turn["value"])
    print("score:", result["verdict"]["score"], "after", result["verdict"]["calls"], "calls")
