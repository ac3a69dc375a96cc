"""Count how far a run has come. A display reads the counters whenever it likes; nothing calls it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...nodes.models.retry import Waits
from ...state.transcript import NO_USAGE, Usage
from ..results.results import Result


@dataclass
class ProgressCounters:
    """Counts the progress of one run, or of several one after another, with what earlier starts have done and paid.

    Attributes:
        wanted: verdicts that are to be made; of several runs those that are known of, unless it is set beforehand.
        resumed: verdicts that were there at the start.
        judged: verdicts that are there now, ``resumed`` included.
        failed: items without a verdict since the start.
        rounds: rounds of all verdicts since the start.
        usage: what all calls took, earlier starts included.
        served: calls since the start that were answered without a request: by the journal, or by a like one in flight.
        made: requests since the start.
        given_up: of these, requests that were sent and have no reply; the provider may bill them.
        refused: further requests since the start, which the provider answered with an error.
        phase: which of several runs is on, or what a run over the provider's batches is doing; empty otherwise.
        waits: what is being waited for now.
    """

    wanted: int = 0
    resumed: int = 0
    judged: int = 0
    failed: int = 0
    rounds: int = 0
    usage: Usage = NO_USAGE
    served: int = 0
    made: int = 0
    given_up: int = 0
    refused: int = 0
    phase: str = ""
    waits: Waits = field(default_factory=Waits)
    _last: tuple[str, Path | None] = ("", None)
    _earlier_runs: Usage = NO_USAGE

    def take_up(
        self, wanted: int, resumed: int, spent: Usage, run: str = "", folder: Path | None = None
    ) -> None:
        """Begin a run, or the next one, with what earlier starts of it have done and paid.

        Args:
            wanted: its verdicts.
            resumed: those that are there.
            spent: what all calls took that were made under its id.
            run: its id. One that is the last run's goes on with what that has spent.
            folder: where it is. One that is the last run's has verdicts that were counted already.
        """
        was, place = self._last
        known = resumed if folder is not None and folder == place else 0
        self.wanted = max(self.wanted, self.judged + self.failed + wanted - known)
        self.resumed += resumed - known
        self.judged += resumed - known
        if run != was:
            self._earlier_runs = self.usage
        self.usage, self._last = self._earlier_runs + spent, (run, folder)

    def paid(self, usage: Usage) -> None:
        """Count a call that was made."""
        self.usage += usage
        self.made += usage.calls

    def finished(self, result: Result) -> None:
        """Count an item that was judged or failed."""
        self.judged += result.status == "ok"
        self.failed += result.status == "failed"
        self.rounds += result.rounds or 0

    def summary(self) -> dict[str, float | None]:
        """Return the counters by name, as the span of a run has them."""
        own = ("wanted", "judged", "failed", "rounds", "calls", "made", "given_up", "refused", "served")
        names = (*own, "tokens", "cost_usd")
        return {name: getattr(self if hasattr(self, name) else self.usage, name) for name in names}
