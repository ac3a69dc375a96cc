"""What users may import: asserted, so that nothing comes or goes unnoticed."""

from __future__ import annotations

import importlib
import inspect

import pytest
from jurygraph.graphs import debate
from jurygraph.nodes.replies import declares_no_issue, read_pair, read_score, read_vote
from jurygraph.state import DataError, JurygraphError, ModelCallError, ReplyError, UsageError

SURFACE = {
    "jurygraph": "Aspect CompareTask JurygraphError ReplyError ScoreTask UsageError Verdict "
    "create_async_judge create_judge",
    "jurygraph.eval": (
        "Dataset Evaluation Ray RedTeam Result Study Sweep Versus WhatIf aevaluate agreement aredteam asweep aversus "
        "awhatif check evaluate load_dataset measure merge redteam sweep versus whatif"
    ),
    "jurygraph.nodes.replies": (
        "LONGEST_READ_WHOLE ReplyError Shown contains_no_issue declares_no_issue read_pair read_score read_vote"
    ),
    "jurygraph.state": (
        "ASPECTS Aspect CompareTask DataError DebateSettings InputError JudgeInput JudgeOutput JudgeState "
        "JurygraphError ModelCallError ModelSpec MultiagentSettings ReplyError Score ScoreTask Settings StopReason "
        "StoppedError Task TaskKind Turn Usage UsageError Verdict Winner find_aspect parse_task"
    ),
}


@pytest.mark.parametrize("name", SURFACE)
def test_exported_names(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(module.__all__) == sorted(SURFACE[name].split())
    assert all(hasattr(module, exported) for exported in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'agreee'"):
        _ = module.agreee


def test_fixed_signatures_and_the_tree_of_errors() -> None:
    assert read_score("Score: 4") == 4.0
    assert read_pair("8 7") == (8.0, 7.0)
    assert read_vote("[[B]]") == "2"
    assert declares_no_issue("NO ISSUE") is True
    assert list(inspect.signature(read_score).parameters)[:3] == ["text", "low", "high"]
    assert list(inspect.signature(debate.build).parameters) == ["settings", "models", "fields"]
    assert issubclass(DataError, UsageError)
    assert all(issubclass(kind, JurygraphError) for kind in (UsageError, ReplyError, ModelCallError))
