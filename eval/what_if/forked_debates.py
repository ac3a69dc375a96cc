"""Fork debates at a turn: judge again as recorded, change what the turn says, and go on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver

from ...graphs.base import Graph, ProtocolGraph
from ...graphs.given_graphs import judges_of
from ...graphs.registry import role_kinds
from ...state.errors import UsageError
from ...state.transcript import Turn

Change = Literal["drop", "flip"]
SILENCE = "(This turn is left out.)"
SWAPPED = "swapped/"


@dataclass(frozen=True)
class Edit:
    """Names a turn and what becomes of it.

    Attributes:
        turn: its id, such as ``critic:1``; in both orders of the answers, where there are two.
        change: ``drop``: it says nothing, and the debate goes on; ``flip``: it says the opposite.
    """

    turn: str
    change: Change

    @property
    def title(self) -> str:
        """What the changed judge is called, behind its name."""
        return f"without {self.turn}" if self.change == "drop" else f"with {self.turn} flipped"

    def of_turns(self, protocol: str, transcript: Sequence[Turn]) -> list[dict[str, Any]]:
        """Return the changes of a debate's turns; none where the turn is not there, or nothing can be changed in it."""
        kinds = role_kinds(protocol)
        changes = []
        for place, turn in enumerate(transcript):
            # In whatever order of the answers it is.
            if turn.get("id", "").removeprefix(SWAPPED) == self.turn:
                kind, later = kinds.get(turn["role"], "scores"), transcript[place + 1 :]
                changed = _dropped(turn, kind, later) if self.change == "drop" else _flipped(turn)
                changes += [{"id": turn.get("id"), **changed}] if changed else []
        return changes


def _dropped(turn: Turn, kind: str, later: Sequence[Turn]) -> dict[str, Any] | None:
    if kind == "objects":
        # Neither an objection nor the word that ends the debate: the next one speaks, and hears nothing.
        return {"content": SILENCE, "value": False}
    if kind in ("argues", "assists"):
        return {"content": SILENCE}
    # A score that stands in the verdict cannot be left out of it; one that its agent gives again can.
    scores = [other for other in later if other["agent"] == turn["agent"] and other["value"] is not None]
    again = any(other.get("order") == turn.get("order") for other in scores)
    return {"content": SILENCE} if again and kind in ("scores", "panel") else None


def _flipped(turn: Turn) -> dict[str, Any] | None:
    value = turn["value"]
    if isinstance(value, bool):
        return {"content": "I do not agree." if value else "NO ISSUE", "value": not value}
    if isinstance(value, list):
        first, second = reversed(value)
        words = f"My scores: {first:g} for answer 1, {second:g} for answer 2."
        return {"content": words, "value": [first, second]}
    if isinstance(value, int | float) and (scale := turn.get("scale")):
        mirrored = sum(scale) - value
        return {"content": f"My score: {mirrored:g}.", "value": mirrored}
    return None


class ForkedGraph:
    """A judge's graph that is run as it is, then forked at a turn and run to its end; only the fork's verdict counts.

    It answers as the graph does for everything but ``astream``, which is how a run judges an item. Calls of the first
    part are those of the recorded run, which the journal answers.

    Raises:
        UsageError: the judge is a wrapper or another package's graph, whose turns lie in graphs inside.
    """

    def __init__(self, graph: Graph, edit: Edit) -> None:
        if not isinstance(graph.builder, ProtocolGraph):
            remedy = "use a run of the inner protocol"
            raise UsageError(f"{graph.name} contains other graphs, whose debates cannot be forked: {remedy}")
        self._saver = InMemorySaver()
        self._graph = graph.copy(update={"checkpointer": self._saver})
        self._edit, self._protocol = edit, judges_of(graph)[""].protocol

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    async def astream(self, input: Any, config: Any = None, **_options: Any) -> AsyncIterator[Any]:
        """Yield the last state of the fork, or that of the debate itself where there is nothing to change."""
        thread: Any = {**(config or {}), "configurable": {"thread_id": uuid4().hex}}
        try:
            state = await self._graph.ainvoke(input, thread)
            if edits := self._edit.of_turns(self._protocol, state["transcript"]):
                edited = {edit["id"] for edit in edits}
                # Latest first: the last one in which all have spoken is the one right behind them.
                behind = [
                    snapshot
                    async for snapshot in self._graph.aget_state_history(thread)
                    if edited <= {turn.get("id") for turn in snapshot.values.get("transcript") or ()}
                ]
                forked = await self._graph.aupdate_state(behind[-1].config, {"transcript": edits})
                state = await self._graph.ainvoke(None, {**thread, **forked})
            changes = {"of": self._protocol, "changed": [edit["id"] for edit in edits]}
            details = {**(state["verdict"].get("details") or {}), **changes}
            yield {**state, "verdict": {**state["verdict"], "details": details}}
        finally:
            await self._saver.adelete_thread(thread["configurable"]["thread_id"])
