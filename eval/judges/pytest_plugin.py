"""Judge in pytest: the fixture ``judge``, whose calls are made once and whose verdicts a failed test prints.

pytest loads this file wherever jurygraph is installed, so it imports nothing of jurygraph before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .judge_session import JudgeSession

_OPTIONS = {
    "journal": (
        "FILE|URL",
        "Journal of calls, so that none is paid for twice: a file, or postgresql://... Default: in pytest's cache.",
    ),
    "model": ("NAME", "Model of judges that name none, such as openai:gpt-4o-mini."),
    "max-calls": ("N", "Maximum number of model calls in a session, shared among xdist's workers."),
}
_SESSION = pytest.StashKey["JudgeSession"]()
# Beside the session, since the process that prints for xdist's workers has no session.
_CALLS = pytest.StashKey[list[int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each of which may also stand in the ini file."""
    group = parser.getgroup("jurygraph", "judges of jurygraph")
    for name, (metavar, text) in _OPTIONS.items():
        group.addoption(f"--jurygraph-{name}", metavar=metavar, help=text)
        parser.addini(f"jurygraph_{name.replace('-', '_')}", text)


@pytest.fixture(scope="session")
def judge(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JudgeSession]:
    """Make judges: ``judge("debate", aspect="coherence")(inputs=..., outputs=...)["score"]``.

    All their calls go through one journal, so that a second session makes none anew; ``with judge.journaled():`` has
    the calls of an agent with a judge inside do so, too.
    """
    from .judge_session import JudgeSession

    cache = getattr(pytestconfig, "cache", None)
    folder = Path(cache.mkdir("jurygraph")) if cache else tmp_path_factory.mktemp("jurygraph")
    in_ini: str = pytestconfig.getini("jurygraph_journal")
    # A relative path in the ini file is below the file's folder.
    beside_ini = in_ini if not in_ini or "://" in in_ini else pytestconfig.rootpath / in_ini
    journal = pytestconfig.getoption("jurygraph_journal") or beside_ini
    limit = _option(pytestconfig, "max_calls")
    if limit and not limit.isdecimal():
        raise pytest.UsageError(f"--jurygraph-max-calls takes a number, got {limit!r}")
    workers = getattr(pytestconfig, "workerinput", {}).get("workercount", 1)
    # Each worker has its part of the budget, at least one call: a budget of 0 is none that can be set.
    model, most = _option(pytestconfig, "model"), max(1, int(limit) // workers) if limit else None
    session = JudgeSession(journal or folder / "journal.sqlite", folder / "debates", model, most)
    pytestconfig.stash[_SESSION] = session
    yield session
    session.close()


def _option(config: pytest.Config, name: str) -> str | None:
    return config.getoption(f"jurygraph_{name}") or config.getini(f"jurygraph_{name}") or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what was judged in it, and where the debates are.

    Where the budget is reached, no line of the test is at fault: its report is one line that says so.
    """
    session = item.config.stash.get(_SESSION, None)
    if session and session.spent and call.excinfo and str(call.excinfo.value) == session.spent:
        why = f"{session.spent}; --jurygraph-max-calls raises the limit, and finished calls are kept"
        failed = pytest.fail.Exception(why, pytrace=False).with_traceback(call.excinfo.tb)
        call.excinfo = pytest.ExceptionInfo.from_exception(failed)
    report = yield
    if session is not None and report.failed and (debates := session.report(item.nodeid)):
        report.sections.append(("judged by jurygraph", debates))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Count this process's calls; a worker of xdist sends them to the process that prints."""
    if (judged := session.config.stash.get(_SESSION, None)) is not None:
        calls = [judged.counts.made, judged.counts.served]
        session.config.stash[_CALLS] = calls
        getattr(session.config, "workeroutput", {})["jurygraph_calls"] = calls


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the calls of a worker that has ended."""
    if more := getattr(node, "workeroutput", {}).get("jurygraph_calls"):
        before = node.config.stash.get(_CALLS, [0, 0])
        node.config.stash[_CALLS] = [sum(counts) for counts in zip(before, more, strict=True)]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how many calls the session made."""
    if calls := config.stash.get(_CALLS, None):
        made, served = calls
        terminalreporter.write_line(f"jurygraph: {made:,} model calls, {served:,} answered by the journal")
