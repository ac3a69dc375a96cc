"""What users may import: asserted, so that nothing comes or goes unnoticed."""

from __future__ import annotations

import importlib

import pytest

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
