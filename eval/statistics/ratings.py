"""Compute Bradley-Terry strengths and Elo ratings of systems from games between them, with the package ``evalica``.

A game is one verdict between two systems' answers: a win of either, or a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from .alignment import Floats, Units, unit_count
from .resampling import Resampling, Weights

ELO_START = 1000.0
ELO_K = 4.0
ELO_BASE = 10.0
ELO_SCALE = 400.0
# The place of an outcome is the number of evalica's ``Winner``: Draw 0, X 1, Y 2.
OUTCOMES = ("tie", "1", "2")
# Far below ``_SOLVED``: a fit that converges to this passes the check of its solution.
_TOLERANCE = 1e-13
_ITERATIONS = 10_000
_SOLVED = 1e-9
"""By how much of all games a system's expected wins may differ from its wins."""


@dataclass(frozen=True)
class Games:
    """Holds games in the order in which they were played, and computes strengths and ratings from them.

    Attributes:
        pairs: the numbers of both systems, of shape (games, 2).
        outcomes: of each game: 1 or 2 for the system that won, 0 for a tie.
        units: what each game is drawn with.
        systems: how many there are.
    """

    pairs: Units
    outcomes: Units
    units: Units
    systems: int

    @classmethod
    def of(cls, pairs: Units, winners: Sequence[Any], units: Units, systems: int) -> Games:
        """Make games of winners as results spell them.

        Raises:
            UsageError: a winner that is none of ``1``, ``2`` and ``tie``.
        """
        if wrong := [winner for winner in winners if winner not in OUTCOMES]:
            raise UsageError(f"{wrong[0]!r} is no winner: give '1', '2' or 'tie'")
        return cls(pairs, np.array([OUTCOMES.index(won) for won in winners], dtype=np.intp), units, systems)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def unit_count(self) -> int:
        """The number of units to draw."""
        return unit_count(self.units)

    def figures(self, method: str, resampling: Resampling) -> tuple[Floats, Floats]:
        """Return each system's figure, and that in each resample; NaN where there is none.

        Returns:
            shapes (systems,) and (resamples, systems).
        """
        if not len(self):
            return np.full(self.systems, np.nan), np.full((resampling.resamples, self.systems), np.nan)
        figure = self.strengths if method == "bradley_terry" else self.ratings
        value = figure(np.ones(self.unit_count, dtype=np.int64))
        # Without a figure there is no interval: the resamples, each a fit of its own, are not computed.
        if self.unit_count < 2 or np.isnan(value).any():
            return value, np.full((resampling.resamples, self.systems), np.nan)
        drawn = [figure(weights) for block in resampling.weights(self.unit_count) for weights in block]
        return value, np.array(drawn).reshape(-1, self.systems)

    def strengths(self, weights: Weights) -> Floats:
        """Compute Bradley-Terry strengths, natural logarithms with mean 0; NaN where they do not exist.

        Args:
            weights: how often each unit counts.
        """
        counts = np.bincount(self._kind, weights[self.units].astype(float), len(self._kinds)).astype(float)
        # Checked in every resample: a draw may leave out the one game that kept two sets of systems together.
        points = self._points(counts)
        if self.systems < 2 or not strongly_connected(points > 0):
            return np.full(self.systems, np.nan)
        evalica = load_evalica()
        first, second, outcome = self._kinds.T
        # One weighted game for all that are alike, so that the cost of a fit does not grow with the rows.
        fit = evalica.bradley_terry(
            first.tolist(),
            second.tolist(),
            [evalica.Winner(int(won)) for won in outcome],
            index=_index(self.systems),
            weights=counts,
            tolerance=_TOLERANCE,
            limit=_ITERATIONS,
        )
        # evalica returns scores by rank, the best first; sorted by index they are by system again.
        strengths = np.log(fit.scores.sort_index().to_numpy(dtype=float))
        # Only differences of strengths have a meaning; the mean is fixed at 0 so that resamples can be compared.
        strengths -= strengths.mean()
        return strengths if _is_solution(points, strengths) else np.full(self.systems, np.nan)

    def ratings(self, weights: Weights) -> Floats:
        """Compute Elo ratings after all games; a game that counts twice is played twice in a row.

        (``evalica`` has weights for games as well; but there, a game of weight 0 is one that both sides lost.)
        """
        evalica = load_evalica()
        played = np.repeat(np.arange(len(self)), weights[self.units])
        first, second = self.pairs[played].T
        outcomes = [evalica.Winner(won) for won in self.outcomes[played].tolist()]
        # The index names all systems, also those of which this resample has no game: they keep the rating of the start.
        table = evalica.elo(
            first.tolist(),
            second.tolist(),
            outcomes,
            index=_index(self.systems),
            initial=ELO_START,
            base=ELO_BASE,
            scale=ELO_SCALE,
            k=ELO_K,
        )
        ratings: Floats = table.scores.sort_index().to_numpy(dtype=float)
        return ratings

    def results(self) -> NDArray[np.int64]:
        """Count wins, losses and ties of each system: shape (systems, 3)."""
        table = np.zeros((self.systems, 3), dtype=np.int64)
        for side, won in ((0, 1), (1, 2)):
            # Columns are wins, losses and ties.
            column = np.where(self.outcomes == 0, 2, np.where(self.outcomes == won, 0, 1))
            np.add.at(table, (self.pairs[:, side], column), 1)
        return table

    def points(self) -> Floats:
        """Add up the points of each system against each: 1 for a win, a half for a tie; shape (systems, systems)."""
        return self._points(np.bincount(self._kind, minlength=len(self._kinds)).astype(float))

    def _points(self, counts: Floats) -> Floats:
        first, second, outcome = self._kinds.T
        points = np.zeros((self.systems, self.systems))
        np.add.at(points, (first, second), counts * np.array([0.5, 1.0, 0.0])[outcome])
        np.add.at(points, (second, first), counts * np.array([0.5, 0.0, 1.0])[outcome])
        return points

    @cached_property
    def _distinct(self) -> tuple[Units, Units]:
        """The distinct games (first, second, outcome), of shape (kinds, 3), and for each game which of them it is."""
        games = np.column_stack([self.pairs.reshape(-1, 2), self.outcomes])
        kinds, kind = np.unique(games, axis=0, return_inverse=True)
        return kinds, kind.reshape(-1)

    @property
    def _kinds(self) -> Units:
        return self._distinct[0]

    @property
    def _kind(self) -> Units:
        return self._distinct[1]


def strongly_connected(beaten: NDArray[np.bool_]) -> bool:
    """Return whether every system is reached from every other along wins and ties, given as (systems, systems)."""
    return bool(reachable(beaten).all())


def reachable(beaten: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which systems each one reaches along wins and ties, itself included: shape (systems, systems)."""
    reach: NDArray[np.bool_] = beaten | np.eye(len(beaten), dtype=bool)
    # Squaring doubles the length of the paths, so log2 of the number of systems is often enough.
    for _ in range(max(1, len(beaten)).bit_length()):
        reach = (reach.astype(float) @ reach.astype(float)) > 0
    return reach


def load_evalica() -> ModuleType:
    """Import the package ``evalica``.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import evalica
    except ImportError as error:
        raise UsageError('rankings need the package evalica: pip install "jurygraph[report]"') from error
    return evalica


def _index(systems: int) -> Any:
    import pandas as pd  # a dependency of evalica

    return pd.RangeIndex(systems)


def _is_solution(points: Floats, strengths: Floats) -> bool:
    """Return whether the strengths are the solution: each system is expected to win as often as it won.

    ``evalica`` also stops after a limited number of iterations.
    """
    games = points + points.T
    chances = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    surplus = points.sum(axis=1) - (games * chances).sum(axis=1)
    return bool(np.abs(surplus).max() <= _SOLVED * games.sum())
