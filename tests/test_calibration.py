"""Both orders of two answers, weighed as one: ``calibrated(graph)`` around any protocol (PROTOCOLS, section 3)."""

from __future__ import annotations

from typing import Any

import pytest
from jurygraph.graphs import calibrated, debate, multiagent
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import UsageError, Verdict

from .sample_data import COMPARE_TASK as TASK
from .sample_data import SCORE_TASK
from .virtual_time import InFlight


def straight_in(prompt: str) -> bool:
    """Whether a prompt shows the answers in the task's order."""
    return prompt.index(TASK["answer_1"]) < prompt.index(TASK["answer_2"])


def pair(one: float, two: float) -> dict[str, Any]:
    return {"reasoning": "So.", "score_1": one, "score_2": two}


def fixed(straight: tuple[float, float], mirrored: tuple[float, float], objections: int = 0) -> ScriptedModel:
    """A judge with a score for each order (``mirrored`` as it says it), and a critic who objects in the second."""
    left = objections

    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        nonlocal left
        in_order = straight_in(prompt)
        if metadata["form"] == "critique":
            objects = not in_order and left > 0
            left -= objects
            return {"feedback": "Hm.", "no_issue": not objects}
        return pair(*(straight if in_order else mirrored))

    return ScriptedModel(script=script)


def hold(model: Any, task: Any = None, protocol: Any = debate, **settings: Any) -> tuple[Verdict, list[Any]]:
    graph = calibrated(protocol.build(models={"*": model}, **settings)).compile()
    result = graph.invoke({"task": task or TASK})
    assert set(result) == {"verdict", "transcript"}
    return Verdict.of(result), result["transcript"]


def test_a_judge_of_places_is_found_out() -> None:
    """It always prefers what stands first: the averages are equal, and the verdict says why."""
    verdict, _ = hold(fixed((9, 3), (9, 3)))
    assert (verdict.scores, verdict.winner) == ((6.0, 6.0), "tie")
    assert verdict.position_consistent is False
    assert verdict.details["winner_by_order"] == ["1", "2"]
    assert verdict.details["scores_by_order"] == [[9, 3], [3, 9]]
    [warning] = [text for text in verdict.warnings if "position inconsistency" in text]
    assert "answer 1 wins with the answers in the given order, answer 2 wins with them swapped" in warning


def test_a_judge_of_contents_is_consistent() -> None:
    verdict, _ = hold(fixed((9, 3), (4, 8)))
    assert (verdict.scores, verdict.winner, verdict.position_consistent) == ((8.5, 3.5), "1", True)
    assert verdict.details["winner_by_order"] == ["1", "1"]
    assert verdict.details["calibrated"] is True
    assert verdict.warnings == ()


@pytest.mark.parametrize("protocol", [debate, multiagent])
@pytest.mark.parametrize(
    ("straight", "mirrored", "winner", "consistent"),
    [
        ((9, 3), (7, 6), "1", False),
        ((6, 7), (3, 9), "1", False),
        ((5, 5), (5, 5), "tie", True),
        ((5, 5), (6, 5), "2", False),
    ],
)
def test_the_higher_average_wins(
    straight: Any, mirrored: Any, winner: str, consistent: bool, protocol: Any
) -> None:
    model = InFlight(script=fixed(straight, mirrored).script, expected=2)
    verdict, _ = hold(model, protocol=protocol)
    assert (verdict.winner, verdict.position_consistent) == (winner, consistent)
    assert (verdict.protocol, verdict.kind) == (protocol.protocol.name, "compare")
    assert model.most_at_once == 2, "both orders side by side"


def test_turns_of_both_orders_in_turn_with_values_in_the_tasks_order() -> None:
    model = fixed((9, 3), (4, 8))
    verdict, transcript = hold(model)
    agents = ["commander", "scorer", "commander", "critic"]
    assert [(turn["agent"], turn["order"]) for turn in transcript] == [
        *((agent, 1) for agent in agents),
        *((agent, 2) for agent in agents),
    ]
    values = [turn["value"] for turn in transcript if turn["agent"] == "scorer"]
    assert values == [[9, 3], [8, 4]]
    said = [turn["content"] for turn in transcript if turn["agent"] == "scorer"]
    assert said[1] == "So.\nScore of answer 1: 4\nScore of answer 2: 8", "words stay as they were said"
    assert [turn["value"] for turn in transcript if turn["agent"] == "critic"] == [True, True]
    assert verdict.calls == len(model.calls) == 4


def test_orders_of_different_lengths() -> None:
    verdict, _ = hold(fixed((9, 3), (4, 8), objections=2), n=4)
    assert verdict.rounds == 3
    assert verdict.score_by_round == ((8.5, 3.5),) * 3
    assert verdict.stop_reason == "no_issue"
    assert verdict.calls == 2 + 6


def test_the_stop_reason_is_one_that_both_orders_share() -> None:
    def never_content(metadata: Any, prompt: str) -> dict[str, Any]:
        return {"feedback": "No.", "no_issue": False} if metadata["form"] == "critique" else pair(5, 5)

    resolved, _ = hold(fixed((9, 3), (4, 8), objections=9), n=1)
    unresolved, _ = hold(ScriptedModel(script=never_content), n=1)
    assert (resolved.stop_reason, unresolved.stop_reason) == ("complete", "max_rounds")


def test_usage_and_warnings_are_those_of_both_orders() -> None:
    def clumsy(metadata: Any, prompt: str) -> Any:
        if metadata["form"] == "critique":
            return "NO ISSUE"
        if not metadata["repair"] and not straight_in(prompt):
            return "Well."
        return "Score of answer 1: 7\nScore of answer 2: 7"

    verdict, transcript = hold(ScriptedModel(script=clumsy), structured="off")
    assert verdict.calls == 5 == sum(turn["calls"] for turn in transcript)
    assert any("asked for again" in warning for warning in verdict.warnings)


def test_a_score_task_is_refused_before_any_call() -> None:
    model = fixed((9, 3), (3, 9))
    with pytest.raises(UsageError, match="swaps two answers"):
        hold(model, SCORE_TASK)
    assert model.calls == []


def test_around_itself() -> None:
    """Orders count from the task: what was swapped twice stands as in the task."""
    model = fixed((9, 3), (4, 8))
    once = calibrated(debate.build(models={"*": model}))
    result = calibrated(once).compile().invoke({"task": TASK})
    assert (result["verdict"]["scores"], result["verdict"]["calls"]) == ([8.5, 3.5], 8)
    scorers = [turn for turn in result["transcript"] if turn["agent"] == "scorer"]
    assert [turn["order"] for turn in scorers] == [1, 2, 2, 1]
    assert [turn["value"] for turn in scorers] == [[9, 3], [8, 4], [8, 4], [9, 3]]
