"""The return value of a run: its results, and the statistics of one pass over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, overload

from ...state.transcript import NO_USAGE, Usage
from ..statistics.alignment import grouped
from ..statistics.tie_policy import TiePolicy, Ties, Votes
from ..tables.grid import Column, short, text_column
from .agreement import Agreement, Resampling, RowsByAspect
from .results import Result, StoredResults


@dataclass
class Mean:
    """A running mean; ``value`` is ``None`` before the first number."""

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
    """Counts each integer; ``value`` is their mean, ``None`` before the first."""

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return (
            sum(number * times for number, times in self.items()) / self.total() if self else None
        )


@dataclass(frozen=True)
class UsageTotals:
    """The usage of judgements, in total and on average; a judgement is one item, aspect and repeat.

    Attributes:
        judgements: the number of judgements, including failed ones.
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
        """Tokens per judgement; a lower bound if the tokens of some calls are unknown."""
        return self._each(
            self.total.tokens if self.total.tokens or not self.total.uncounted else None
        )

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
    # A function instead of a lambda: a lambda in an annotation would look for ``short`` among the
    # names of the class.
    return usage.shown_tokens(short) if usage.uncounted else usage.tokens


@dataclass
class Overview:
    """A summary of one protocol on one aspect: verdicts, means and usage.

    Attributes:
        judged: the number of results with a verdict.
        failed: the number of results without one.
        score: the mean over verdicts.
        rounds: the number of verdicts by number of rounds.
        usage: the usage of all results, including failed ones.
        stop_reasons: the number of verdicts by stop reason.
        calls: the number of results by number of calls, including failed ones.
    """

    judged: Annotated[int, Column("judged")] = 0
    failed: Annotated[int, Column("failed")] = 0
    score: Annotated[Mean, Column("mean", 2, of=attrgetter("value"))] = field(default_factory=Mean)
    rounds: Annotated[Tally, Column("rounds", 2, of=attrgetter("value"))] = field(
        default_factory=Tally
    )
    usage: Annotated[
        Usage,
        Column("calls", of=attrgetter("calls")),
        Column("tokens", form="short", of=_tokens),
        Column(
            "cost", form="money", of=lambda of: "unknown" if of.cost_usd is None else of.cost_usd
        ),
    ] = NO_USAGE
    stop_reasons: Annotated[
        Counter[str | None],
        text_column(
            "stop reason", of=lambda ends: ", ".join(f"{why} {n}" for why, n in ends.most_common())
        ),
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
    """The statistics of a run from one pass over its results, of which a few numbers are stored.

    Attributes:
        overviews: an overview of each protocol and aspect, in order of occurrence.
        rows: the rows of each protocol for its agreement with humans.
        liveliest: the index of the longest debate that changed its score; ``None`` without results.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.overviews: dict[tuple[str, str | None], Overview] = {}
        self.rows: dict[str, RowsByAspect] = {}
        self.liveliest: int | None = None
        # False sorts before True: any debate that changed its score has priority, regardless of
        # length.
        most = (False, -1)
        for place, row in enumerate(rows):
            protocol = row["protocol"]
            by_round = row["score_by_round"]
            self.overviews.setdefault((protocol, row["aspect"]), Overview()).add(row)
            self.rows.setdefault(protocol, RowsByAspect()).add(row)
            lively = any(score != by_round[0] for score in by_round), row["rounds"] or 0
            if lively > most:
                self.liveliest = place
                most = lively


@dataclass(frozen=True)
class Evaluation:
    """The outcome of a run.

    Attributes:
        results: one for each item, aspect, protocol and repeat. With a folder, they stay in their
            file, and each is read when it is accessed.
        manifest: the description of the run; ``manifest["signatures"]`` distinguishes runs.
        folder: the folder of results and manifest; None without a folder.
        stopped: why the run ended before it was complete; ``None`` if it is complete.
        given_up: the number of requests of this start without a reply: they took too long, or the
            connection was cut. The provider may bill them; the run's budget counts them as usual
            replies.
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
        """Yield the fields of each result, for stored ones without the transcripts."""
        results = self.results
        return results.heads() if isinstance(results, StoredResults) else map(vars, results)

    @cached_property
    def figures(self) -> RunSummary:
        """The statistics of one pass over all results; computed once."""
        # `cached_property` stores the value in `__dict__`, which a frozen dataclass allows.
        return RunSummary(self.heads())

    @property
    def rule(self) -> TiePolicy:
        """The default policy for comparing its preferences with human ones, from the data."""
        return TiePolicy.of(self.manifest)

    def agreement(
        self,
        protocol: str | None = None,
        resampling: Resampling | None = None,
        *,
        ties: Ties | None = None,
        votes: Votes | None = None,
    ) -> dict[str, Agreement]:
        """Measure the agreement of one protocol with humans, by aspect.

        Args:
            protocol: the protocol whose verdicts are compared; required if there are several.
            resampling: the settings of intervals.
            ties: how human ties in comparisons count; by default according to the data (see
                ``TiePolicy``).
            votes: whether the human majority counts or each vote; by default according to the data.

        Raises:
            ValueError: several protocols were run, and none is named.
            UsageError: an unknown rule for ties or votes.
        """
        rows = self.figures.rows
        if protocol is None and len(rows) > 1:
            raise ValueError(f"several protocols were run; name one of {', '.join(sorted(rows))}")
        chosen = rows.get(next(iter(rows), "") if protocol is None else protocol, RowsByAspect())
        return chosen.agreement(resampling, self.rule.override(ties, votes))

    def most_worth_reading(self) -> Result | None:
        """Return the longest debate that changed its score, else the longest, if there is one."""
        place = self.figures.liveliest
        return None if place is None else self.results[place]

    @property
    def runs(self) -> tuple[EvaluatedRun, ...]:
        """The runs inside: itself, or one for each combination of datasets and models."""
        return (EvaluatedRun(str((self.manifest.get("data") or {}).get("name", "")), "", self),)

    def run(self, title: str) -> Evaluation:
        """Return one of its runs by title: the dataset's name, with the model if there are several.

        Raises:
            ValueError: an unknown title; the message lists the known ones.
        """
        by_title = {run.title: run.evaluation for run in self.runs}
        if title not in by_title:
            raise ValueError(f"there is no run {title!r}; runs are {'; '.join(by_title)}")
        return by_title[title]

    def by_dataset(self) -> dict[str, list[EvaluatedRun]]:
        """Return the runs of each dataset, in the given order of datasets."""
        return grouped((run.dataset, run) for run in self.runs)


class EvaluatedRun(NamedTuple):
    """One run among several.

    Attributes:
        dataset: the title of its dataset: its name, or more if names are equal.
        model: the title of its models; empty if there is one choice of models.
        evaluation: its outcome.
    """

    dataset: str
    model: str
    evaluation: Evaluation

    @property
    def title(self) -> str:
        """The dataset, and the model if there are several."""
        return ", ".join(filter(None, (self.dataset, self.model)))

    def judge(self, protocol: str) -> str:
        """Return the unique name of a judge among all runs.

        >>> EvaluatedRun("demo", "gpt-4o", Evaluation((), {})).judge("debate")
        'demo, gpt-4o: debate'
        """
        return f"{self.title}: {protocol}"


class JoinedResults(Sequence[Result]):
    """The results of several runs in order, without loading them into memory."""

    def __init__(self, parts: Iterable[Sequence[Result]]) -> None:
        self._parts = tuple(parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Result]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        place = index + len(self) if index < 0 else index
        for part in self._parts:
            if 0 <= place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(f"there are {len(self)} results, none has the place {index}")


@dataclass(frozen=True, repr=False)
class Evaluations(Evaluation):
    """The outcome of a run over several datasets, with several models, or both.

    ``runs`` has an ``Evaluation`` for each combination. Judges are named with their run, such as
    ``demo: debate``, because no value is computed over several datasets or models.

    Attributes:
        parts: the runs, dataset by dataset. Runs that the start did not reach are missing.
        wanted: the planned number of runs.
    """

    parts: tuple[EvaluatedRun, ...] = ()
    wanted: int = 0

    @classmethod
    def of(
        cls, parts: Sequence[EvaluatedRun], wanted: int, folder: Path | None, stopped: str | None
    ) -> Evaluations:
        """Combine the outcomes of runs."""
        signatures = {
            run.judge(protocol): signature
            for run in parts
            for protocol, signature in run.evaluation.manifest["signatures"].items()
        }
        manifest = {
            "signatures": signatures,
            "runs": {run.title: run.evaluation.manifest for run in parts},
        }
        given_up = sum(run.evaluation.given_up for run in parts)
        results = JoinedResults(run.evaluation.results for run in parts)
        return cls(results, manifest, folder, stopped, given_up, tuple(parts), wanted)

    @property
    def runs(self) -> tuple[EvaluatedRun, ...]:
        """The runs, one for each combination of datasets and models."""
        return self.parts

    @property
    def failed(self) -> Sequence[Result]:
        """The results of all runs without a verdict."""
        return JoinedResults(run.evaluation.failed for run in self.parts)

    def heads(self) -> Iterator[Mapping[str, Any]]:
        """Yield the fields of each result, with judges named with their run."""
        for run in self.parts:
            for head in run.evaluation.heads():
                yield {**head, "protocol": run.judge(head["protocol"])}

    def agreement(
        self,
        protocol: str | None = None,
        resampling: Resampling | None = None,
        *,
        ties: Ties | None = None,
        votes: Votes | None = None,
    ) -> dict[str, Agreement]:
        """Measure the agreement of one judge, such as ``demo: debate``, with humans by aspect.

        Raises:
            ValueError: no judge is named, or the name is unknown.
        """
        judges = {
            run.judge(name): (run, name)
            for run in self.parts
            for name in run.evaluation.figures.rows
        }
        if protocol not in judges:
            raise ValueError(f"several runs were made; name a judge among {'; '.join(judges)}")
        run, name = judges[protocol]
        return run.evaluation.agreement(name, resampling, ties=ties, votes=votes)

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder else ""
        count = (
            f"{len(self.parts)} of {self.wanted}"
            if len(self.parts) < self.wanted
            else f"{self.wanted}"
        )
        lines = [f"<Evaluations: {count} {'run' if self.wanted == 1 else 'runs'}{where}>"]
        for dataset, runs in self.by_dataset().items():
            lines.append(f"{dataset} ({runs[0].evaluation.manifest['data']['kind']}):")
            lines += [f"  {line}" for run in runs for line in _lines(run)]
        return "\n".join(lines)


def _lines(run: EvaluatedRun) -> Iterator[str]:
    """Yield a line for each judge and aspect of a run."""
    for (protocol, aspect), overview in run.evaluation.figures.overviews.items():
        name = ", ".join(filter(None, (protocol, run.model, aspect)))
        mean = "" if overview.score.value is None else f", mean {overview.score.value:.2f}"
        yield f"{name}: {overview.judged:,} judged, {overview.failed:,} failed{mean}"
