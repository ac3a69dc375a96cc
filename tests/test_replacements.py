"""Replacements in a panel: who takes a failed member's seat, once, and what the verdict shows."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import ensemble, single
from jurygraph.graphs.protocol import (
    AgentRuntime,
    AgentState,
    PanelSettings,
    Protocol,
    ProtocolGraph,
    Question,
    build_prompt,
    call_metadata,
    exactly,
    score_schema,
    task_of,
)
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import UsageError, Verdict
from jurygraph.state.errors import ModelCallError, QuorumError
from jurygraph.state.verdict_warnings import NO_VOTE, REPLACED, kind_of

from .loopback import Failure, Provider
from .sample_data import COMPARE_TASK, SCORE_TASK, write_lines

REFUSAL = "I cannot help with that."
GONE = Failure(404, "The model does not exist.")
SCORES = {
    "gpt-a": "Fine.\nScore: 4",
    "gpt-b": "Poor.\nScore: 1",
    "gpt-c": "So.\nScore: 3",
}
PAIR = "So.\nScore of answer 1: 7\nScore of answer 2: 5"
MODELS = {"*": "openai:gpt-a", "referee_2": "openai:gpt-x"}


def judged(
    provider: Provider, task: Any = SCORE_TASK, failures: Any = None, **settings: Any
) -> tuple[Verdict, list[dict[str, Any]]]:
    """Judge with models that answer with their score, except those that fail."""
    failing = {"gpt-x": REFUSAL, **(failures or {})}

    def answer(request: Any) -> Any:
        if request.model in failing:
            return failing[request.model]
        return SCORES[request.model] if task is SCORE_TASK else PAIR

    provider.play(by=answer)
    graph = ensemble.build(models=MODELS, **{"structured": "off", **settings}).compile()
    result = graph.invoke({"task": task})
    return Verdict.of(result), result["transcript"]


@pytest.mark.parametrize("failure", [REFUSAL, GONE, "No idea."], ids=["refusal", "call", "unread"])
def test_a_replacement_takes_the_seat_call_for_call(provider: Provider, failure: Any) -> None:
    replacements = ["openai:gpt-b", "openai:gpt-c"]
    verdict, transcript = judged(provider, failures={"gpt-x": failure}, replacements=replacements)
    assert verdict.score == 3  # 4, 1 and 4
    assert verdict.details["scores_by_referee"] == {"referee_1": 4, "referee_2": 1, "referee_3": 4}
    seat = [turn for turn in transcript if turn["agent"] == "referee_2"]
    assert [(turn["id"], turn["value"], turn.get("replaces")) for turn in seat] == [
        ("referee_2:1", None, None),
        ("referee_2:2", 1, "openai:gpt-x"),
    ]
    assert "missing" not in verdict.details
    assert verdict.details["replaced"] == {
        "referee_2": {
            "model": "openai:gpt-b",
            "replaces": "openai:gpt-x",
            "reason": seat[0]["problem"],
        }
    }
    [warning] = verdict.warnings
    assert kind_of(warning) is REPLACED
    assert "referee_2: openai:gpt-b has taken the seat of openai:gpt-x. " in warning
    # An unreadable reply is asked for again before another model takes the seat.
    asked = [request.model for request in provider.requests]
    assert asked.count("gpt-x") == (1 if failure is GONE else 2)
    assert (asked.count("gpt-b"), asked.count("gpt-c")) == (1, 0)
    assert verdict.calls == sum(turn["calls"] for turn in transcript)


def test_the_failed_model_is_no_replacement_of_itself(provider: Provider) -> None:
    verdict, _ = judged(provider, replacements=["openai:gpt-x", "openai:gpt-b"])
    assert verdict.details["replaced"]["referee_2"]["model"] == "openai:gpt-b"
    verdict, _ = judged(provider, replacements=["openai:gpt-x"])
    assert [*verdict.details["missing"]] == ["referee_2"]


def test_a_replacement_that_fails_too_is_a_missing_member_with_both_reasons(
    provider: Provider,
) -> None:
    replacements = ["openai:gpt-b", "openai:gpt-c"]
    verdict, transcript = judged(provider, failures={"gpt-b": GONE}, replacements=replacements)
    assert verdict.score == 4
    reason = verdict.details["missing"]["referee_2"]
    assert "The reply refuses to judge." in reason
    assert "does not exist" in reason
    assert "(replacement openai:gpt-b)" in reason
    assert "replaced" not in verdict.details
    assert [kind_of(warning) for warning in verdict.warnings] == [NO_VOTE]
    # Once per seat: the third model is not asked.
    assert "gpt-c" not in [request.model for request in provider.requests]
    seat = [turn for turn in transcript if turn["agent"] == "referee_2"]
    assert [turn.get("replaces") for turn in seat] == [None, "openai:gpt-x"]


@pytest.mark.parametrize("quorum", ["all", "majority"])
def test_every_seat_fails_with_its_replacement(provider: Provider, quorum: str) -> None:
    failures = dict.fromkeys(("gpt-a", "gpt-b"), REFUSAL)
    with pytest.raises(QuorumError if quorum == "majority" else Exception) as caught:
        judged(provider, failures=failures, replacements=["openai:gpt-b"], quorum=quorum)
    assert "The reply refuses to judge." in str(caught.value)
    if quorum == "majority":
        assert str(caught.value).count("(replacement openai:gpt-b)") == 3


def test_with_a_quorum_of_all_a_replacement_saves_the_verdict(provider: Provider) -> None:
    verdict, _ = judged(provider, replacements=["openai:gpt-b"], quorum="all")
    assert verdict.score == 3


def test_the_seats_do_not_depend_on_the_members_order(provider: Provider) -> None:
    found = set()
    for models in itertools.permutations(["openai:gpt-a", "openai:gpt-x", "openai:gpt-y"]):
        own = {f"referee_{number}": model for number, model in enumerate(models, start=1)}
        provider.play(by=lambda request: SCORES.get(request.model, REFUSAL))
        graph = ensemble.build(
            models=own, structured="off", roles="same", referees=3, replacements=["openai:gpt-b"]
        )
        verdict = graph.compile().invoke({"task": SCORE_TASK})["verdict"]
        found.add(
            (verdict["score"], tuple(sorted(verdict["details"]["scores_by_referee"].values())))
        )
    assert found == {(2.0, (1.0, 1.0, 4.0))}


def test_a_comparison_is_replaced_in_both_orders_or_not_at_all(provider: Provider) -> None:
    verdict, transcript = judged(provider, COMPARE_TASK, replacements=["openai:gpt-b"])
    assert verdict.details["replaced"]["referee_2"]["model"] == "openai:gpt-b"
    assert len(verdict.details["scores_by_referee"]) == 3
    assert sum("replaces" in turn for turn in transcript) == 2

    # A model that fails in one order only: the average over two models would keep a position bias.
    def answer(request: Any) -> Any:
        first = COMPARE_TASK["answer_1"]
        swapped = request.user.index(COMPARE_TASK["answer_2"]) < request.user.index(first)
        return REFUSAL if request.model == "gpt-x" and swapped else PAIR

    provider.play(by=answer)
    graph = ensemble.build(models=MODELS, structured="off", replacements=["openai:gpt-b"])
    mixed = Verdict.of(graph.compile().invoke({"task": COMPARE_TASK}))
    assert [*mixed.details["missing"]] == ["referee_2"]
    assert "with the answers swapped" in mixed.details["missing"]["referee_2"]
    assert [*mixed.details["scores_by_referee"]] == ["referee_1", "referee_3"]


@pytest.mark.parametrize(
    ("replacements", "words"),
    [
        (["openai:gpt-b", "openai:gpt-b"], "openai:gpt-b is listed twice"),
        (["nobody:gpt-b"], "nobody"),
        ([""], "replacements"),
    ],
)
def test_replacements_that_cannot_be_used_are_refused_before_any_call(
    provider: Provider, tmp_path: Path, replacements: Any, words: str
) -> None:
    provider.play(by=lambda request: SCORES["gpt-a"])
    rows = write_lines(tmp_path / "mine.jsonl", [{"id": "1", "source": "A.", "candidate": "A."}])
    with pytest.raises(UsageError, match=words):
        evaluate(
            "ensemble", rows, models=MODELS, aspects=["fluency"],
            settings={"replacements": replacements},
        )  # fmt: skip
    assert provider.requests == []


def test_a_run_records_replacements_like_other_models(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: SCORES.get(request.model, REFUSAL))
    rows = write_lines(tmp_path / "mine.jsonl", [{"id": "1", "source": "A.", "candidate": "A."}])
    done = evaluate(
        "ensemble",
        rows,
        models=MODELS,
        aspects=["fluency"],
        settings={"replacements": "openai:gpt-b; openai:gpt-c", "structured": "off"},
        out=tmp_path / "run",
    )
    [result] = done.results
    assert result.details["replaced"]["referee_2"]["model"] == "openai:gpt-b"
    written = (tmp_path / "run" / "run.json").read_text()
    assert "replacement_1" in written
    assert "openai:gpt-c" in written


def test_a_panel_of_one_s_own_has_replacements(provider: Provider) -> None:
    protocol = Protocol(
        "readers", "two readers", "ours", ("score",), ("reader",), PanelSettings, ("shared",),
        lambda _settings, _kind, _can: {"reader": exactly(2)}, role_kinds={"reader": "panel"},
    )  # fmt: skip

    async def reader(state: AgentState, runtime: AgentRuntime[PanelSettings]) -> dict[str, Any]:
        prompt = build_prompt(state, runtime.prompts, "Rate it.")
        task = task_of(state)
        asked = Question(
            state["agent"], "reader", 1, prompt, score_schema(task), call_metadata(task)
        )
        return (await runtime.ask(asked)).update

    provider.play(by=lambda request: SCORES.get(request.model, GONE))
    models = {"reader_1": "openai:gpt-a", "reader_2": "openai:gpt-x"}
    for replacements, seats in ((["openai:gpt-b"], [4, 1]), ([], [4])):
        given = {"structured": "off", "replacements": replacements}
        graph = ProtocolGraph(protocol, PanelSettings, given, models)
        graph.panel("reader", reader, lambda _state, _settings: ["reader_1", "reader_2"], quorum=1)
        result = graph.compile().invoke({"task": SCORE_TASK})
        values = [turn["value"] for turn in result["transcript"] if turn["value"] is not None]
        assert values == seats
    with pytest.raises(ModelCallError, match="0 of 2 members"):
        graph = ProtocolGraph(
            protocol, PanelSettings, {"replacements": ["openai:gpt-y"]}, {"*": "openai:gpt-x"}
        )
        graph.panel("reader", reader, lambda _state, _settings: ["reader_1", "reader_2"], quorum=1)
        graph.compile().invoke({"task": SCORE_TASK})


# Chat model objects


def spare(score: int, asked: list[str], name: str) -> ScriptedModel:
    def script(about: Any, prompt: str) -> str:
        asked.append(name)
        return f"So.\nScore: {score}"

    return ScriptedModel(script=script)


def failing(about: Any, prompt: str) -> str:
    return REFUSAL if about["agent"] == "referee_2" else "So.\nScore: 4"


@pytest.mark.parametrize("as_setting", [False, True])
def test_replacements_may_be_chat_model_objects(as_setting: bool) -> None:
    asked: list[str] = []
    objects = [spare(1, asked, "first"), "offline", spare(2, asked, "second")]
    models = {"*": ScriptedModel(script=failing)}
    given: Any = {"structured": "off", "replacements": objects}
    graph = ensemble.build(given, models) if as_setting else ensemble.build(models=models, **given)
    verdict = Verdict.of(graph.compile().invoke({"task": SCORE_TASK}))
    # Both objects have the label of the failed one, so the named model takes the seat.
    assert verdict.details["replaced"]["referee_2"]["model"] == "offline"
    assert asked == []


class Spare(ScriptedModel):
    """A chat model with a name of its own."""

    model_name: str = "spare"

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "mine", "ls_model_name": self.model_name}


def test_objects_and_names_take_seats_in_their_order(provider: Provider) -> None:
    provider.play(by=lambda request: SCORES.get(request.model, REFUSAL))
    first = Spare(script=lambda about, prompt: "So.\nScore: 2")
    refusing = Spare(script=lambda about, prompt: REFUSAL, model_name="refusing")
    for listed, found in (
        ([first, "openai:gpt-b"], "mine:spare"),
        (["openai:gpt-b", first], "openai:gpt-b"),
        ((first,), "mine:spare"),
        (first, "mine:spare"),
    ):
        graph = ensemble.build(models=MODELS, structured="off", replacements=listed)  # type: ignore[arg-type]
        verdict = Verdict.of(graph.compile().invoke({"task": SCORE_TASK}))
        assert verdict.details["replaced"]["referee_2"]["model"] == found
    graph = ensemble.build(models=MODELS, structured="off", replacements=[refusing, first])
    details = Verdict.of(graph.compile().invoke({"task": SCORE_TASK})).details
    assert "(replacement mine:refusing)" in details["missing"]["referee_2"]
    # A run's own names override the objects.
    context: Any = {"replacements": ["openai:gpt-b"]}
    graph = ensemble.build(models=MODELS, structured="off", replacements=[first])
    result = graph.compile().invoke({"task": SCORE_TASK}, context=context)
    assert result["verdict"]["details"]["replaced"]["referee_2"]["model"] == "openai:gpt-b"


def test_a_run_takes_and_records_objects(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: SCORES.get(request.model, REFUSAL))
    rows = write_lines(tmp_path / "mine.jsonl", [{"id": "1", "source": "A.", "candidate": "A."}])
    first = Spare(script=lambda about, prompt: "So.\nScore: 2")
    settings: Any = {"replacements": [first], "structured": "off"}
    done = evaluate(
        "ensemble",
        rows,
        models=MODELS,
        aspects=["fluency"],
        settings=settings,
        out=tmp_path / "run",
    )
    [result] = done.results
    assert result.details["replaced"]["referee_2"]["model"] == "mine:spare"
    assert "replacement_1=mine:spare" in (tmp_path / "run" / "run.json").read_text()


def test_objects_that_are_no_models_are_refused() -> None:
    with pytest.raises(UsageError, match="model"):
        ensemble.build(replacements=[3])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="replacements"):
        single.build(replacements=[Spare(script=failing)])  # type: ignore[call-arg]
