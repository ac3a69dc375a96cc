"""Which model answered: a dated version of what was asked for is the same, another one is told."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.nodes.models.responses import is_another

from .loopback import Provider, Raw

SAME = [
    ("gpt-4o-mini", "gpt-4o-mini"),
    ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
    ("gpt-4", "gpt-4-0613"),
    ("models/gemini-2.0-flash", "gemini-2.0-flash-001"),
    ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
    ("openai/gpt-4o:free", "openai/gpt-4o"),
    ("llama3.1", "llama3.1:latest"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b-instruct"),
]
OTHERS = [
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("gpt-4o", "gpt-3.5-turbo"),
    ("gpt-4", "gpt-4-turbo-2024-04-09"),
    ("claude-opus-4-1", "claude-sonnet-4-20250514"),
    ("gemini-2.5-pro", "gemini-2.5-flash"),
    ("llama3.1", "llama3.2:latest"),
]


@pytest.mark.parametrize(("asked", "served"), [*SAME, *OTHERS])
def test_versions_and_aliases_are_the_same_model_and_others_are_not(asked: str, served: str) -> None:
    assert is_another(asked, served) is ((asked, served) in OTHERS)


def completion(model: str) -> Raw:
    message = {"role": "assistant", "content": "Fine.\n\nScore: 3"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    about = {"id": "1", "object": "chat.completion", "created": 1, "model": model}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Raw(json.dumps({**about, "system_fingerprint": "fp_1", "choices": [choice], "usage": usage}))


@pytest.mark.parametrize("served", ["gpt-4o-mini-2024-07-18", "something-cheaper"])
def test_a_verdict_warns_of_another_model_and_the_journal_keeps_it(
    provider: Provider, tmp_path: Path, served: str
) -> None:
    provider.play(by=lambda _: completion(served))
    is_other = served == "something-cheaper"
    options: Any = {"aspects": ["consistency"], "models": {"*": "openai:gpt-4o-mini"}, "limit": 1}
    options |= {"settings": {"structured": "off"}, "out": tmp_path / "out"}
    for repeats in (1, 2):
        done = evaluate("single", "demo", repeats=repeats, **options)
        warnings = [warning for result in done.results for warning in result.warnings]
        assert bool([one for one in warnings if f"answered by another model, {served}" in one]) is is_other
    with closing(sqlite3.connect(tmp_path / "out" / "journal.sqlite")) as database:
        replies = [json.loads(reply) for (reply,) in database.execute("SELECT reply FROM jurygraph_calls")]
    assert [reply["system_fingerprint"] for reply in replies] == ["fp_1", "fp_1"]
    assert [reply.get("served") for reply in replies] == [served if is_other else None] * 2
