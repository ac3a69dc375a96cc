"""Counters for the progress of a run; a display reads them at any time, and nothing calls it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ....nodes.models.retry import Waits
from ....state.transcript import NO_USAGE, Usage
from ...results.results import Result


@dataclass
class ProgressCounters:
    """Counts the progress of one run, or of several in sequence, including that of earlier starts.

    Attributes:
        wanted: the number of verdicts to make; of several runs, those that are known, unless it is
            set in advance.
        resumed: the number of verdicts that existed at the start.
        judged: the number of verdicts that exist now, including ``resumed``.
        failed: the number of items without a verdict since the start.
        rounds: the rounds of all verdicts since the start.
        usage: the usage of all calls, including earlier starts.
        served: calls since the start that were answered without a request: by the journal, or by an
            identical call in flight.
        made: requests since the start.
        given_up: the number of these requests without a reply; the provider may bill them.
        refused: further requests since the start, which the provider answered with an error.
        phase: the current one of several runs, or the step of a run over batches; empty otherwise.
        waits: the reasons why the run is waiting now.
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
        """Begin a run, or the next one, with the progress and the cost of its earlier starts.

        Args:
            wanted: the number of its verdicts.
            resumed: the number of verdicts that exist.
            spent: the usage of all calls under its id.
            run: its id. If it is the id of the last run, the usage of that run continues.
            folder: its folder. If it is the folder of the last run, its verdicts were counted
                already.
        """
        was, place = self._last
        known = resumed if folder is not None and folder == place else 0
        self.wanted = max(self.wanted, self.judged + self.failed + wanted - known)
        self.resumed += resumed - known
        self.judged += resumed - known
        if run != was:
            self._earlier_runs = self.usage
        self.usage = self._earlier_runs + spent
        self._last = (run, folder)

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
        own = (
            "wanted",
            "judged",
            "failed",
            "rounds",
            "calls",
            "made",
            "given_up",
            "refused",
            "served",
        )
        names = (*own, "tokens", "cost_usd")
        return {name: getattr(self if hasattr(self, name) else self.usage, name) for name in names}
