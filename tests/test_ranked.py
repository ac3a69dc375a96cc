"""Test the best of several answers: voting rules on known elections, and their graph."""

from collections.abc import Mapping
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from jurygraph.graphs import geval, load_graph, ranked, samre
from jurygraph.graphs.wrappers.ranked import RULES, Compared, VotingRule, elect
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import UsageError
from jurygraph.state.verdict import Winner
from langgraph.checkpoint.memory import InMemorySaver

QUESTION = "Why do tides rise twice a day?"
ANSWERS = ["The moon pulls.", "The wind.", "The moon pulls, and the earth turns under it."]


def compared(
    pair: tuple[int, int], votes: dict[str, Winner], scores: dict[str, list[float]] | None = None
) -> Compared:
    return Compared(answers=pair, verdict={}, votes=votes, scores=scores or {})


def election(rule: VotingRule, *rankings: str, **options: Any) -> Any:
    """Run an election among answers 1 to 9 by rankings of single voters: ``132`` puts 1 first."""
    count = len(rankings[0])

    def vote(ranking: str, first: int, second: int) -> Winner:
        return "1" if ranking.index(str(first)) < ranking.index(str(second)) else "2"

    duels = [
        compared(pair, {str(n): vote(ranking, *pair) for n, ranking in enumerate(rankings)})
        for pair in combinations(range(1, count + 1), 2)
    ]
    return SimpleNamespace(**elect(rule, count, duels, **options))


def test_rules_elect_different_answers_and_in_a_cycle_nobody() -> None:
    # Of seven voters three put 1 first and last; 2 beats either of the others by a majority.
    ballots = ["123"] * 3 + ["231"] * 2 + ["321"] * 2
    assert election("majority", *ballots).winner is None
    assert election("majority", *ballots).points == (3, 2, 2)
    condorcet = election("condorcet", *ballots)
    assert (condorcet.winner, condorcet.points) == (2, (0, 2, 1))
    # Borda: 1 has 2 points of three voters; 2 has 1 of three, 2 of two, 1 of two.
    assert election("borda", *ballots).points == (6, 9, 6)
    # A loser of every duel can lead in first choices, and a Condorcet winner can lack the most
    # points.
    other = ["123"] * 3 + ["231"] * 2
    assert election("condorcet", *other).winner == 1
    assert election("majority", *other).winner == 1
    borda = election("borda", *other)
    assert (borda.winner, borda.points) == (2, (6, 7, 2))
    cycle = election("condorcet", "123", "231", "312")
    assert (cycle.winner, cycle.ranking, cycle.why) == (
        None,
        (1, 2, 3),
        "no answer beats every other one",
    )
    assert election("borda", "12", "21").winner is None


def test_approval_counts_mean_scores_and_refuses_voters_who_give_none() -> None:
    duels = [
        compared((1, 2), {"a": "1", "b": "tie"}, {"a": [8, 5], "b": [7, 7]}),
        compared((1, 3), {"a": "1", "b": "2"}, {"a": [6, 2], "b": [4, 9]}),
        compared((2, 3), {"a": "1", "b": "2"}, {"a": [7, 2], "b": [6, 8]}),
    ]
    # a gives 7, 6, 2 on average, b gives 5.5, 6.5, 8.5.
    assert elect("approval", 3, duels, 6)["points"] == (1, 2, 1)
    assert elect("approval", 3, duels, 6)["winner"] == 2
    with pytest.raises(UsageError, match="counts scores, but these voters give none"):
        election("approval", "12")


def prefers_the_longer() -> ScriptedModel:
    def reply(metadata: Mapping[str, Any], prompt: str) -> Any:
        if metadata["form"] == "text":
            return "I say so."
        first, second = (
            prompt.partition(f"<<<answer {n}")[2].partition("<<<end")[0] for n in (1, 2)
        )
        low = metadata["low"]
        high = metadata["high"]
        pair = (high, low) if len(first) > len(second) else (low, high)
        return {"reasoning": "So.", "score_1": pair[0], "score_2": pair[1]}

    return ScriptedModel(script=reply)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("judge", ["single", "ensemble", "chateval"])
async def test_every_two_answers_are_compared_by_any_protocol(rule: VotingRule, judge: str) -> None:
    graph = ranked(load_graph(judge, models={"*": prefers_the_longer()}), rule).compile()
    given = {"question": QUESTION, "answers": ANSWERS}
    for outcome in (graph.invoke(given), await graph.ainvoke(given)):
        assert [done["answers"] for done in outcome["comparisons"]] == [(1, 2), (1, 3), (2, 3)]
        assert outcome["winner"] == outcome["ranking"][0] == 3
        ids = [turn["id"] for turn in outcome["transcript"]]
        assert len(ids) == len({*ids}) and ids[0].startswith("answers_1_2/")
        voters = {"single": 1, "ensemble": 3, "chateval": 2}[judge]
        assert all(len(done["votes"]) == voters for done in outcome["comparisons"])


def test_jurors_vote_and_a_thread_is_used_again() -> None:
    judge = samre.build(structured="off", jurors=3, models={"*": "offline"})
    graph = ranked(judge, "majority").compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    first = graph.invoke({"question": QUESTION, "answers": ANSWERS}, config)
    assert {*first["comparisons"][0]["votes"]} == {"juror_1", "juror_2", "juror_3"}
    again = graph.invoke({"question": QUESTION, "answers": ANSWERS[:2]}, config)
    assert len(again["comparisons"]) == 1 and len(again["points"]) == 2


@pytest.mark.parametrize(("build", "given", "message"), [
    ({"judge": geval.build()}, {}, "this judge rates one text"),
    ({"judge": "single", "rule": "dictator"}, {}, "voting rule 'dictator'; rules are majority, borda"),
    ({"judge": "single"}, {"answers": ["one"]}, "answers must be a list of 2 to 20 texts, got 1"),
    ({"judge": "single"}, {"answers": ["a", " "]}, "answer_2"),
    ({"judge": "single"}, {"question": " ", "answers": ["a", "b"]}, "question"),
])  # fmt: skip
def test_what_cannot_be_ranked_is_refused(
    build: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ranked(**build).compile().invoke({"question": QUESTION, "answers": ANSWERS, **given})


def test_further_texts_reach_every_comparison_and_not_the_next_question() -> None:
    prompts: list[str] = []

    def judge(_about: Mapping[str, Any], prompt: str) -> str:
        prompts.append(prompt)
        return "So.\nScore 1: 7\nScore 2: 6"

    inner = load_graph("single", models=ScriptedModel(script=judge), structured="off")
    graph = ranked(inner).compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    task = {"question": QUESTION, "answers": ANSWERS}
    texts = {"context": "A page about tides.", "reference": "Two bulges."}
    graph.invoke({**task, **texts}, thread)
    assert len(prompts) == 6
    assert all(text in prompt for prompt in prompts for text in texts.values())
    del prompts[:]
    graph.invoke(task, thread)
    assert len(prompts) == 6
    assert not any(text in prompt for prompt in prompts for text in texts.values())
