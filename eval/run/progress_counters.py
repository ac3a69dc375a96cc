"""How far a run has come. Whoever wants to show it looks here as often as it likes; nobody is called."""

from __future__ import annotations

from dataclasses import dataclass

from ...nodes.models.call import Reply
from ..journal import Totals
from .results import Result


@dataclass
class ProgressCounters:
    """Of one run; what earlier starts of it have done and paid is counted in.

    Attributes:
        wanted: verdicts in all.
        resumed: those that were there at the start.
        judged: those that are there now, ``resumed`` included.
        failed: items that got none, since the start.
        rounds: of the verdicts since the start.
        calls: requests that were answered.
        served: calls since the start that were answered without a request: by the journal, or by a like one in flight.
        tokens: input and output.
        cost_usd: ``None`` as soon as one price is unknown.
        made: requests since the start.
        phase: what a run over the provider's batches is at; empty otherwise.
    """

    wanted: int = 0
    resumed: int = 0
    judged: int = 0
    failed: int = 0
    rounds: int = 0
    calls: int = 0
    served: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    made: int = 0
    phase: str = ""

    def take_up(self, wanted: int, resumed: int, spent: Totals) -> None:
        """Begin, or go on, with what earlier starts have done and paid."""
        self.wanted, self.resumed, self.judged = wanted, resumed, resumed
        self.calls, self.cost_usd = spent.requests, spent.cost_usd
        self.tokens = spent.input_tokens + spent.output_tokens

    def paid(self, reply: Reply) -> None:
        """A call was made."""
        self.calls += reply.requests
        self.made += reply.requests
        self.tokens += reply.input_tokens + reply.output_tokens
        unknown = self.cost_usd is None or reply.cost_usd is None
        self.cost_usd = None if unknown else (self.cost_usd or 0.0) + (reply.cost_usd or 0.0)

    def finished(self, result: Result) -> None:
        """An item is through."""
        self.judged += result.status == "ok"
        self.failed += result.status == "failed"
        self.rounds += result.rounds or 0

    def summary(self) -> dict[str, float | None]:
        """The figures by name."""
        names = ("wanted", "judged", "failed", "rounds", "calls", "made", "served", "tokens", "cost_usd")
        return {name: getattr(self, name) for name in names}
