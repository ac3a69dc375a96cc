"""Make run folders by hand, for tests of computed results."""

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from jurygraph.eval.results.results import FILE, Result
from jurygraph.state.transcript import Turn, turn_without_model

RATED = {"name": "wit", "low": 1, "high": 5}


def turn(
    agent: str, value: Any, round: int = 1, role: str | None = None, calls: int = 1, **more: Any
) -> Turn:
    """A turn of a model; the role is the agent's name without its number."""
    said = turn_without_model(round, agent, role or agent.rstrip("_0123456789"), "words", value)
    return cast("Turn", {**said, "calls": calls, "model": "judge", "cost_usd": 0.0, **more})


def scored(item: str, protocol: str = "debate", **fields: Any) -> Result:
    """A verdict on a text; without ``score_by_round`` it has one round."""
    fields.setdefault("score_by_round", (fields["score"],))
    return _result(item, protocol, {"aspect": "wit", **fields})


def compared(item: str, protocol: str = "debate", **fields: Any) -> Result:
    """A verdict on two answers; without ``scores`` they follow from the winner."""
    fields.setdefault(
        "scores", {"1": (8.0, 6.0), "2": (6.0, 8.0), "tie": (7.0, 7.0)}[fields["winner"]]
    )
    fields.setdefault("score_by_round", (fields["scores"],))
    return _result(item, protocol, fields)


def noisy(protocol: str, noise: float, items: int = 40, **fields: Any) -> list[Result]:
    """Verdicts that lie about people's by so much; the same every time."""
    found = []
    for number in range(items):
        human = 1 + number % 5
        score = min(5.0, max(1.0, human + random.Random(f"{protocol}{number}").gauss(0, noise)))
        rest = {"score": score, "human": human, "group": f"g{number // 4}", **fields}
        found.append(scored(f"i{number:02}", protocol, **rest))
    return found


def failed(item: str, protocol: str = "debate", **fields: Any) -> Result:
    return Result(
        item=item, protocol=protocol, status="failed", **{"error": "no words", "calls": 1, **fields}
    )


def _result(item: str, protocol: str, fields: Mapping[str, Any]) -> Result:
    usual = {"rounds": 1, "stop_reason": "complete", "calls": 1, "cost_usd": 0.0}
    return Result(item=item, protocol=protocol, **{"status": "ok", **usual, **fields})


def run_folder(
    folder: Path,
    results: Iterable[Result],
    *,
    kind: str = "score",
    aspects: Iterable[Mapping[str, Any]] = (RATED,),
    data: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> Path:
    """Write results and the manifest of a run that made them."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = list(results)
    protocols = list(dict.fromkeys(result.protocol for result in listed))
    described = {
        "signatures": {name: f"protocol:{name}" for name in protocols},
        "note": None,
        "protocols": {name: {} for name in protocols},
        "models": {name: {"*": "test"} for name in protocols},
        "data": {
            "name": "mine",
            "digest": "0123",
            "kind": kind,
            "labels": "people",
            "items": len({result.item for result in listed}),
            **(data or {}),
        },
        "aspects": list(aspects) if kind == "score" else [],
        "repeats": 1 + max((result.repeat for result in listed), default=0),
        **manifest,
    }
    (folder / "run.json").write_text(json.dumps(described))
    (folder / FILE).write_bytes(b"".join(result.line() for result in listed))
    return folder
