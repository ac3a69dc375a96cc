"""Who else is to hear of a run: OpenTelemetry, LangSmith. Asked once a run; with nobody listening, nothing is done."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ...graphs.base import Graph
from ...nodes.models.send import Around
from ...state.aspects import Aspect
from ..items import Item
from ..results import Key, Result
from .counts import Counts

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

Judge = Callable[[Graph, Key, Item, Aspect | None], Awaitable[Result | None]]
"""What makes a verdict; none where the run ended in the middle of it."""

exporting: ContextVar[TracerProvider | None] = ContextVar("exporting", default=None)
"""Set by whoever exports spans for the runs inside, without a say in what else the process does."""


@contextmanager
def traced(
    manifest: Mapping[str, Any], counts: Counts, calls: Around, judge: Judge
) -> Iterator[tuple[Around, Judge]]:
    """Open the trace of a run.

    Gives what its calls and its verdicts are to go through: the same that was handed in, if nobody listens.

    Args:
        manifest: of the run.
        counts: how far it has come, when it ends.
        calls: what every model call goes through.
        judge: what makes a verdict.
    """
    with ExitStack() as stack:
        if langsmith_listens():
            judge = _named(judge)
        if provider := exporting.get() or process_provider():
            from .spans import Spans

            spans = Spans(provider)
            stack.enter_context(spans.run(manifest, counts))
            calls, judge = spans.calls(calls), spans.verdicts(judge)
        yield calls, judge


def process_provider() -> TracerProvider | None:
    """The tracer provider that somebody has set for this process; who has not even loaded the package has set none."""
    api = sys.modules.get("opentelemetry.trace")
    provider = api.get_tracer_provider() if api else None
    if api is None or isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider):
        return None
    return provider


def langsmith_listens() -> bool:
    """Whether LangChain is to send what it does to LangSmith."""
    from langsmith.utils import tracing_is_enabled

    return bool(tracing_is_enabled())


def _named(judge: Judge) -> Judge:
    """Each verdict as a trace that tells what it is about."""

    async def named(graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
        about = {
            name: value for name, value in key._asdict().items() if value is not None and name != "repeat"
        }
        name = " · ".join(filter(None, (key.protocol, key.item, key.aspect)))
        return await judge(graph.with_config({"run_name": name, "metadata": about}), key, item, aspect)

    return named
