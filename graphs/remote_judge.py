"""Ask a judge whose graph runs elsewhere, such as behind LangGraph's ``RemoteGraph``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import get_runtime
from pydantic import BaseModel, ConfigDict

from ..state.errors import UsageError
from .judge_graph import forward

OWN_STREAM = ("__pregel_stream", "checkpoint_ns")
"""What ``RemoteGraph`` takes from a config to stream as part of the caller's graph; it does not send it."""


class SettingsElsewhere(BaseModel):
    """The settings that a graph which runs elsewhere is sent; that graph alone knows which there are."""

    model_config = ConfigDict(extra="allow")


class RemoteJudge:
    """Run a judge's graph that is not in this process, as a compiled graph is run; what it says is streamed on.

    Every verdict is a run without a thread: a thread's name here means nothing there, and runs side by side would wait
    for each other on one thread. It is no ``Runnable``, so that LangGraph does not look for a state inside it.
    """

    def __init__(self, graph: PregelProtocol[Any, Any, Any, Any]) -> None:
        self.graph = graph
        self.name = str(graph.get_name())

    def invoke(self, given: Any, config: RunnableConfig) -> Any:
        outcome: Any = None
        with self._in_our_words():
            for part in self.graph.stream(given, _without_thread(config), **_stream_options()):
                outcome = _heard(part, outcome)
        return self._verdict(outcome)

    async def ainvoke(self, given: Any, config: RunnableConfig) -> Any:
        outcome: Any = None
        with self._in_our_words():
            async for part in self.graph.astream(given, _without_thread(config), **_stream_options()):
                outcome = _heard(part, outcome)
        return self._verdict(outcome)

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Say of an error that it comes from this judge; what the caller can mend is the caller's error here, too."""
        try:
            yield
        except GraphInterrupt:
            raise UsageError(
                f"{self.name} runs elsewhere and waits for a person, whose answer cannot be handed on from here: have "
                "it end without one, for example with on_unresolved=last"
            ) from None
        except Exception as error:
            told = error.args[0] if error.args and isinstance(error.args[0], Mapping) else {}
            if told.get("error") in ("InputError", "UsageError"):
                raise UsageError(f"{self.name}, which runs elsewhere: {told['message']}") from error
            error.add_note(f"It happened in the judge {self.name}, which runs elsewhere.")
            raise

    def _verdict(self, outcome: Any) -> Any:
        if not (isinstance(outcome, Mapping) and outcome.get("verdict") and "transcript" in outcome):
            raise UsageError(f"{self.name}, which runs elsewhere, returns no verdict: it is no judge's graph")
        return outcome


def _stream_options() -> dict[str, Any]:
    context: object = get_runtime().context
    # The context of another graph is not for this one: in a parent's graph it is the parent's.
    sent = context.model_dump(mode="json") if isinstance(context, SettingsElsewhere) else None
    return {"context": sent or None, "stream_mode": ["values", "custom"], "version": "v2"}


def _without_thread(config: RunnableConfig) -> RunnableConfig:
    """Drop thread_id and checkpoint keys from the config: LangGraph servers reject them together with a context."""
    kept = {key: value for key, value in config.get("configurable", {}).items() if key in OWN_STREAM}
    return {**config, "configurable": kept}


def _heard(part: Any, before: Any) -> Any:
    """Stream a turn on; return the latest state."""
    if part["type"] == "custom" and isinstance(part["data"], Mapping) and "turn" in part["data"]:
        forward(part["data"])
    return part["data"] if part["type"] == "values" else before
