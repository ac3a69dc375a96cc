"""For all tests: no network but the loopback interface, no keys or addresses from outside, a provider to talk to."""

import ctypes
import gc
import os
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
import pytest_socket
from hypothesis import HealthCheck, settings
from jurygraph.eval.cli import runtime
from jurygraph.nodes.models import send
from jurygraph.nodes.models.retry import RetryPolicy

from . import file_processes
from .journal_locations import KINDS, schema, somewhere
from .loopback import Provider
from .processes import HANG_GUARD, WATCHERS, Command, Forks, Simulated, forking, simulated_provider

LOOPBACK = ["127.0.0.1", "::1", "localhost"]
FOREIGN = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "LANGSMITH_", "LANGCHAIN_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

# Hypothesis measures how long an example takes; on a busy machine that says nothing about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
    # As malloc.h numbers them. Blocks of 128 KB or more go back to the system when they are freed, also after greater
    # ones were; and threads, of which many tests start some, share two pools instead of keeping one each.
    M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
    libc.mallopt(M_MMAP_THRESHOLD, 128 * 1024)
    libc.mallopt(M_ARENA_MAX, 2)


def pytest_configure(config: pytest.Config) -> None:
    """Have a worker's tests run in a process for each file, where processes can be forked safely."""
    if hasattr(config, "workerinput") and sys.platform == "linux":
        config.pluginmanager.register(file_processes.FileProcesses(), file_processes.NAME)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of each later garbage collection: they stay, and they are many.

    With Python's own threshold, collections would take a tenth of the tests' time, and more where the heap has grown.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup() -> None:
    """Any connection that leaves the machine is an error."""
    pytest_socket.socket_allow_hosts(LOOPBACK, allow_unix_socket=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that hangs, with the line at which it does; its own waits have given up long before."""
    waits = item.config.pluginmanager.has_plugin(file_processes.NAME)
    if waits or threading.current_thread() is not threading.main_thread():
        return (yield)
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.setitimer(signal.ITIMER_REAL, 3 * HANG_GUARD)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hangs(number: int, frame: FrameType | None) -> None:
    pytest.fail(f"the test hangs: it has not ended within {3 * HANG_GUARD:.0f} seconds")


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Have signals interrupt this process and those it starts, also where a shell began it with SIGINT ignored.

    A shell does so for ``command &``, and a program inherits what is ignored: Python then sets no handler of its own.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True, scope="session")
def _one_process_for_many() -> Iterator[None]:
    """Have this process do once, or not at all, what takes a process of a command's own no notice.

    Each client reads all authorities that certificates are checked with: 20 ms and a megabyte. A command freezes the
    heap, for its process ends with it; this one goes on, and would never free a test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        patch.setattr(runtime, "freeze_heap", lambda: None)
        yield


@pytest.fixture(autouse=True)
def _no_watchers() -> Iterator[None]:
    """Signals that a test has asked for reach no later test."""
    yield
    while WATCHERS:
        WATCHERS.pop().set()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer has set for real providers is not there for a test, nor how wide the terminal is."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.upper() in (*PROXIES, "COLUMNS"):
            monkeypatch.delenv(name)


@pytest.fixture
def provider(_no_keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A provider on the loopback interface, with the environment pointing to it."""
    server = Provider()
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("GOOGLE_API_KEY", "test-key")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Programs in processes of their own, forks of one that has imported the package."""
    with forking(tmp_path_factory.mktemp("printed")) as ready:
        yield ready


@pytest.fixture
def simulated(_no_keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulated]:
    """The provider of ``benchmarks/``, which answers whatever any protocol asks."""
    with simulated_provider(monkeypatch) as served:
        yield served


@pytest.fixture
def postgres() -> Iterator[str]:
    """The address of an empty schema in Postgres; tests that need it skip without a server."""
    with schema() as url:
        yield url


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for a journal, of each kind."""
    with somewhere(request.param, tmp_path) as there:
        yield there


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command line in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return Command()


@pytest.fixture
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed calls are attempted again as ever, but without the waiting in between."""
    monkeypatch.setattr(send, "DEFAULT_RETRY_POLICY", RetryPolicy(first_wait=0.001, longest_wait=0.001))


@pytest.fixture
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails has failed for good."""
    monkeypatch.setattr(send, "DEFAULT_RETRY_POLICY", RetryPolicy(attempts=1))


@pytest.fixture
def shared_data() -> Path:
    """The folder with recorded data that is not part of this repository; tests that need it skip without it."""
    folder = Path(os.environ.get("JURYGRAPH_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no recorded data: set JURYGRAPH_DATA to its folder")
    return folder
