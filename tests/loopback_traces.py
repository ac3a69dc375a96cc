"""Where traces go, on the loopback interface: an OpenTelemetry collector, and LangSmith."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from .loopback_http import Handler, serving_http


@dataclass
class Span:
    """A span that arrived."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    failed: bool
    problem: str
    attributes: dict[str, Any]
    events: list[dict[str, Any]]
    resource: dict[str, Any]


@dataclass
class Posts:
    """The posted requests: path and body, in order."""

    url: str = ""
    all: list[tuple[str, bytes]] = field(default_factory=list)

    def spans(self) -> list[Span]:
        return [span for path, body in self.all if path == "/v1/traces" for span in _spans(body)]

    def runs(self) -> list[dict[str, Any]]:
        """Return LangSmith's runs, with later additions."""
        runs: dict[str, dict[str, Any]] = {}
        for _, body in (post for post in self.all if post[0] == "/runs/batch"):
            batch = json.loads(body)
            for run in (*batch.get("post", ()), *batch.get("patch", ())):
                told = {name: value for name, value in run.items() if value is not None}
                runs.setdefault(run["id"], {}).update(told)
        return list(runs.values())


@contextmanager
def listening() -> Iterator[Posts]:
    posts = Posts()
    lock = Lock()

    class Collector(Handler):
        def do_POST(self) -> None:
            body = self.body()
            with lock:
                posts.all.append((self.path, body))
            self.answer(b"{}" if "json" in self.headers.get("Content-Type", "") else b"")

        def do_GET(self) -> None:
            """Answer the first request of LangSmith's client: how to send runs."""
            plainly = {
                "use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 20_000_000,
                "scale_up_qsize_trigger": 1000, "scale_up_nthreads_limit": 4,
                "scale_down_nempty_trigger": 4,
            }  # fmt: skip
            self.answer({"version": "0.13", "batch_ingest_config": plainly})

    with serving_http(Collector) as posts.url:
        yield posts


def _spans(body: bytes) -> Iterator[Span]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    id=span.span_id,
                    parent=span.parent_span_id,
                    trace=span.trace_id,
                    failed=span.status.code == 2,
                    problem=span.status.message,
                    attributes=_plain(span.attributes),
                    events=[
                        {"name": event.name, **_plain(event.attributes)} for event in span.events
                    ],
                    resource=_plain(group.resource.attributes),
                )


def _plain(pairs: Any) -> dict[str, Any]:
    found: list[KeyValue] = list(pairs)
    return {pair.key: _value(pair.value) for pair in found}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
