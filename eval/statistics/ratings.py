"""Games between systems, and what they make of each: Bradley-Terry strengths and Elo ratings, by ``evalica``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from .alignment import Floats, Units
from .resampling import Resampling, Weights

ELO_START = 1000.0
ELO_K = 4.0
ELO_BASE = 10.0
ELO_SCALE = 400.0
OUTCOMES = ("tie", "1", "2")
_TOLERANCE = 1e-13
_STEPS = 10_000
_UNEVEN = 1e-9


@dataclass(frozen=True)
class Games:
    """Games, in the order in which they were played.

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
        """From winners as results spell them.

        Raises:
            UsageError: a winner that is none of ``1``, ``2`` and ``tie``.
        """
        if wrong := [winner for winner in winners if winner not in OUTCOMES]:
            raise UsageError(f"{wrong[0]!r} is no winner: give '1', '2' or 'tie'")
        return cls(pairs, np.array([OUTCOMES.index(won) for won in winners], dtype=np.intp), units, systems)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def drawn(self) -> int:
        """How many units there are to draw."""
        return int(self.units.max()) + 1 if len(self) else 0

    def figures(self, method: str, resampling: Resampling) -> tuple[Floats, Floats]:
        """Each system's figure, of shape (systems,), and in each resample, (resamples, systems); NaN for none."""
        if not len(self):
            return np.full(self.systems, np.nan), np.full((resampling.resamples, self.systems), np.nan)
        figure = self.strengths if method == "bradley_terry" else self.ratings
        value = figure(np.ones(self.drawn, dtype=np.int64))
        if self.drawn < 2 or np.isnan(value).any():
            return value, np.full((resampling.resamples, self.systems), np.nan)
        drawn = [figure(weights) for block in resampling.weights(self.drawn) for weights in block]
        return value, np.array(drawn).reshape(-1, self.systems)

    def strengths(self, weights: Weights) -> Floats:
        """Bradley-Terry strengths, natural logarithms with mean 0; NaN where they do not exist.

        Args:
            weights: how often each unit counts.
        """
        of_kind = np.bincount(self._kind, weights[self.units].astype(float), len(self._kinds)).astype(float)
        points = self._points(of_kind)
        if self.systems < 2 or not strongly_connected(points > 0):
            return np.full(self.systems, np.nan)
        evalica = load_evalica()
        first, second, outcome = self._kinds.T
        found = evalica.bradley_terry(
            first.tolist(),
            second.tolist(),
            [evalica.Winner(int(won)) for won in outcome],
            index=_index(self.systems),
            weights=of_kind,
            tolerance=_TOLERANCE,
            limit=_STEPS,
        )
        strengths = np.log(found.scores.sort_index().to_numpy(dtype=float))
        strengths -= strengths.mean()
        return strengths if _settled(points, strengths) else np.full(self.systems, np.nan)

    def ratings(self, weights: Weights) -> Floats:
        """Elo ratings after all games; a game that counts twice is played twice in a row.

        (``evalica`` has weights for games as well; but there, a game of weight 0 is one that both sides lost.)
        """
        evalica = load_evalica()
        played = np.repeat(np.arange(len(self)), weights[self.units])
        first, second = self.pairs[played].T
        outcomes = [evalica.Winner(won) for won in self.outcomes[played].tolist()]
        found = evalica.elo(
            first.tolist(),
            second.tolist(),
            outcomes,
            index=_index(self.systems),
            initial=ELO_START,
            base=ELO_BASE,
            scale=ELO_SCALE,
            k=ELO_K,
        )
        ratings: Floats = found.scores.sort_index().to_numpy(dtype=float)
        return ratings

    def results(self) -> NDArray[np.int64]:
        """Wins, losses and ties of each system: shape (systems, 3)."""
        table = np.zeros((self.systems, 3), dtype=np.int64)
        for side, won in ((0, 1), (1, 2)):
            column = np.where(self.outcomes == 0, 2, np.where(self.outcomes == won, 0, 1))
            np.add.at(table, (self.pairs[:, side], column), 1)
        return table

    def points(self) -> Floats:
        """Points of each system against each: 1 for a win, a half for a tie; shape (systems, systems)."""
        return self._points(np.bincount(self._kind, minlength=len(self._kinds)).astype(float))

    def _points(self, of_kind: Floats) -> Floats:
        first, second, outcome = self._kinds.T
        points = np.zeros((self.systems, self.systems))
        np.add.at(points, (first, second), of_kind * np.array([0.5, 1.0, 0.0])[outcome])
        np.add.at(points, (second, first), of_kind * np.array([0.5, 0.0, 1.0])[outcome])
        return points

    @cached_property
    def _distinct(self) -> tuple[Units, Units]:
        """The distinct games (who, whom, outcome), of shape (kinds, 3), and of each game which one it is."""
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
    """Whether every system is reached from every other along games that it won or tied: shape (systems, systems)."""
    return bool(reachable(beaten).all())


def reachable(beaten: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which systems each reaches, itself included."""
    reach: NDArray[np.bool_] = beaten | np.eye(len(beaten), dtype=bool)
    for _ in range(max(1, len(beaten)).bit_length()):
        reach = (reach.astype(float) @ reach.astype(float)) > 0
    return reach


def load_evalica() -> ModuleType:
    """The package that ranks.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import evalica
    except ImportError as error:
        raise UsageError('rankings need the package evalica: pip install "jurygraph[report]"') from error
    return evalica


def _index(systems: int) -> Any:
    import pandas as pd  # which evalica brings along

    return pd.RangeIndex(systems)


def _settled(points: Floats, strengths: Floats) -> bool:
    """Whether the strengths are the solution: each system is expected to win what it won."""
    games = points + points.T
    chances = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    surplus = points.sum(axis=1) - (games * chances).sum(axis=1)
    return bool(np.abs(surplus).max() <= _UNEVEN * games.sum())
