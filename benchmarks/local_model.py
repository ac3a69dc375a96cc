"""Count the verdicts of a tiny model: each protocol and two other libraries on the same items.

The model is ``local`` (SmolLM2-135M-Instruct). Its verdicts are worth next to nothing; only their
number counts, the repairs, and the reasons of failures. Run from the root of a clone, with ``pip
install "jurygraph[local]" openevals`` and the weights. ``deepeval`` needs its own environment,
whose Python is given with ``--deepeval``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jurygraph.eval import evaluate
from jurygraph.eval.datasets.dataset import load_dataset
from jurygraph.graphs.engine.registry import find_protocol, protocol_names
from jurygraph.nodes.models import local_model
from jurygraph.nodes.models.openai_fast import FastChatOpenAI
from jurygraph.state.aspects import find_aspect
from pydantic import SecretStr

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OF_KIND = {
    "score": ("topical-chat", "source", "candidate"),
    "compare": ("llmbar", "question", "answer_1", "answer_2"),
}
"""The published data of each kind, and their texts."""
SMALL: dict[str, Any] = {
    **{name: {"n": 1} for name in ("debate", "multiagent")},
    "chateval": {"turns": 1, "position_calibration": False},
    "ensemble": {"referees": 2, "position_calibration": False},
    "faireval": {"k": 1},
    "more": {"advocates": 1},
    "samre": {"max_rounds": 1, "jurors": 1},
    "calibrated": {"of": "single", "inner": {"position_calibration": False}},
    "repeated": {"of": "single", "k": 2, "inner": {"position_calibration": False}},
    "cascade": {"expensive_settings": {"n": 1}},
    "single": {"position_calibration": False},
}
"""Few agents and rounds: the model takes seconds for each call."""


@dataclass
class Row:
    """What came of one judge on the items of one kind."""

    judge: str
    kind: str
    judged: int = 0
    repaired: int = 0
    failed: int = 0
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)


def items(kind: str, size: int) -> list[dict[str, Any]]:
    """Return the shortest items of published data."""
    name, *texts = OF_KIND[kind]
    found = [
        {key: getattr(item, key) for key in ("id", *texts)} for item in load_dataset(name, DATA)
    ]
    return sorted(found, key=lambda item: sum(map(len, item.values())))[:size]


def of_protocol(name: Any, kind: str, given: argparse.Namespace, out: Path) -> Row:
    """Judge with a protocol; runs of one kind share a journal, so equal calls are made once."""
    started = time.perf_counter()
    settings: Any = {"structured": given.structured, **SMALL.get(name, {})}
    done = evaluate(
        [name],
        items(kind, given.items),
        aspects=[given.aspect] if kind == "score" else [],
        models={"*": f"local?max_tokens={given.max_tokens}"},
        settings=settings,
        concurrency=1,
        out=out / f"{name}-{kind}",
        journal=str(out / f"{kind}.sqlite"),
    )
    row = Row(name, kind, seconds=time.perf_counter() - started)
    for result in done.results:
        row.judged += result.status == "ok"
        row.failed += result.status == "failed"
        row.repaired += result.status == "ok" and any(
            "asked for again" in told for told in result.warnings
        )
        row.reasons += [result.error] if result.error else []
    return row


def of_openevals(kind: str, given: argparse.Namespace, server: local_model.LocalServer) -> Row:
    """Judge with openevals: its own schema, 1 to 5 for one text, or one of two answers."""
    from openevals.llm import create_llm_as_judge

    chat = FastChatOpenAI(
        model="local",
        base_url=server.url,
        api_key=SecretStr(server.key),
        temperature=0,
        max_tokens=given.max_tokens,
    )
    rubric = (
        find_aspect(given.aspect).criteria if kind == "score" else "Which answer is better, 1 or 2?"
    )
    judge = create_llm_as_judge(
        prompt=f"{rubric}\n\n<input>\n{{inputs}}\n</input>\n\n<output>\n{{outputs}}\n</output>",
        judge=chat,
        choices=[1.0, 2.0, 3.0, 4.0, 5.0] if kind == "score" else [1.0, 2.0],
    )

    def verdict(asked: str, said: str) -> object:
        result = judge(inputs=asked, outputs=said)
        return result["score"] if isinstance(result, dict) else None

    return _of_library("openevals", kind, given, verdict)


def of_deepeval(given: argparse.Namespace, server: local_model.LocalServer) -> Row:
    """Judge with deepeval's GEval, in the environment that has it."""
    about = {
        "url": server.url,
        "key": server.key,
        "max_tokens": given.max_tokens,
        "criteria": find_aspect(given.aspect).criteria,
        "texts": given.texts["score"],
    }
    script = Path(__file__).with_name("local_model_deepeval.py")
    started = time.perf_counter()
    done = subprocess.run(
        [given.deepeval, str(script)],
        check=True,
        input=json.dumps(about),
        capture_output=True,
        text=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    seconds = time.perf_counter() - started
    return Row(
        "deepeval GEval", "score", said["judged"], 0, len(said["reasons"]), seconds, said["reasons"]
    )


def _of_library(name: str, kind: str, given: Any, verdict: Callable[[str, str], object]) -> Row:
    row = Row(name, kind)
    started = time.perf_counter()
    for item in given.texts[kind]:
        try:
            found = verdict(*item)
        except Exception as error:  # whatever another library raises is its reason
            row.failed += 1
            row.reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
        else:
            row.judged += found is not None
            row.failed += found is None
    row.seconds = time.perf_counter() - started
    return row


def texts(kind: str, size: int) -> list[tuple[str, str]]:
    """Return the input for the other libraries: question and answer."""
    if kind == "score":
        return [(item["source"], item["candidate"]) for item in items(kind, size)]
    return [
        (item["question"], f"Answer 1: {item['answer_1']}\n\nAnswer 2: {item['answer_2']}")
        for item in items(kind, size)
    ]


def show(row: Row) -> None:
    """Print a row of the table as soon as it is there."""
    took = f"{row.seconds:.0f} s"
    print(
        f"| {row.judge} | {row.kind} | {row.judged} | {row.repaired} | {row.failed} | {took} |",
        flush=True,
    )
    for reason in row.reasons:
        print(f"    {reason[:200]}", file=sys.stderr, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=5, help="of each kind")
    parser.add_argument("--aspect", default="coherence")
    parser.add_argument("--max-tokens", type=int, default=220)
    parser.add_argument("--structured", choices=["auto", "off"], default="auto")
    parser.add_argument("--only", help="names of judges, with commas between")
    parser.add_argument("--deepeval", metavar="PYTHON", help="the Python that has deepeval")
    given = parser.parse_args()
    print(
        "| judge | kind | judged | of these repaired | failed | time |\n|---|---|---|---|---|---|"
    )
    given.texts = {kind: texts(kind, given.items) for kind in ("score", "compare")}
    server = local_model.server(local_model.LocalParameters())
    only = given.only.split(",") if given.only else None
    for kind in ("score", "compare"):
        if only is None or "openevals" in only:
            show(of_openevals(kind, given, server))
    if given.deepeval:
        show(of_deepeval(given, server))
    with tempfile.TemporaryDirectory() as folder:
        for name in protocol_names():
            for kind in ("score", "compare"):
                wanted = name != "review" and (only is None or name in only)
                if wanted and kind in find_protocol(name).protocol.kinds:
                    show(of_protocol(name, kind, given, Path(folder)))


if __name__ == "__main__":
    main()
