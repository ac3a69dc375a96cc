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

SCORE_TASK: dict[str, Any] = {
    "kind": "score",
    "source": "The kiln was lit at dawn and burned for two days.",
    "candidate": "The kiln burned for two days.",
    "aspect": "consistency",
}
COMPARE_TASK: dict[str, Any] = {
    "kind": "compare",
    "question": "Why do kilns need two days?",
    "answer_1": "Clay must heat slowly, or it cracks.",
    "answer_2": "They do not.",
}


def objections(count: int) -> list[str]:
    return [f"Objection {number}: the score is too kind." for number in range(1, count + 1)]


def scores(*values: float) -> list[str]:
    return [f"Reasons for {value:g}.\nScore: {value:g}" for value in values]


def pairs(*values: tuple[float, float]) -> list[str]:
    return [f"Reasons.\nScore of answer 1: {one:g}\nScore of answer 2: {two:g}" for one, two in values]


def hold(
    script: dict[str, list[Any]], task: Any = None, **settings: Any
) -> tuple[Verdict, ScriptedModel, list[Any]]:
    model = ScriptedModel(script=script)
    graph = debate.build(models={"*": model}, **{"structured": "off", **settings}).compile()
    result = graph.invoke({"task": task or SCORE_TASK})
    return Verdict.of(result), model, result["transcript"]


def who(model: ScriptedModel) -> list[str]:
    return [call.metadata["role"] for call in model.calls]


@pytest.mark.parametrize("i", [1, 2, 3, 4])
def test_no_issue_in_round_i_takes_2i_calls(i: int) -> None:
    values = [5.0, 4.0, 3.0, 2.0][:i]
    verdict, model, _ = hold({"scorer": scores(*values), "critic": [*objections(i - 1), "Fine.\nNO ISSUE"]})
    assert who(model) == ["scorer", "critic"] * i
    assert verdict.calls == 2 * i
    assert (verdict.stop_reason, verdict.rounds) == ("no_issue", i)
    assert verdict.score_by_round == tuple(values)
    assert verdict.score == values[-1]


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_unresolved_takes_2n_plus_1_calls_and_the_last_score(n: int) -> None:
    values = [float(1 + k % 5) for k in range(n + 1)]
    verdict, model, _ = hold({"scorer": scores(*values), "critic": objections(n)}, n=n)
    assert who(model) == ["scorer", "critic"] * n + ["scorer"]
    assert (verdict.stop_reason, verdict.rounds, verdict.calls) == ("max_rounds", n, 2 * n + 1)
    assert verdict.score_by_round == tuple(values)
    assert verdict.score == values[-1]


@pytest.mark.parametrize("persona", ["strict", "plain"])
def test_tie_breaker_takes_one_more_call_and_overrules(persona: str) -> None:
    script = {"scorer": scores(5, 4, 4), "critic": objections(2), "tie_breaker": scores(2)}
    verdict, model, transcript = hold(script, n=2, tie_breaker=True, persona=persona)
    assert who(model) == ["scorer", "critic", "scorer", "critic", "scorer", "tie_breaker"]
    assert (verdict.stop_reason, verdict.score, verdict.calls) == ("tie_breaker", 2.0, 6)
    assert verdict.score_by_round == (5.0, 4.0, 4.0)
    assert transcript[-1]["agent"] == "tie_breaker"


def test_a_resolved_debate_needs_no_tie_breaker() -> None:
    verdict, model, _ = hold({"scorer": scores(3), "critic": ["NO ISSUE"]}, tie_breaker=True)
    assert (verdict.stop_reason, who(model)) == ("no_issue", ["scorer", "critic"])


def test_a_writing_commander_doubles_the_calls_but_not_the_tie_breakers() -> None:
    script = {
        "scorer": scores(5, 4),
        "critic": objections(1),
        "tie_breaker": scores(3),
        "commander": ["Brief.", "To the Critic.", "To the Scorer."],
    }
    verdict, model, _ = hold(script, n=1, tie_breaker=True, commander="llm")
    assert who(model) == ["commander", "scorer", "commander", "critic", "commander", "scorer", "tie_breaker"]
    assert verdict.calls == 7


def test_the_commanders_words_accompany_what_it_hands_over() -> None:
    script = {
        "scorer": scores(5),
        "critic": ["NO ISSUE"],
        "commander": ["Mind the dates.", "Mind the reasons."],
    }
    _, model, _ = hold(script, commander="llm")
    scorer, critic = (call for call in model.calls if call.metadata["role"] != "commander")
    assert "Mind the dates." in scorer.prompt
    assert "Mind the reasons." in critic.prompt
    assert "Reasons for 5." in critic.prompt


def test_every_message_passes_through_the_commander() -> None:
    _, _, transcript = hold({"scorer": scores(5, 4), "critic": [*objections(1), "NO ISSUE"]})
    agents = [turn["agent"] for turn in transcript]
    assert agents == [
        "commander",
        "scorer",
        "commander",
        "critic",
        "commander",
        "scorer",
        "commander",
        "critic",
    ]
    assert [turn["round"] for turn in transcript] == [0, 0, 1, 1, 1, 1, 2, 2]


def test_who_is_shown_what() -> None:
    script = {"scorer": scores(5, 2), "critic": objections(1), "tie_breaker": scores(3)}
    _, model, _ = hold(script, n=1, tie_breaker=True)
    first, critic, second, tie_breaker = (call.prompt for call in model.calls)
    for prompt in (first, critic, second, tie_breaker):
        assert SCORE_TASK["source"] in prompt
        assert SCORE_TASK["candidate"] in prompt
        assert "agrees with the article in its facts" in prompt
    assert "Reasons for 5." not in first
    assert "Reasons for 5." in critic
    assert "Objection 1" in second
    assert all(words in tie_breaker for words in ("Reasons for 5.", "Objection 1", "Reasons for 2."))


def test_what_agents_share_comes_first_and_byte_for_byte() -> None:
    _, model, _ = hold({"scorer": scores(5, 2), "critic": [*objections(1), "NO ISSUE"]})
    material = model.calls[0].prompt.partition("Commander to Scorer")[0]
    assert len(material) > 500
    assert all(call.prompt.startswith(material) for call in model.calls)


def test_personas_speak_differently() -> None:
    prompts = set()
    for persona in ("strict", "moderate", "weak", "plain", "sophisticated"):
        _, model, _ = hold({"scorer": scores(5), "critic": ["NO ISSUE"]}, persona=persona)
        prompts.add(model.calls[1].prompt)
        assert ("devil's advocate" in model.calls[1].prompt) is (persona != "plain")
    assert len(prompts) == 5


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


def test_a_mention_of_the_token_does_not_end_the_debate_unless_taken_literally() -> None:
    script = {"scorer": scores(5, 4), "critic": ["I cannot say NO ISSUE yet: the dates are off.", "NO ISSUE"]}
    declared, _, _ = hold(script)
    literal, _, _ = hold(script, termination="substring")
    assert (declared.rounds, literal.rounds) == (2, 1)


def test_structured_replies_make_the_same_debate() -> None:
    script = {
        "scorer": [{"reasoning": "Good.", "score": 5}, {"reasoning": "Less good.", "score": 4}],
        "critic": [{"feedback": "Too kind.", "no_issue": False}, {"feedback": "Yes.", "no_issue": True}],
    }
    verdict, _, transcript = hold(script, structured="auto")
    assert (verdict.stop_reason, verdict.score_by_round) == ("no_issue", (5.0, 4.0))
    said = [turn["content"] for turn in transcript if turn["model"]]
    assert said == ["Good.\nScore: 5", "Too kind.", "Less good.\nScore: 4", "Yes.\nNO ISSUE"]


def test_comparison() -> None:
    script = {"scorer": pairs((8, 3), (7, 7)), "critic": [*objections(1), "NO ISSUE"]}
    verdict, _, _ = hold(script, task=COMPARE_TASK)
    assert (verdict.scores, verdict.winner, verdict.score) == ((7.0, 7.0), "tie", None)
    assert verdict.score_by_round == ((8.0, 3.0), (7.0, 7.0))


@pytest.mark.parametrize(("pair", "winner"), [((8, 3), "1"), ((3, 8), "2"), ((5, 5), "tie")])
def test_the_higher_score_wins(pair: tuple[float, float], winner: str) -> None:
    verdict, _, _ = hold({"scorer": pairs(pair), "critic": ["NO ISSUE"]}, task=COMPARE_TASK)
    assert verdict.winner == winner


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


def test_a_human_who_is_off_the_scale_is_asked_again() -> None:
    graph, (config, _) = unresolved_with_a_human(
        SCORE_TASK, {"scorer": scores(5, 4), "critic": objections(1)}
    )
    again = graph.invoke(Command(resume=9), config)
    assert "off the scale" in again["__interrupt__"][0].value["problem"]
    assert graph.invoke(Command(resume={"score": 3}), config)["verdict"]["score"] == 3.0


@pytest.mark.parametrize("answer", [[8, 6], {"score_1": 8, "score_2": 6}, "(8, 6)"])
def test_a_human_compares(answer: Any) -> None:
    graph, (config, _) = unresolved_with_a_human(
        COMPARE_TASK, {"scorer": pairs((5, 5), (4, 5)), "critic": objections(1)}
    )
    assert graph.invoke(Command(resume=answer), config)["verdict"]["winner"] == "1"


def test_a_thread_used_again_starts_afresh() -> None:
    model = ScriptedModel(script={"scorer": scores(5, 3), "critic": ["NO ISSUE", "NO ISSUE"]})
    graph = debate.build(models={"*": model}, structured="off").compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    first, second = (graph.invoke({"task": SCORE_TASK}, config) for _ in range(2))
    assert len(first["transcript"]) == len(second["transcript"]) == 4
    assert second["verdict"]["score_by_round"] == [3.0]


def test_settings_of_a_run_win_over_those_bound_and_only_where_set() -> None:
    model = ScriptedModel(
        script={"scorer": scores(5, 4, 3), "critic": objections(2), "tie_breaker": scores(1)}
    )
    graph = debate.build(models={"*": model}, structured="off", n=1, tie_breaker=True).compile()
    result = graph.invoke({"task": SCORE_TASK}, context={"n": 2})
    assert (result["verdict"]["rounds"], result["verdict"]["stop_reason"]) == (2, "tie_breaker")
