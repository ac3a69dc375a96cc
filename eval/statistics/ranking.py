"""Which system is best: rankings from pairwise verdicts, a judge's beside people's, and from mean scores.

Bradley-Terry gives each system a strength b so that i beats j with the chance 1 / (1 + exp(b_j - b_i)); strengths are
natural logarithms, with mean 0, and a tie is half a win for either side (Bradley and Terry 1952; Newman 2023 for the
computation). Elo is the chess rating (start 1000, K = 4, 400 points for odds of 10 to 1): games are played in the order
of the rows, and in another order they give other ratings, so Bradley-Terry is the one to rely on. Both are computed by
the package ``evalica``, of the extra ``report``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...state.errors import UsageError
from .columns import Floats, numbered
from .games import Games, reached
from .resampling import Resampling
from .statistic import Statistic
from .systems import SystemAgreement, over_systems, system_agreement
from .together import UNLABELLED, Reasons, fields_of, unit_of, why_unjudged

Method = Literal["bradley_terry", "elo"]
METHODS: tuple[Method, ...] = ("bradley_terry", "elo")
_EQUAL = 1e-9


@dataclass(frozen=True)
class Standing:
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
    standings: tuple[Standing, ...]
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
    correlations = over_systems(own[0], theirs[0], (own[1], theirs[1]), resampling)
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
            self._units.append(unit_of(row))

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
        units = numbered([self._units[at] for at in keep], len(keep))
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
        Standing(
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


def _best_first(standing: Standing) -> tuple[float, float, str]:
    value, met = standing.figure.value, standing.wins + standing.losses + standing.ties
    share = (standing.wins + standing.ties / 2) / met if met else 0
    return (-value if value is not None else 0, -share, standing.system)


def _problem(names: Sequence[str], games: Games) -> str:
    """Why there are no strengths."""
    if len(names) < 2:
        return f"nothing to rank: {len(names) or 'no'} system{'s' if not names else ''} in {len(games)} rows"
    beaten = games.points() > 0
    together = reached(beaten | beaten.T)
    if not together.all():
        apart = [name for name, there in zip(names, together[0], strict=True) if not there]
        rest = [name for name in names if name not in apart]
        return f"never compared, not even through others: {_listed(rest)} and {_listed(apart)}"
    reach = reached(beaten)
    fewest = reach[:, int(reach.sum(axis=0).argmin())]
    if not fewest.all():
        top = [name for name, above in zip(names, fewest, strict=True) if above]
        return f"without bound: no other system won against or tied with {_listed(top)}"
    return "the strengths could not be computed to the precision asked for"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"
