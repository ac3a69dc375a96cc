"""Test a judge as a reward function, by the contract of TRL's trainers."""

import asyncio
import inspect
import logging
from typing import Any

import pytest
from jurygraph import LimitError, UsageError, create_async_judge, create_judge
from jurygraph.adapters.trl import reward
from jurygraph.nodes.models.scripted_model import ScriptedModel

PROMPT = "What was the weather?"
TRL: dict[str, Any] = {"completion_ids": [[1]], "trainer_state": None, "log_extra": None}


def by_length(_about: Any, prompt: str) -> str:
    """Score a text by its number of exclamation marks, and refuse one about hail."""
    if "hail" in prompt:
        return "I cannot say."
    if "answer 2" not in prompt.lower():
        return f"Score: {1 + prompt.count('!')}"
    first, _, second = prompt.partition("===")
    return f"Score of answer 1: {first.count('!')}\nScore of answer 2: {second.count('!')}"


def rated(make: Any = create_judge, *, given: dict[str, Any] | None = None, **options: Any) -> Any:
    model = ScriptedModel(script=by_length)
    settings = {"aspect": "fluency", "model": model, "structured": "off", "repair": 0}
    return reward(make("single", **settings, **(given or {})), **options)


def called(judged: Any, completions: list[Any], **columns: Any) -> list[float | None]:
    prompts = columns.pop("prompts", [PROMPT] * len(completions))
    found: list[float | None] = asyncio.run(
        judged(prompts=prompts, completions=completions, **TRL, **columns)
    )
    return found


def test_trl_finds_an_async_function_with_the_name_of_the_score() -> None:
    judged = rated(given={"key": "style"})
    assert inspect.iscoroutinefunction(judged)
    assert judged.__name__ == "style"


@pytest.mark.parametrize("make", [create_judge, create_async_judge])
def test_rewards_are_scores_in_order(make: Any) -> None:
    assert called(rated(make), ["It rained!!", "It rained.", "It rained!"]) == [3, 1, 2]


def test_a_failure_and_an_empty_completion_have_no_reward(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noted: dict[str, float] = {}
    texts = ["It rained!", "Some hail.", " \n"]
    with caplog.at_level(logging.WARNING, "jurygraph.adapters"):
        assert called(rated(), texts, log_metric=noted.__setitem__) == [2, None, None]
    assert "no reward for 1 of 3 completions" in caplog.text
    assert noted == {"fluency/without_reward": 2.0}
    assert called(rated(empty=1.0), ["", "It rained!"]) == [1.0, 2]


def test_a_spent_budget_ends_the_training() -> None:
    with pytest.raises(LimitError, match="at most 2 calls"):
        called(rated(given={"max_calls": 2}), ["It rained."] * 4)


def test_messages_are_judged_with_their_tool_calls() -> None:
    prompts: list[str] = []

    def seen(_about: Any, prompt: str) -> str:
        prompts.append(prompt)
        return "Score: 3"

    model = ScriptedModel(script=seen)
    judged = reward(create_judge("single", aspect="fluency", model=model, structured="off"))
    asked = [{"role": "system", "content": "Be short."}, {"role": "user", "content": PROMPT}]
    call = {"id": "1", "function": {"name": "radar", "arguments": "{}"}}
    tools = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "clouds"},
        {"role": "assistant", "content": "It rained."},
    ]
    said = [[{"role": "assistant", "content": "It poured."}], tools]
    empty = [[{"role": "assistant", "content": ""}]]
    assert called(judged, [*said, *empty], prompts=[asked] * 3) == [3, 3, None]
    assert any("It poured." in prompt and PROMPT in prompt for prompt in prompts)
    assert any("clouds" in prompt and "radar" in prompt for prompt in prompts)


def test_columns_are_shown_ignored_or_refused() -> None:
    texts = ["It rained!", "It rained."]
    columns: dict[str, Any] = {"answer": ["Rain!", "Rain!!"], "id": [1, 2]}
    judged = rated(columns={"reference_outputs": "answer"}, ignore=["id"])
    assert called(judged, texts, **columns) == [3, 3]
    assert called(rated(), texts, reference_outputs=["Rain!", "Rain."]) == [3, 1]
    with pytest.raises(UsageError, match=r"would not see the column 'answer'.*ignore"):
        called(rated(ignore=["id"]), texts, **columns)
    with pytest.raises(UsageError, match="no column 'gold'"):
        called(rated(columns={"reference_outputs": "gold"}), texts)


def comparing(**options: Any) -> Any:
    def compared(_about: Any, prompt: str) -> str:
        if "hail" in prompt:
            return "I cannot say."
        texts = [line for line in prompt.splitlines() if line.startswith("It rained")]
        first, second = (text.count("!") for text in texts)
        return f"Score of answer 1: {1 + first}\nScore of answer 2: {1 + second}"

    model = ScriptedModel(script=compared)
    judge = create_judge("single", model=model, structured="off", repair=0)
    return reward(judge, **options)


@pytest.mark.parametrize("rule", ["borda", "condorcet"])
def test_a_comparing_judge_gives_rewards_relative_to_the_group(rule: Any) -> None:
    texts = ["It rained!!", "It rained.", "It rained!", "It rained!", "It rained!!!"]
    prompts = [PROMPT] * 3 + ["And then?"] * 2
    assert called(comparing(rule=rule), texts, prompts=prompts) == [1, 0, 0.5, 0, 1]


def test_a_comparison_that_fails_gives_its_group_no_reward() -> None:
    texts = ["It rained!", "Some hail.", "It rained!", "It rained.", "It rained."]
    prompts = ["Why?", "Why?", PROMPT, PROMPT, "Alone?"]
    assert called(comparing(), texts, prompts=prompts) == [None, None, 1, 0, None]
    with pytest.raises(UsageError, match="context: completions are compared"):
        called(comparing(), texts[2:4], context=["a", "a"])


@pytest.mark.parametrize(
    ("judge", "options", "told"),
    [
        ("debate", {}, "takes a judge from create_judge"),
        (create_judge("single", model="offline"), {"rule": "majority"}, "borda or condorcet"),
        (create_judge("single", model="offline"), {"concurrency": 0}, "1 or more"),
    ],
)
def test_mistakes_are_told(judge: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        reward(judge, **options)
