"""Send traces of a run to OpenTelemetry and LangSmith, where the process or the environment asks for them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any

from ...graphs.base import Graph
from ...nodes.models.send import CallMiddleware
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ..datasets.items import Item
from ..results.results import Key, Result
from .judge_item import JudgeItem
from .progress_counters import ProgressCounters

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.trace import TracerProvider


exporting: ContextVar[TracerProvider | None] = ContextVar("exporting", default=None)
"""Holds the provider that exports the spans of runs made inside, apart from the one of the whole process."""


@contextmanager
def traced(
    manifest: Mapping[str, Any], counts: ProgressCounters, calls: CallMiddleware, judge: JudgeItem
) -> Iterator[tuple[CallMiddleware, JudgeItem]]:
    """Open the trace of a run.

    Yields the middleware and the judging function, wrapped with spans; both unchanged if traces go nowhere.

    Args:
        manifest: the manifest of the run.
        counts: the progress of the run, which its span gets when it ends.
        calls: the middleware that every model call goes through.
        judge: the function that judges an item.
    """
    with ExitStack() as stack:
        if langsmith_listens():
            judge = _named(judge)
        if provider := exporting.get() or process_provider():
            # This imports OpenTelemetry, which is installed wherever there is a provider.
            from .otel_spans import Spans

            calls = spans = Spans(provider, calls)
            stack.enter_context(spans.run(manifest, counts))
            judge = spans.verdicts(judge)
        yield calls, judge


def process_provider() -> TracerProvider | None:
    """Return the tracer provider that was set for this process; if the package is not even loaded, none was."""
    api = sys.modules.get("opentelemetry.trace")
    provider = api.get_tracer_provider() if api else None
    is_unset = api and isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider)
    return None if is_unset else provider


def langsmith_listens() -> bool:
    """Tell whether LangChain sends traces to LangSmith."""
    from langsmith.utils import tracing_is_enabled

    return bool(tracing_is_enabled())


def _named(judge: JudgeItem) -> JudgeItem:
    """Name the LangSmith trace of each verdict by item, aspect and protocol."""

    async def named(graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
        given = key._asdict().items()
        about = {name: value for name, value in given if value is not None and name != "repeat"}
        name = " · ".join(filter(None, (key.protocol, key.item, key.aspect)))
        return await judge(graph.with_config({"run_name": name, "metadata": about}), key, item, aspect)

    return named


log = logging.getLogger("jurygraph.tracing")

LAST_TRACES = 5.0
"""The seconds to wait at the end for spans and traces that are still to be sent."""

ROOM = 32_768
"""The number of spans that may wait for a collector that is slow or away; further ones are dropped."""


@contextmanager
def traces_sent() -> Iterator[None]:
    """Send traces of the runs inside to where ``OTEL_EXPORTER_OTLP_ENDPOINT``, ``LANGSMITH_TRACING`` and the like say.

    With none of them set nothing is done; and no spans are exported from here where the process has a tracer provider
    already. At the end, what is left is sent, without a long wait for a server that is not there.

    Raises:
        UsageError: the packages for it are not there, or the protocol is another one than HTTP.
    """
    with ExitStack() as stack:
        if _is_wanted() and not (exporting.get() or process_provider()):
            provider = _provider()
            stack.callback(_in_time, provider.shutdown)
            stack.callback(exporting.reset, exporting.set(provider))
        if langsmith_listens():
            from langchain_core.tracers.langchain import wait_for_all_tracers

            # Else the process would not end before all of the client's attempts have failed.
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
    """Read a setting of the exporter: the one for traces, else the one for everything."""
    names = (f"OTEL_EXPORTER_OTLP_TRACES_{setting}", f"OTEL_EXPORTER_OTLP_{setting}")
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _provider() -> SdkTracerProvider:
    if (protocol := _either("PROTOCOL") or "http/protobuf") != "http/protobuf":
        raise UsageError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: spans can only be sent by http/protobuf; set that, and the "
            "collector's HTTP endpoint (usually port 4318), or OTEL_TRACES_EXPORTER=none for no tracing"
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise UsageError(
            "an OpenTelemetry endpoint is set, but its packages are not installed: "
            'pip install "jurygraph[otel]", or set OTEL_TRACES_EXPORTER=none'
        ) from error
    attributes = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in attributes
    about_us = {"service.version": version("jurygraph"), **({} if named else {"service.name": "jurygraph"})}
    # `traces_sent` shuts it down within a limit of time; at exit it would be done without that limit.
    provider = SdkTracerProvider(resource=Resource.create(about_us), shutdown_on_exit=False)
    # With None the SDK reads that variable itself.
    room = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else ROOM
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=room))
    return provider


def _in_time(send: Callable[[], None]) -> None:
    """Send what is left, but do not wait long for a server that is not there."""
    # A daemon, so that a server which never answers does not keep the process from ending.
    sending = Thread(target=send, name="jurygraph-last-traces", daemon=True)
    sending.start()
    sending.join(LAST_TRACES)
    if sending.is_alive():
        log.warning("traces were not sent in time", extra={"seconds": LAST_TRACES})
