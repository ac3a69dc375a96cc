"""The pytest fixture ``judge``: it makes each call once and prints verdicts of failed tests.

pytest loads this file in every project with jurygraph installed, so it imports nothing of jurygraph
before the fixture is used.
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
# Not part of the session, because the process that prints for xdist's workers has none.
_CALLS = pytest.StashKey[list[int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each of which can also be set in the ini file."""
    group = parser.getgroup("jurygraph", "judges of jurygraph")
    for name, (metavar, text) in _OPTIONS.items():
        group.addoption(f"--jurygraph-{name}", metavar=metavar, help=text)
        parser.addini(f"jurygraph_{name.replace('-', '_')}", text)


@pytest.fixture(scope="session")
def judge(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JudgeSession]:
    """Make judges: ``judge("debate", aspect="coherence")(inputs=..., outputs=...)["score"]``.

    All their calls go through one journal, so a second session does not repeat them. To include the
    calls of an agent that contains a judge, use ``with judge.journaled():``.
    """
    from .judge_session import JudgeSession

    cache = getattr(pytestconfig, "cache", None)
    folder = Path(cache.mkdir("jurygraph")) if cache else tmp_path_factory.mktemp("jurygraph")
    in_ini: str = pytestconfig.getini("jurygraph_journal")
    # A relative path in the ini file is relative to the file's folder.
    beside_ini = in_ini if not in_ini or "://" in in_ini else pytestconfig.rootpath / in_ini
    journal = pytestconfig.getoption("jurygraph_journal") or beside_ini
    limit = _option(pytestconfig, "max_calls")
    if limit and not limit.isdecimal():
        raise pytest.UsageError(f"--jurygraph-max-calls takes a number, got {limit!r}")
    workers = getattr(pytestconfig, "workerinput", {}).get("workercount", 1)
    # Each worker has its part of the budget, at least one call, because a budget of 0 is not
    # allowed.
    model = _option(pytestconfig, "model")
    most = max(1, int(limit) // workers) if limit else None
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
    """Add the judgements and the paths of the debates to the report of a failed test.

    If the budget is spent, the report is one line, because the test itself is not at fault.
    """
    session = item.config.stash.get(_SESSION, None)
    if session and session.spent and call.excinfo and str(call.excinfo.value) == session.spent:
        why = (
            f"{session.spent}; --jurygraph-max-calls raises the limit, and finished calls are kept"
        )
        failed = pytest.fail.Exception(why, pytrace=False).with_traceback(call.excinfo.tb)
        call.excinfo = pytest.ExceptionInfo.from_exception(failed)
    report = yield
    if session is not None and report.failed and (debates := session.report(item.nodeid)):
        report.sections.append(("judged by jurygraph", debates))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Count this process's calls; an xdist worker sends them to the process that prints."""
    if (judged := session.config.stash.get(_SESSION, None)) is not None:
        calls = [judged.counts.made, judged.counts.served]
        session.config.stash[_CALLS] = calls
        getattr(session.config, "workeroutput", {})["jurygraph_calls"] = calls


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the calls of a finished worker."""
    if more := getattr(node, "workeroutput", {}).get("jurygraph_calls"):
        before = node.config.stash.get(_CALLS, [0, 0])
        node.config.stash[_CALLS] = [sum(counts) for counts in zip(before, more, strict=True)]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the number of calls of the session."""
    if calls := config.stash.get(_CALLS, None):
        made, served = calls
        terminalreporter.write_line(
            f"jurygraph: {made:,} model calls, {served:,} answered by the journal"
        )
