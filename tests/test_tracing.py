"""Test traces over sockets: arrival at a collector and at LangSmith, no cost if off."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph import ReplyError, create_judge
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.run.calls import tracing
from jurygraph.eval.run.calls.tracing import traces_sent
from jurygraph.state import UsageError

from .loopback import Answer, Failure, Provider, Request
from .loopback_debate import Debaters
from .loopback_traces import Posts, Span, listening
from .processes import HANG_GUARD
from .sample_data import numbered

MODEL = {"*": "openai:gpt-4o-mini?temperature=0.5"}
PLAIN: Any = {"structured": "off"}
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Posts]:
    with listening() as posts:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", posts.url)
        yield posts


def dataset(folder: Path, count: int = 2) -> Path:
    return numbered(folder, count, source="The secret source.")


def debater(request: Request) -> Answer:
    return Debaters(scores=[4])(request)


def judged(data: Path, protocol: Any = "debate", **options: Any) -> Evaluation:
    with traces_sent():
        return evaluate(
            protocol, data, aspects=["fluency"], models=MODEL, settings=PLAIN, **options
        )


def named(spans: list[Span], beginning: str) -> list[Span]:
    return [span for span in spans if span.name.startswith(beginning)]


def run_in_a_process(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        check=True,
    )


def test_runs_verdicts_and_calls_are_spans(
    collector: Posts, provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=debater)
    judged(dataset(tmp_path), out=tmp_path / "out")
    spans = collector.spans()
    [run], verdicts, calls = (
        named(spans, "run"),
        named(spans, "verdict debate"),
        named(spans, "chat "),
    )
    assert (len(spans), len(verdicts), len(calls)) == (7, 2, 4)
    assert {span.trace for span in spans} == {run.trace}
    assert {span.parent for span in verdicts} == {run.id}
    assert sorted(span.parent for span in calls) == sorted([span.id for span in verdicts] * 2)
    assert run.resource["service.name"] == "jurygraph"
    assert (
        run.attributes["jurygraph.run"]
        == json.loads((tmp_path / "out" / "run.json").read_text())["run"]
    )
    assert (run.attributes["jurygraph.judged"], run.attributes["jurygraph.calls"]) == (2, 4)
    about = [
        (span.attributes["jurygraph.item"], span.attributes["jurygraph.aspect"])
        for span in verdicts
    ]
    assert sorted(about) == [("i0", "fluency"), ("i1", "fluency")]
    assert (
        verdicts[0].attributes.items()
        >= {
            **{"gen_ai.evaluation.name": "fluency", "gen_ai.evaluation.score.value": 4.0},
            **{"jurygraph.protocol": "debate", "jurygraph.repeat": 0, "jurygraph.status": "ok"},
        }.items()
    )


def test_a_call_is_told_by_the_conventions_and_one_served_from_the_journal_takes_no_tokens(
    collector: Posts, provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path, 1)
    journal = tmp_path / "shared.sqlite"
    judged(data, journal=journal)
    before = collector.spans()
    [scorer] = [span for span in before if span.attributes.get("gen_ai.agent.name") == "scorer"]
    assert scorer.name == "chat gpt-4o-mini"
    told = scorer.attributes
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert {name: value for name, value in told.items() if not isinstance(value, list)}.items() >= {
        **{
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.output.type": "text",
        },
        **{"gen_ai.request.model": "gpt-4o-mini", "gen_ai.request.temperature": 0.5},
        **{"jurygraph.role": "scorer", "jurygraph.round": 0},
        **{"jurygraph.served": False, "jurygraph.attempts": 1},
    }.items()
    for name in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "jurygraph.cost_usd"):
        assert told[name] > 0
    judged(data, journal=journal)
    calls = named(collector.spans()[len(before) :], "chat ")
    assert [span.attributes["jurygraph.served"] for span in calls] == [True, True]
    assert not any(name.startswith("gen_ai.usage") for span in calls for name in span.attributes)


RESULT = "gen_ai.evaluation.result"


def rating(**options: Any) -> Any:
    return create_judge("single", aspect="fluency", model=MODEL["*"], structured="off", **options)


def results_of(spans: list[Span]) -> list[dict[str, Any]]:
    """Return the attributes of all events with a result of an evaluation."""
    events = [event for span in spans for event in span.events if event["name"] == RESULT]
    return [{name: value for name, value in event.items() if "." in name} for event in events]


@pytest.mark.parametrize("limits", [{}, {"max_calls": 3}], ids=["no limits", "limits"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_outside_of_runs_has_spans_and_a_result(
    collector: Posts, provider: Provider, is_async: bool, limits: dict[str, Any]
) -> None:
    provider.play(by=debater)
    judge = rating(**limits)
    given = {"inputs": "It rained.", "outputs": "It rained."}
    with traces_sent():
        _ = asyncio.run(judge.acall(**given)) if is_async else judge(**given)
    [verdict], [call] = named(collector.spans(), "verdict single"), named(collector.spans(), "chat")
    assert (call.parent, call.trace) == (verdict.id, verdict.trace)
    assert (
        verdict.attributes.items()
        >= {
            **{"gen_ai.evaluation.name": "fluency", "gen_ai.evaluation.score.value": 4.0},
            **{"jurygraph.protocol": "single", "jurygraph.calls": 1},
        }.items()
    )
    told = {"gen_ai.evaluation.name": "fluency", "gen_ai.evaluation.score.value": 4.0}
    assert results_of([verdict]) == [told]


def test_a_failed_judgement_has_no_score_and_a_node_and_a_comparison_have_results(
    collector: Posts, provider: Provider
) -> None:
    with traces_sent():
        provider.play("Nothing.")
        with pytest.raises(ReplyError):
            rating(repair=0)(inputs="It rained.", outputs="It rained.")
        provider.play("Score: 3")
        said = {"messages": [("user", "It rained. Sum up."), ("ai", "It rained.")]}
        rating().as_agent().invoke(said)
        provider.play("Score of answer 1: 8\nScore of answer 2: 5")
        compares = create_judge(
            "single", model=MODEL["*"], structured="off", position_calibration=False
        )
        compares(inputs="Why?", outputs=["So.", "Because."])
    failed, rated, compared = named(collector.spans(), "verdict")
    assert failed.failed
    assert results_of([failed]) == [
        {"gen_ai.evaluation.name": "fluency", "error.type": "ReplyError"}
    ]
    assert results_of([rated])[0]["gen_ai.evaluation.score.value"] == 3
    told = {"gen_ai.evaluation.name": "preference", "gen_ai.evaluation.score.label": "1"}
    assert results_of([compared]) == [told]


def test_runs_have_results_and_explanations_only_where_asked_for(
    collector: Posts, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.play(by=debater)
    judged(dataset(tmp_path, 1), "single")
    [told] = results_of(named(collector.spans(), "verdict"))
    assert told == {"gen_ai.evaluation.name": "fluency", "gen_ai.evaluation.score.value": 4.0}
    monkeypatch.setenv(CONTENT, "SPAN_ONLY")
    judged(dataset(tmp_path, 1), "single", out=tmp_path / "again")
    told = results_of(named(collector.spans(), "verdict"))[-1]
    assert "rationale" in told["gen_ai.evaluation.explanation"]


def test_results_are_log_records_if_the_process_has_a_provider_of_logs(
    collector: Posts, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import _logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    kept = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(kept))
    monkeypatch.setattr(_logs, "get_logger_provider", lambda: logs)
    provider.play(by=debater)
    with traces_sent():
        rating()(inputs="It rained.", outputs="It rained.")
    [verdict] = named(collector.spans(), "verdict")
    [record] = [one.log_record for one in kept.get_finished_logs()]
    assert results_of([verdict]) == []
    assert (record.event_name, dict(record.attributes or {})) == (
        RESULT,
        {"gen_ai.evaluation.name": "fluency", "gen_ai.evaluation.score.value": 4.0},
    )
    assert record.trace_id


@pytest.mark.usefixtures("fast_retries")
def test_failed_attempts_are_events_and_failed_calls_are_errors(
    collector: Posts, provider: Provider, tmp_path: Path
) -> None:
    provider.play(Failure(503, "Overloaded."), Failure(400, "No: sk-verysecretkey12345."))
    assert judged(dataset(tmp_path, 1), "single").failed
    [call], [verdict] = named(collector.spans(), "chat "), named(collector.spans(), "verdict ")
    assert [
        (event["name"], event["jurygraph.attempt"], event["jurygraph.retryable"])
        for event in call.events
    ] == [("attempt failed", 1, True), ("attempt failed", 2, False)]
    assert "Overloaded." in call.events[0]["error.message"]
    assert call.failed
    assert call.attributes["error.type"] == "ModelCallError"
    assert verdict.failed
    assert verdict.attributes["jurygraph.status"] == "failed"
    assert not any("verysecretkey" in body.decode("latin-1") for _, body in collector.all)


@pytest.mark.parametrize("asked", [None, "NO_CONTENT", "true", "SPAN_ONLY"])
def test_words_are_told_only_where_asked_for(
    collector: Posts,
    provider: Provider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
) -> None:
    if asked:
        monkeypatch.setenv(CONTENT, asked)
    told = asked in ("true", "SPAN_ONLY")
    provider.play(by=debater)
    judged(dataset(tmp_path, 1), "single")
    sent = b"".join(body for _, body in collector.all)
    assert sent
    assert [word in sent for word in (b"The secret source.", b"rationale 1")] == [told, told]
    if told:
        [call] = named(collector.spans(), "chat ")
        [question] = json.loads(call.attributes["gen_ai.input.messages"])
        [answer] = json.loads(call.attributes["gen_ai.output.messages"])
        assert (question["role"], answer["role"]) == ("user", "assistant")
        [part] = answer["parts"]
        assert (part["type"], part["content"].splitlines()[-1]) == ("text", "Score: 4")


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_a_collector_that_is_down_costs_seconds_at_most(
    hangs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        if hangs:
            deaf.listen(64)
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}"
        )
        # Without an end of its own, the last batch would be tried for an hour.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
        monkeypatch.setattr(tracing, "LAST_TRACES", 1.0)
        with traces_sent():
            done = evaluate("single", dataset(tmp_path, 20), aspects=["fluency"])
        assert (len(done.results), len(done.failed)) == (20, 0)


@pytest.mark.slow
def test_off_loads_nothing_of_opentelemetry_and_a_provider_set_in_the_process_is_used() -> None:
    script = """
import sys, langsmith.client, langchain_core.tracers.langchain  # what LangChain loads itself does not count
before = {name for name in sys.modules if name.startswith("opentelemetry")}
from jurygraph.eval import evaluate
from jurygraph.eval.run.calls.tracing import traces_sent
with traces_sent():
    evaluate("debate", "demo", aspects=["consistency"], limit=2)
print(sorted({name for name in sys.modules if name.startswith("opentelemetry")} - before))
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
with trace.get_tracer("mine").start_as_current_span("outer"):
    evaluate("single", "demo", aspects=["consistency"], limit=1)
spans = {span.name: span for span in kept.get_finished_spans()}
print(sorted(spans), spans["run"].parent.span_id == spans["outer"].context.span_id)
"""
    told = run_in_a_process(script).stdout.splitlines()
    assert told == ["[]", "['chat offline', 'outer', 'run', 'verdict single'] True"]


def test_what_is_missing_or_will_not_do_is_told_before_any_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(UsageError, match=r"jurygraph\[otel\]"), traces_sent():
        pass
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(UsageError, match="http/protobuf"), traces_sent():
        pass


@pytest.mark.parametrize("environment", [
    {}, {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
    {"OTEL_TRACES_EXPORTER": "console"},
    {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"},
], ids=["unset", "none", "another exporter", "disabled"])  # fmt: skip
def test_off_is_off(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with traces_sent():
        assert tracing.exporting.get() is None


@pytest.mark.slow
def test_langsmith_sees_each_verdict_as_a_trace_with_its_calls(
    provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=debater)
    script = f"""
from jurygraph.eval import evaluate
from jurygraph.eval.run.calls.tracing import traces_sent
with traces_sent():
    done = evaluate("debate", {str(dataset(tmp_path))!r}, aspects=["fluency"], models={MODEL}, settings={PLAIN})
print(len(done.results), len(done.failed))
"""
    on = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "test-key"}
    with listening() as langsmith:
        done = run_in_a_process(script, **on, LANGSMITH_ENDPOINT=langsmith.url)
        runs = langsmith.runs()
    assert done.stdout.strip() == "2 0"
    # A collector that is down costs seconds at most.
    done = run_in_a_process(script, **on, LANGSMITH_ENDPOINT="http://127.0.0.1:1")
    assert done.stdout.strip() == "2 0"
    verdicts = {run["name"]: run for run in runs if run.get("parent_run_id") is None}
    assert set(verdicts) == {"debate · i0 · fluency", "debate · i1 · fluency"}
    for item in ("i0", "i1"):
        verdict = verdicts[f"debate · {item} · fluency"]
        metadata = verdict["extra"]["metadata"]
        assert (metadata["item"], metadata["aspect"], metadata["protocol"]) == (
            item,
            "fluency",
            "debate",
        )
        inside = [run for run in runs if run["trace_id"] == verdict["id"]]
        calls = [run for run in inside if run["run_type"] == "llm"]
        assert sorted(run["extra"]["metadata"]["agent"] for run in calls) == ["critic", "scorer"]
        assert all(run.get("end_time") for run in inside)
