"""Test protocols inside other graphs, both orders, ``repeated``, ``cascade``, and names."""

import math
import operator
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import calibrated, cascade, debate, multiagent, repeated, review, single
from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.runtime.verdicts import conclude, prepare
from jurygraph.state import UsageError, Verdict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from .sample_data import CASES, THREAD, goes_on, task_for, timeless
from .sample_data import COMPARE_TASK as COMPARE
from .sample_data import SCORE_TASK as SCORE
from .test_live_state import Failing
from .virtual_time import InFlight

BOUND: dict[str, dict[str, Any]] = {
    "calibrated": {"inner": {"commander": "llm"}}, "cascade": {"cheap": "ensemble"},
    "chateval": {"turns": 1}, "debate": {"commander": "llm"}, "ensemble": {"referees": 2},
    "faireval": {"k": 1}, "geval": {"samples": 2}, "more": {"advocates": 1},
    "multiagent": {"commander": "llm"}, "repeated": {"k": 2}, "samre": {"jurors": 0},
}  # fmt: skip
"""Settings that change the number of calls."""


class ParentState(TypedDict):
    task: dict[str, Any]
    verdict: dict[str, Any]
    transcript: list[Any]
    notes: list[str]


class ParentContext(BaseModel):
    """Fields that protocols have too, with values that none of them accepts."""

    n: int = 9
    k: int = 0
    of: str = "nothing"
    inner: str = "nothing"
    cheap: str = "nothing"
    referees: int = 0
    turns: int = 0
    samples: int = 0
    advocates: int = 0
    jurors: int = -1
    models: str = "nobody"
    persona: str = "none of ours"


@cache
def alone(name: str, kind: str, bound: bool = False) -> dict[str, Any]:
    """Return a judge's own result, by default or with settings that change the calls."""
    settings = BOUND.get(name, {}) if bound else {}
    result: dict[str, Any] = (
        find_protocol(name).build(**settings).compile().invoke({"task": task_for(name, kind)})
    )
    return result


def parent_of(judge: Any) -> Any:
    """One judge as a compiled sub-graph that shares keys with its parent."""
    parent = StateGraph(ParentState, context_schema=ParentContext).add_node("judge", judge)
    return parent.add_edge(START, "judge").compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(("name", "kind"), CASES)
async def test_a_node_of_a_parent_keeps_its_settings_and_streams_its_turns(
    name: str, kind: str
) -> None:
    settings = BOUND.get(name, {})
    graph = parent_of(find_protocol(name).build(**settings).compile())
    start = {"task": task_for(name, kind), "notes": ["mine"]}
    heard = []
    async for where, event in graph.astream(
        start, THREAD, context=ParentContext(), stream_mode="custom", subgraphs=True
    ):
        assert where[0].startswith("judge:")
        # The judges inside a wrapper stream their turns, and so does the wrapper.
        if len(where) == 1:
            heard.append((event["turn"]["id"], event["turn"]["content"]))
    inside = graph.get_state(THREAD).values
    outside = alone(name, kind, bound=True)
    assert Counter(heard) == Counter((turn["id"], turn["content"]) for turn in inside["transcript"])
    assert set(inside) == {"task", "verdict", "transcript", "notes"}
    assert (inside["task"], inside["notes"]) == (task_for(name, kind), ["mine"])
    assert timeless(inside) == timeless(outside)
    if settings:
        assert outside["verdict"]["calls"] != alone(name, kind)["verdict"]["calls"]
    # A second turn on the thread, from sync code, doubles nothing.
    assert timeless(graph.invoke(start, THREAD, context=ParentContext())) == timeless(inside)


@pytest.mark.parametrize(
    ("given", "told"),
    [("debat", "unknown protocol 'debat'"), (7, "a judge must be a protocol's name")],
)
def test_wrappers_take_graphs_and_names_and_refuse_what_is_neither(given: Any, told: str) -> None:
    for wrap in (calibrated, repeated, lambda graph: cascade(single.build(), graph)):
        for judge in ("debate", debate, debate.build()):
            assert wrap(judge).compile().get_subgraphs()
        with pytest.raises(UsageError, match=told):
            wrap(given)


def test_an_outcome_that_leads_nowhere_is_named() -> None:
    graph = ProtocolGraph(single.protocol, single.protocol.settings)
    graph.agent("prepare", prepare(single.protocol))
    graph.agent("conclude", conclude(single.protocol))
    graph.add_edge(START, "prepare")
    graph.route("prepare", lambda _state, _settings: "aside", {"on": "conclude"})
    task = {"kind": "score", "source": "S", "candidate": "C", "aspect": "fluency"}
    with pytest.raises(
        UsageError, match=r"the outcome 'aside', .* behind prepare .*: its outcomes are on"
    ):
        graph.compile().invoke({"task": task})


def highest(before: int, new: int) -> int:
    return max(before, new)


def side_by_side(state: Any) -> Any:
    """Two judges at the same time in a parent of this state."""
    parent = StateGraph(state)
    for name, judge in (("first", debate.build(n=1)), ("second", single.build())):
        parent.add_node(name, judge.compile())
        parent.add_edge(START, name)
    return parent.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("key", ["verdict", "transcript", "scores", "round"])
def test_judges_side_by_side_collide_on_a_key_without_a_reducer(key: str) -> None:
    state: Any = TypedDict("state", {"task": dict[str, Any], key: Any})  # type: ignore[misc]
    with pytest.raises(
        InvalidUpdateError, match=f"At key '{key}': Can receive only one value per step"
    ):
        side_by_side(state).invoke({"task": SCORE}, THREAD)


def test_judges_side_by_side_add_to_reducers_once() -> None:
    class State(TypedDict):
        task: dict[str, Any]
        transcript: Annotated[list[Any], operator.add]
        scores: Annotated[list[Any], operator.add]
        round: Annotated[int, highest]

    each: list[Any] = [debate.build(n=1), single.build()]
    graph = side_by_side(State)
    alone = [judge.compile().invoke({"task": SCORE}) for judge in each]
    for turns in (1, 2):
        together = graph.invoke({"task": SCORE}, THREAD)
        # A second turn on the thread adds only its own judgements.
        for key in ("transcript", "scores"):
            assert len(together[key]) == turns * sum(len(judge[key]) for judge in alone)
        assert together["round"] == max(judge["round"] for judge in alone)


def test_round_and_scores_are_those_of_the_verdict_that_counts() -> None:
    long = debate.build(models={"*": scores(2, objections=9)}, n=3)
    verdict, _ = run(
        cascade(long, single.build(models={"*": scores(4)}), when=lambda verdict: True), SCORE
    )
    assert (verdict.rounds, verdict.score_by_round) == (1, (4,))


def test_wrappers_take_wrappers() -> None:
    inner = cascade(
        calibrated(single.build(position_calibration=False)),
        repeated(debate.build(n=1), k=2),
        gap=99,
    )
    verdict, transcript = run(cascade(inner, debate.build(n=1), when=lambda verdict: True), COMPARE)
    assert verdict.details["asked"] == ["debate", "debate"]
    assert {turn["stage"] for turn in transcript} == {"cheap.cheap", "cheap.expensive", "expensive"}
    assert verdict.calls == sum(turn["calls"] for turn in transcript)


def run(graph: Any, task: dict[str, Any], **options: Any) -> tuple[Verdict, list[Any]]:
    result = graph.compile().invoke({"task": task}, **options)
    assert set(result) == {"verdict", "transcript", "scores", "round"}
    assert result["scores"] == result["verdict"]["score_by_round"]
    assert result["round"] == result["verdict"]["rounds"]
    return Verdict.of(result), result["transcript"]


def scores(*values: float | tuple[float, float], objections: int = 0) -> ScriptedModel:
    """Make a scorer with these values per run, and a critic with this many objections per run."""
    objected: Counter[Any] = Counter()

    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        repeat = metadata.get("repeat", 0)
        if metadata["form"] == "critique":
            objected[repeat] += 1
            return {"feedback": "Hm.", "no_issue": objected[repeat] > objections}
        value = values[repeat % len(values)]
        if isinstance(value, tuple):
            return {"reasoning": "So.", "score_1": value[0], "score_2": value[1]}
        return {"reasoning": "So.", "score": value}

    return ScriptedModel(script=script)


def by_order(straight: tuple[float, float], mirrored: tuple[float, float]) -> ScriptedModel:
    """Make a judge with a score for each order (``mirrored`` as shown), and a content critic."""

    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        if metadata["form"] == "critique":
            return {"feedback": "Hm.", "no_issue": True}
        in_order = prompt.index(COMPARE["answer_1"]) < prompt.index(COMPARE["answer_2"])
        one, two = straight if in_order else mirrored
        return {"reasoning": "So.", "score_1": one, "score_2": two}

    return ScriptedModel(script=script)


@pytest.mark.parametrize("protocol", [debate, multiagent])
@pytest.mark.parametrize(
    ("straight", "mirrored", "winner", "consistent"),
    [
        # A judge of places always prefers the first; a judge of contents always the same answer.
        ((9, 3), (9, 3), "tie", False),
        ((9, 3), (4, 8), "1", True),
        ((9, 3), (7, 6), "1", False),
        ((6, 7), (3, 9), "1", False),
        ((5, 5), (5, 5), "tie", True),
        ((5, 5), (6, 5), "2", False),
    ],
)
def test_of_both_orders_the_higher_average_wins(
    straight: Any, mirrored: Any, winner: str, consistent: bool, protocol: Any
) -> None:
    model = InFlight(script=by_order(straight, mirrored).script, expected=2)
    verdict, _ = run(calibrated(protocol.build(models={"*": model})), COMPARE)
    assert (verdict.winner, verdict.position_consistent) == (winner, consistent)
    turned = mirrored[::-1]
    assert verdict.scores == tuple(
        (one + other) / 2 for one, other in zip(straight, turned, strict=True)
    )
    assert verdict.score_by_round == (verdict.scores,)
    assert verdict.details["scores_by_order"] == [list(straight), list(turned)]
    first, second = verdict.details["winner_by_order"]
    assert ((first == second), verdict.details["calibrated"]) == (consistent, True)
    told = [text for text in verdict.warnings if "position inconsistency" in text]
    assert len(told) == (not consistent)
    if (first, second) == ("1", "2"):
        assert (
            "answer 1 wins with the answers in the given order, answer 2 wins with them swapped"
            in told[0]
        )
    assert (verdict.protocol, verdict.kind) == (protocol.protocol.name, "compare")
    assert model.most_at_once == 2, "both orders side by side"


def test_turns_of_both_orders_in_turn_with_values_in_the_tasks_order() -> None:
    model = by_order((9, 3), (4, 8))
    verdict, transcript = run(calibrated(debate.build(models={"*": model})), COMPARE)
    agents = ["commander", "scorer", "commander", "critic"]
    assert [(turn["agent"], turn["order"]) for turn in transcript] == [
        *((agent, 1) for agent in agents),
        *((agent, 2) for agent in agents),
    ]
    values = [turn["value"] for turn in transcript if turn["agent"] == "scorer"]
    assert values == [[9, 3], [8, 4]]
    said = [turn["content"] for turn in transcript if turn["agent"] == "scorer"]
    assert said[1] == "So.\nScore of answer 1: 4\nScore of answer 2: 8", (
        "words stay as they were said"
    )
    assert [turn["value"] for turn in transcript if turn["agent"] == "critic"] == [True, True]
    assert verdict.calls == len(model.calls) == 4


def test_both_orders_around_both_orders() -> None:
    """Orders refer to the task: swapping twice restores the task's order."""
    once = calibrated(debate.build(models={"*": by_order((9, 3), (4, 8))}))
    verdict, transcript = run(calibrated(once), COMPARE)
    assert (verdict.scores, verdict.calls) == ((8.5, 3.5), 8)
    scorers = [turn for turn in transcript if turn["agent"] == "scorer"]
    assert [turn["order"] for turn in scorers] == [1, 2, 2, 1]
    assert [turn["value"] for turn in scorers] == [[9, 3], [8, 4], [8, 4], [9, 3]]


def test_repeated_scores_are_averaged_with_their_spread() -> None:
    model = InFlight(script=scores(2, 4, 5).script, expected=3)
    verdict, transcript = run(repeated(debate.build(models={"*": model}), k=3), SCORE)
    assert verdict.score == pytest.approx(11 / 3)
    assert verdict.details["scores"] == [2, 4, 5]
    assert verdict.details["spread"] == pytest.approx(math.sqrt((25 / 9 + 1 / 9 + 16 / 9) / 2))
    assert (verdict.details["repeated"], verdict.details["decided_by"]) == (3, "average")
    assert "winners" not in verdict.details
    assert (verdict.protocol, verdict.stop_reason, verdict.rounds) == ("debate", "no_issue", 1)
    assert list(verdict.score_by_round) == pytest.approx([11 / 3])
    assert (verdict.calls, len(model.calls), model.most_at_once) == (6, 6, 3), "side by side"
    assert [turn["repeat"] for turn in transcript] == [0] * 4 + [1] * 4 + [2] * 4


def test_runs_of_runs_are_told_apart() -> None:
    model = scores(3)
    inner = repeated(debate.build(models={"*": model}), k=2)
    verdict, transcript = run(repeated(inner, k=3), SCORE)
    assert Counter(call.metadata["repeat"] for call in model.calls) == dict.fromkeys(range(6), 2)
    assert [turn["repeat"] for turn in transcript] == sorted([*range(6)] * 4)
    assert [details["repeated"] for details in verdict.details["details_by_run"]] == [2, 2, 2]


NESTED: dict[str, Any] = {
    "calibrated": calibrated,
    "repeated in repeated": lambda judge: repeated(repeated(judge, 2), 3),
    "repeated three times": lambda judge: repeated(repeated(repeated(judge, 2), 2), 2),
    "calibrated in repeated": lambda judge: repeated(calibrated(judge), 2),
    "repeated in calibrated": lambda judge: calibrated(repeated(judge, 2)),
    "cascade of repeated in repeated": lambda judge: repeated(
        cascade(repeated(single.build(), 2), repeated(judge, 3), gap=99), 2
    ),
    "review of calibrated": lambda judge: review(calibrated(judge), when="gap<0.1"),
}


def place(turn: Any) -> tuple[Any, ...]:
    """Return the identity of a turn and its value."""
    marks = ("id", "stage", "repeat", "repeats", "order")
    return (*(turn.get(mark) for mark in marks), str(turn["value"]))


@pytest.mark.parametrize("wrapper", NESTED)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_turn_has_one_id_and_number_in_every_stream(wrapper: str, is_async: bool) -> None:
    graph = NESTED[wrapper](debate.build(n=1)).compile()
    final = Counter(map(place, graph.invoke({"task": COMPARE})["transcript"]))
    streams: Any = {"stream_mode": "custom", "subgraphs": True}
    if is_async:
        events = [event async for event in graph.astream({"task": COMPARE}, **streams)]
    else:
        events = list(graph.stream({"task": COMPARE}, **streams))
    top = Counter(place(event["turn"]) for where, event in events if not where)
    assert top == final
    assert max(final.values()) == 1
    inside = {place(event["turn"]) for where, event in events if where}
    assert inside == set(final)


def test_runs_are_numbered_by_how_many_there_are_and_not_by_what_was_heard() -> None:
    """The expensive judge is asked in the first outer run only."""

    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        scores = (5, 5) if metadata["repeat"] < 2 else (9, 1)
        return {"reasoning": "So.", "score_1": scores[0], "score_2": scores[1]}

    cheap = repeated(
        single.build(models={"*": ScriptedModel(script=script)}, position_calibration=False), 2
    )
    graph = repeated(
        cascade(cheap, repeated(single.build(position_calibration=False), 5), when=("gap",)), 2
    )
    _, transcript = run(graph, COMPARE)
    numbers = [(turn["stage"], turn["repeat"], turn["repeats"]) for turn in transcript]
    dear = [("expensive", number, 10) for number in range(5)]
    assert numbers == [("cheap", 0, 4), ("cheap", 1, 4), *dear, ("cheap", 2, 4), ("cheap", 3, 4)]


@pytest.mark.parametrize(("by", "values", "decided", "decided_by"), [
    ("vote", (2, 5, 5), 5, "majority"), ("vote", (2, 3, 5), 10 / 3, "average"),
    ("vote", (2, 2, 4, 4), 3, "average"), ("average", (4,), 4, "average"),
    ("average", [(6, 5), (6, 5), (1, 9)], "2", "average"),
    ("vote", [(6, 5), (6, 5), (1, 9)], "1", "majority"),
    ("vote", [(5, 5), (7, 7), (1, 9)], "tie", "majority"),
    ("vote", [(6, 5), (5, 5), (1, 9)], "2", "average"), ("vote", [(6, 5), (5, 6)], "tie", "average"),
    ("average", [(6, 5), (7, 5)], "1", "all"),
])  # fmt: skip
def test_runs_vote_or_are_averaged(
    by: Any, values: Sequence[Any], decided: Any, decided_by: str
) -> None:
    graph = repeated(debate.build(models={"*": scores(*values)}), len(values), by)
    verdict, _ = run(graph, COMPARE if isinstance(decided, str) else SCORE)
    assert verdict.details["decided_by"] == decided_by
    assert len(verdict.details["scores"]) == len(values)
    if isinstance(decided, str):
        means = tuple(sum(side) / len(values) for side in zip(*values, strict=True))
        assert verdict.winner == decided
        assert verdict.scores == pytest.approx(means)
        assert (len(verdict.details["winners"]), len(verdict.details["spread"])) == (len(values), 2)
    else:
        assert verdict.score == pytest.approx(decided)
        assert (verdict.details["spread"] is None) == (len(values) == 1)


def test_runs_of_different_lengths() -> None:
    def script(metadata: Any, prompt: str) -> Any:
        if metadata["form"] == "critique":
            return {"feedback": "Hm.", "no_issue": metadata["repeat"] == 0}
        if metadata["repeat"] == metadata["round"] == 1 and not metadata["repair"]:
            return "Well."
        return {"reasoning": "So.", "score": 2 + metadata["repeat"] + metadata["round"]}

    verdict, _ = run(
        repeated(debate.build(models={"*": ScriptedModel(script=script)}, n=1), k=2), SCORE
    )
    assert verdict.score_by_round == (2.5, 3.0)
    assert (verdict.stop_reason, verdict.rounds, verdict.calls) == ("complete", 1, 2 + 4)
    assert any("asked for again" in warning for warning in verdict.warnings), (
        "also of the second alone"
    )


def test_runs_are_consistent_if_all_of_them_are() -> None:
    """The first run's winner is the same in both orders, the second run prefers the first place."""

    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        in_order = prompt.index(COMPARE["answer_1"]) < prompt.index(COMPARE["answer_2"])
        first = in_order or metadata["repeat"] == 1
        return {"reasoning": "So.", "score_1": 8 if first else 3, "score_2": 3 if first else 8}

    model = ScriptedModel(script=script)
    verdict, transcript = run(repeated(single.build(models={"*": model}), k=2), COMPARE)
    assert verdict.position_consistent is False
    assert [d["winner_by_order"] for d in verdict.details["details_by_run"]] == [
        ["1", "1"],
        ["1", "2"],
    ]
    assert [(turn["repeat"], turn["order"]) for turn in transcript] == [
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
    ]


def steps(
    cheap: Any, expensive: Any, task: Any = COMPARE, **options: Any
) -> tuple[Verdict, list[Any]]:
    """A cascade of a debate of one round and a debate of two."""
    one = debate.build(models={"*": cheap}, n=1)
    return run(cascade(one, debate.build(models={"*": expensive}, n=2), **options), task)


def test_the_expensive_one_is_not_asked_where_the_cheap_one_is_sure() -> None:
    cheap = scores((8, 3))
    expensive = scores((1, 9))
    verdict, transcript = steps(cheap, expensive)
    assert (verdict.winner, verdict.scores) == ("1", (8, 3))
    assert (len(cheap.calls), len(expensive.calls), verdict.calls) == (2, 0, 2)
    assert (verdict.details["asked"], verdict.details["because"]) == (["debate"], None)
    assert {turn["stage"] for turn in transcript} == {"cheap"}


@pytest.mark.parametrize(("cheap", "because"), [
    (scores((8, 3), objections=9), "unresolved: debate ended at its last round"),
    (scores((6, 5.5)), "gap: 0.5 between the answers is less than 1"),
    (scores((6, 6)), "gap: 0 between the answers is less than 1"),
], ids=["unresolved", "gap", "tie"])  # fmt: skip
def test_the_expensive_one_decides_what_is_in_doubt(cheap: ScriptedModel, because: str) -> None:
    expensive = scores((1, 9))
    verdict, transcript = steps(cheap, expensive)
    assert (verdict.winner, verdict.scores, verdict.score_by_round) == ("2", (1, 9), ((1, 9),))
    assert (verdict.details["asked"], verdict.details["because"]) == (["debate", "debate"], because)
    assert verdict.details["cheap"]["winner"] in ("1", "tie")
    assert verdict.calls == len(cheap.calls) + len(expensive.calls)
    assert verdict.calls == sum(turn["calls"] for turn in transcript)
    assert list(dict.fromkeys(turn["stage"] for turn in transcript)) == ["cheap", "expensive"]


def test_orders_that_disagree_are_a_doubt() -> None:
    judge_of_places = scores((9, 3))
    expensive = scores((4, 5))
    cheap = single.build(models={"*": judge_of_places})
    graph = cascade(cheap, debate.build(models={"*": expensive}), when=["inconsistent"])
    verdict, _ = run(graph, COMPARE)
    assert (
        verdict.details["because"]
        == "inconsistent: single has another winner with the answers swapped"
    )
    assert (verdict.winner, verdict.position_consistent) == ("2", None)
    assert any("position inconsistency" in warning for warning in verdict.warnings)


def test_reasons_that_do_not_count() -> None:
    verdict, _ = steps(scores((6, 6), objections=9), scores((1, 9)), when=["inconsistent"])
    assert (verdict.winner, verdict.details["because"]) == ("tie", None)
    verdict, _ = steps(scores((6, 5)), scores((1, 9)), when=["gap"], gap=1)
    assert verdict.winner == "1", "a gap of the threshold is no longer below it"
    verdict, _ = steps(scores(3), scores(5), SCORE)
    assert (verdict.score, verdict.details["because"]) == (3, None), "a score has no gap"


def test_a_function_says_what_is_in_doubt() -> None:
    def middling(verdict: Verdict) -> bool:
        return verdict.score == 3

    verdict, _ = steps(scores(3), scores(5), SCORE, when=middling)
    assert (verdict.score, verdict.details["because"]) == (5, "middling: reports doubt")
    assert verdict.details["cheap"]["score"] == 3
    verdict, _ = steps(scores(4), scores(5), SCORE, when=middling)
    assert verdict.score == 4


def round_judge(wrapper: str, judge: Any, cheap: Any = single) -> Any:
    """A wrapper that asks a judge, with a memory of its own."""
    built: dict[str, Any] = {
        "calibrated": lambda: calibrated(judge),
        "repeated": lambda: repeated(judge, 2),
        "cascade": lambda: cascade(cheap, judge, gap=99),
    }
    return built[wrapper]().compile(checkpointer=InMemorySaver())


WRAPPERS = ("calibrated", "repeated", "cascade")


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_turn_of_a_judge_inside_is_edited_while_it_pauses(wrapper: str, is_async: bool) -> None:
    model = scores((6, 5), objections=9)
    judge = debate.build(models={"*": model}, n=1).compile(interrupt_before=["conclude"])
    graph = round_judge(wrapper, judge)
    assert not goes_on(graph, {"task": COMPARE}, is_async).get("verdict")
    asked = len(model.calls)
    paused = graph.get_state(THREAD, subgraphs=True).tasks
    assert {task.state.next for task in paused} == {("conclude",)}
    assert [turn["id"] for turn in paused[-1].state.values["transcript"]][-1] == "scorer:2"
    edit = {"id": "scorer:2", "content": "On second thoughts.", "value": [1, 10]}
    with pytest.raises(ValueError, match="scorer:2 cannot have the value"):
        graph.update_state(paused[-1].state.config, {"transcript": [{**edit, "value": [1, 11]}]})
    graph.update_state(paused[-1].state.config, {"transcript": [edit]})
    result = goes_on(graph, None, is_async)
    # In the swapped order the judge inside sees the second answer first.
    counted = {"calibrated": ((6 + 10) / 2, (5 + 1) / 2), "repeated": ((6 + 1) / 2, (5 + 10) / 2)}
    assert Verdict.of(result).scores == counted.get(wrapper, (1, 10))
    [edited] = [turn["id"] for turn in result["transcript"] if turn.get("edited")]
    assert edited.endswith("/scorer:2")
    assert len(model.calls) == asked


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("is_async", [True, False])
def test_people_decide_inside_each_of_them(wrapper: str, is_async: bool) -> None:
    model = scores((6, 5), objections=9)
    cheap = scores((6, 6))
    judge = debate.build(models={"*": model}, n=1, on_unresolved="human")
    graph = round_judge(wrapper, judge, cheap=debate.build(models={"*": cheap}))
    pauses = goes_on(graph, {"task": COMPARE}, is_async)["__interrupt__"]
    asked = len(model.calls)
    assert len(pauses) == (1 if wrapper == "cascade" else 2)
    verdict = Verdict.of(
        goes_on(graph, Command(resume={pause.id: [7, 2] for pause in pauses}), is_async)
    )
    assert verdict.stop_reason == "human"
    assert verdict.scores == ((4.5, 4.5) if wrapper == "calibrated" else (7, 2))
    assert len(model.calls) == asked
    assert len(cheap.calls) == (2 if wrapper == "cascade" else 0), (
        "the cheap one is not asked again"
    )


@pytest.mark.parametrize("agent", ["scorer", "critic"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_judge_inside_that_fails_goes_on_where_it_failed(
    wrapper: str, is_async: bool, agent: str
) -> None:
    model = Failing(script=scores((6, 5)).script, failing=(agent,), asked=[])
    graph = round_judge(wrapper, debate.build(models={"*": model}))
    with pytest.raises(RuntimeError, match=f"{agent} is indisposed"):
        goes_on(graph, {"task": COMPARE}, is_async)
    told = Counter(model.asked)
    goes_on(graph, None, is_async)
    judges = 1 if wrapper == "cascade" else 2
    assert Counter(model.asked) == Counter(scorer=judges, critic=judges) + Counter([agent])
    # The other branch had ended before the failure was raised.
    assert told == Counter(scorer=judges, critic=judges - (agent == "scorer"))


HUMAN: dict[str, Any] = {"n": 1, "on_unresolved": "human"}
DEEP: dict[str, tuple[str, dict[str, Any], int]] = {
    "repeated": ("repeated", {"k": 2, "inner": HUMAN}, 2),
    "calibrated": ("calibrated", {"inner": HUMAN}, 2),
    "cascade": ("cascade", {"gap": 99, "expensive_settings": HUMAN}, 1),
    "review": ("review", {"when": ["always"], "inner": HUMAN}, 1),
    "calibrated in repeated": (
        "repeated",
        {"k": 2, "of": "calibrated", "inner": {"inner": HUMAN}},
        4,
    ),
    "repeated in repeated": (
        "repeated",
        {"k": 2, "of": "repeated", "inner": {"k": 2, "inner": HUMAN}},
        4,
    ),
    "cascade in review": (
        "review",
        {"of": "cascade", "when": ["always"], "inner": {"gap": 99, "expensive_settings": HUMAN}},
        1,
    ),
    "another protocol": ("calibrated", {"of": "multiagent", "inner": HUMAN}, 2),
}
"""Wrappers by name, the context of a run in which debates wait for a person, and how many wait."""


def waiting(state: Any) -> list[Any]:
    """The states of the innermost judges that wait, in the order of the tasks."""
    inside = [task.state for task in state.tasks if task.state is not None]
    return [deepest for judge in inside for deepest in (waiting(judge) or [judge])]


@pytest.mark.parametrize("wrapper", DEEP)
@pytest.mark.parametrize("resumed", ["thread", "empty context", "checkpoint"])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_turn_is_edited_inside_wrappers_that_a_context_chose(
    wrapper: str, resumed: str, is_async: bool
) -> None:
    name, context, pauses = DEEP[wrapper]
    model = scores((6, 5), objections=9)
    graph = find_protocol(name).build(models={"*": model}).compile(checkpointer=InMemorySaver())

    async def goes(given: Any, config: Any = THREAD, context: Any = None) -> Any:
        if is_async:
            return await graph.ainvoke(given, config, context=context)
        return graph.invoke(given, config, context=context)

    first = await goes({"task": COMPARE}, context=context)
    assert len(first["__interrupt__"]) == pauses
    asked = len(model.calls)
    state = (
        await graph.aget_state(THREAD, subgraphs=True)
        if is_async
        else graph.get_state(THREAD, subgraphs=True)
    )
    judges = waiting(state)
    assert [judge.next for judge in judges] == [("human",)] * pauses
    edit = {"transcript": [{"id": "critic:1", "content": "NO ISSUE", "value": True}]}
    config = judges[-1].config
    if is_async:
        edited = await graph.aupdate_state(config, edit, as_node="critic")
        history = [found async for found in graph.aget_state_history(config, limit=2)]
    else:
        edited = graph.update_state(config, edit, as_node="critic")
        history = list(graph.get_state_history(config, limit=2))
    assert [found.next for found in history] == [("human",)]
    going_on = edited if resumed == "checkpoint" else THREAD
    second = await goes(None, going_on, {} if resumed == "empty context" else None)
    last = second
    while last.get("__interrupt__"):
        answers = {pause.id: "tie" for pause in last["__interrupt__"]}
        last = await goes(
            Command(resume=answers), context={} if resumed == "empty context" else None
        )
    said = [turn["id"].rpartition("/")[2] for turn in last["transcript"] if turn.get("edited")]
    assert said == ["critic:1"]
    people = [turn for turn in last["transcript"] if turn["agent"] == "human"]
    # Of the debates that waited, one is over by the edit; a review asks about every verdict.
    assert len(people) == pauses - 1 + (name == "review")
    assert len(model.calls) == asked, "nobody is asked again"


def test_a_state_is_read_also_where_the_settings_of_its_run_were_refused() -> None:
    graph = find_protocol("repeated").build().compile(checkpointer=InMemorySaver())
    for context in ({"of": "nobody"}, {"inner": {"n": 0}}):
        with pytest.raises(UsageError):
            graph.invoke({"task": SCORE}, THREAD, context=context)
        assert graph.get_state(THREAD, subgraphs=True).next == ("prepare",)


def test_a_thread_that_goes_on_with_another_judge_inside_is_refused() -> None:
    judge = find_protocol("repeated").build(models={"*": scores((6, 5), objections=9)}, k=1)
    graph = judge.compile(checkpointer=InMemorySaver())
    graph.invoke({"task": COMPARE}, THREAD, context={"of": "review", "inner": {"when": ["always"]}})
    other = {"of": "calibrated", "inner": {"inner": HUMAN}}
    with pytest.raises(UsageError, match="resume it with the context of its first run"):
        graph.invoke(None, THREAD, context=other)


def registered(name: str, task: Any = COMPARE, context: Any = None, **settings: Any) -> Verdict:
    result = find_protocol(name).build(**settings).compile().invoke({"task": task}, context=context)
    return Verdict.of(result)


def test_a_registered_wrapper_tells_whose_verdict_it_is_and_hands_settings_on() -> None:
    for name in ("calibrated", "repeated"):
        verdict = registered(name, of="multiagent", inner={"n": 1})
        assert (verdict.protocol, verdict.details["of"]) == (name, "multiagent")
    verdict = registered("cascade", cheap="ensemble", cheap_settings={"referees": 1}, gap=0)
    assert (verdict.protocol, verdict.details["asked"]) == ("cascade", ["ensemble"])
    inner = find_protocol("repeated").build(inner={"n": 1}).bound_judge.bound.inner
    assert (inner["n"], inner["persona"]) == (1, "strict"), "all that changes a number is told"


def test_models_of_one_of_two_and_roles_that_only_one_has() -> None:
    model = scores((2, 9))
    offline = {"models": {"*": "offline"}, "repair": 0}
    graph = find_protocol("cascade").build(models={"*": model}, gap=99.0, cheap_settings=offline)
    result = graph.compile().invoke({"task": COMPARE})
    assert {turn["model"] for turn in result["transcript"] if turn["stage"] == "cheap"} == {
        "offline"
    }
    assert len(model.calls) == 2
    assert set(graph.bound_judge.chosen()) == {"cheap.*", "expensive.*"}
    critic = scores((2, 9))
    other = {"models": {"critic": critic}, "gap": 99.0}
    assert (
        registered("cascade", context={"models": {"scorer": "offline"}}, **other).protocol
        == "cascade"
    )
    assert {call.metadata["role"] for call in critic.calls} == {"critic"}
    with pytest.raises(UsageError, match="no role 'usher'"):
        registered("cascade", context={"models": {"usher": "offline"}}, **other)


DEFAULTS = find_protocol("repeated").protocol.settings().model_dump(mode="json")


@pytest.mark.parametrize(
    ("name", "bound", "context", "calls"),
    [
        ("repeated", {"inner": {"n": 2}}, {"k": 2}, 2 * 5),
        ("repeated", {"inner": {"n": 2}}, {"inner": {"n": 1}}, 3 * 3),
        ("repeated", {"inner": {"n": 2}}, {"inner": {"tie_breaker": True}}, 3 * 6),
        ("repeated", {"inner": {"n": 2}}, {"of": "ensemble"}, 3 * 6),
        ("repeated", {"inner": {"n": 2}}, {"of": "ensemble", "inner": {"referees": 1}}, 3 * 2),
        # A form that sends every default changes nothing.
        ("repeated", {"k": 2, "of": "baseline"}, DEFAULTS, 2),
        ("calibrated", {"inner": {"n": 2}}, {"inner": {"n": 1}}, 2 * 3),
        ("calibrated", {"inner": {"n": 2}}, {"of": "baseline"}, 2),
        ("cascade", {"gap": 0, "expensive_settings": {"n": 1}}, {"gap": 9}, 2 + 3),
        ("cascade", {"gap": 9, "expensive_settings": {"n": 1}}, {"when": ["inconsistent"]}, 2),
        ("cascade", {"gap": 9}, {"cheap": "baseline", "expensive_settings": {"n": 1}}, 1 + 3),
    ],
)
def test_a_runs_context_counts(name: str, bound: Any, context: Any, calls: int) -> None:
    def script(metadata: Any, prompt: str) -> dict[str, Any]:
        low = metadata["low"]
        first = prompt.index(COMPARE["answer_1"]) < prompt.index(COMPARE["answer_2"])
        said = {"reasoning": "So.", "score_1": low + first, "score_2": low + 1 - first}
        return {"feedback": "No.", "no_issue": False} if metadata["form"] == "critique" else said

    verdict = registered(name, context=context, models={"*": ScriptedModel(script=script)}, **bound)
    assert verdict.calls == calls


@pytest.mark.parametrize(("name", "settings", "error", "words"), [
    ("repeated", {"of": "debat"}, UsageError, "unknown protocol 'debat'; known are baseline"),
    ("repeated", {"inner": {"loudness": 1}}, ValidationError, "inner.loudness"),
    ("repeated", {"inner": {"n": 0}}, ValidationError, "inner.n"),
    ("repeated", {"k": 0}, ValidationError, "^k must be"),
    ("repeated", {"by": "luck"}, ValidationError, "by"), ("cascade", {"gap": -1}, ValidationError, "gap"),
    ("calibrated", {"of": "geval"}, UsageError, "geval takes no task of the kind 'compare', only score"),
    ("cascade", {"expensive": "geval"}, UsageError, "geval takes no task of the kind 'compare'"),
    ("cascade", {"expensive_settings": {"n": 0}}, ValidationError, "expensive_settings.n"),
    ("cascade", {"when": ["bored"]}, ValidationError, "when"),
])  # fmt: skip
@pytest.mark.parametrize("at", ["build", "run"])
def test_what_is_wrong_is_told_before_any_call(
    name: str, settings: Any, error: type[Exception], words: str, at: str
) -> None:
    model = scores((6, 6))
    given = {"context": settings} if at == "run" else settings
    with pytest.raises(error, match=words):
        registered(name, models={"*": model}, **given)
    assert model.calls == []


def test_roles_are_those_of_the_innermost() -> None:
    settings = {"of": "repeated", "inner": {"of": "ensemble", "k": 1}, "k": 1}
    model = scores((9, 3))
    assert (
        registered("repeated", models={"referee": model}, **settings).calls == len(model.calls) == 6
    )
    with pytest.raises(
        UsageError, match="repeated has no role 'critic'; its roles are planner, referee"
    ):
        find_protocol("repeated").build(models={"critic": "offline"}, **settings)


def test_wrappers_in_a_batch() -> None:
    settings: Any = {"of": "single", "k": "2", "inner": {"position_calibration": "false"}}
    done = evaluate("repeated", "demo-pairs", limit=2, settings=settings)
    assert [(r.protocol, r.calls) for r in done.results] == [("repeated", 2), ("repeated", 2)]
    assert "inner:{'position_calibration': false}" in done.manifest["signatures"]["repeated"]
    with pytest.raises(UsageError, match="repeated takes no compare tasks"):
        evaluate("repeated", "demo-pairs", settings={"of": "geval"})
    with pytest.raises(UsageError, match="on_unresolved=human"):
        evaluate(
            "cascade", "demo-pairs", settings={"expensive_settings": {"on_unresolved": "human"}}
        )
