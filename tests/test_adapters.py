"""Test judges inside MLflow, deepeval and Inspect, each in its own evaluation loop.

The packages are not among the test extras, because they pin versions of others. Without one, its
tests are skipped.
"""

import logging
import math
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jurygraph import Aspect, ReplyError, UsageError, create_async_judge, create_judge
from jurygraph.nodes.models.scripted_model import ScriptedModel

pytestmark = [
    pytest.mark.slow,
    # These packages warn of each other and of themselves.
    pytest.mark.filterwarnings("ignore"),
]

GOOD = "It rained."
BAD = "Nobody came."
UNREADABLE = "It hailed."
ASKED = "What was the weather?"


def scorer(_about: Any, prompt: str) -> str:
    if UNREADABLE in prompt:
        return "I cannot say."
    return f"It is about rain.\nScore: {4 if GOOD in prompt else 2}"


def judge(make: Any = create_judge, **options: Any) -> Any:
    options = {"aspect": "fluency", "structured": "off", "repair": 0, **options}
    return make("single", model=ScriptedModel(script=scorer), **options)


def adapter(name: str, package: str) -> Any:
    """Return an adapter, or skip the test where its program is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return import_module(f"jurygraph.adapters.{name}")


@pytest.fixture
def root_log() -> Iterator[None]:
    """Take back the handlers and the level that a program gives to the root of all logs."""
    root = logging.getLogger()
    before = root.level, [*root.handlers]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


HOSTS = [("mlflow", "mlflow"), ("deepeval", "deepeval"), ("inspect", "inspect_ai")]


@pytest.mark.parametrize(("name", "package"), HOSTS)
def test_what_is_no_judge_with_an_aspect_is_refused(name: str, package: str) -> None:
    module = adapter(name, package)
    options: Any = {"threshold": 0.5} if name == "deepeval" else {}
    make = module.metric if name == "deepeval" else module.scorer
    schema: dict[str, Any] = {"properties": {"score": {}}}
    for given, told in [
        ("debate", "takes a judge from create_judge"),
        (create_judge("single", model="offline"), "this judge compares two"),
        (judge(output_schema=schema), "without output_schema"),
    ]:
        with pytest.raises(UsageError, match=told):
            make(given, **options)


@pytest.mark.parametrize(("name", "package"), HOSTS)
def test_without_the_package_the_extra_is_named(name: str, package: str) -> None:
    if find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(ImportError, match=rf"jurygraph\[{name}\]"):
        import_module(f"jurygraph.adapters.{name}")


# MLflow


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_log: None) -> Iterator[Any]:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION", "true")
    # Choosing an experiment sets this variable, which is taken back with it.
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    # Artifacts go to the current folder.
    monkeypatch.chdir(tmp_path)
    adapter("mlflow", "mlflow")
    module = import_module("mlflow")
    module.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    module.set_experiment("judges")
    yield module
    module.set_tracking_uri(None)


@pytest.mark.parametrize("make", [create_judge, create_async_judge])
def test_mlflow_stores_scores_and_errors(mlflow: Any, make: Any) -> None:
    rows = [
        {"inputs": {"question": ASKED}, "outputs": text, "expectations": {"expected": "Rain."}}
        for text in (GOOD, BAD, UNREADABLE)
    ]
    model = judge(make)
    done = mlflow.genai.evaluate(data=rows, scorers=[adapter("mlflow", "mlflow").scorer(model)])
    assert done.metrics["fluency/mean"] == 3, "the failed judgement does not count"
    traces = mlflow.search_traces(return_type="list", run_id=done.run_id)
    found = {trace.data.response: trace.info.assessments for trace in traces}
    by_text = {
        text: next(one for one in given if one.name == "fluency")
        for response, given in found.items()
        for text in (GOOD, BAD, UNREADABLE)
        if text in response
    }
    good = by_text[GOOD]
    assert (good.feedback.value, good.source.source_type) == (4.0, "LLM_JUDGE")
    assert "It is about rain." in good.rationale
    assert good.metadata.items() >= {"scale": "1 to 5", "scaled": "0.75", "score": "4"}.items()
    failed = by_text[UNREADABLE]
    assert failed.feedback.value is None
    assert "score" in failed.feedback.error.error_message


def test_mlflow_takes_scaled_scores_and_names_a_bare_judge(mlflow: Any) -> None:
    scaled = adapter("mlflow", "mlflow").scorer(judge(key="style"), scaled=True)
    rows = [{"inputs": {"question": ASKED}, "outputs": GOOD}]
    assert mlflow.genai.evaluate(data=rows, scorers=[scaled]).metrics["style/mean"] == 0.75
    with pytest.raises(Exception, match="invalid item with type: Judge"):
        mlflow.genai.evaluate(data=rows, scorers=[judge()])


# deepeval


@pytest.fixture
def deepeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.setenv("DEEPEVAL_DISABLE_DOTENV", "1")
    monkeypatch.chdir(tmp_path)
    adapter("deepeval", "deepeval")
    return import_module("deepeval")


def case(text: str, **more: Any) -> Any:
    test_case: Any = import_module("deepeval.test_case").LLMTestCase
    return test_case(input=ASKED, actual_output=text, **more)


def test_deepeval_passes_fails_and_raises(deepeval: Any) -> None:
    metric = adapter("deepeval", "deepeval").metric(judge(), threshold=0.75)
    deepeval.assert_test(case(GOOD), [metric])
    with pytest.raises(AssertionError, match="fluency"):
        deepeval.assert_test(case(BAD), [metric])
    with pytest.raises(ReplyError):
        deepeval.assert_test(case(UNREADABLE), [metric])
    with pytest.raises(ValueError, match="must be instances of 'BaseMetric'"):
        deepeval.assert_test(case(GOOD), [judge()])


def test_deepeval_has_scores_from_0_to_1_and_no_score_for_a_failure(deepeval: Any) -> None:
    metric = adapter("deepeval", "deepeval").metric(judge(), threshold=0.75)
    errors = import_module("deepeval.evaluate").ErrorConfig(ignore_errors=True)
    shown = import_module("deepeval.evaluate").DisplayConfig(print_results=False)
    cases = [case(text) for text in (GOOD, BAD, UNREADABLE)]
    done = deepeval.evaluate(cases, [metric], error_config=errors, display_config=shown)
    results = {
        one.actual_output: one.metrics_data[0] for one in done.test_results if one.metrics_data
    }
    scores = {text: (found.score, found.success) for text, found in results.items()}
    assert scores == {GOOD: (0.75, True), BAD: (0.25, False), UNREADABLE: (None, False)}
    assert results[GOOD].reason.startswith("It is about rain.")
    assert results[UNREADABLE].error


def test_deepeval_shows_the_judge_its_evidence(deepeval: Any) -> None:
    prompts: list[str] = []

    def seen(_about: Any, prompt: str) -> str:
        prompts.append(prompt)
        return "Score: 5"

    model = ScriptedModel(script=seen)
    made = create_judge("single", aspect="fluency", model=model, structured="off")
    metric = adapter("deepeval", "deepeval").metric(made, threshold=1)
    call = import_module("deepeval.test_case").ToolCall(name="radar", output="clouds")
    more = {"expected_output": "Rain.", "retrieval_context": ["A log."], "tools_called": [call]}
    assert metric.measure(case(GOOD, **more)) == 1
    for text in ("Rain.", "A log.", "radar", "clouds", ASKED):
        assert text in prompts[0]
    assert metric.score_breakdown == {"fluency (1 to 5)": 5.0}
    with pytest.raises(UsageError, match="images"):
        image = import_module("deepeval.test_case").MLLMImage(url="https://example.org/a.png")
        metric.measure(case(f"{image}"))


@pytest.mark.parametrize("threshold", [0, 1.5, math.nan, True])
def test_deepeval_thresholds_are_from_0_to_1(deepeval: Any, threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold must be above 0 and at most 1"):
        adapter("deepeval", "deepeval").metric(judge(), threshold=threshold)


# Inspect


@pytest.fixture
def inspect_scorer(monkeypatch: pytest.MonkeyPatch, root_log: None) -> Any:
    module = adapter("inspect", "inspect_ai")

    class Words:
        """Counts words as tokens. The encoding that Inspect uses would be downloaded."""

        def encode(self, text: str, **_more: Any) -> list[str]:
            return text.split()

    monkeypatch.setattr("tiktoken.get_encoding", lambda _name: Words())
    return module


def inspected(made: Any, folder: Path, *texts: str, **options: Any) -> Any:
    ai = import_module("inspect_ai")
    dataset = import_module("inspect_ai.dataset")
    models = import_module("inspect_ai.model")
    samples = [dataset.Sample(input=ASKED, target="Rain.") for _ in texts]
    outputs = [models.ModelOutput.from_content("mockllm/model", text) for text in texts]
    model = models.get_model("mockllm/model", custom_outputs=outputs)
    task = ai.Task(dataset=samples, scorer=made)
    [log] = ai.eval(
        task, model=model, log_dir=str(folder), display="none", max_samples=1, **options
    )
    return import_module("inspect_ai.log").read_eval_log(log.location)


def test_inspect_logs_scores(inspect_scorer: Any, tmp_path: Path) -> None:
    made = inspect_scorer.scorer(judge(key="is it fluent?"))
    log = inspected(made, tmp_path, GOOD, BAD)
    assert log.status == "success"
    first, second = (sample.scores["is_it_fluent_"] for sample in log.samples)
    assert (first.value, second.value) == (4.0, 2.0)
    assert first.explanation.startswith("It is about rain.")
    assert (first.metadata["scaled"], first.metadata["scale"]) == (0.75, "1 to 5")
    [result] = log.results.scores
    assert (result.metrics["mean"].value, result.params["protocol"]) == (3.0, "single")


def test_inspect_has_an_error_for_a_failure_and_scaled_scores(
    inspect_scorer: Any, tmp_path: Path
) -> None:
    made = inspect_scorer.scorer(judge(create_async_judge), scaled=True)
    log = inspected(made, tmp_path, GOOD, UNREADABLE, fail_on_error=False)
    first, second = log.samples
    assert first.scores["fluency"].value == 0.75
    assert not second.scores
    assert "ReplyError" in second.error.message
    [result] = log.results.scores
    assert result.metrics["mean"].value == 0.75


@pytest.mark.usefixtures("inspect_scorer")
def test_inspect_names_a_bare_judge(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="scorer"):
        inspected(judge(), tmp_path, GOOD)


def test_inspect_shows_tool_calls(inspect_scorer: Any) -> None:
    models = import_module("inspect_ai.model")
    tools = import_module("inspect_ai.tool")
    call = tools.ToolCall(id="1", function="radar", arguments={"place": "Bergen"})
    messages = [
        models.ChatMessageUser(content=ASKED),
        models.ChatMessageAssistant(content="", tool_calls=[call]),
        models.ChatMessageTool(content="clouds", tool_call_id="1", function="radar"),
        models.ChatMessageAssistant(content=GOOD),
    ]
    output = models.ModelOutput.from_content("m", GOOD)
    state = import_module("inspect_ai.solver").TaskState(
        model="m", sample_id=1, epoch=1, input=ASKED, messages=messages, output=output
    )
    wit = Aspect(name="wit", criteria="Does it amuse?")
    task: Any = create_judge("single", aspect=wit, model="offline").task(
        **inspect_scorer._shown(state)
    )
    for text in (ASKED, 'radar (call 1): {"place": "Bergen"}', "clouds", GOOD):
        assert text in f"{task.source}\n{task.candidate}"
