"""Test that names and imports stay simple: unique names, no cycles, a fixed public surface."""

import importlib
from inspect import ismodule
from pathlib import Path
from types import ModuleType

import pytest

from .source_tree import imported


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    return imported("benchmarks/legibility.py")


@pytest.mark.slow
def test_no_circles_and_a_name_stands_for_one_module_and_hardly_more_classes(
    counts: ModuleType,
) -> None:
    modules = counts.modules()
    assert counts.import_circles(modules) == []
    assert counts.shared_module_names(modules) == {}
    assert counts.shared_class_names(modules) == {}


def test_what_it_looks_for_is_found(counts: ModuleType, tmp_path: Path) -> None:
    files = {
        "state/__init__.py": "",
        "state/first.py": "from .second import two\nclass Row: ...  # noqa: E701\n",
        "state/second.py": "def two():\n    from ..nodes import third  # where it is needed\n",
        "nodes/__init__.py": "from ..state.first import one\n",
        "nodes/third.py": "from . import fourth\nclass Row: ...\n",
        "nodes/fourth.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .third import Row\n",
        "eval/first.py": "from ..state import second\nclass Row: ...\n",
        "eval/cli/first.py": "x = 1\n" * 451,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = counts.modules(tmp_path)
    assert counts.shared_module_names(found) == {"first": ["state/first.py", "eval/first.py"]}
    assert list(counts.shared_class_names(found)) == ["Row"]
    assert counts.long_files(found) == {"eval/cli/first.py": 451}
    assert counts.import_circles(found) == []
    assert found["state.second"].comments == 1
    assert found["state.first"].comments == 0
    (tmp_path / "nodes" / "third.py").write_text("from ..state.first import Row\n")
    assert counts.import_circles(counts.modules(tmp_path)) == [
        ["nodes.third", "state.first", "state.second"]
    ]


def test_what_all_nodes_of_a_debate_need_is_found_out_once(counts: ModuleType) -> None:
    path = counts.debate_path()
    assert {"graphs/debate.py", "nodes/runtime/agent_runtime.py"} <= set(path.files)
    assert (path.times("scorer"), path.times("critic")) == (2, 2)
    for function in (
        "resolve_settings",
        "continued",
        "begun_with",
        "_check_roles",
        "check_caller",
        "load",
    ):
        assert path.times(function) <= 1, function


SURFACE = {
    "jurygraph": "AnswerGate Aspect CompareTask JurygraphError LimitError ReplyError ScoreTask UsageError Verdict "
    "create_async_judge create_judge",
    "jurygraph.eval": (
        "Audit Bias Dataset Evaluation Evaluations FittedCascade Panel Ray RedTeam Reproduction Result "
        "Study StudyPlan Sweep Versus WhatIf aaudit abias aevaluate agreement aredteam areproduce asweep "
        "audit aversus awhatif bias check evaluate export fit_cascade fit_stops load_dataset measure merge "
        "panel plan_study redteam reproduce sweep versus whatif"
    ),
    "jurygraph.nodes.replies": (
        "LONGEST_READ_WHOLE RULES ReplyError Rule Shown contains_no_issue declares_no_issue read_pair read_score "
        "read_vote"
    ),
    "jurygraph.state": (
        "ASPECTS AnswerRejectedError Aspect CompareTask DataError DebateSettings InputError JudgeInput JudgeOutput "
        "JudgeState JudgeTimeoutError JurygraphError LimitError ModelCallError ModelSpec MultiagentSettings ReplyError "
        "Score ScoreTask Settings StopReason StoppedError Task TaskKind Turn Usage UsageError Verdict Winner "
        "find_aspect parse_task"
    ),
}


@pytest.mark.parametrize("name", SURFACE)
def test_exported_names(name: str) -> None:
    module = importlib.import_module(name)
    imported_there = [
        name for name in vars(module) if name[0] != "_" and not ismodule(getattr(module, name))
    ]
    assert sorted(getattr(module, "__all__", imported_there)) == sorted(SURFACE[name].split())
    with pytest.raises(AttributeError, match="has no attribute 'agreee'"):
        _ = module.agreee
