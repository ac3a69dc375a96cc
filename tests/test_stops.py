"""Test the stops that save calls: votes in turn, budgets, rounds without change, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Result, evaluate, fit_stops
from jurygraph.eval import panel as measured
from jurygraph.graphs import chateval, debate, ensemble, more, multiagent, samre
from jurygraph.graphs.wrappers.cascade import escalation_reason
from jurygraph.nodes.models.call import UnreadResponseError
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.runtime.stops import (
    are_stable,
    chance_of_new_score,
    chance_of_new_winner,
    jury_is_decided,
    panel_is_decided,
)
from jurygraph.state import UsageError, Verdict
from jurygraph.state.aggregation import Combination, combine_scores, majority, winner_by_mean
from jurygraph.state.errors import ModelCallError, QuorumError
from jurygraph.state.settings import CascadeSettings
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from .sample_data import COMPARE_TASK, SCORE_TASK
from .test_courtroom import court, hold, jury, prompts, spoken, steps

# Members in turn

WINS, LOSES, EVEN = (9, 4), (4, 9), (7, 7)
Pair = tuple[float, float]


def panel(
    votes: Sequence[Any], task: Any = COMPARE_TASK, module: Any = ensemble, **settings: Any
) -> tuple[Verdict, Any]:
    """Ask a panel whose members give these scores; a text is an unreadable reply."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        vote = votes[int(about["agent"].rpartition("_")[2]) - 1]
        if isinstance(vote, str):
            return vote
        if about["kind"] == "score":
            return f"So.\nScore: {vote}"
        first, second = vote[:: 1 if about.get("order", 1) == 1 else -1]
        return f"So.\nScore of answer 1: {first}\nScore of answer 2: {second}"

    model = ScriptedModel(script=script)
    given = {"roles": "same", "structured": "off", "repair": 0, "referees": len(votes), **settings}
    graph = module.build(models={"*": model}, **given).compile()
    return Verdict.of(graph.invoke({"task": task})), model


@pytest.mark.parametrize("both_orders", [True, False])
@pytest.mark.parametrize(("votes", "combine", "asked"), [
    # The rest can move the mean by 9 points for each member.
    ([(10, 1), (10, 1), LOSES], "mean", 2),
    ([WINS, WINS, LOSES], "mean", 2),
    ([WINS, EVEN, LOSES], "mean", 3),
    ([(10, 1), LOSES, LOSES], "mean", 3),
    ([WINS, WINS, LOSES, LOSES, LOSES], "majority", 5),
    ([WINS, WINS, LOSES, WINS, LOSES], "majority", 4),
    ([EVEN, EVEN, EVEN, WINS, WINS], "majority", 3),
    ([WINS, WINS, WINS, LOSES, LOSES], "median", 3),
    ([WINS, WINS, WINS, LOSES, LOSES], "trimmed", 3),
    ([WINS, WINS, LOSES, WINS, LOSES], "trimmed", 4),
])  # fmt: skip
def test_referees_are_asked_in_turn_until_they_decide(
    votes: list[Pair], combine: Combination, asked: int, both_orders: bool
) -> None:
    settings = {"combine": combine, "position_calibration": both_orders}
    everybody, _ = panel(votes, **settings)
    verdict, model = panel(votes, stop="decided", **settings)
    names = [f"referee_{number}" for number in range(1, len(votes) + 1)]
    orders = 2 if both_orders else 1
    heard = [call.metadata["agent"] for call in model.calls]
    assert heard == [name for name in names[:asked] for _ in range(orders)]
    assert verdict.winner == everybody.winner
    assert verdict.calls == asked * orders
    assert verdict.stop_reason == ("decided" if asked < len(votes) else "complete")
    assert verdict.details.get("not_asked", []) == names[asked:]
    assert [*verdict.details["scores_by_referee"]] == names[:asked]


@pytest.mark.parametrize(("combine", "asked"), [("majority", 3), ("mean", 4)])
def test_a_rating_is_decided_by_more_than_half_alone(combine: str, asked: int) -> None:
    verdict, model = panel([4, 3, 4, 4], SCORE_TASK, combine=combine, stop="decided")
    assert len(model.calls) == 4
    verdict, model = panel([4, 4, 4, 3], SCORE_TASK, combine=combine, stop="decided")
    assert len(model.calls) == asked
    assert verdict.score == (4 if combine == "majority" else 3.75)


def test_a_member_without_a_vote_counts_for_nobody_and_the_quorum_is_reached_first() -> None:
    settings: Any = {"combine": "majority", "stop": "decided", "position_calibration": False}
    verdict, model = panel([WINS, "Hm.", WINS, WINS, LOSES], **settings)
    assert [call.metadata["agent"][-1] for call in model.calls] == ["1", "2", "3", "4"]
    assert (verdict.winner, verdict.stop_reason) == ("1", "decided")
    assert (verdict.details["not_asked"], [*verdict.details["missing"]]) == (
        ["referee_5"],
        ["referee_2"],
    )
    _, model = panel([WINS] * 5, quorum=4, **settings)
    assert len(model.calls) == 4
    with pytest.raises(QuorumError, match="2 of 5 members of the panel voted"):
        panel([WINS, "Hm.", "Hm.", "Hm.", WINS], **settings)


def test_a_replaced_member_votes_before_the_next_one_is_asked() -> None:
    settings: Any = {"combine": "majority", "stop": "decided", "position_calibration": False}
    verdict, model = panel([WINS, "Hm.", WINS, WINS, LOSES], replacements=["offline"], **settings)
    asked = [call.metadata["agent"][-1] for call in model.calls]
    assert asked in (["1", "2", "3"], ["1", "2", "3", "4"])
    assert (verdict.winner, verdict.stop_reason) == ("1", "decided")
    assert "missing" not in verdict.details
    assert [*verdict.details["scores_by_referee"]] == [f"referee_{n}" for n in asked]


GRID = [(float(a), float(b)) for a, b in [(1, 10), (10, 1), (5, 5), (6, 5), (3, 8), (9, 7)]]


@pytest.mark.parametrize("rule", ["mean", "median", "trimmed", "majority", "weighted"])
def test_no_outstanding_vote_changes_a_decided_winner(rule: Combination) -> None:
    """All votes of a grid, and any failures among them, after every decided beginning."""
    weights = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 0.5} if rule == "weighted" else None

    def winner(votes: Mapping[str, Any]) -> Any:
        combined: Any = combine_scores(votes, rule, weights)
        if rule == "majority":
            found = majority([winner_by_mean(pair) for pair in votes.values()])
            return found or winner_by_mean(combined)
        return winner_by_mean(combined)

    decided = 0
    for first in product(GRID, repeat=3):
        begun: dict[str, Any] = {name: [*vote] for name, vote in zip("abc", first, strict=True)}
        if panel_is_decided(begun, ["d"], (1, 10), rule, weights):
            decided += 1
            for vote in [None, *GRID]:
                after = {**begun, "d": [*vote]} if vote else begun
                assert winner(after) == winner(begun), (begun, vote)
    assert decided > 20


@pytest.mark.parametrize("both_orders", [True, False])
@pytest.mark.parametrize(("votes", "last"), [
    ([WINS, WINS, LOSES], 2),
    ([WINS, LOSES, WINS], 3),
    ([EVEN, EVEN, EVEN, WINS, WINS], 3),
    ([WINS, LOSES], 2),
])  # fmt: skip
def test_the_last_turn_of_a_discussion_ends_when_the_votes_decide(
    votes: list[Pair], last: int, both_orders: bool
) -> None:
    given: Any = {"module": chateval, "turns": 2, "position_calibration": both_orders}
    everybody, _ = panel(votes, **given)
    verdict, model = panel(votes, stop="decided", **given)
    names = [f"referee_{number}" for number in range(1, len(votes) + 1)]
    orders = 2 if both_orders else 1
    spoken_in_turn = [*names, *names[:last]]
    heard = [call.metadata["agent"] for call in model.calls]
    assert heard == [name for name in spoken_in_turn for _ in range(orders)]
    assert verdict.winner == everybody.winner
    assert verdict.details["votes"] == {
        name: everybody.details["votes"][name] for name in names[:last]
    }
    assert verdict.stop_reason == ("decided" if last < len(votes) else "complete")
    assert verdict.details.get("not_asked", []) == names[last:]


def test_a_discussion_of_a_rating_hears_everybody() -> None:
    verdict, model = panel([4, 4, 4], SCORE_TASK, module=chateval, turns=1, stop="decided")
    assert (len(model.calls), verdict.stop_reason) == (3, "complete")


VOTES = [
    # What the jurors say, the mean totals' winner, and how many are asked.
    ("1 1 1 2 2", "1", 3),
    ("2 2 2 1 1", "1", 3),
    ("1 2 1 2 1", "1", 5),
    ("1 2 1 1 2", "2", 4),
    ("x 1 x 1 2", "1", 4),
    ("1 1 2 2", "1", 2),
    ("1 1 2 2", "2", 4),
    ("1 1 1 2", "2", 3),
]


@pytest.mark.parametrize(("votes", "w", "asked"), VOTES)
def test_jurors_vote_in_turn_until_they_decide(votes: str, w: str, asked: int) -> None:
    said = [f"Vote: {vote}" if vote != "x" else "Hm." for vote in votes.split()]
    rulings: list[Pair] = [(90, 60) if w == "1" else (60, 90)] * 2
    jurors = len(said)
    settings: Any = {"jurors": jurors, "repair": 0}
    everybody, _, _ = hold(samre, court(rulings, jury(*said)), **settings)
    verdict, model, _ = hold(samre, court(rulings, jury(*said)), stop="decided", **settings)
    assert steps(model, 2, 1, 2, 1, *[1] * asked)[4:] == [
        [f"juror_{n}"] for n in range(1, asked + 1)
    ]
    # No juror reads the votes of others.
    shown = [spoken(prompts(model, f"juror_{n}")[0]) for n in range(1, asked + 1)]
    assert all(shown[0] == texts for texts in shown) and len(shown[0]) == 6
    assert verdict.winner == everybody.winner
    assert verdict.calls == 6 + asked
    assert verdict.stop_reason == ("decided" if asked < jurors else "agreement")
    assert verdict.details.get("not_asked", []) == [
        f"juror_{n}" for n in range(asked + 1, jurors + 1)
    ]


def test_a_resumed_hearing_asks_only_the_juror_that_failed() -> None:
    speak = court([(90, 60)] * 2)
    fails = ["juror_2"]

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        if about["agent"] in fails:
            raise UnreadResponseError("The response could not be read.")
        return speak(about, prompt)

    model = ScriptedModel(script=script)
    settings: Any = {"jurors": 3, "stop": "decided", "structured": "off"}
    graph = samre.build(models={"*": model}, **settings).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    with pytest.raises(ModelCallError):
        graph.invoke({"task": COMPARE_TASK}, config)
    fails.clear()
    before = len(model.calls)
    verdict = Verdict.of(graph.invoke(None, config))
    assert [call.metadata["agent"] for call in model.calls[before:]] == ["juror_2"]
    assert (verdict.stop_reason, verdict.details["not_asked"]) == ("decided", ["juror_3"])


def test_scoring_jurors_are_asked_until_their_sums_decide() -> None:
    said = [
        f"Score of answer 1: {a}\nScore of answer 2: {b}" for a, b in [(20, 1), (20, 1), (1, 20)]
    ]
    verdict, _, _ = hold(
        samre, court([(90, 60)] * 2, jury(*said)), jurors=3, ballot="score", stop="decided"
    )
    assert (verdict.winner, verdict.stop_reason) == ("1", "decided")
    assert verdict.details["votes"] == {"1": 40, "2": 2}
    assert not jury_is_decided([20, 1], 1, 19, "2")


# Rounds that change nothing


def debated(
    scores: Sequence[float],
    agrees_after: int = 99,
    tokens: int = 0,
    module: Any = debate,
    **given: Any,
) -> tuple[Verdict, list[str]]:
    """Hold a debate with these scores; the Critic is satisfied after a number of objections."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        if about["role"] == "scorer":
            said = f"So.\nScore: {scores[about['round']]}"
        elif about["role"] == "critic":
            said = "NO ISSUE" if about["round"] > agrees_after else f"Point {about['round']}."
        else:
            said = "Settled.\nScore: 2"
        usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
        return AIMessage(said, usage_metadata=usage if tokens else None)

    model = ScriptedModel(script=script)
    graph = module.build(models={"*": model}, structured="off", **given).compile()
    verdict = Verdict.of(graph.invoke({"task": SCORE_TASK}))
    return verdict, [call.metadata["agent"] for call in model.calls]


ROUND = ["critic", "scorer"]


@pytest.mark.parametrize(("scores", "settings", "rounds", "reason"), [
    ([5, 3, 3, 3, 3], {"stop": "stable"}, 3, "stable"),
    ([5, 3, 4, 3, 4], {"stop": "stable"}, 4, "max_rounds"),
    ([5, 3, 4, 3, 4], {"stop": "stable", "eps": 1}, 3, "stable"),
    ([3, 3, 3], {"stop": "stable", "n": 2}, 2, "max_rounds"),
    ([3, 3, 3], {"stop": "stable", "on_unresolved": "tie_breaker"}, 2, "stable"),
    ([3, 3, 4, 4, 4], {"stop": ["stable"], "n": 3}, 3, "max_rounds"),
    ([3] * 5, {}, 4, "max_rounds"),
    # Beta(0.5, 2): the chance after i rounds without a change is 0.5 / (2.5 + i).
    ([3] * 5, {"n": "auto", "prior": "0.5, 2", "risk": 0.15}, 1, "predicted"),
    ([3] * 5, {"n": "auto", "prior": (0.5, 2), "risk": 0.12}, 2, "predicted"),
    ([4, 3, 3, 3, 3], {"n": "auto", "prior": (0.5, 2), "risk": 0.25}, 4, "max_rounds"),
    ([3] * 5, {"n": "auto"}, 4, "max_rounds"),
])  # fmt: skip
@pytest.mark.parametrize("module", [debate, multiagent])
def test_a_debate_ends_when_further_rounds_change_nothing(
    scores: list[float], settings: dict[str, Any], rounds: int, reason: str, module: Any
) -> None:
    verdict, calls = debated(scores, module=module, **settings)
    assert calls == ["scorer", *ROUND * rounds]
    assert (verdict.stop_reason, verdict.rounds) == (reason, rounds)
    assert verdict.score == scores[rounds]
    assert ("stopped" in verdict.details) is (reason != "max_rounds")


def test_a_satisfied_critic_still_ends_the_debate() -> None:
    verdict, calls = debated([3, 3, 3], agrees_after=2, stop="stable", n=4)
    assert (verdict.stop_reason, calls) == ("stable", ["scorer", *ROUND * 2])
    verdict, calls = debated([3, 3], agrees_after=1, n="auto", stop="stable", budget_tokens=999)
    assert (verdict.stop_reason, calls) == ("no_issue", ["scorer", *ROUND, "critic"])
    assert "stopped" not in verdict.details


@pytest.mark.parametrize(("budget", "rounds"), [
    # The opening takes 10 tokens and each round 20.
    (1, 0), (29, 0), (30, 1), (49, 1), (50, 2), (89, 3), (90, 4), (999, 4),
])  # fmt: skip
def test_a_debate_ends_before_the_round_that_would_exceed_the_budget(
    budget: int, rounds: int
) -> None:
    verdict, calls = debated([5, 4, 3, 2, 1], tokens=10, budget_tokens=budget, tie_breaker=True)
    ended = rounds < 4
    assert calls == ["scorer", *ROUND * rounds, *["tie_breaker"] * (not ended)]
    assert verdict.stop_reason == ("budget" if ended else "tie_breaker")
    assert verdict.input_tokens + verdict.output_tokens <= max(budget, 10) or not ended
    assert (f"budget_tokens={budget}" in verdict.details.get("stopped", "")) is ended


def test_a_budget_that_cannot_be_checked_has_a_warning() -> None:
    verdict, _ = debated([5, 4, 3], tokens=0, budget_tokens=1, n=2)
    assert verdict.stop_reason == "max_rounds"
    assert [text for text in verdict.warnings if "reported no tokens" in text]


def test_a_hearing_ends_before_the_round_that_would_exceed_the_budget() -> None:
    speak = court([(90, 60), (60, 90), (90, 60), (60, 90)])

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        return AIMessage(str(speak(about, prompt)), usage_metadata=usage)

    for budget, rounds in ((1, 1), (59, 1), (60, 2), (90, 3)):
        verdict, _, _ = hold(samre, script, jurors=1, budget_tokens=budget)
        assert (verdict.rounds, verdict.stop_reason) == (rounds, "budget")
        assert verdict.calls == 3 * rounds + 1


def test_the_next_round_has_no_cross_examination() -> None:
    speak = court([(90, 60), (60, 90), (90, 60), (60, 90)])

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        return AIMessage(str(speak(about, prompt)), usage_metadata=usage)

    # The first round takes 70 tokens, 40 of them for the examination, and the second one 30.
    for budget, rounds in ((99, 1), (100, 2)):
        verdict, _, _ = hold(samre, script, jurors=0, cross_examine=True, budget_tokens=budget)
        assert (verdict.rounds, verdict.stop_reason) == (rounds, "budget")


LEVEL: list[Pair] = [(60, 60)] * 4


@pytest.mark.parametrize(("rulings", "settings", "rounds", "reason"), [
    (LEVEL, {"stop": "stable"}, 3, "stable"),
    (LEVEL, {"stop": "stable", "max_rounds": 3}, 3, "max_rounds"),
    ([(61, 60), (60, 61), (61, 60), (60, 61)], {"stop": "stable"}, 4, "max_rounds"),
    ([(61, 60), (60, 61), (61, 60), (60, 61)], {"stop": "stable", "eps": 1}, 3, "stable"),
    ([(90, 60), (70, 60)], {"stop": "stable", "eps": 99}, 2, "agreement"),
    # A gap of 60 of 114: in Beta(3, 12), 0.2 % of the gaps are as wide.
    ([(100, 40), (90, 40)], {"stop": "predicted", "prior": (1, 12)}, 1, "predicted"),
    ([(62, 60), (63, 60)], {"stop": "predicted", "prior": (1, 12)}, 2, "agreement"),
    ([(100, 40), (90, 40)], {"stop": "predicted"}, 2, "agreement"),
    ([(62, 60), (40, 100), (62, 60)], {"stop": "predicted", "prior": (1, 12)}, 2, "predicted"),
])  # fmt: skip
@pytest.mark.parametrize("memory", ["full", "summary"])
def test_the_rounds_of_a_hearing_end_early(
    rulings: list[Pair], settings: dict[str, Any], rounds: int, reason: str, memory: str
) -> None:
    verdict, model, _ = hold(samre, court(rulings), jurors=2, memory=memory, **settings)
    assert (verdict.stop_reason, verdict.rounds) == (reason, rounds)
    assert len(model.calls) == 3 * rounds + 2 + (rounds - 1) * (memory == "summary")
    early = reason in ("stable", "predicted")
    assert ("stopped" in verdict.details) is early


def test_a_decided_jury_after_an_early_end_has_both_reasons() -> None:
    verdict, _, _ = hold(samre, court(LEVEL), jurors=3, stop="stable, decided")
    assert verdict.stop_reason == "decided"
    assert verdict.details["stopped"].startswith("no score changed by more than 0")
    assert verdict.details["not_asked"] == ["juror_3"]


# The chances


def test_the_chance_of_a_new_winner_is_the_tail_of_the_papers_distribution() -> None:
    from scipy.stats import beta

    assert chance_of_new_winner([0.3], (2, 7)) == pytest.approx(beta(2 + 1 + 1, 7).sf(0.3))
    # Two growths in three rounds, and a lead of 0.1 + 0.3 - 0.2.
    expected = beta(2 + 2 + 1, 7 + 3 - 2).sf(0.2)
    assert chance_of_new_winner([0.1, 0.3, -0.2], (2, 7)) == pytest.approx(expected)
    assert chance_of_new_winner([0.0], (1, 1)) == chance_of_new_winner([0.2, -0.2], (1, 1)) == 1
    assert chance_of_new_winner([0.9, 0.9], (1, 1)) == 0


def test_the_bound_is_not_below_the_share_of_changed_winners_in_the_model() -> None:
    """Debates drawn from the paper's model, with the sign that changes winners most often."""
    import numpy as np

    draw = np.random.default_rng(0)
    for prior in ((1, 12), (2, 5), (3, 3)):
        first = draw.beta(prior[0] + 1, prior[1], 4000)
        for gap in first[:40]:
            grown = draw.beta(prior[0] + 2, prior[1], 4000)
            shrunk = draw.beta(prior[0] + 1, prior[1] + 1, 4000)
            share = max((grown >= gap).mean(), (shrunk >= gap).mean())
            assert share <= chance_of_new_winner([float(gap)], prior) + 0.03


@pytest.mark.parametrize(("scores", "chance"), [([3], 1 / 2), ([3, 3], 1 / 3), ([3, 4, 4], 2 / 4)])
def test_the_chance_of_a_new_score(scores: list[float], chance: float) -> None:
    assert chance_of_new_score(scores, (1, 1)) == pytest.approx(chance)
    assert chance_of_new_score([[float(s), 1.0] for s in scores], (1, 1)) == pytest.approx(chance)


def test_two_rounds_without_change_are_needed() -> None:
    assert not are_stable([3, 3], 9)
    assert are_stable([1, 3, 3, 3], 0)
    assert not are_stable([[60, 70], [60, 72], [60, 70]], 1)


def counted(speak: Any) -> Any:
    """Make a model whose calls take 10 tokens each."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        return AIMessage(str(speak(about, prompt)), usage_metadata=usage)

    return script


@pytest.mark.parametrize(("aggregate", "per_round"), [("llm", 50), ("concat", 30), ("best", 40)])
def test_teams_end_before_the_round_that_would_exceed_the_budget(
    aggregate: str, per_round: int
) -> None:
    script = counted(court([(90, 60), (60, 90), (90, 60)]))
    # A further round takes 10 tokens more, for the judge's feedback.
    two = 2 * per_round + 10
    three = two + per_round + 10
    for budget, rounds in ((1, 1), (two - 1, 1), (two, 2), (three - 1, 2), (three, 3)):
        settings: Any = {"rounds": 3, "advocates": 1, "aggregate": aggregate}
        verdict, model, _ = hold(more, script, budget_tokens=budget, **settings)
        assert verdict.rounds == rounds
        assert verdict.stop_reason == ("budget" if rounds < 3 else "complete")
        assert (f"budget_tokens={budget}" in verdict.details.get("stopped", "")) is (rounds < 3)
        spent = verdict.input_tokens + verdict.output_tokens
        assert spent == len(model.calls) * 10
        assert spent <= max(budget, per_round)
        if aggregate != "best":
            # The scores of the last round decide.
            assert verdict.winner == ("2" if rounds == 2 else "1")


def rating(about: Mapping[str, Any], _prompt: str) -> str:
    if about["form"] == "text":
        return "I speak."
    return "Fine.\nScore of answer 1: 7\nScore of answer 2: 5"


@pytest.mark.parametrize("strategy", ["one_by_one", "simultaneous", "summarizer"])
@pytest.mark.parametrize("both_orders", [True, False])
def test_referees_vote_before_the_turn_that_would_exceed_the_budget(
    strategy: str, both_orders: bool
) -> None:
    per_turn = (20 + 10 * (strategy == "summarizer")) * (2 if both_orders else 1)
    for budget, turns in ((1, 2), (3 * per_turn - 1, 2), (3 * per_turn, 3), (9 * per_turn, 4)):
        settings: Any = {
            "turns": 4, "strategy": strategy, "position_calibration": both_orders,
            "budget_tokens": budget,
        }  # fmt: skip
        verdict, model, transcript = hold(chateval, counted(rating), **settings)
        assert (verdict.rounds, verdict.winner) == (turns, "1" if not both_orders else "tie")
        assert verdict.stop_reason == ("budget" if turns < 4 else "complete")
        assert (f"budget_tokens={budget}" in verdict.details.get("stopped", "")) is (turns < 4)
        spoken = [t for t in transcript if t["role"] == "referee"]
        assert {t["round"] for t in spoken if t["value"] is not None} == {turns}
        assert len(spoken) == 2 * turns * (2 if both_orders else 1)
        # Nobody would read a summary of the last turn.
        assert all(t["round"] < turns for t in transcript if t["role"] == "summarizer")
        assert verdict.input_tokens + verdict.output_tokens == len(model.calls) * 10


def test_a_discussion_with_scores_in_each_turn_ends_at_once() -> None:
    for budget, turns in ((1, 1), (39, 1), (40, 2), (60, 3)):
        settings: Any = {"turns": 3, "score_each_turn": True, "position_calibration": False}
        verdict, _, _ = hold(chateval, counted(rating), budget_tokens=budget, **settings)
        assert (verdict.rounds, verdict.calls) == (turns, 2 * turns)
        assert verdict.stop_reason == ("budget" if turns < 3 else "complete")


def test_a_missing_referee_of_an_early_vote_is_named() -> None:
    def fails(about: Mapping[str, Any], prompt: str) -> str:
        late = about["agent"] == "referee_2" and about["round"] == 2
        return "" if late else rating(about, prompt)

    settings: Any = {"turns": 4, "referees": 3, "budget_tokens": 1, "repair": 0}
    verdict, _, _ = hold(chateval, counted(fails), **settings)
    assert (verdict.stop_reason, [*verdict.details["missing"]]) == ("budget", ["referee_2"])


# Settings


@pytest.mark.parametrize(("module", "settings", "message"), [
    (more, {"budget_tokens": 9}, "budget_tokens has no effect without rounds above 1"),
    (chateval, {"budget_tokens": 9}, "budget_tokens has no effect with turns=2"),
    (chateval, {"budget_tokens": 0, "turns": 3}, "greater than or equal to 1"),
    (chateval, {"budget_tokens": 9, "turns": 1, "score_each_turn": True}, "turns=2 or more"),
    (ensemble, {"stop": "stable"}, "decided"),
    (ensemble, {"stop": "decided", "quorum": "all"}, "quorum=all needs the vote of each"),
    (ensemble, {"stop": "decided", "combine": "geometric_median"}, "use another rule"),
    (chateval, {"stop": "decided", "strategy": "simultaneous"}, "use strategy=one_by_one"),
    (chateval, {"stop": "decided", "score_each_turn": True}, "earlier scores would count"),
    (debate, {"stop": "decided"}, "stable"),
    (debate, {"eps": 1}, "eps has no effect without stop=stable"),
    (debate, {"risk": 0.2}, "risk has no effect without n=auto"),
    (debate, {"prior": [2, 3]}, "prior has no effect without n=auto"),
    (debate, {"n": "auto", "prior": [0, 3]}, "greater than 0"),
    (debate, {"n": "auto", "risk": 1}, "less than 1"),
    (debate, {"n": "some"}, "n"),
    (debate, {"budget_tokens": 0}, "greater than or equal to 1"),
    (samre, {"stop": "agreement"}, "decided"),
    (samre, {"stop": "decided", "jurors": 0}, "but jurors=0"),
    (samre, {"eps": 1, "stop": "predicted"}, "eps has no effect"),
    (samre, {"risk": 0.5, "stop": "stable"}, "risk has no effect"),
])  # fmt: skip
def test_stops_that_cannot_be(module: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        module.build(**settings)


@pytest.mark.parametrize("protocol", ["chateval", "debate", "multiagent", "ensemble", "samre"])
def test_a_run_without_stops_has_the_signature_of_before(protocol: Any, tmp_path: Path) -> None:
    data = "demo-pairs" if protocol == "samre" else "demo"
    aspects: Any = None if protocol == "samre" else ["consistency"]
    plain = evaluate(protocol, data, aspects=aspects, limit=1, out=tmp_path / "run")
    [signed] = plain.manifest["signatures"].values()
    for name in ("cross_examine", "stop", "eps", "risk", "prior", "budget_tokens"):
        assert f"|{name}:" not in signed


@pytest.mark.parametrize("settings", [{}, {"expensive_settings": {"stop": ["stable"]}}])
def test_a_wrapper_names_stops_inside_only_if_they_were_set(settings: Any) -> None:
    run: Any = {"cascade": {"cheap": "ensemble", **settings}}
    done = evaluate("cascade", "demo-pairs", settings=run, limit=1)
    [signed] = done.manifest["signatures"].values()
    assert ("'stop'" in signed) is bool(settings)
    assert "'risk'" not in signed and "'combine'" not in signed


def test_members_that_were_asked_in_turn_are_no_panel_to_measure(tmp_path: Path) -> None:
    """Only contested rows have all votes, so figures on these rows would be biased."""
    for stop in ([], ["decided"]):
        settings: Any = {"combine": "majority", "stop": stop}
        out = tmp_path / str(len(stop))
        evaluate("ensemble", "demo-pairs", settings=settings, limit=12, out=out)
    assert measured([tmp_path / "0"])
    with pytest.raises(UsageError, match="so only contested rows have all votes"):
        measured([tmp_path / "1"])


def test_a_debate_at_its_budget_is_unresolved_for_a_cascade() -> None:
    verdict, _ = debated([5, 4, 3, 2, 1], tokens=10, budget_tokens=30)
    assert escalation_reason(verdict, CascadeSettings(when=("unresolved",))) == (
        "unresolved: debate ended without agreement, because its budget was spent"
    )


# Priors fitted to finished debates


def finished(paths: Sequence[Any], protocol: str) -> list[Result]:
    return [
        Result(item=str(place), protocol=protocol, status="ok", score_by_round=path)
        for place, path in enumerate(paths)
    ]


def test_a_prior_is_fitted_to_finished_debates_and_ends_new_ones() -> None:
    paths = [(3.0,) * 5] * 30 + [(3.0, 4.0, 4.0, 4.0, 4.0)] * 6 + [(3.0, 4.0, 3.0, 4.0, 3.0)] * 6
    settings = fit_stops(finished(paths, "debate"))
    assert settings["n"] == "auto"
    alpha, beta = settings["prior"]
    # 30 changes in 168 rounds, which cluster in some debates.
    assert alpha / (alpha + beta) == pytest.approx(30 / 168, abs=0.03)
    verdict, _ = debated([3] * 5, **settings, risk=0.12)
    assert (verdict.stop_reason, verdict.rounds) == ("predicted", 1)
    hearings = [((60 + gap, 60), (62 + gap, 60)) for gap in (2, 3, 4, 5, 6, 8) * 4]
    settings = fit_stops(finished(hearings, "samre"))
    verdict, _, _ = hold(samre, court([(100, 40), (90, 60)]), jurors=0, **settings)
    assert (verdict.stop_reason, verdict.rounds) == ("predicted", 1)


@pytest.mark.parametrize(("paths", "protocol", "message"), [
    ([(3.0, 4.0)] * 9, "debate", "could not be fitted to 9 debates"),
    ([(3.0, 3.0)] * 20, "debate", "rounds with and without a change"),
    ([(3.0,)] * 20, "multiagent", "at least 10 with a round"),
    ([((60.0, 60.0),)] * 9, "samre", "could not be fitted"),
    ([(3.0,)] * 20, "single", "these results are of single"),
    ([], "debate", "these results are of no protocol"),
])  # fmt: skip
def test_debates_to_which_nothing_can_be_fitted(paths: Any, protocol: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fit_stops(finished(paths, protocol))
