"""Every branch of DEBATE's loop, call for call, with a scripted model (the paper's six steps, Algorithm 1)."""

from __future__ import annotations

from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import OwnText, debate, multiagent
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import Verdict
from jurygraph.state.errors import InputError
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from .sample_data import SCORE_TASK


def objections(count: int) -> list[str]:
    return [f"Objection {number}: the score is too kind." for number in range(1, count + 1)]


def scores(*values: float) -> list[str]:
    return [f"Reasons for {value:g}.\nScore: {value:g}" for value in values]


def hold(
    script: dict[str, list[Any]], task: Any = None, **settings: Any
) -> tuple[Verdict, ScriptedModel, list[Any]]:
    model = ScriptedModel(script=script)
    graph = debate.build(models={"*": model}, **{"structured": "off", **settings}).compile()
    result = graph.invoke({"task": task or SCORE_TASK})
    return Verdict.of(result), model, result["transcript"]


def who(model: ScriptedModel) -> list[str]:
    return [call.metadata["role"] for call in model.calls]


def test_every_message_passes_through_the_commander() -> None:
    _, _, transcript = hold({"scorer": scores(5, 4), "critic": [*objections(1), "NO ISSUE"]})
    agents = [turn["agent"] for turn in transcript]
    assert agents == ["commander", "scorer", "commander", "critic"] * 2
    assert [turn["round"] for turn in transcript] == [0, 0, 1, 1, 1, 1, 2, 2]


def test_a_persona_of_ones_own_is_told_to_the_critic_alone_and_shown_in_the_signature() -> None:
    nurse = OwnText("You are a nurse who looks for harm.")
    _, model, _ = hold({"scorer": scores(5), "critic": ["NO ISSUE"]}, persona=f" {nurse} ")
    assert [nurse in call.prompt for call in model.calls] == [False, True]
    assert "simply declare NO ISSUE" in model.calls[1].prompt
    done = evaluate("debate", "demo", limit=1, aspects=["fluency"], settings={"persona": nurse})
    assert f"|persona:{nurse}|" in done.manifest["signatures"]["debate"]
    assert nurse in str(done.manifest)


@pytest.mark.parametrize(
    ("persona", "words"),
    [
        ("stric", "or several words in one line .* did you mean strict"),
        ("nurse", "'strict', 'moderate', 'weak', 'plain', 'sophisticated', or several words"),
        ("You are a nurse.\nSay NO ISSUE.", "in one line"),
        ("You look for harm. " * 40, "at most 500 characters"),
        ("", "several words"),
    ],
)
def test_a_misspelt_persona_does_not_become_one(persona: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        debate.build(persona=persona)


def test_multiagent_is_debate_with_the_plain_persona() -> None:
    model = ScriptedModel(script={"scorer": scores(5), "critic": ["NO ISSUE"]})
    result = multiagent.build(models={"*": model}, structured="off").compile().invoke({"task": SCORE_TASK})
    assert result["verdict"]["protocol"] == "multiagent"
    assert "devil's advocate" not in model.calls[1].prompt


def unresolved_with_a_human(task: Any, script: dict[str, list[Any]]) -> tuple[Any, Any]:
    graph = debate.build(
        models={"*": ScriptedModel(script=script)}, n=1, on_unresolved="human", structured="off"
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    return graph, (config, graph.invoke({"task": task}, config))


def test_a_human_decides() -> None:
    graph, (config, paused) = unresolved_with_a_human(
        SCORE_TASK, {"scorer": scores(5, 4), "critic": objections(1)}
    )
    question = paused["__interrupt__"][0].value
    assert (question["low"], question["high"], question["scores"]) == (1, 5, [5.0, 4.0])
    assert [entry["agent"] for entry in question["log"]] == ["scorer", "critic", "scorer"]
    result = graph.invoke(Command(resume=2), config)
    assert (result["verdict"]["score"], result["verdict"]["stop_reason"]) == (2.0, "human")
    assert result["transcript"][-1]["agent"] == "human"


def test_settings_of_a_run_win_over_those_bound_and_only_where_set() -> None:
    model = ScriptedModel(
        script={"scorer": scores(5, 4, 3), "critic": objections(2), "tie_breaker": scores(1)}
    )
    graph = debate.build(models={"*": model}, structured="off", n=1, tie_breaker=True).compile()
    result = graph.invoke({"task": SCORE_TASK}, context={"n": 2})
    assert (result["verdict"]["rounds"], result["verdict"]["stop_reason"]) == (2, "tie_breaker")
