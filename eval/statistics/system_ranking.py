"""How well a judge ranks whole systems.

Bradley-Terry gives each system a strength b so that i beats j with the chance 1 / (1 + exp(b_j - b_i)); strengths are
natural logarithms, with mean 0, and a tie is half a win for either side (Bradley and Terry 1952; Newman 2023 for the
computation). Elo is the chess rating (start 1000, K = 4, 400 points for odds of 10 to 1): games are played in the order
of the rows, and in another order they give other ratings, so Bradley-Terry is the one to rely on. Both are computed by
the package ``evalica``, of the extra ``report``.

A judge may miss the differences between single texts and still tell which system writes better ones. This is how Fabbri
et al. 2021 (SummEval) hold metrics against people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import numpy as np

from ...state.errors import UsageError
from .alignment import (
    NO_NUMBER,
    UNLABELLED,
    Floats,
    Reasons,
    Units,
    fields_of,
    number_groups,
    resampling_unit,
    why_unjudged,
)
from .correlation import STATISTICS, correlation, correlations_within
from .ratings import Games, reachable
from .resampling import Resampling, Statistic, resampled_ratios

Method = Literal["bradley_terry", "elo"]
METHODS: tuple[Method, ...] = ("bradley_terry", "elo")
_EQUAL = 1e-9


@dataclass(frozen=True)
class SystemRank:
    """Where one system stands.

    Attributes:
        system: its name.
        place: 1 for the best; equal figures share the better place. ``None`` where there is no figure.
        figure: strength, rating or mean score, with its interval.
        wins, losses, ties: its verdicts; all 0 where the figure is a mean score.
    """

    system: str
    place: int | None
    figure: Statistic
    wins: int = 0
    losses: int = 0
    ties: int = 0


@dataclass(frozen=True)
class Ranking:
    """Systems, the best first.

    Attributes:
        method: ``bradley_terry``, ``elo`` or ``mean``.
        standings: by figure; where there are none, by share of verdicts won (a tie is half).
        problem: why no figures exist, in plain words; ``None`` where they do.
    """

    method: str
    standings: tuple[SystemRank, ...]
    problem: str | None = None


@dataclass(frozen=True)
class Rankings:
    """A judge's ranking beside people's, from the same rows.

    Attributes:
        n: rows that count; ``groups``: units drawn; ``left_out``: rows that do not count, by reason.
        judge, people: the rankings; ``people`` is ``None`` where no row has their word.
        correlations: Pearson, Spearman and Kendall between both sides' figures over the systems; none below 3 systems.
        resampling: how intervals were made; drawn are groups, or items where there are none. Resamples in which a
            system has no figure count for nothing.
    """

    n: int
    groups: int
    left_out: Reasons
    judge: Ranking
    people: Ranking | None
    correlations: Mapping[str, Statistic]
    resampling: Resampling


def rank_by_verdicts(
    rows: Iterable[Any], method: Method = "bradley_terry", resampling: Resampling | None = None
) -> Rankings:
    """Rank systems by who beat whom.

    Args:
        rows: of one protocol, as in ``results.jsonl``: ``winner``, ``human`` (a winner) if any, and ``systems`` (the
            names of both). If any row has people's word, rows without it do not count for the judge either.
        method: ``bradley_terry`` or ``elo``.
        resampling: how intervals are made.

    Bradley-Terry strengths exist only where every system can be reached from every other along wins and ties (Ford
    1957); else ``problem`` says what stands in the way, and no figure is made up.

    Raises:
        UsageError: an unknown method, or ``evalica`` is not there.

    >>> verdicts = [("ab", "1"), ("bc", "1"), ("ca", "1"), ("ab", "1"), ("ac", "tie")]
    >>> rows = [{"item": f"{pair}{at}", "systems": list(pair), "winner": winner}
    ...     for at, (pair, winner) in enumerate(verdicts)]
    >>> found = rank_by_verdicts(rows).judge
    >>> [(each.system, each.place, each.wins) for each in found.standings]
    [('a', 1, 2), ('c', 2, 1), ('b', 3, 1)]
    """
    if method not in METHODS:
        raise UsageError(f"no ranking method {method!r}: there are {', '.join(METHODS)}")
    resampling = resampling or Resampling()
    gathered = _Verdicts()
    for row in map(fields_of, rows):
        gathered.add(row)
    names, judged, people, left_out = gathered.games()
    judge, own = _ranked(method, names, judged, resampling)
    if people is None:
        return Rankings(len(judged), judged.drawn, left_out, judge, None, {}, resampling)
    human, theirs = _ranked(method, names, people, resampling)
    correlations = correlate_systems(own[0], theirs[0], (own[1], theirs[1]), resampling)
    return Rankings(len(judged), judged.drawn, left_out, judge, human, correlations, resampling)


def rank_by_scores(rows: Iterable[Any], resampling: Resampling | None = None) -> dict[str, Rankings]:
    """Rank systems by their mean scores, by aspect.

    Args and result are those of ``system_agreement``, laid out as rankings.

    >>> rows = [{"item": name, "systems": [name], "score": score} for name, score in [("a", 2.0), ("b", 4.0)]]
    >>> [(each.system, each.place) for each in rank_by_scores(rows)["score"].judge.standings]
    [('b', 1), ('a', 2)]
    """
    return {aspect: _by_means(found) for aspect, found in system_agreement(rows, resampling).items()}


def _by_means(found: SystemAgreement) -> Rankings:
    judge = {each.system: each.judge for each in found.systems}
    human = {each.system: each.human for each in found.systems}
    labelled = any(figure.value is not None for figure in human.values())
    return Rankings(
        n=found.n,
        groups=found.groups,
        left_out=found.left_out,
        judge=_standing("mean", judge, {}),
        people=_standing("mean", human, {}) if labelled else None,
        correlations=found.correlations if labelled else {},
        resampling=found.resampling,
    )


class _Verdicts:
    """What is kept of the rows: who met whom, what came of it, and what they are drawn with."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        self._winners: list[tuple[str, str | None]] = []
        self._units: list[Any] = []
        self._left_out: Counter[str] = Counter()

    def add(self, row: Mapping[str, Any]) -> None:
        systems = tuple(row.get("systems") or ())
        if reason := why_unjudged(row, row.get("winner")):
            self._left_out[reason] += 1
        elif len(systems) != 2:
            self._left_out["not two systems"] += 1
        elif systems[0] == systems[1]:
            self._left_out["a system against itself"] += 1
        else:
            self._pairs.append((systems[0], systems[1]))
            self._winners.append((row["winner"], row.get("human")))
            self._units.append(resampling_unit(row))

    def games(self) -> tuple[list[str], Games, Games | None, Reasons]:
        """The systems by name, the judge's games and people's, and why other rows do not count."""
        labelled = [human is not None for _, human in self._winners]
        keep = [at for at, there in enumerate(labelled) if there or not any(labelled)]
        if len(keep) < len(labelled):
            self._left_out[UNLABELLED] = len(labelled) - len(keep)
        names = sorted({name for at in keep for name in self._pairs[at]})
        number = {name: at for at, name in enumerate(names)}
        pairs = np.array([[number[name] for name in self._pairs[at]] for at in keep], dtype=np.intp).reshape(
            -1, 2
        )
        units = number_groups([self._units[at] for at in keep], len(keep))
        judged = Games.of(pairs, [self._winners[at][0] for at in keep], units, len(names))
        people = (
            Games.of(pairs, [self._winners[at][1] for at in keep], units, len(names))
            if any(labelled)
            else None
        )
        return names, judged, people, dict(self._left_out)


def _ranked(
    method: Method, names: Sequence[str], games: Games, resampling: Resampling
) -> tuple[Ranking, tuple[Floats, Floats]]:
    """The ranking, and the figures it was made of: as they are, and in each resample."""
    value, drawn = games.figures(method, resampling)
    figures = {
        name: resampling.interval(None if np.isnan(value[at]) else float(value[at]), drawn[:, at])
        for at, name in enumerate(names)
    }
    results = dict(zip(names, games.results().tolist(), strict=True))
    problem = _problem(names, games) if np.isnan(value).any() or not names else None
    return _standing(method, figures, results, problem), (value, drawn)


def _standing(
    method: str,
    figures: Mapping[str, Statistic],
    results: Mapping[str, Sequence[int]],
    problem: str | None = None,
) -> Ranking:
    values = [figure.value for figure in figures.values()]
    standings = [
        SystemRank(
            name,
            None
            if figure.value is None
            else 1 + sum(v is not None and v > figure.value + _EQUAL for v in values),
            figure,
            *results.get(name, ()),
        )
        for name, figure in figures.items()
    ]
    return Ranking(method, tuple(sorted(standings, key=_best_first)), problem)


def _best_first(standing: SystemRank) -> tuple[float, float, str]:
    value, met = standing.figure.value, standing.wins + standing.losses + standing.ties
    share = (standing.wins + standing.ties / 2) / met if met else 0
    return (-value if value is not None else 0, -share, standing.system)


def _problem(names: Sequence[str], games: Games) -> str:
    """Why there are no strengths."""
    if len(names) < 2:
        return f"nothing to rank: {len(names) or 'no'} system{'s' if not names else ''} in {len(games)} rows"
    beaten = games.points() > 0
    together = reachable(beaten | beaten.T)
    if not together.all():
        apart = [name for name, there in zip(names, together[0], strict=True) if not there]
        rest = [name for name in names if name not in apart]
        return f"never compared, not even through others: {_listed(rest)} and {_listed(apart)}"
    reach = reachable(beaten)
    fewest = reach[:, int(reach.sum(axis=0).argmin())]
    if not fewest.all():
        top = [name for name, above in zip(names, fewest, strict=True) if above]
        return f"without bound: no other system won against or tied with {_listed(top)}"
    return "the strengths could not be computed to the precision asked for"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"


MIN_SYSTEMS = 3
"""Systems below which there is no correlation: two points lie on a line, whatever they are."""


@dataclass(frozen=True)
class SystemScores:
    """One system's scores.

    Attributes:
        system: its name.
        n: rows of it.
        judge, human: mean scores, with the interval of groups drawn with replacement; ``human`` has no value where
            people scored nothing.
    """

    system: str
    n: int
    judge: Statistic
    human: Statistic


@dataclass(frozen=True)
class SystemAgreement:
    """A judge's mean scores of systems beside people's.

    Attributes:
        n: rows that count; ``groups``: units drawn; ``left_out``: rows that do not count, by reason.
        systems: by the judge's mean, the highest first (equal ones by name).
        correlations: Pearson, Spearman and Kendall over the systems' two means, without a value for fewer than three
            systems, or where all means of a side are equal.
        resampling: how intervals were made; drawn are groups (the sources), each with all its systems.
    """

    n: int
    groups: int
    left_out: Reasons
    systems: tuple[SystemScores, ...]
    correlations: Mapping[str, Statistic]
    resampling: Resampling


def system_agreement(rows: Iterable[Any], resampling: Resampling | None = None) -> dict[str, SystemAgreement]:
    """Agreement on systems, by aspect.

    Args:
        rows: of one protocol, as in ``results.jsonl``: ``score``, ``human``, ``systems`` (one name), ``group`` and
            ``aspect`` if any. If no row of an aspect has people's score, the judge's means stand alone; else rows that
            lack it do not count.
        resampling: how intervals are made.

    >>> rows = [{"item": f"{system}{text}", "group": text, "systems": [system], "score": score, "human": human}
    ...     for text, add in [("s", 0), ("t", 1)]
    ...     for system, score, human in [("a", 1 + add, 2), ("b", 2 + add, 4), ("c", 3 + add, 3)]]
    >>> found = system_agreement(rows)["score"]
    >>> [(each.system, each.judge.value) for each in found.systems], round(found.correlations["spearman"].value, 9)
    ([('c', 3.5), ('b', 2.5), ('a', 1.5)], 0.5)
    """
    found: dict[str, _AspectScores] = {}
    for row in map(fields_of, rows):
        if row.get("winner") is None and not isinstance(row.get("human"), str):
            found.setdefault(row.get("aspect") or "score", _AspectScores()).add(row)
    return {aspect: gathered.agreement(resampling or Resampling()) for aspect, gathered in found.items()}


def row_correlations(name: str, first: Floats, second: Floats) -> Floats:
    """The correlation of each line of two tables of shape (some, systems): shape (some,), NaN where there is none."""
    there = ~np.isnan(first + second).any(axis=1)
    lines = np.repeat(np.arange(int(there.sum())), first.shape[1])
    found = np.full(len(first), np.nan)
    found[there] = correlations_within(name, first[there].ravel(), second[there].ravel(), lines)
    return found


def correlate_systems(
    judge: Floats, human: Floats, drawn: tuple[Floats, Floats], resampling: Resampling
) -> dict[str, Statistic]:
    """The correlations over systems of two figures that each has, with intervals.

    Args:
        judge, human: one figure a system, of shape (systems,).
        drawn: the same in each resample, of shape (resamples, systems).
    """
    if len(judge) < MIN_SYSTEMS or np.isnan(judge + human).any():
        return {name: Statistic(None) for name in STATISTICS}
    return {
        name: resampling.interval(correlation(name, judge, human), row_correlations(name, drawn[0], drawn[1]))
        for name in STATISTICS
    }


@dataclass
class _AspectScores:
    """What is kept of the rows of an aspect: numbers, and what they are of."""

    systems: list[str] = field(default_factory=list)
    units: list[Hashable] = field(default_factory=list)
    judge: list[float] = field(default_factory=list)
    human: list[float | None] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        systems: Sequence[str] = row.get("systems") or ()
        human = row.get("human")
        if reason := why_unjudged(row, row.get("score")):
            self.left_out[reason] += 1
        elif not isfinite(row["score"]) or (human is not None and not isfinite(human)):
            self.left_out[NO_NUMBER] += 1
        elif len(systems) != 1:
            self.left_out["no system" if not systems else "several systems"] += 1
        else:
            self.systems.append(systems[0])
            self.units.append(resampling_unit(row))
            self.judge.append(row["score"])
            self.human.append(human)

    def agreement(self, resampling: Resampling) -> SystemAgreement:
        labelled = [human is not None for human in self.human]
        counting = np.flatnonzero(labelled if any(labelled) else np.ones(len(labelled), dtype=bool))
        reasons = dict(self.left_out)
        if len(counting) < len(labelled):
            reasons[UNLABELLED] = len(labelled) - len(counting)
        names = [self.systems[at] for at in counting]
        units = number_groups([self.units[at] for at in counting], len(counting))
        judge = np.array([self.judge[at] for at in counting], dtype=float)
        human = np.array([self.human[at] for at in counting], dtype=float)
        return _agreement(names, units, (judge, human), reasons, resampling)


def _agreement(
    names: list[str],
    units: Units,
    scores: tuple[Floats, Floats],
    left_out: Reasons,
    resampling: Resampling,
) -> SystemAgreement:
    labels = sorted(set(names))
    number = {label: at for at, label in enumerate(labels)}
    system = np.array([number[name] for name in names], dtype=np.intp)
    shape = (int(units.max()) + 1 if len(units) else 0, len(labels))
    rows = np.zeros(shape)
    np.add.at(rows, (units, system), 1)
    means, drawn = [], []
    for column in scores:
        sums = np.zeros(shape)
        np.add.at(sums, (units, system), column)
        means.append(sums.sum(axis=0) / rows.sum(axis=0))
        drawn.append(resampled_ratios(sums, rows, resampling))
    each = [
        SystemScores(
            system=label,
            n=int(rows[:, at].sum()),
            judge=_interval(means[0][at], drawn[0][:, at], resampling),
            human=_interval(means[1][at], drawn[1][:, at], resampling),
        )
        for at, label in enumerate(labels)
    ]
    return SystemAgreement(
        n=len(names),
        groups=shape[0],
        left_out=left_out,
        systems=tuple(sorted(each, key=lambda scores: (-(scores.judge.value or 0), scores.system))),
        correlations=correlate_systems(means[0], means[1], (drawn[0], drawn[1]), resampling),
        resampling=resampling,
    )


def _interval(value: float, drawn: Floats, resampling: Resampling) -> Statistic:
    return resampling.interval(None if np.isnan(value) else float(value), drawn)
