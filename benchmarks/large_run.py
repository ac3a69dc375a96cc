"""Write a run of any number of generated verdicts, to measure reading, reports and resuming.

Lines look like those of real runs: two protocols, scores on two aspects (``score``) or of two
answers (``compare``), items in groups of eight, three annotators, a share of failures, in about the
order in which a run finishes them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from jurygraph.eval.results.folder import write_manifest
from jurygraph.eval.results.results import FILE, Key
from jurygraph.eval.run.plan.plan import Plan, plan
from jurygraph.state.transcript import Usage

PROTOCOLS = {"score": ("debate", "single"), "compare": ("samre", "single")}
ASPECTS = {"score": ("coherence", "fluency"), "compare": ()}
_GROUP = 8
_WINDOW = 2_000
_SYSTEMS = [f"system-{number}" for number in range(_GROUP)]
_REASONS = ("max_rounds", "no_issue", "complete", "agreement")


def make_large_run(
    folder: Path, verdicts: int, kind: str = "score", failed: float = 0.02
) -> list[str]:
    """Write a run of about this many verdicts to a new folder; return the command to resume it."""
    aspects = ASPECTS[kind]
    protocols = PROTOCOLS[kind]
    data = folder.with_suffix(".jsonl")
    draw = random.Random(0)
    _write_items(data, verdicts // (len(protocols) * max(1, len(aspects))), kind, draw)
    planned = plan(
        list(protocols), data, aspects=list(aspects), models={"*": "offline"}, out=folder
    )
    folder.mkdir()
    write_manifest(folder, planned.manifest)
    lines = _Lines(draw, failed)
    with (folder / FILE).open("wb") as file:
        for window in _windows(planned):
            draw.shuffle(window)
            file.writelines(map(lines.line, window))
    options = [word for aspect in aspects for word in ("--aspect", aspect)]
    return [",".join(protocols), "--data", str(data), "--model", "offline", *options]


def _write_items(path: Path, items: int, kind: str, draw: random.Random) -> None:
    words = _sentences(draw)
    with path.open("wb") as file:
        for number in range(items):
            item: dict[str, Any] = {
                "id": f"item-{number:07}",
                "group": f"source-{number // _GROUP:06}",
            }
            if kind == "score":
                truth = draw.gauss(3, 1)
                given = {name: _annotators(draw, truth) for name in ASPECTS[kind]}
                item |= {"system": _SYSTEMS[number % _GROUP], "source": words[number % 97]}
                item |= {"candidate": words[number % 89][: 60 + number % 200], "human": given}
            else:
                pair = draw.sample(_SYSTEMS, 2)
                item |= {
                    "question": words[number % 97],
                    "answer_1": words[number % 89],
                    "answer_2": words[number % 83],
                }
                item |= {
                    "model_1": pair[0],
                    "model_2": pair[1],
                    "human": draw.choice(("1", "1", "2", "2", "tie")),
                }
            file.write(orjson.dumps(item) + b"\n")


def _annotators(draw: random.Random, truth: float) -> list[int]:
    return [min(5, max(1, round(truth + draw.gauss(0, 0.7)))) for _ in range(3)]


def _windows(planned: Plan) -> Iterator[list[tuple[Key, Any]]]:
    """Yield the work in windows of some thousand, since a run finishes in about item order."""
    window: list[tuple[Key, Any]] = []
    for key, item, _ in planned.jobs():
        window.append((key, item))
        if len(window) == _WINDOW:
            yield window
            window = []
    yield window


class _Lines:
    """Makes lines of results from words that were drawn before."""

    def __init__(self, draw: random.Random, failed: float) -> None:
        self._draw = draw
        self._said = _sentences(draw)
        self._failed = failed

    def line(self, unit: tuple[Key, Any]) -> bytes:
        """Return the line of one item, aspect and protocol."""
        key, item = unit
        return (
            orjson.dumps(self._scored(key, item) if key.aspect else self._compared(key, item))
            + b"\n"
        )

    def _scored(self, key: Key, item: Any) -> dict[str, Any]:
        draw = self._draw
        given = item.human[key.aspect]
        human = sum(given) / len(given)
        rounds = draw.choice((1, 1, 1, 2, 2, 3)) if key.protocol == "debate" else 0
        path = [
            min(5.0, max(1.0, round(2 * (human + draw.gauss(0, 1))) / 2)) for _ in range(rounds + 1)
        ]
        turns = [
            self._turn(
                "critic" if place % 2 else "scorer", place, False if place % 2 else path[place // 2]
            )
            for place in range(2 * rounds + 1)
        ]
        about = {
            "human": human,
            "systems": [item.system],
            "lengths": [len(item.candidate)],
            "annotations": given,
        }
        return self._result(key, item, about, turns, {"score": path[-1], "score_by_round": path})

    def _compared(self, key: Key, item: Any) -> dict[str, Any]:
        draw = self._draw
        rounds = draw.choice((1, 2, 2, 3)) if key.protocol == "samre" else 1
        path = [[float(draw.randint(40, 90)), float(draw.randint(40, 90))] for _ in range(rounds)]
        roles = ("advocate_1", "advocate_2", "judge") if key.protocol == "samre" else ("scorer",)
        turns = [
            self._turn(
                role.rstrip("_12"),
                3 * place + at,
                path[place] if at == len(roles) - 1 else None,
                role,
            )
            for place in range(rounds)
            for at, role in enumerate(roles)
        ]
        one, two = path[-1]
        winner = "tie" if one == two else "1" if one > two else "2"
        about = {
            "human": item.human,
            "systems": [item.model_1, item.model_2],
            "lengths": [len(item.answer_1), len(item.answer_2)],
        }
        verdict = {"scores": path[-1], "winner": winner, "score_by_round": path}
        return self._result(key, item, about, turns, verdict)

    def _result(self, key: Key, item: Any, about: Any, turns: Any, verdict: Any) -> dict[str, Any]:
        failed = self._draw.random() < self._failed
        ended = (
            {"status": "failed", "error": "scorer, round 1: No score in the reply."}
            if failed
            else verdict
        )
        rounds = len(verdict["score_by_round"]) - bool(key.aspect)
        fields: dict[str, Any] = {
            **{
                "item": key.item,
                "group": item.group,
                "aspect": key.aspect,
                "protocol": key.protocol,
            },
            **{
                "status": "ok",
                "score": None,
                "scores": None,
                "winner": None,
                "human": None,
                "rounds": rounds,
            },
            **{"stop_reason": _REASONS[rounds], "score_by_round": [], "repeat": 0},
            **_usage(len(turns)),
            **{
                "error": None,
                "position_consistent": None,
                "systems": [],
                "category": None,
                "lengths": [],
            },
            **{
                "annotations": [],
                "annotators": [],
                "explained_by": turns[-1]["id"],
                "details": {},
                "warnings": [],
            },
        }
        return {**fields, **about, **ended, "transcript": [] if failed else turns}

    def _turn(self, role: str, place: int, value: Any, agent: str | None = None) -> dict[str, Any]:
        return {
            "id": f"{agent or role}:{place}",
            "round": (place + 1) // 2,
            "agent": agent or role,
            "role": role,
            "content": self._said[self._draw.randrange(len(self._said))],
            "value": value,
            "model": "openai:gpt-4o-mini",
            **_usage(1),
        }


def _usage(calls: int) -> dict[str, Any]:
    return Usage(
        calls, 900 * calls, 512 * calls, 120 * calls, cost_usd=0.0002 * calls, seconds=0.7 * calls
    ).flat()


def _sentences(draw: random.Random) -> list[str]:
    """Draw texts of some 250 characters, of words of which a few come up often, as in language."""
    words = ["".join(draw.choices("etaoinshrdlucmfw", k=draw.randint(2, 9))) for _ in range(2_000)]
    often = [1 / (rank + 3) for rank in range(len(words))]
    return [" ".join(draw.choices(words, often, k=draw.randint(25, 55))) for _ in range(5_000)]
