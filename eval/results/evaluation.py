"""Define what a run returns: its results, and the statistics of one pass over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from ...state.transcript import NO_USAGE, Usage
from ..statistics.tie_policy import TiePolicy, Ties, Votes
from ..tables.grid import Column, short, text_column
from .agreement import Agreement, Resampling, RowsByAspect
from .results import Result, StoredResults


@dataclass
class Mean:
    """Computes a running mean; ``value`` is ``None`` before the first number."""

    total: float = 0.0
    count: int = 0

    def add(self, number: float | None) -> None:
        """Add a number; None is ignored."""
        if number is not None:
            self.total += number
            self.count += 1

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self.total / self.count if self.count else None


class Tally(Counter[int]):
    """Counts how often each whole number occurs; ``value`` is their mean, ``None`` before the first."""

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return sum(number * times for number, times in self.items()) / self.total() if self else None


@dataclass(frozen=True)
class UsageTotals:
    """Adds up the usage of judgements, in total and on average; a judgement is one item, aspect and repeat.

    Attributes:
        judgements: how many there were, failed ones included.
        total: the sum of their usages.
    """

    judgements: int = 0
    total: Usage = NO_USAGE

    @property
    def calls_each(self) -> float | None:
        """Model calls per judgement."""
        return self._each(self.total.calls)

    @property
    def tokens_each(self) -> float | None:
        """Tokens per judgement; the least there can be where those of some calls are not known."""
        return self._each(self.total.tokens if self.total.tokens or not self.total.uncounted else None)

    @property
    def cost_each(self) -> float | None:
        """US dollars per judgement."""
        return self._each(self.total.cost_usd)

    @property
    def seconds_each(self) -> float | None:
        """Seconds per judgement."""
        return self._each(self.total.seconds)

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(self.judgements + other.judgements, self.total + other.total)

    def _each(self, total: float | None) -> float | None:
        return None if total is None or not self.judgements else total / self.judgements


def _tokens(usage: Usage) -> str | int:
    # A function and no lambda: one in an annotation would look for ``short`` among the names of the class.
    return usage.shown_tokens(short) if usage.uncounted else usage.tokens


@dataclass
class Overview:
    """Sums up one protocol on one aspect: verdicts, means and usage.

    Attributes:
        judged: results with a verdict.
        failed: results without one.
        score: the mean over verdicts.
        rounds: how many verdicts took so many rounds.
        usage: what all of them took, failed ones included.
        stop_reasons: how many verdicts ended for each reason.
        calls: how many results took so many calls, failed ones included.
    """

    judged: Annotated[int, Column("judged")] = 0
    failed: Annotated[int, Column("failed")] = 0
    score: Annotated[Mean, Column("mean", 2, of=attrgetter("value"))] = field(default_factory=Mean)
    rounds: Annotated[Tally, Column("rounds", 2, of=attrgetter("value"))] = field(default_factory=Tally)
    usage: Annotated[
        Usage,
        Column("calls", of=attrgetter("calls")),
        Column("tokens", form="short", of=_tokens),
        Column("cost", form="money", of=lambda of: "unknown" if of.cost_usd is None else of.cost_usd),
    ] = NO_USAGE
    stop_reasons: Annotated[
        Counter[str | None],
        text_column("stop reason", of=lambda ends: ", ".join(f"{why} {n}" for why, n in ends.most_common())),
    ] = field(default_factory=Counter)
    calls: Tally = field(default_factory=Tally)

    @property
    def totals(self) -> UsageTotals:
        """The usage of all results."""
        return UsageTotals(self.judged + self.failed, self.usage)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a result, given as its fields."""
        self.usage += Usage.of_fields(row)
        self.calls[row["calls"]] += 1
        if row["status"] == "failed":
            self.failed += 1
            return
        self.judged += 1
        self.score.add(row["score"])
        if row["rounds"] is not None:
            self.rounds[row["rounds"]] += 1
        self.stop_reasons[row["stop_reason"]] += 1


class RunSummary:
    """Computes the statistics of a run in one pass over its results; a few numbers of each result are kept.

    Attributes:
        overviews: an overview of each protocol and aspect, in the order in which they occur.
        rows: the rows of each protocol that its agreement with people is computed from.
        liveliest: the index of the longest debate that changed its score; ``None`` without results.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.overviews: dict[tuple[str, str | None], Overview] = {}
        self.rows: dict[str, RowsByAspect] = {}
        self.liveliest: int | None = None
        # False sorts before True: any debate that changed its score comes before all that did not, whatever their
        # length.
        most = (False, -1)
        for place, row in enumerate(rows):
            protocol, by_round = row["protocol"], row["score_by_round"]
            self.overviews.setdefault((protocol, row["aspect"]), Overview()).add(row)
            self.rows.setdefault(protocol, RowsByAspect()).add(row)
            lively = any(score != by_round[0] for score in by_round), row["rounds"] or 0
            if lively > most:
                self.liveliest, most = place, lively


@dataclass(frozen=True)
class Evaluation:
    """Holds the outcome of a run.

    Attributes:
        results: one for each item, aspect, protocol and repeat. With a folder they stay in their file, and each is
            read when it is accessed.
        manifest: what was run; ``manifest["signatures"]`` tells two runs apart.
        folder: where results and manifest are on disk; None without a folder.
        stopped: why the run ended before its work was done; ``None`` if all is done.
        given_up: requests that were sent in this start of the run and have no reply: they took too long, or the
            connection was cut. The provider may bill them; the run's budget counts them as usual replies.
    """

    results: Sequence[Result]
    manifest: Mapping[str, Any]
    folder: Path | None = None
    stopped: str | None = None
    given_up: int = 0

    def __repr__(self) -> str:
        of = ", ".join(self.manifest.get("signatures", ()))
        where = f" in {self.folder}" if self.folder else ""
        return f"<Evaluation of {of}: {len(self.results):,} results{where}>"

    @property
    def failed(self) -> Sequence[Result]:
        """The results that have no verdict."""
        if isinstance(self.results, StoredResults):
            return self.results.failed
        return tuple(result for result in self.results if result.status == "failed")

    def heads(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the fields of each result; the transcripts of stored ones are not parsed, and left out."""
        results = self.results
        return results.heads() if isinstance(results, StoredResults) else map(vars, results)

    @cached_property
    def figures(self) -> RunSummary:
        """The statistics of one pass over all results; computed once."""
        # A frozen dataclass allows this: `cached_property` stores the value in `__dict__`, past `__setattr__`.
        return RunSummary(self.heads())

    @property
    def rule(self) -> TiePolicy:
        """The rule by which its comparisons are measured against people, unless said otherwise: the data's own."""
        return TiePolicy.of(self.manifest)

    def agreement(
        self,
        protocol: str | None = None,
        resampling: Resampling | None = None,
        *,
        ties: Ties | None = None,
        votes: Votes | None = None,
    ) -> dict[str, Agreement]:
        """Measure the agreement of one protocol with people, by aspect; the protocol is named if there are several.

        Args:
            protocol: the protocol whose verdicts are compared.
            resampling: how intervals are made.
            ties: how human ties in comparisons count; by default as the data's rule says (see ``TiePolicy``).
            votes: whether people's majority counts or each of their votes; by default as the data's rule says.

        Raises:
            ValueError: several protocols were run, and none is named.
            UsageError: the rule for ties or votes does not exist.
        """
        rows = self.figures.rows
        if protocol is None and len(rows) > 1:
            raise ValueError(f"several protocols were run; name one of {', '.join(sorted(rows))}")
        chosen = rows.get(next(iter(rows), "") if protocol is None else protocol, RowsByAspect())
        return chosen.agreement(resampling, self.rule.override(ties, votes))

    def most_worth_reading(self) -> Result | None:
        """Return the longest debate that changed its score, else the longest; ``None`` without results."""
        place = self.figures.liveliest
        return None if place is None else self.results[place]
