"""Make a run on disk by hand, with chosen texts that a test can look for on a page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jurygraph.eval import Result, load_dataset
from jurygraph.state.transcript import Turn

from . import run_folders
from .sample_data import write_lines
from .sample_study import OFFLINE

MODEL = "openai:gpt-4o-mini"
COHERENCE = {"name": "coherence", "criteria": "how it hangs together", "low": 1, "high": 5}
SIGNATURE = "protocol:{}|data:wit@abc|version:0.1.0"


def turn(round: int, agent: str, content: str, value: Any = None, **more: Any) -> Turn:
    spent = {"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.001, "seconds": 0.5}
    return run_folders.turn(
        agent, value, round, content=content, **{"model": MODEL, **spent, **more}
    )


def debate(
    item: str, protocol: str = "debate", words: str = "It reads well.", **changes: Any
) -> Result:
    """A debate in which the critic's objection takes the score from 4 to 3."""
    fields: dict[str, Any] = {
        **{
            "aspect": "coherence",
            "score": 3.0,
            "human": 3.0,
            "rounds": 2,
            "stop_reason": "no_issue",
        },
        **{
            "score_by_round": (4.0, 3.0),
            "calls": 4,
            "input_tokens": 400,
            "output_tokens": 80,
            "cost_usd": 0.004,
        },
        "transcript": (
            turn(0, "scorer", words, 4.0),
            turn(1, "critic", "The end contradicts the beginning.", False),
            turn(1, "scorer", "That is so.", 3.0),
            turn(2, "critic", "NO ISSUE", True),
        ),
    }
    return run_folders.scored(item, protocol, **{**fields, **changes})


def failed(
    item: str, error: str = "no score in the reply: 'I would rather not'", **changes: Any
) -> Result:
    nothing = {"score": None, "rounds": None, "stop_reason": None, "score_by_round": ()}
    return debate(
        item, **{**nothing, "status": "failed", "error": error, "transcript": (), **changes}
    )


def write_run(
    folder: Path, results: Iterable[Result], items: Iterable[dict[str, Any]] = (), **changes: Any
) -> Path:
    """Make a run's folder: manifest, results, and the data, if there are items."""
    data: dict[str, Any] = {"name": "wit", "digest": "abc", "items": 1}
    if rows := list(items):
        found = load_dataset(write_lines(folder.parent / f"{folder.name}-data.jsonl", rows))
        data |= {
            "name": found.name,
            "digest": found.digest,
            "location": found.location,
            "kind": found.kind,
        }
    held = list(results)
    protocols = dict.fromkeys(result.protocol for result in held)
    manifest = {
        **{
            "run": folder.name,
            "note": OFFLINE,
            "limit": None,
            "repeats": 1,
            "aspects": [COHERENCE],
        },
        "signatures": {name: SIGNATURE.format(name) for name in protocols},
        "models": {name: {"*": MODEL} for name in protocols},
        **changes,
    }
    return run_folders.run_folder(folder, held, data=data | manifest.pop("data", {}), **manifest)
