"""Traces of a run in OpenTelemetry and LangSmith, if the process or the environment enables them.

OpenTelemetry has spans of a run, its verdicts and their model calls; prompts and replies only on
request:

    run                      protocols, data; at its end what it came to
    └── verdict              item, aspect, protocol, repeat; score or winner, rounds, cost; the
        |                    event gen_ai.evaluation.result
        └── chat MODEL       agent, role, round; tokens, cost; failed attempts as events

A judge from ``create_judge`` has the span of its verdict, with those of its calls, outside of runs.

Attributes follow the semantic conventions for generative AI if they apply.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any

import orjson
from langchain_core.messages import BaseMessage

from ....graphs.engine.base import Graph
from ....nodes.common.sync_bridge import set_for_block
from ....nodes.models.call import Call, Reply, Send
from ....nodes.models.providers import provider_of
from ....nodes.models.send import CallMiddleware, RunTool, answering_calls, call_middleware
from ....state.aspects import Aspect
from ....state.errors import ModelCallError, UsageError
from ...datasets.items import Item
from ...results.results import Key, Result
from ...results.run_log import log_text
from .judge_item import JudgeItem
from .progress_counters import ProgressCounters

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider


_INSIDE: ContextVar[bool] = ContextVar("_inside", default=False)
"""Whether model calls have spans already, those of a run or a judge around this one."""

exporting: ContextVar[TracerProvider | None] = ContextVar("exporting", default=None)
"""The provider that exports the spans of runs inside, separate from the provider of the process."""


@contextmanager
def traced(
    manifest: Mapping[str, Any], counts: ProgressCounters, calls: CallMiddleware, judge: JudgeItem
) -> Iterator[tuple[CallMiddleware, JudgeItem]]:
    """Open the trace of a run.

    Yield the middleware and the judging function, wrapped with spans; both unchanged without
    traces.

    Args:
        manifest: the manifest of the run.
        counts: the progress of the run, which its span gets when it ends.
        calls: the middleware for every model call.
        judge: the function that judges an item.
    """
    if (provider := exporting.get() or process_provider()) is None:
        yield calls, judge
        return
    spans = Spans(provider, calls)
    protocols = list(manifest["protocols"])
    data = manifest["data"]["name"]
    about = {"run": manifest["run"], "protocols": protocols, "data": data}
    with spans.open("run", about) as span, set_for_block(_INSIDE, True):
        try:
            yield spans, spans.verdicts(judge)
        finally:
            _set(span, counts.summary())


@contextmanager
def traced_judgement(name: str, key: str) -> Iterator[Callable[[Any], None]]:
    """Open the span of a judgement outside of runs' items, and the spans of its model calls.

    Yield a function for the graph's output, which adds the verdict to the span. Without traces, it
    does nothing.

    Args:
        name: the name of the judge.
        key: the name of its score.
    """
    if (provider := exporting.get() or process_provider()) is None:
        yield lambda _outcome: None
        return
    spans = Spans(provider, call_middleware.get() or CallMiddleware())
    with ExitStack() as stack:
        span = stack.enter_context(spans.open(f"verdict {name}", {"protocol": name, "aspect": key}))
        if not _INSIDE.get():
            stack.enter_context(set_for_block(_INSIDE, True))
            stack.enter_context(answering_calls(spans))

        def conclude(outcome: Any) -> None:
            verdict = outcome.get("verdict") if isinstance(outcome, Mapping) else None
            if not verdict or not span.is_recording():
                return
            _set(span, {name: verdict.get(name) for name in _FIGURES})
            spans.note_result(
                span, key, verdict.get("score"), verdict.get("winner"), verdict.get("explanation")
            )

        try:
            yield conclude
        except Exception as error:
            spans.note_failure(span, key, type(error).__name__)
            raise


def process_provider() -> TracerProvider | None:
    """Return the tracer provider that was set for this process.

    Without the package, there is none.
    """
    api = sys.modules.get("opentelemetry.trace")
    provider = api.get_tracer_provider() if api else None
    is_unset = api and isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider)
    return None if is_unset else provider


log = logging.getLogger("jurygraph.tracing")

LAST_TRACES = 5.0
"""The seconds to wait at the end for spans and traces that are still to be sent."""

ROOM = 32_768
"""The number of spans that may wait for a slow or absent collector; further ones are dropped."""


@contextmanager
def traces_sent() -> Iterator[None]:
    """Send traces of the runs inside to the destination in the environment.

    It is set by ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``LANGSMITH_TRACING`` and similar variables.
    Without them nothing is done. No spans are exported from here if the process has a tracer
    provider already. At the end, the remaining traces are sent, without a long wait for a server
    that does not answer.

    Raises:
        UsageError: the packages are not installed, or the protocol is not HTTP.
    """
    from langsmith.utils import tracing_is_enabled

    with ExitStack() as stack:
        if _is_wanted() and not (exporting.get() or process_provider()):
            provider = _provider()
            stack.callback(_in_time, provider.shutdown)
            stack.callback(exporting.reset, exporting.set(provider))
        if tracing_is_enabled():
            from langchain_core.tracers.langchain import wait_for_all_tracers

            # Otherwise the process would not end before all of the client's attempts have failed.
            os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
            stack.callback(_in_time, wait_for_all_tracers)
        yield


def _is_wanted() -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporters := os.environ.get("OTEL_TRACES_EXPORTER", "").strip():
        return "otlp" in [name.strip().lower() for name in exporters.split(",")]
    return bool(_either("ENDPOINT"))


def _either(setting: str) -> str:
    """Read a setting of the exporter: the one for traces, else the general one."""
    names = (f"OTEL_EXPORTER_OTLP_TRACES_{setting}", f"OTEL_EXPORTER_OTLP_{setting}")
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _provider() -> SdkTracerProvider:
    if (protocol := _either("PROTOCOL") or "http/protobuf") != "http/protobuf":
        raise UsageError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: spans can only be sent by http/protobuf; "
            "set that, and the collector's HTTP endpoint (usually port 4318), or "
            "OTEL_TRACES_EXPORTER=none for no tracing"
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(
            "an OpenTelemetry endpoint is set, but its packages are not installed: "
            'pip install "jurygraph[otel]", or set OTEL_TRACES_EXPORTER=none'
        ) from error
    about_us = {"service.name": "jurygraph", "service.version": version("jurygraph")}
    # The environment's description of the service takes precedence over ours.
    resource = Resource.create(about_us).merge(OTELResourceDetector().detect())
    # `traces_sent` shuts it down within a time limit; at exit this would have no limit.
    provider = SdkTracerProvider(resource=resource, shutdown_on_exit=False)
    # With None the SDK reads that variable itself.
    room = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else ROOM
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=room))
    return provider


def _in_time(send: Callable[[], None]) -> None:
    """Send the remaining traces, without a long wait for a server that does not answer."""
    # A daemon, so that a server which never answers does not prevent the end of the process.
    sending = Thread(target=send, name="jurygraph-last-traces", daemon=True)
    sending.start()
    sending.join(LAST_TRACES)
    if sending.is_alive():
        log.warning("traces were not sent in time", extra={"seconds": LAST_TRACES})


# OpenTelemetry's spans. Its package is imported where a span is created: it is installed wherever
# there is a provider.

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Spans(CallMiddleware):
    """Creates the spans of one run.

    The spans of calls enclose ``calls``, the middleware that answers.
    """

    def __init__(self, provider: TracerProvider, calls: CallMiddleware) -> None:
        self._calls = calls
        self._tracer = provider.get_tracer("jurygraph", version("jurygraph"))
        # With these values, prompts and replies go on spans; with "event_only" they would go on
        # events.
        self._with_words = os.environ.get(CONTENT, "").lower() in {
            "true",
            "span_only",
            "span_and_event",
        }

    def verdicts(self, judge: JudgeItem) -> JudgeItem:
        """Wrap the function that judges an item, so that each verdict has a span around it."""

        async def traced(
            graph: Graph, key: Key, item: Item, aspect: Aspect | None
        ) -> Result | None:
            with self.open(f"verdict {key.protocol}", key._asdict()) as span:
                result = await judge(graph, key, item, aspect)
                if span.is_recording():
                    self._conclude(span, result)
                return result

        return traced

    def _conclude(self, span: Span, result: Result | None) -> None:
        if result is None:
            _set(span, {"status": "open"})
            return
        _set(span, {name: getattr(result, name) for name in ("status", *_FIGURES)})
        name = result.aspect or "preference"
        if result.status == "failed":
            _fail(span, result.error or "")
            self.note_failure(span, name, (result.error or "").partition(":")[0])
            return
        why = (turn["content"] for turn in result.transcript if turn["id"] == result.explained_by)
        self.note_result(span, name, result.score, result.winner, next(why, None))

    def note_result(
        self, span: Span, name: str, score: float | None, label: str | None, why: str | None
    ) -> None:
        """Add a result to its span, and send the event ``gen_ai.evaluation.result``.

        The explanation is in a model's words, so it is sent only if those of replies are.
        """
        about = {"name": name, "score.value": score, "score.label": label}
        _set(span, about, "gen_ai.evaluation")
        _send_event(span, {**about, "explanation": why if self._with_words and why else None})

    def note_failure(self, span: Span, name: str, error: str) -> None:
        """Send the event of an evaluation without a result."""
        _send_event(span, {"name": name}, {"error.type": error})

    @contextmanager
    def open(self, name: str, about: Mapping[str, Any], **kind: SpanKind) -> Iterator[Span]:
        """Open a span with these attributes; an error that ends it is named on it, without keys."""
        # Errors are described here: the SDK would send their tracebacks with all their contents.
        quiet: dict[str, Any] = {
            "record_exception": False,
            "set_status_on_exception": False,
            **kind,
        }
        with self._tracer.start_as_current_span(name, **quiet) as span:
            _set(span, about)
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                _fail(span, str(error))
                raise

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer a call inside a span that includes all its attempts."""
        from opentelemetry.trace import SpanKind

        # A label is such as "openai:gpt-4o-mini?temperature=0"; a model without a provider stands
        # for both.
        provider, _, model = call.model.label.partition("?")[0].rpartition(":")
        asked_by = {name: call.metadata.get(name) for name in ("role", "round", "sample", "repair")}
        with self.open(f"chat {model}", asked_by, kind=SpanKind.CLIENT) as span:
            if not span.is_recording():
                return await self._calls(call, send)
            record = provider_of(provider)
            named = (
                record.telemetry.get(provider, provider)
                if record is not None
                else provider or model
            )
            _set(span, _request(call, named, model), "gen_ai")
            if self._with_words:
                _set(span, _words_in(call.messages), "gen_ai")
            attempts = 0

            async def attempt(call: Call) -> Reply:
                nonlocal attempts
                attempts += 1
                try:
                    return await send(call)
                except BaseException as error:  # also a time-out, which is a cancellation here
                    fault = {
                        "error.type": type(error).__name__,
                        "error.message": log_text(str(error)),
                    }
                    about = {"jurygraph.attempt": attempts}
                    if isinstance(error, ModelCallError):
                        about["jurygraph.retryable"] = error.retryable
                    span.add_event("attempt failed", {**about, **fault})
                    raise

            reply = await self._calls(call, attempt)
            # A call without an attempt was answered by the journal.
            _set(span, {"served": attempts == 0, "attempts": attempts})
            choices = (reply, *reply.others)
            _set(span, {"finish_reasons": [*map(_finish, choices)]}, "gen_ai.response")
            if attempts:  # A stored reply was paid for earlier and must not count twice in sums.
                took = {name: getattr(reply.usage, field) for name, field in _USAGE.items()}
                _set(span, took, "gen_ai.usage")
                _set(span, {"cost_usd": reply.usage.cost_usd})
            if self._with_words:
                output = [
                    {**_message("assistant", c.text), "finish_reason": _finish(c)} for c in choices
                ]
                _set(span, {"messages": orjson.dumps(output).decode()}, "gen_ai.output")
            return reply

    async def tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        """Run a tool inside a span of its own; a stored result has a span as well."""
        with self.open(f"execute_tool {name}", {}):
            return await self._calls.tool_result(key, name, run)

    def invalidate(self, calls: Sequence[Call]) -> None:
        self._calls.invalidate(calls)


def _set(span: Span, about: Mapping[str, Any], family: str = "jurygraph") -> None:
    """Set those attributes of a family on a span that have a value."""
    span.set_attributes(
        {f"{family}.{name}": value for name, value in about.items() if value is not None}
    )


def _fail(span: Span, problem: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, log_text(problem)))


_FIGURES = ("rounds", "stop_reason", "calls", "cost_usd")
"""The figures of a verdict on its span."""

_RESULT = "gen_ai.evaluation.result"


def _send_event(
    span: Span, evaluation: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> None:
    """Send the event of a result, as a log record of the span, or as an event on it.

    OpenTelemetry sends events as log records. If the process has no provider for those, as with
    the exporter of ``traces_sent``, the event is on the span.
    """
    named = {f"gen_ai.evaluation.{name}": value for name, value in evaluation.items()}
    about = {name: value for name, value in {**named, **(more or {})}.items() if value is not None}
    logs = sys.modules.get("opentelemetry._logs")
    provider = logs.get_logger_provider() if logs else None
    # A provider that is not set is one of the API's own classes.
    if (
        logs is None
        or provider is None
        or type(provider).__module__.startswith("opentelemetry._logs")
    ):
        span.add_event(_RESULT, about)
        return
    record = logs.LogRecord(
        timestamp=time.time_ns(),
        event_name=_RESULT,
        severity_number=logs.SeverityNumber.INFO,
        attributes=about,
    )
    provider.get_logger("jurygraph", version("jurygraph")).emit(record)


_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read.input_tokens": "cached_input_tokens",
    "reasoning.output_tokens": "reasoning_tokens",
}


def _request(call: Call, provider: str, model: str) -> dict[str, Any]:
    identity = call.model.identity
    # The identity of a chat model object has its parameters in a separate field; the identity of a
    # named model has them next to its name.
    given = {**identity.get("parameters", identity), **call.parameters}
    numbers = (
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "presence_penalty",
        "frequency_penalty",
    )
    known = {name: given[name] for name in numbers if isinstance(given.get(name), int | float)}
    return {
        "operation.name": "chat",
        "provider.name": provider,
        "request.model": model,
        "agent.name": str(call.metadata.get("agent", "")),
        "output.type": "json" if call.schema is not None and call.model.form != "text" else "text",
        **{f"request.{name}": value for name, value in known.items()},
        "request.choice.count": given.get("n"),
    }


def _finish(reply: Reply) -> str:
    return "content_filter" if reply.refused else "length" if reply.cut_off else "stop"


_ROLES = {"human": "user", "ai": "assistant"}


def _words_in(messages: Sequence[BaseMessage]) -> dict[str, str]:
    system = [_part(message.text) for message in messages if message.type == "system"]
    spoken = (message for message in messages if message.type != "system")
    others = [_message(_ROLES.get(message.type, message.type), message.text) for message in spoken]
    given = {"system_instructions": system, "input.messages": others}
    return {name: orjson.dumps(value).decode() for name, value in given.items()}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [_part(text)]}


def _part(text: str) -> dict[str, str]:
    # A model may write half of a surrogate pair, which cannot be encoded as UTF-8.
    return {"type": "text", "content": str(text).encode(errors="replace").decode()}
