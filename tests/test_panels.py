"""Test panels without a member: who is missing, when too many are, and what always counts."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.run.calls.call_pipeline import MAX_FAILURES
from jurygraph.graphs import OwnText, calibrated, ensemble, ranked, repeated
from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.protocol import (
    AgentRuntime,
    AgentState,
    CallsByRole,
    Protocol,
    Question,
    Settings,
    build_prompt,
    exactly,
    score_schema,
    task_of,
)
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import ReplyError, UsageError, Verdict
from jurygraph.state.errors import ModelCallError, QuorumError, TransientCallError
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from .loopback import Answer, Failure, Provider, Request
from .processes import Command
from .sample_data import COMPARE_TASK, SCORE_TASK, read_lines
from .test_call_pipeline import PLAIN, dataset, results
from .test_report_debates import read

REFUSAL = "I cannot help with that."
SCORES = {
    "score": "Fine.\nScore: 4",
    "compare": "Fine.\nScore of answer 1: 7\nScore of answer 2: 5",
}
Fails = Callable[[Mapping[str, Any]], Any]


def members(fails: Fails) -> ScriptedModel:
    """Make a model that fails according to ``fails``, and otherwise answers with scores."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        return fails(about) or SCORES[about["kind"]]

    return ScriptedModel(script=script)


def without(*agents: str, order: int | None = None, reply: Any = REFUSAL) -> ScriptedModel:
    """A model that fails for these agents: in one order of the answers, or in both."""

    def fails(about: Mapping[str, Any]) -> Any:
        of_order = order is None or about.get("order", 1) == order
        return reply if about["agent"] in agents and of_order else None

    return members(fails)


def judged(
    model: Any, task: Any = SCORE_TASK, sync: bool = True, **settings: Any
) -> tuple[Verdict, Any]:
    graph = ensemble.build(models={"*": model}, **{"structured": "off", **settings}).compile()
    result = graph.invoke({"task": task}) if sync else asyncio.run(graph.ainvoke({"task": task}))
    return Verdict.of(result), result["transcript"]


CUT_OFF = AIMessage("The summary is", response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(("reply", "reason", "fault"), [
    (REFUSAL, "The reply refuses to judge.", "refused"),
    ("It is good.", "The reply states no score on a line of its own.", "missing"),
    ("Score: 11", "off the scale", "off_scale"),
    (CUT_OFF, "cut off", "cut_off"),
])  # fmt: skip
def test_a_verdict_stands_without_a_member(reply: Any, reason: str, fault: str, sync: bool) -> None:
    verdict, transcript = judged(without("referee_2", reply=reply), sync=sync)
    assert verdict.score == 4
    assert verdict.score_by_round == (4,)
    assert [*verdict.details["scores_by_referee"]] == ["referee_1", "referee_3"]
    assert [*verdict.details["missing"]] == ["referee_2"]
    assert reason in verdict.details["missing"]["referee_2"]
    [warning] = [w for w in verdict.warnings if "no vote" in w]
    assert warning.startswith("referee_2: no vote, left out of the panel. ")
    assert reason in warning
    # Three members, and the failed one was asked again.
    assert verdict.calls == 4
    [failed] = [turn for turn in transcript if turn["agent"] == "referee_2"]
    assert (failed["value"], failed["fault"], failed["calls"]) == (None, fault, 2)


@pytest.mark.parametrize("order", [1, 2])
def test_a_member_that_fails_in_one_order_has_not_voted(order: int) -> None:
    """One order's score alone would count the place: here others always prefer the first."""
    verdict, transcript = judged(without("referee_2", order=order), COMPARE_TASK)
    assert (verdict.scores, verdict.winner) == ((6, 6), "tie")
    assert verdict.details["scores_by_order"] == [[7, 5], [5, 7]]
    assert [*verdict.details["scores_by_referee"]] == ["referee_1", "referee_3"]
    where = {1: "with the answers as given", 2: "with the answers swapped"}[order]
    assert where in verdict.details["missing"]["referee_2"]
    # Its other turn stays in the transcript.
    values = [turn["value"] for turn in transcript if turn["agent"] == "referee_2"]
    assert sorted(value is None for value in values) == [False, True]
    assert verdict.calls == 7


def test_too_few_votes_are_an_error_with_all_raw_replies() -> None:
    model = members(
        lambda about: {"referee_1": REFUSAL, "referee_3": "No idea."}.get(about["agent"])
    )
    with pytest.raises(QuorumError) as caught:
        judged(model)
    error = str(caught.value)
    assert error.startswith(
        "1 of 3 members of the panel voted, and quorum=majority needs 2. referee_1, round 1: "
    )
    assert f"Raw reply: '{REFUSAL}'" in error
    assert "referee_3, round 1: " in error
    assert "Raw reply: 'No idea.'" in error
    assert isinstance(caught.value, ReplyError)
    assert (caught.value.agent, caught.value.reply) == ("referee_1", REFUSAL)


@pytest.mark.parametrize(("referees", "failing", "quorum", "stands"), [
    (3, 1, "majority", True), (3, 2, "majority", False), (4, 2, "majority", False), (4, 1, "majority", True),
    (3, 1, "all", False), (3, 0, "all", True), (3, 2, 1, True), (3, 1, 3, False), (5, 3, 2, True),
])  # fmt: skip
def test_the_quorum(referees: int, failing: int, quorum: Any, stands: bool) -> None:
    model = without(*[f"referee_{number}" for number in range(1, failing + 1)])
    settings: dict[str, Any] = {"referees": referees, "roles": "same", "quorum": quorum}
    if stands:
        verdict, _ = judged(model, **settings)
        assert len(verdict.details["scores_by_referee"]) == referees - failing
    else:
        with pytest.raises(ReplyError):
            judged(model, **settings)


@pytest.mark.parametrize(("settings", "words"), [
    ({"quorum": 4}, "quorum=4, but there are only 3 referees"),
    ({"quorum": 3, "referees": 2}, "quorum=3, but there are only 2 referees"),
    ({"quorum": 3, "roles": ["critic", "scientist"]}, "quorum=3, but there are only 2 referees"),
    ({"quorum": 0}, "must be 'majority', 'all' or a whole number from 1, got 0"),
    ({"quorum": "most"}, "must be 'majority', 'all' or a whole number from 1, got 'most'"),
])  # fmt: skip
def test_a_quorum_out_of_reach_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ensemble.build(**settings)


def test_a_quorum_above_the_roles_of_a_file_is_refused_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text("[critic, scientist]", encoding="utf-8")
    with pytest.raises(UsageError, match="quorum=3, but there are only 2 referees"):
        ensemble.build(quorum=3, roles=OwnText(str(tmp_path / "roles.yaml")))
    assert ensemble.build(quorum=2, roles=OwnText(str(tmp_path / "roles.yaml")))


# Failures of the provider


def played(provider: Provider, failure: Answer, *, model: str = "gpt-broken") -> dict[str, Any]:
    """Make a provider fail for one model; return models with it as the second referee."""
    provider.play(by=lambda request: failure if request.model == model else SCORES["score"])
    return {"*": "openai:gpt-4o-mini", "referee_2": f"openai:{model}"}


@pytest.mark.parametrize(("failure", "words"), [
    (Failure(404, "The model `gpt-broken` does not exist."), "does not exist"),
    (Failure(401, "Incorrect API key provided."), "Incorrect API key"),
    (Failure(400, "Too long.", code="context_length_exceeded"), "Too long"),
])  # fmt: skip
def test_a_member_whose_model_is_refused_is_missing(
    provider: Provider, failure: Failure, words: str
) -> None:
    models = played(provider, failure)
    graph = ensemble.build(models=models, structured="off").compile()
    heard = list(graph.stream({"task": SCORE_TASK}, stream_mode="custom"))
    assert [event["turn"]["id"] for event in heard if event["problem"]] == ["referee_2:1"]
    result = graph.invoke({"task": SCORE_TASK})
    assert result["verdict"]["score"] == 4
    assert words in result["verdict"]["details"]["missing"]["referee_2"]
    [failed] = [turn for turn in result["transcript"] if turn["agent"] == "referee_2"]
    assert (failed["fault"], failed["calls"], failed["model"]) == (
        "call_failed",
        0,
        "openai:gpt-broken",
    )


def test_a_panel_whose_every_call_is_refused_is_a_call_error(provider: Provider) -> None:
    provider.play(by=lambda request: Failure(401, "Incorrect API key provided."))
    graph = ensemble.build(models={"*": "openai:gpt-4o-mini"}, structured="off").compile()
    with pytest.raises(ModelCallError, match=r"0 of 3 members .* Incorrect API key") as caught:
        graph.invoke({"task": SCORE_TASK})
    assert not isinstance(caught.value, ReplyError)


def test_an_error_that_may_pass_is_not_a_missing_member() -> None:
    class Lost(ScriptedModel):
        async def _agenerate(
            self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
        ) -> Any:
            if run_manager.metadata["agent"] == "referee_2":
                raise TransientCallError("the connection was lost")
            return await super()._agenerate(messages, stop, run_manager, **kwargs)

    model = Lost(script=lambda about, prompt: SCORES["score"])
    graph = ensemble.build(models={"*": model}, structured="off").compile()

    async def once() -> None:
        async with asyncio.timeout(0.5):
            await graph.ainvoke({"task": SCORE_TASK})

    # Retried until a time-out; its cancellation is not a missing member either.
    with pytest.raises((TransientCallError, TimeoutError)):
        asyncio.run(once())


# Runs

MODELS = {"*": "openai:gpt-4o-mini", "referee_2": "openai:gpt-shy"}


def shy(calls: Counter[str]) -> Callable[[Request], Answer]:
    """Make a provider whose model ``gpt-shy`` refuses every text twice, but not a third time."""

    def answer(request: Request) -> Answer:
        text = request.user.partition("Please")[0]
        if request.model == "gpt-shy":
            calls[text] += 1
            if calls[text] <= 2:
                return REFUSAL
        return SCORES["score"]

    return answer


@pytest.mark.slow
def test_a_resumed_run_gives_the_same_verdicts_and_pays_nothing_twice(
    provider: Provider, tmp_path: Path
) -> None:
    data = dataset(tmp_path, 3)
    options: dict[str, Any] = {"models": MODELS, "settings": PLAIN, "concurrency": 1}
    provider.play(by=shy(Counter()))
    whole = evaluate("ensemble", data, **options, out=tmp_path / "whole")
    paid = len(provider.requests)
    assert paid == 3 * 4
    assert all([*result.details["missing"]] == ["referee_2"] for result in whole.results)
    assert all(result.calls == 4 for result in whole.results)
    # Each budget ends the run at another call of the first items, behind a refusal too.
    for stop in range(1, 8):
        provider.play(by=shy(Counter()))
        provider.requests.clear()
        out = tmp_path / f"stopped-{stop}"
        stopped = evaluate("ensemble", data, **options, out=out, max_calls=stop)
        assert stopped.stopped == "budget"
        assert not any(result.status == "failed" for result in stopped.results)
        resumed = evaluate("ensemble", data, **options, out=out)
        assert results(resumed) == results(whole)
        assert len(provider.requests) == paid


def test_a_failed_panel_is_asked_again_by_the_next_start(
    provider: Provider, tmp_path: Path
) -> None:
    data = dataset(tmp_path, 2)
    out = tmp_path / "out"
    options: dict[str, Any] = {"models": {"*": "openai:gpt-4o-mini"}, "settings": PLAIN, "out": out}
    provider.play(by=lambda request: REFUSAL)
    failed = evaluate("ensemble", data, **options)
    assert [result.status for result in failed.results] == ["failed"] * 2
    assert all(
        (result.error or "").startswith("QuorumError: 0 of 3 members") for result in failed.results
    )
    assert all(result.calls == 6 for result in failed.results)
    provider.play(by=lambda request: SCORES["score"])
    assert [result.score for result in evaluate("ensemble", data, **options).results] == [4, 4]


def test_a_rejected_key_ends_the_run_with_its_reason(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: Failure(401, "Incorrect API key provided."))
    done = evaluate(
        "ensemble", dataset(tmp_path, 40), models={"*": "openai:gpt-4o-mini"}, settings=PLAIN
    )
    assert done.stopped == "provider"
    assert len(done.results) < MAX_FAILURES
    assert all("Incorrect API key" in (result.error or "") for result in done.results)
    # So does the failure of one member; its first items are judged without it.
    models = played(provider, Failure(401, "Incorrect API key provided."))
    alone = evaluate(
        "ensemble", dataset(tmp_path, 40), models=models, settings=PLAIN, concurrency=1
    )
    assert alone.stopped == "provider"
    assert [*alone.results[0].details["missing"]] == ["referee_2"]


def test_who_is_missing_is_in_results_show_and_page(
    provider: Provider, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset(tmp_path, 2)
    provider.play(by=lambda request: REFUSAL if request.model == "gpt-shy" else SCORES["score"])
    options = ("--model", "openai:gpt-4o-mini", "--role-model", "referee_2=openai:gpt-shy")
    [data] = tmp_path.glob("*.jsonl")
    run = ("run", "ensemble", "--data", data, *options, "--set", "structured=off")
    assert command(*run, "--set", "quorum=2", "--out", "out") == 0, command.errors
    [first, _] = read_lines(tmp_path / "out" / "results.jsonl")
    assert first["details"]["missing"] == {"referee_2": "The reply refuses to judge."}
    assert command("show", "out", first["item"]) == 0
    assert "No vote: The reply refuses to judge." in command.printed
    _, blocks, _ = read(tmp_path / "out")
    turns = [turn for debates in blocks for debate in debates for turn in debate["transcript"]]
    problems = {turn.get("problem") for turn in turns}
    assert problems == {None, "The reply refuses to judge."}
    assert command(*run, "--set", "quorum=4") == 2
    assert "quorum=4, but there are only 3 referees" in command.errors


# Inside other graphs


def test_panels_inside_wrappers() -> None:
    model = without("referee_2", order=2)
    one_order = ensemble.build(models={"*": model}, structured="off")
    both = calibrated(
        ensemble.build(models={"*": model}, structured="off", position_calibration=False)
    )
    for graph in (repeated(one_order, k=2), both, calibrated(one_order)):
        result = graph.compile().invoke({"task": COMPARE_TASK})
        missing = "no vote" in " ".join(result["verdict"]["warnings"])
        # Where each order is a judgement of its own, the orders are alike to the members.
        assert missing is (graph is not both)
        assert result["verdict"]["winner"] == "tie"


def test_a_missing_member_is_no_voter_of_an_election() -> None:
    graph = ranked(
        ensemble.build(models={"*": without("referee_2", order=2)}, structured="off"), "borda"
    ).compile()
    outcome = graph.invoke({"question": "Why?", "answers": ["The tide turned.", "No idea."]})
    assert [*outcome["comparisons"][0]["votes"]] == ["referee_1", "referee_3"]


def test_a_person_may_vote_in_place_of_a_missing_member() -> None:
    model = without("referee_1", "referee_2")
    graph = ensemble.build(models={"*": model}, structured="off").compile(
        checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(QuorumError):
        graph.invoke({"task": SCORE_TASK}, thread)
    graph.update_state(
        thread, {"transcript": [{"id": "referee_2:1", "value": 2}]}, as_node="referee"
    )
    verdict = graph.invoke(None, thread)["verdict"]
    assert (verdict["score"], [*verdict["details"]["missing"]]) == (3, ["referee_1"])


def own_panel(model: Any, quorum: Any, size: int = 3) -> Any:
    """A protocol of one's own: agents who are asked once, with a quorum."""
    names = [f"reader_{number}" for number in range(1, size + 1)]

    def calls(_settings: Settings, _kind: Any, _can: Any) -> CallsByRole:
        return {"reader": exactly(size)}

    protocol = Protocol(
        "readers", "three readers", "ours", ("score",), ("reader",), Settings, ("shared",), calls,
        role_kinds={"reader": "panel"},
    )  # fmt: skip

    async def reader(state: AgentState, runtime: AgentRuntime[Settings]) -> dict[str, Any]:
        prompt = build_prompt(state, runtime.prompts, "Rate it.")
        form = score_schema(task_of(state))
        about = {"kind": "score"}
        return (
            await runtime.ask(Question(state["agent"], "reader", 1, prompt, form, about))
        ).update

    graph = ProtocolGraph(protocol, Settings, {"structured": "off"}, {"*": model})
    graph.panel("readers", reader, lambda _state, _settings: names, quorum=quorum)
    return graph.compile()


def test_a_panel_of_ones_own_has_a_quorum() -> None:
    one = without("reader_3")
    two = without("reader_1", "reader_3")
    verdict = own_panel(one, "majority").invoke({"task": SCORE_TASK})["verdict"]
    assert (verdict["score"], [*verdict["details"]["missing"]]) == (4, ["reader_3"])
    with pytest.raises(QuorumError, match="1 of 3 members"):
        own_panel(two, "majority").invoke({"task": SCORE_TASK})
    assert own_panel(two, 1).invoke({"task": SCORE_TASK})["verdict"]["score"] == 4
    with pytest.raises(ReplyError, match="reader_3, round 1"):
        own_panel(one, None).invoke({"task": SCORE_TASK})
    # A number out of reach is refused before anybody is asked.
    unasked = without()
    with pytest.raises(UsageError, match="quorum=4, but the panel has 3 members"):
        own_panel(unasked, 4).invoke({"task": SCORE_TASK})
    assert unasked.calls == []


@pytest.mark.parametrize("failing", [(), ("referee_2",)])
def test_a_panel_whose_members_a_planner_writes(failing: tuple[str, ...]) -> None:
    personas = "\n".join(f"{n}. Reader {n}: You read it {n} times." for n in (1, 2, 3))

    def fails(about: Mapping[str, Any]) -> Any:
        return (
            personas
            if about["role"] == "planner"
            else REFUSAL
            if about["agent"] in failing
            else None
        )

    verdict, _ = judged(members(fails), roles="auto", referees=3)
    assert len(verdict.details["scores_by_referee"]) == 3 - len(failing)
    assert [*verdict.details.get("missing", ())] == [*failing]


def test_the_state_of_a_panel_is_plain_json() -> None:
    _, transcript = judged(without("referee_2"))
    assert json.loads(json.dumps(transcript)) == transcript
