"""Test the fixture ``judge`` in a pytest run: failures, second sessions, workers, the budget."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from .loopback import Provider
from .processes import ran
from .source_tree import ROOT

# A source tree installed before the plugin existed has to name it; otherwise pytest finds it.
FOUND = any(
    one.value == "jurygraph.eval.judges.pytest_plugin" for one in entry_points(group="pytest11")
)
NAMED = () if FOUND else ("-p", "jurygraph.eval.judges.pytest_plugin")
QUIET = ("-p", "no:randomly", "-p", "no:asyncio")
MODEL = "--jurygraph-model=openai:gpt-4o-mini"
JUDGED = """
import pytest

def test_good(judge):
    assert judge("single", aspect="coherence")(inputs="It rained.", outputs="good text")["score"] >= 4

def test_bad(judge):
    verdict = judge("single", aspect="coherence")(inputs="It rained.", outputs="bad text")
    assert verdict["score"] >= 4

async def ask(judge):
    return await judge("single", aspect="fluency").acall(inputs="It rained.", outputs="good text")

def test_async(judge):
    import asyncio
    assert asyncio.run(ask(judge))["score"] == 4.5
"""
AS_AN_AGENT = """
import asyncio
TASK = {"kind": "score", "source": "It snowed.", "candidate": "good text", "aspect": "coherence"}

def test_graph(judge):
    graph = judge("single", aspect="coherence").graph
    with judge.journaled():
        assert graph.invoke({"task": TASK})["verdict"]["score"] == 4.5
        assert asyncio.run(graph.ainvoke({"task": TASK}))["verdict"]["score"] == 4.5

def test_mumbled(judge):
    assert judge("single", aspect="coherence")(inputs="It hailed.", outputs="mumbled text")["score"] == 2
"""
BAD = "::error::It does \x1b[31mnot hold together.\nScore: 2"


def judging(provider: Provider, mumbled: str = BAD) -> None:
    replies = {"good text": "It holds together.\nScore: 4.5", "mumbled text": mumbled}
    provider.play(
        by=lambda request: next(
            (replies[text] for text in replies if text in str(request.body)), BAD
        )
    )


def run(folder: Path, *options: str, code: str = JUDGED) -> subprocess.CompletedProcess[str]:
    (folder / "test_judged.py").write_text(code)
    return ran(sys.executable, "-m", "pytest", *NAMED, *QUIET, *options, cwd=folder)


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {
        "jurygraph": "jurygraph.eval.judges.pytest_plugin"
    }


@pytest.mark.slow
def test_a_failed_test_prints_its_debate_and_a_rerun_is_free(
    tmp_path: Path, provider: Provider
) -> None:
    judging(provider, mumbled="no words")
    first = run(tmp_path, MODEL, code=JUDGED + AS_AN_AGENT)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "2 failed, 3 passed" in first.stdout
    assert "ReplyError" in first.stdout
    # The agent with a judge inside asks once, and an unreadable reply is requested once more.
    assert "jurygraph: 6 model calls, 1 answered by the journal" in first.stdout
    section = first.stdout.partition("judged by jurygraph")[2]
    assert "coherence: 2.0\n  | ::error::It does \\x1b[31mnot hold together." in section
    assert "\n::error::" not in first.stdout
    debate = Path(section.partition("the debate: ")[2].splitlines()[0])
    assert debate.is_relative_to(tmp_path / ".pytest_cache")
    said = debate.read_text()
    assert "inputs:\nIt rained." in said
    assert "outputs:\nbad text" in said
    assert "round 1, scorer" in said
    assert len(list(debate.parent.iterdir())) == 1  # of tests that pass nothing is written
    asked = len(provider.requests)
    judging(provider)
    again = run(tmp_path, MODEL, code=JUDGED + AS_AN_AGENT)
    assert "1 failed, 4 passed" in again.stdout
    assert "jurygraph: 1 model calls, 5 answered by the journal" in again.stdout, (
        "but what could not be read"
    )
    assert len(provider.requests) == asked + 1 == 7


@pytest.mark.slow
def test_workers_share_the_journal(tmp_path: Path, provider: Provider) -> None:
    judging(provider)
    code = """
import pytest

@pytest.mark.parametrize("n", range(8))
def test_good(judge, n):
    assert judge("single", aspect="coherence")(inputs="It rained.", outputs="good text")["score"] >= 4
"""
    done = run(
        tmp_path, MODEL, "-n", "2", "--dist", "each", "--jurygraph-journal=calls.sqlite", code=code
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(provider.requests) == 1
    assert "jurygraph: 1 model calls, 15 answered by the journal" in done.stdout
    assert (tmp_path / "calls.sqlite").exists()


@pytest.mark.slow
def test_options_may_stand_in_the_ini_file_and_the_budget_holds(
    tmp_path: Path, provider: Provider
) -> None:
    judging(provider)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\njurygraph_model = openai:gpt-4o-mini\njurygraph_max_calls = 2\njurygraph_journal = kept.sqlite\n"
    )
    done = run(tmp_path)
    failures = done.stdout.partition("_ test_async _")[2]
    assert (
        "the budget is reached: at most 2 calls; --jurygraph-max-calls raises the limit" in failures
    )
    assert "Traceback" not in failures
    assert not re.search(r"\.py:\d+:", failures), "no line of code is at fault"
    assert (len(provider.requests), (tmp_path / "kept.sqlite").exists()) == (2, True)
    wrong = run(tmp_path, "--jurygraph-max-calls=few")
    assert "--jurygraph-max-calls takes a number, got 'few'" in wrong.stdout
    # Paid calls are stored: with a higher limit the rest is judged.
    assert (
        "jurygraph: 1 model calls, 2 answered by the journal"
        in run(tmp_path, "--jurygraph-max-calls=9").stdout
    )


@pytest.mark.slow
def test_feedback_is_logged_where_langsmith_tests_and_no_model_or_cache_is_needed(
    tmp_path: Path,
) -> None:
    code = """
import langsmith.testing as t

def test_good(judge, monkeypatch):
    logged = []
    monkeypatch.setattr(t, "log_feedback", lambda **fields: logged.append(fields))
    better = judge("single")(inputs="Is it wet?", outputs=["Yes, it rained all day.", "x"])
    assert better["score"] in (0, 0.5, 1)
    assert better.transcript
    assert logged == [{"key": "preference", "score": better["score"], "comment": better["comment"]}]
"""
    done = run(tmp_path, "-p", "no:cacheprovider", code=code)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_it_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    code = """
import sys

def test_nothing():
    mine = sorted(name for name in sys.modules if name.partition(".")[0] == "jurygraph")
    plugin = "jurygraph.eval.judges.pytest_plugin"
    assert mine == ["jurygraph", "jurygraph.eval", "jurygraph.eval.judges", plugin]
    assert not {"langgraph", "langchain_core", "numpy"} & set(sys.modules)
"""
    done = run(tmp_path, "-p", "no:langsmith_plugin", "-p", "no:langsmith", code=code)
    assert done.returncode == 0, done.stdout
