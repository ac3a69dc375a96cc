"""G-Eval: steps written once, a score weighed by probability; scripted, and over real sockets."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.results.folder import read_steps
from jurygraph.graphs import geval
from jurygraph.nodes.evaluation_steps import EvaluationStepsCache, keep_steps_in
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.replies.steps import read_steps as steps_in
from jurygraph.state import DataError, ModelCallError, ReplyError, UsageError
from jurygraph.state.errors import StoppedError, TransientCallError
from jurygraph.state.planned_steps import PlannedSteps
from jurygraph.state.settings import GEvalSettings
from jurygraph.state.verdict_warnings import OFF_SCALE, kind_of
from langchain_openai import ChatOpenAI

from . import loopback_debate, loopback_wire
from .loopback import Answer, Failure, Provider, Request, Text
from .loopback_debate import OPENAI, SCORE_TASK, google
from .sample_data import numbered

STEPS = ["Read both texts.", "Compare their claims.", "Give a score from 1 to 5."]
PLAN = "Evaluation steps:\n\n1. Read both texts.\n2. Compare their claims.\n3. Give a score from 1 to 5."
FOUR = Text("4", top=({"4": 0.5, "5": 0.3, " 3": 0.1, "The": 0.1},))


run = partial(loopback_debate.run, protocol=geval)


def plays(request: Request) -> Answer:
    """A planner and a scorer with log-probabilities."""
    return PLAN if "Write the evaluation steps" in request.user else FOUR


def scripted(metadata: Mapping[str, Any], prompt: str) -> str:
    return PLAN if metadata["role"] == "planner" else "345"[metadata["sample"] % 3]


# By log-probabilities


@pytest.mark.parametrize(
    ("on_scale", "weighting", "told"), [(0.7, "logprobs", "30% of"), (0.4, "auto", "60% of")]
)
def test_mass_off_the_scale_is_told(
    provider: Provider, on_scale: float, weighting: str, told: str
) -> None:
    likely = {"4": on_scale - 0.1, "5": 0.1}
    provider.play(by=lambda request: Text("4", top=(likely,)))
    verdict, transcript = run(models={"*": OPENAI}, weighting=weighting, steps=STEPS, samples=3)
    [warning] = verdict.warnings
    assert kind_of(warning) is OFF_SCALE
    assert told in warning
    # Where less than half is left, samples take its place; the attempt was paid and stays.
    score, turns = (4 + 1 / 7, 1) if weighting == "logprobs" else (4, 4)
    assert verdict.score == pytest.approx(score)
    assert len(transcript) == turns


def test_probability_that_is_hardly_on_the_scale_is_no_score(provider: Provider) -> None:
    provider.play(by=lambda request: Text("4", top=({"4": 0.04},)))
    with pytest.raises(ReplyError, match="96% of the probability is off the scale") as raised:
        run(models={"*": OPENAI}, weighting="logprobs", steps=STEPS)
    assert raised.value.turn is not None
    assert (raised.value.turn["content"], raised.value.turn["calls"]) == ("4", 1)


@pytest.mark.parametrize(
    "listed", ["1. 1.1.1.1", "1. Read both.\n2. Read both.", "1. Read both.\n2. -"]
)
def test_steps_that_are_none_are_asked_for_again_and_never_used(
    provider: Provider, listed: str
) -> None:
    provider.play(listed, PLAN, FOUR)
    verdict, _ = run(models={"*": OPENAI})
    assert verdict.details["steps"] == STEPS
    provider.play(listed, listed)
    with pytest.raises(ReplyError, match=r"step without words|same step twice"):
        run(models={"*": OPENAI})


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("structured", ["auto", "off"])
def test_a_score_weighed_by_token_probabilities(
    provider: Provider, how: str, structured: str
) -> None:
    provider.play(by=plays)
    verdict, transcript = run(how, models={"*": OPENAI}, structured=structured)
    assert verdict.score == pytest.approx((4 * 0.5 + 5 * 0.3 + 3 * 0.1) / 0.9)
    assert verdict.details["distribution"] == pytest.approx({"3": 1 / 9, "4": 5 / 9, "5": 3 / 9})
    assert verdict.details["mass_dropped"] == pytest.approx(0.1)
    assert verdict.details["weighting"] == "logprobs"
    assert verdict.details["steps"] == STEPS
    assert (verdict.calls, verdict.rounds, verdict.stop_reason, verdict.warnings) == (
        2,
        1,
        "complete",
        (),
    )
    assert [(turn["agent"], turn["value"]) for turn in transcript] == [
        ("planner", None),
        ("scorer", 4),
    ]
    planned, scored = (request.parameters for request in provider.requests)
    assert planned == {"temperature": 0, "max_completion_tokens": 1024}
    limit = {"max_completion_tokens": 2048}
    assert scored == {"temperature": 0, "logprobs": True, "top_logprobs": 20, **limit}


def test_what_planner_and_scorer_are_shown(provider: Provider) -> None:
    provider.play(by=plays)
    run(models={"*": OPENAI})
    planner, scorer = (request.user for request in provider.requests)
    assert SCORE_TASK["source"] not in planner and SCORE_TASK["candidate"] not in planner
    rubric = planner[: planner.index("Do not rate a text yet")].strip()
    assert scorer.startswith(rubric), "what is the same for every item comes first"
    parts = ("2. Compare their claims.", SCORE_TASK["source"], "Evaluation form")
    places = [scorer.index(text) for text in parts]
    assert places == sorted(places)
    assert "Mark those" not in scorer, "the aspect's own steps are not shown beside the planner's"


def test_given_steps_need_no_planner(provider: Provider) -> None:
    provider.play(by=plays)
    verdict, _ = run(models={"*": OPENAI}, steps=["Look hard.", "Give a score."])
    assert verdict.calls == len(provider.requests) == 1
    assert "1. Look hard.\n2. Give a score." in provider.requests[0].user
    assert verdict.details["steps"] == ["Look hard.", "Give a score."]
    assert GEvalSettings.model_validate({"steps": "Read.; Score."}).steps == ("Read.", "Score.")
    assert GEvalSettings.model_validate({"steps": None}).steps == ()


def test_the_score_may_stand_behind_its_label(provider: Provider) -> None:
    top = ({"-": 1.0}, {" Consistency": 1.0}, {":": 1.0}, {" 2": 0.75, " 1": 0.25})
    provider.play(Text("- Consistency: 2", top=top))
    verdict, _ = run(models={"*": OPENAI}, steps=STEPS)
    assert verdict.score == 1.75


def test_a_reply_that_cannot_be_read_is_repaired_with_probabilities_again(
    provider: Provider,
) -> None:
    provider.play("I would rather not say.", FOUR)
    verdict, _ = run(models={"*": OPENAI}, steps=STEPS)
    assert [request.body.get("top_logprobs") for request in provider.requests] == [20, 20]
    assert verdict.calls == 2
    assert verdict.details["weighting"] == "logprobs"


TEN = {"name": "wit", "criteria": "Does it amuse?", "low": 1, "high": 10}


def test_ten_points_in_two_tokens(provider: Provider) -> None:
    split = Text("10", top=({"1": 0.8, "9": 0.2}, {"0": 0.9, ".": 0.1}))
    provider.play(by=lambda _: split)
    with pytest.raises(
        UsageError, match=r"weighting=logprobs: .*the score that it states, 10; use weighting=s"
    ):
        run(
            task={**SCORE_TASK, "aspect": TEN},
            models={"*": OPENAI},
            steps=STEPS,
            weighting="logprobs",
        )
    verdict, _ = run(
        task={**SCORE_TASK, "aspect": TEN}, models={"*": OPENAI}, steps=STEPS, samples=3
    )
    assert (verdict.score, verdict.details["weighting"], verdict.calls) == (10, "sampling", 2)


# Without log-probabilities


REFUSALS = [
    Failure(400, "Unsupported parameter: 'logprobs' is not supported with this model.", "logprobs"),
    Failure(403, "You are not allowed to request logprobs from this model"),
    Failure(400, "Invalid value for 'top_logprobs': must be at most 5.", "top_logprobs"),
    Failure(422, "logprobs is not enabled"),
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_provider_that_rejects_logprobs(provider: Provider, refusal: Failure) -> None:
    provider.play(by=lambda request: refusal if request.body.get("logprobs") else "4")
    verdict, transcript = run(models={"*": OPENAI}, steps=STEPS, samples=4)
    assert [request.body.get("n") for request in provider.requests] == [None, 4]
    assert provider.requests[1].body["temperature"] == 1
    assert (verdict.score, verdict.calls, len(transcript)) == (4, 1, 4)
    assert verdict.details["weighting"] == "sampling"
    assert verdict.warnings == (
        "openai:gpt-4o-mini returns no token log-probabilities: the score is the mean of 4 samples",
    )


def test_a_provider_that_ignores_logprobs_is_asked_for_them_once(provider: Provider) -> None:
    provider.play(by=lambda _: "4")
    first, second = (run("sync", models={"*": OPENAI}, steps=STEPS, samples=2)[0] for _ in range(2))
    assert [request.body.get("logprobs") for request in provider.requests] == [True, None, None]
    assert (first.calls, second.calls) == (2, 1)
    assert first.score == second.score == 4
    assert "no token log-probabilities" in second.warnings[0]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_logprobs_or_nothing(provider: Provider, how: str) -> None:
    provider.play(by=lambda request: REFUSALS[0] if request.body.get("logprobs") else "4")
    with pytest.raises(
        UsageError, match="mini returns no token log-probabilities; use weighting=sampling"
    ):
        run(how, models={"*": OPENAI}, steps=STEPS, weighting="logprobs")
    with pytest.raises(UsageError, match="offline returns no token log-probabilities"):
        run(how, steps=STEPS, weighting="logprobs")


def test_a_chat_object_weighs_like_a_model_by_name(provider: Provider) -> None:
    provider.play(by=lambda _: FOUR)
    chat = ChatOpenAI(model="gpt-4o-mini", temperature=0)
    named, _ = run("sync", models={"*": OPENAI}, steps=STEPS)
    verdict, _ = run("sync", models={"*": chat}, steps=STEPS)
    assert verdict.score == named.score
    assert verdict.details == named.details
    assert verdict.output_tokens == named.output_tokens > 0
    first, second = (request.body["messages"] for request in provider.requests)
    assert first == second


# By samples


def test_twenty_samples_in_one_request(provider: Provider) -> None:
    said: list[Answer] = [
        "4",
        "- Consistency: 5",
        "four or so, I cannot tell",
        Text("3 or", finish="length"),
    ]
    provider.play(*said * 5)
    verdict, transcript = run(models={"*": OPENAI}, steps=STEPS, weighting="sampling")
    assert [request.body["n"] for request in provider.requests] == [20]
    assert verdict.score == 4.5
    assert verdict.calls == 1
    assert verdict.details["distribution"] == {"4": 0.5, "5": 0.5}
    assert (verdict.details["samples"], verdict.details["unread_samples"]) == (20, 10)
    assert verdict.warnings == (
        "scorer, round 1: 10 of 20 samples could not be read and were left out",
    )
    assert [turn["sample"] for turn in transcript] == list(range(1, 21))


def test_gemini_is_asked_as_often_as_there_are_samples(provider: Provider) -> None:
    provider.play(by=lambda _: "4")
    verdict, _ = run(models={"*": google(provider)}, steps=STEPS, samples=5)
    assert verdict.calls == len(provider.requests) == 5
    assert verdict.details["weighting"] == "sampling"
    assert "returns no token log-probabilities" in verdict.warnings[-1]


# Steps


@pytest.mark.parametrize("text", [
    PLAN, "1) Read both texts.\n2) Compare their claims.\n3) Give a score from 1 to 5.",
    "**Step 1:** Read both texts.\n**Step 2:** Compare their claims.\n**Step 3:** Give a score\nfrom 1 to 5.",
    "Here they are.\n- Read both texts.\n- Compare their claims.\n- Give a score from 1 to 5.\n\nGood luck!",
])  # fmt: skip
def test_lists_of_steps(text: str) -> None:
    assert list(steps_in(text)) == STEPS


def planned(model: ScriptedModel) -> list[str]:
    return [
        str(call.metadata["aspect"]) for call in model.calls if call.metadata["role"] == "planner"
    ]


async def test_one_planner_call_for_items_that_start_at_the_same_moment() -> None:
    model = ScriptedModel(script=lambda metadata, _: PLAN if metadata["role"] == "planner" else "3")
    graph = geval.build(models={"*": model}, samples=1).compile()
    # Two of the same name have other criteria, and so steps of their own.
    aspects = ("fluency", "coherence", "topical-chat/coherence")
    tasks: list[Any] = [{"task": {**SCORE_TASK, "aspect": a}} for a in aspects for _ in range(10)]
    with keep_steps_in() as book:
        results = await graph.abatch(tasks)
    assert sorted(planned(model)) == ["coherence", "coherence", "fluency"]
    assert [one.aspect for one in book.all] == ["fluency", "coherence", "coherence"]
    assert sum(result["verdict"]["calls"] for result in results) == len(model.calls) == 33
    assert all(result["verdict"]["details"]["steps"] == STEPS for result in results)


@pytest.mark.parametrize(("said", "kind", "words", "asked", "paid"), [
    (["No list."] * 2, ReplyError, "planner, round 0", 2, 1),
    ([RuntimeError("down")], ModelCallError, "down", 1, 0),
], ids=["no list, nor after the repair", "the provider refuses"])  # fmt: skip
async def test_a_planner_that_fails_for_good_is_asked_once(
    said: list[Any], kind: type[Exception], words: str, asked: int, paid: int
) -> None:
    # Each item asks the planner the same, so thousands would pay for the same failure.
    model = ScriptedModel(script={"planner": [*said, PLAN], "scorer": ["4"]})
    graph = geval.build(models={"*": model}, samples=1).compile()
    tasks: list[Any] = [{"task": SCORE_TASK}] * 3
    with keep_steps_in():
        errors = await graph.abatch(tasks, return_exceptions=True)
        errors += await graph.abatch(tasks[:1], return_exceptions=True)
    assert len(planned(model)) == asked
    assert all(isinstance(error, kind) and words in str(error) for error in errors)
    assert len(set(map(str, errors))) == 1
    turns = [getattr(error, "turn", None) for error in errors]
    assert sum(turn is not None for turn in turns) == paid, "the call is paid for by one item"
    with keep_steps_in():
        again = await graph.ainvoke(tasks[0])
    assert again["verdict"]["details"]["steps"] == STEPS, "another run asks again"


@pytest.mark.parametrize(
    "error", [StoppedError("The budget is spent."), TransientCallError("busy")]
)
async def test_a_planner_that_fails_for_now_leaves_the_next_in_line_to_try(
    error: Exception,
) -> None:
    steps = PlannedSteps(aspect="fluency", model="m", key="k", steps=("Read.",))
    outcomes: Iterator[Exception | PlannedSteps] = iter([error, steps])

    async def write() -> PlannedSteps:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    cache = EvaluationStepsCache()
    found = await asyncio.gather(
        *(cache.steps("k", write) for _ in range(3)), return_exceptions=True
    )
    assert found == [error, ("Read.",), ("Read.",)]


# Restricted to the scale


LOCAL = "openai:smollm2"
WHITE = Text("4 \n", top=({"4": 0.5, "5": 0.3, " 3": 0.1, "The": 0.1},))


def test_a_rating_is_held_to_the_scale_where_the_provider_takes_that(provider: Provider) -> None:
    provider.play(
        by=lambda request: PLAN if "Write the evaluation steps" in request.user else WHITE
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loopback_wire, "_openai_schema_problem", lambda _: None)
        verdict, _ = run(models={"*": LOCAL})
    planner, scorer = (request.body.get("response_format") for request in provider.requests)
    assert planner is None
    assert scorer is not None
    assert scorer["json_schema"]["schema"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    # The first token counts, as ever.
    assert verdict.score == pytest.approx((4 * 0.5 + 5 * 0.3 + 3 * 0.1) / 0.9)
    assert verdict.warnings == ()


@pytest.mark.parametrize("weighting", ["logprobs", "sampling"])
def test_a_provider_that_takes_no_list_of_ratings_gets_words(
    provider: Provider, weighting: Any
) -> None:
    provider.play(by=plays)
    settings: dict[str, Any] = {"weighting": weighting, "samples": 2, "steps": STEPS}
    verdicts = [run("sync", models={"*": LOCAL}, **settings)[0] for _ in range(2)]
    asked = ["response_format" in request.body for request in provider.requests]
    assert asked == [True, False, False], "refused once, and not sent again"
    told = "openai:smollm2 takes no list of ratings to choose from: ratings were asked for in words"
    assert [verdict.warnings for verdict in verdicts] == [(told,), (told,)]


def test_a_refusal_for_another_reason_is_no_refusal_of_the_list(provider: Provider) -> None:
    provider.play(by=lambda _: Failure(400, "The prompt is empty."))
    with pytest.raises(ModelCallError, match="The prompt is empty"):
        run("sync", models={"*": LOCAL}, steps=STEPS)
    provider.play(by=plays)
    run("sync", models={"*": LOCAL}, steps=STEPS)
    assert "response_format" in provider.requests[2].body


@pytest.mark.parametrize("reply", ["4", " 4"])
def test_a_whole_rating_that_hit_the_length_limit_is_complete(
    provider: Provider, reply: str
) -> None:
    provider.play(Text(reply, finish="length", top=({reply: 0.75, "2": 0.25},)))
    verdict, _ = run(models={"*": f"{OPENAI}?max_tokens=1"}, steps=STEPS)
    assert (verdict.score, verdict.calls, verdict.warnings) == (3.5, 1, ())


@pytest.mark.parametrize("models", [{"*": f"{OPENAI}?temperature=0"}, {"*": OPENAI}])
def test_samples_at_temperature_0_are_warned_of(provider: Provider, models: dict[str, str]) -> None:
    provider.play(by=lambda _: "4")
    settings: dict[str, Any] = {} if "?" in models["*"] else {"temperature": 0}
    verdict, _ = run(models=models, steps=STEPS, weighting="sampling", samples=3, **settings)
    assert [told for told in verdict.warnings if "temperature 0: its samples are all alike" in told]


LABELS = {"human": {"fluency": 3, "coherence": 4}}


def test_steps_are_kept_with_the_run_and_used_again_when_it_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def falters(metadata: Mapping[str, Any], prompt: str) -> str:
        return "Hm." if "Number 3." in prompt else scripted(metadata, prompt)

    options: dict[str, Any] = {"settings": {"samples": 2}, "out": out}
    first = ScriptedModel(script=falters)
    data = numbered(tmp_path, 6, **LABELS)
    evaluation = evaluate("geval", data, models={"*": first}, **options)
    assert sorted(planned(first)) == ["coherence", "fluency"]
    assert len(evaluation.failed) == 2
    kept = json.loads((out / "run.json").read_text())["steps"]
    assert sorted(entry["aspect"] for entry in kept) == ["coherence", "fluency"]
    assert {entry["model"] for entry in kept} == {"scriptedmodel:ScriptedModel"}
    assert all(entry["steps"] == STEPS for entry in kept)
    assert evaluation.manifest["steps"] == kept
    again = ScriptedModel(script=scripted)
    resumed = evaluate("geval", data, models={"*": again}, **options)
    assert (len(resumed.failed), planned(again), len(again.calls)) == (0, [], 4)
    assert resumed.manifest["steps"] == kept
    assert len(read_steps(out)) == 2


def test_a_manifest_with_broken_steps_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    data = numbered(tmp_path, 1, **LABELS)
    model = ScriptedModel(script=scripted)
    options: dict[str, Any] = {"models": {"*": model}, "settings": {"samples": 1}, "out": out}
    manifest = evaluate("geval", data, **options).manifest
    manifest["steps"][1] = {"aspect": "fluency"}
    (out / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"run.json: steps.1.model: Field required"):
        evaluate("geval", data, **options)
