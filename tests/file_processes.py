"""The tests of each file in a process of their own: what they import and leave behind is gone when they have ended.

A worker of pytest-xdist collects all tests once and forks, so a file's process begins at once with all that was
collected. Otherwise a worker would hold in the end what any of its files has imported, half as much again.
"""

import multiprocessing
import warnings
from multiprocessing.connection import Connection

import pytest

FORK = multiprocessing.get_context("fork")
NAME = "file_processes"


class FileProcesses:
    """The plugin of a worker that has each file's tests run in a fork, one file after another."""

    def __init__(self) -> None:
        self._running: tuple[multiprocessing.process.BaseProcess, Connection] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test in the process of its file, and report it here."""
        process, connection = self._running = self._running or _begun(item.session)
        of_this_file = nextitem if nextitem and nextitem.path == item.path else None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            connection.send((item.nodeid, of_this_file and of_this_file.nodeid))
            while (data := connection.recv()) is not None:
                report = item.config.hook.pytest_report_from_serializable(config=item.config, data=data)
                item.ihook.pytest_runtest_logreport(report=report)
        except (EOFError, ConnectionError):
            process.join()
            fault = f"the process that ran this test has ended with {process.exitcode}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", fault, "call")
            item.ihook.pytest_runtest_logreport(report=report)
            of_this_file = None
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if of_this_file is None:
            self.pytest_unconfigure()
        return True

    def pytest_unconfigure(self) -> None:
        """Wait for the end of the process, which has nothing more to run."""
        if self._running is not None:
            process, connection = self._running
            connection.close()
            process.join()
            self._running = None


def _begun(session: pytest.Session) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    here, there = FORK.Pipe()
    process = FORK.Process(target=_run_tests, args=(session, there, here))
    # Python warns of a fork beside other threads: here there is but xdist's, which reads what the worker is to do.
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        process.start()
    there.close()
    return process, here


def _run_tests(session: pytest.Session, connection: Connection, workers_end: Connection) -> None:
    """Run the tests that a worker names, until it names no more."""
    workers_end.close()
    hook, plugins = session.config.hook, session.config.pluginmanager
    # The worker alone tells xdist's controller of the tests.
    plugins.unregister(next(p for p in plugins.get_plugins() if type(p).__name__ == "WorkerInteractor"))
    plugins.unregister(name=NAME)
    plugins.register(_Reports(session.config, connection))
    items = {item.nodeid: item for item in session.items}
    try:
        while True:
            name, following = connection.recv()
            hook.pytest_runtest_protocol(item=items[name], nextitem=items.get(following))
            connection.send(None)
    except EOFError:
        pass


class _Reports:
    """The plugin of a file's process that hands all reports over to the worker."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        as_data = self._config.hook.pytest_report_to_serializable
        self._connection.send(as_data(config=self._config, report=report))
