"""Gains over the base of the same model, level by level and pooled."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.pooled_gains import PooledGains
from jurygraph.eval.statistics.resampling import Resampling

from .run_folders import compared, run_folder

RIGHT = {"weak": {"baseline": 0.5, "more": 0.7}, "strong": {"baseline": 0.8, "more": 0.9}}


def level(
    folder: Path, model: str, data: str = "mine", protocols: tuple[str, ...] = ("baseline", "more")
) -> Path:
    """A run of both protocols with a model, which are right so often; their errors are their own."""
    results = []
    for protocol in protocols:
        draws = random.Random(f"{model} {protocol}")
        for number in range(200):
            human = "12"[number % 2]
            winner = human if draws.random() < RIGHT[model][protocol] else {"1": "2", "2": "1"}[human]
            results.append(compared(f"i{number}", protocol, winner=winner, human=human))
    signatures = {name: f"protocol:{name}|data:{data}@{data}|models:*={model}" for name in protocols}
    models = {name: {"*": model} for name in protocols}
    about: Any = {"signatures": signatures, "models": models, "data": {"name": data, "digest": data}}
    return run_folder(folder, results, kind="compare", aspects=(), **about)


def pooled(*folders: Path) -> tuple[PooledGains, ...]:
    return Study.of(folders, resampling=Resampling(300)).pooled


def test_each_model_has_its_own_base_and_levels_are_pooled(tmp_path: Path) -> None:
    (gains,) = pooled(level(tmp_path / "w", "weak"), level(tmp_path / "s", "strong"))
    assert (gains.base, gains.metric) == ("baseline", "accuracy")
    by_level = {row.level: row for row in gains.rows}
    assert list(by_level) == ["mine, weak", "mine, strong", "pooled"]
    assert by_level["mine, weak"].base == pytest.approx(0.5, abs=0.08)
    weak, strong, whole = (row.gain for row in gains.rows)
    assert weak.value == pytest.approx(0.2, abs=0.1) and strong.value == pytest.approx(0.1, abs=0.1)
    assert weak.value is not None and strong.value is not None and whole.value is not None
    assert min(weak.value, strong.value) <= whole.value <= max(weak.value, strong.value)
    tau = by_level["pooled"].between
    assert tau is not None and 0 <= tau < 0.2
    # Two levels have one degree of freedom: their mean is known far less well than either of them.
    assert whole.low is not None and whole.high is not None and whole.high - whole.low > 0.5


def test_levels_without_any_difference_between_them_have_no_tau(tmp_path: Path) -> None:
    (gains,) = pooled(*(level(tmp_path / name, "weak", data=name) for name in ("a", "b", "c")))
    last, first = gains.rows[-1], gains.rows[0].gain
    assert last.level == "pooled" and last.between == 0
    assert last.gain.value == pytest.approx(first.value)
    assert last.gain.high is not None and first.high is not None and first.value is not None
    margin, alone = last.gain.high - first.value, first.high - first.value
    assert margin == pytest.approx(alone / 1.96 / math.sqrt(3) * 4.303, rel=0.02)
    # One level is not pooled, nor one whose model has no base.
    assert pooled(tmp_path / "a") == ()
    without = level(tmp_path / "s", "strong", protocols=("more",))
    assert pooled(tmp_path / "a", without) == ()
