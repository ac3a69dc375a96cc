"""Names and imports stay easy to follow: one thing a name, no circles, and what users may import is asserted."""

import importlib
from types import ModuleType

import pytest

from .source_tree import imported


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    """The script that counts."""
    return imported("benchmarks/legibility.py")


@pytest.mark.slow
def test_no_circles_and_a_name_stands_for_one_module_and_hardly_more_classes(counts: ModuleType) -> None:
    modules = counts.modules()
    assert counts.import_circles(modules) == []
    assert counts.shared_module_names(modules) == {}
    assert counts.shared_class_names(modules) == {}


def test_what_all_nodes_of_a_debate_need_is_found_out_once(counts: ModuleType) -> None:
    path = counts.debate_path()
    assert {"graphs/debate.py", "nodes/agent_runtime.py"} <= set(path.files)
    assert (path.times("scorer"), path.times("critic")) == (2, 2)
    for function in ("resolve_settings", "continued", "begun_with", "_check_roles", "check_caller", "load"):
        assert path.times(function) <= 1, function


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
