"""Test DEBATE call by call, through the providers' own clients and over sockets."""

import asyncio
from itertools import combinations
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import OwnText, multiagent
from jurygraph.nodes.models import resolver
from jurygraph.nodes.runtime.debate_prompts import turns_without_messages
from jurygraph.state.transcript import turn_without_model

from .loopback import Provider
from .loopback_debate import (
    COMPARE_TASK,
    OPENAI,
    SCORE_TASK,
    Debaters,
    google,
    run,
    speaker,
    speakers,
)

ROUND = ["scorer", "critic"]
LED_ROUND = ["commander", "scorer", "commander", "critic"]
LED: dict[str, Any] = {"commander": "llm", "n": 1, "on_unresolved": "tie_breaker"}
PAIRS = ((7, 5), (6, 6), (8, 3), (4, 9), (5, 5))

# Settings, the round in which the Critic is satisfied, the agents asked, the stop reason, rounds,
# and which score counts.
TRACES: dict[str, tuple[dict[str, Any], int | None, list[str], str, int]] = {
    "no issue in round 1": ({}, 1, ROUND, "no_issue", 1),
    "no issue in round 3": ({}, 3, ROUND * 3, "no_issue", 3),
    "no issue in the last round": ({"n": 2}, 2, ROUND * 2, "no_issue", 2),
    "unresolved": ({}, None, [*ROUND * 4, "scorer"], "max_rounds", 4),
    "tie-breaker": (
        {"tie_breaker": True},
        None,
        [*ROUND * 4, "scorer", "tie-breaker"],
        "tie_breaker",
        4,
    ),
    "led": ({"commander": "llm"}, 2, LED_ROUND * 2, "no_issue", 2),
    "led, tie-breaker": (
        LED,
        None,
        [*LED_ROUND, "commander", "scorer", "tie-breaker"],
        "tie_breaker",
        1,
    ),
}


@pytest.mark.parametrize("task", [SCORE_TASK, COMPARE_TASK], ids=["score", "compare"])
@pytest.mark.parametrize(("how", "structured"), [("async", "auto"), ("sync", "off")])
@pytest.mark.parametrize("trace", TRACES)
def test_a_trace(
    provider: Provider, how: str, structured: str, trace: str, task: dict[str, Any]
) -> None:
    settings, satisfied_in, asked, stop_reason, rounds = TRACES[trace]
    given: Any = PAIRS if task is COMPARE_TASK else (3.0, 4.0, 2.0, 5.0, 1.0)
    final = (9, 2) if task is COMPARE_TASK else 2
    provider.play(by=Debaters(scores=given, satisfied_in=satisfied_in, final=final))
    verdict, _ = run(how, task, models={"*": OPENAI}, structured=structured, **settings)
    by_round = given[: asked.count("scorer")]
    value = final if "tie-breaker" in asked else by_round[-1]
    assert speakers(provider) == asked
    assert (verdict.stop_reason, verdict.rounds, verdict.calls) == (stop_reason, rounds, len(asked))
    assert verdict.score_by_round == by_round
    if isinstance(value, tuple):
        first, second = value
        assert verdict.scores == value
        assert verdict.winner == ("tie" if first == second else "1" if first > second else "2")
    else:
        assert verdict.score == value
    assert verdict.warnings == ()


def test_each_agent_is_shown_the_rubric_and_what_was_said_before(provider: Provider) -> None:
    provider.play(by=Debaters(satisfied_in=None))
    run("async", models={"*": OPENAI}, n=2, tie_breaker=True)
    assert speakers(provider) == [*ROUND * 2, "scorer", "tie-breaker"]
    said = ["rationale 1", "objection 1", "rationale 2", "objection 2", "rationale 3"]
    for at, request in enumerate(provider.requests):
        assert [words in request.user for words in said] == [
            position < at for position in range(len(said))
        ]
    (head,) = {
        request.user.partition("\n\nThe debate so far")[0] for request in provider.requests[1:]
    }
    assert provider.requests[0].user.startswith(head)
    assert "Evaluation steps:" in head and "from 1 (worst) to 5 (best)" in head


def test_critic_is_told_the_latest_score_and_scorer_what_to_reconsider(provider: Provider) -> None:
    provider.play(by=Debaters((3, 4), satisfied_in=2))
    run("async", models={"*": OPENAI})
    own = [request.user.rpartition("\n\n")[2] for request in provider.requests]
    assert "latest verdict is 3" in own[1]
    assert "reconsider 3" in own[2]
    assert "latest verdict is 4" in own[3]


def test_a_led_debate_adds_the_commanders_words_to_those_it_hands_over(provider: Provider) -> None:
    provider.play(by=Debaters((3, 4), satisfied_in=2))
    _, transcript = run("async", models={"*": OPENAI}, commander="llm")
    shown = [request.user for request in provider.requests if speaker(request) != "commander"]
    for at, text in enumerate(shown, start=1):
        assert f"message {at} of the commander" in text
        assert f"message {at - 1} of the commander" not in text
    assert "rationale 1" in shown[1]
    assert "objection 1" in shown[2]
    assert [turn["agent"] for turn in transcript] == LED_ROUND * 2


@pytest.mark.parametrize("how", ["async", "sync"])
def test_two_providers_in_one_debate(provider: Provider, how: str) -> None:
    provider.play(by=Debaters((3, 4), satisfied_in=2))
    verdict, transcript = run(how, models={"scorer": OPENAI, "critic": google(provider)})
    assert [request.is_google for request in provider.requests] == [False, True, False, True]
    assert "objection 1" in provider.requests[2].user
    assert verdict.score == 4
    critics = {turn["model"] for turn in transcript if turn["role"] == "critic"}
    assert critics == {"google_genai:gemini-2.0-flash"}


def test_personas_differ_in_the_critics_words_alone(provider: Provider) -> None:
    asked: dict[str, list[str]] = {}
    nurse = OwnText("You are a nurse who looks for harm.")
    persona: Any
    for persona in ("strict", "moderate", "weak", "plain", "sophisticated", OwnText(f" {nurse} ")):
        provider.requests.clear()
        provider.play(by=Debaters())
        run("async", models={"*": OPENAI}, persona=persona)
        asked[persona.strip()] = [request.user for request in provider.requests]
    assert all(one[0] == other[0] for one, other in combinations(asked.values(), 2))
    assert all(one[1] != other[1] for one, other in combinations(asked.values(), 2))
    advocates = {persona for persona, texts in asked.items() if "devil's advocate" in texts[1]}
    assert advocates == {"strict", "moderate", "weak", "sophisticated"}
    assert f"{nurse} " in asked[nurse][1] and "simply declare NO ISSUE" in asked[nurse][1]
    provider.play(by=Debaters())
    verdict, _ = run(models={"*": OPENAI}, protocol=multiagent)
    assert (verdict.protocol, provider.requests[-1].user) == ("multiagent", asked["plain"][1])
    done = evaluate("debate", "demo", limit=1, aspects=["fluency"], settings={"persona": nurse})
    assert f"|persona:{nurse}|" in done.manifest["signatures"]["debate"]


def test_models_of_ended_loops_are_forgotten(provider: Provider) -> None:
    provider.play(by=Debaters([3] * 9, satisfied_in=None))
    for _ in range(3):
        run("async", models={"*": OPENAI}, n=1)
    run("sync", models={"*": OPENAI}, n=1)
    loops = [loop for loop in resolver._LOADED if isinstance(loop, asyncio.AbstractEventLoop)]
    assert not any(loop.is_closed() for loop in loops)


def test_prompts_show_the_turns_of_every_role_but_the_messenger() -> None:
    turns = [
        turn_without_model(1, role, role, f"words of the {role}", None)
        for role in ("scorer", "commander", "fact_checker", "critic")
    ]
    state: Any = {"transcript": turns}
    shown = [turn["role"] for turn in turns_without_messages(state)]
    assert shown == ["scorer", "fact_checker", "critic"]
