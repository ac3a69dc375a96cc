"""Set up all tests: only the loopback network, no outside keys or addresses, a provider."""

import ctypes
import gc
import logging
import os
import signal
import ssl
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import pytest_socket
from hypothesis import HealthCheck, settings
from jurygraph.eval.cli import runtime
from jurygraph.eval.journal import database
from jurygraph.nodes.models import send
from jurygraph.nodes.models.retry import RetryPolicy
from sqlalchemy import create_engine

from .journal_locations import KINDS, schema, somewhere, with_shared_statements
from .loopback import Provider
from .processes import HANG_GUARD, WATCHERS, Command, Forks, Simulated, forking, simulated_provider

# The tests of another package, which test_plugins.py runs where that package is installed.
collect_ignore = ["plugin"]

LOOPBACK = ["127.0.0.1", "::1", "localhost"]
FOREIGN = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "LANGSMITH_", "LANGCHAIN_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# Pytest names the phase of a test. Ray and polars set the others when they are imported.
SET_BY_PACKAGES = ("PYTEST_CURRENT_TEST", "RAY_", "_RJEM_MALLOC_CONF")

# Hypothesis measures the duration of an example, which on a busy machine depends on other work.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
    # Numbers from malloc.h. Freed blocks of 128 KB or more return to the system, even after larger
    # ones, and threads, of which many tests start some, share two pools.
    M_MMAP_THRESHOLD = -3
    M_ARENA_MAX = -8
    libc.mallopt(M_MMAP_THRESHOLD, 128 * 1024)
    libc.mallopt(M_ARENA_MAX, 2)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-timeout fail a test that hangs; the test's own waits time out long before."""
    # Not in pyproject.toml: an environment without the plugin would refuse the option.
    if config.pluginmanager.has_plugin("timeout") and config.option.timeout is None:
        config.option.timeout = 3 * HANG_GUARD


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from later garbage collections, since they stay.

    With Python's own threshold, collections would take a tenth of the tests' time, and more with a
    large heap.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup() -> None:
    """Any connection that leaves the machine is an error."""
    pytest_socket.socket_allow_hosts(LOOPBACK, allow_unix_socket=True)


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Let signals interrupt this process and its children, even if SIGINT was ignored.

    A shell ignores SIGINT for ``command &``, and programs inherit that. Python then sets no handler
    of its own.
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
    """Adapt work that each command's process would do, since one process runs many commands.

    Each client reads all certificate authorities: 20 ms and a megabyte. Each journal compiles its
    statements: 20 ms. A command freezes the heap, because its process ends with it; this process
    continues and would never free a test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        patch.setattr(database, "create_engine", with_shared_statements(create_engine))
        patch.setattr(runtime, "freeze_heap", lambda: None)
        yield


def _process_state() -> dict[str, object]:
    """Return what all tests of a process share and what a test must leave as it was."""
    state: dict[str, object] = {
        f"variable {name}": value
        for name, value in os.environ.items()
        if not name.startswith(SET_BY_PACKAGES)
    }
    for name in ("", "jurygraph"):
        logger = logging.getLogger(name)
        own = [one for one in logger.handlers if "pytest" not in type(one).__module__]
        state[f"log {name}"] = logger.level, own
    for number in (signal.SIGINT, signal.SIGTERM):
        state[f"handler of {number.name}"] = signal.getsignal(number)
    state["garbage collection"] = gc.isenabled(), gc.get_threshold()
    return state | {"folder": Path.cwd(), "arguments": [*sys.argv]}


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    """A test leaves the process as it was, so that tests do not depend on their order.

    Commands and judges from files extend the path for modules. What they add is removed, unless an
    installed package has added it for itself.
    """
    before = _process_state()
    path = [*sys.path]
    yield
    sys.path[:] = [place for place in sys.path if place in path or place.startswith(sys.prefix)]
    after = _process_state()
    # Names only: a variable may hold a key.
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed == set(), "the test has changed what later tests share"


@pytest.fixture(autouse=True)
def _no_watchers() -> Iterator[None]:
    """Signals that a test has asked for reach no later test."""
    yield
    while WATCHERS:
        WATCHERS.pop().set()


@pytest.fixture(autouse=True)
def _no_keys(_isolated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's provider settings and terminal width from the tests."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.upper() in (*PROXIES, "COLUMNS"):
            monkeypatch.delenv(name)


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect what a test leaves open, such as a client of its own, which nobody can close.

    Everything else is then excluded from later collections, so that the next one is short.
    """
    yield
    with warnings.catch_warnings(action="ignore"):
        gc.collect()
    gc.freeze()


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
    """Yield a starter of programs in processes forked from one with the package imported."""
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
    monkeypatch.setattr(
        send, "DEFAULT_RETRY_POLICY", RetryPolicy(first_wait=0.001, longest_wait=0.001)
    )


@pytest.fixture
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails has failed for good."""
    monkeypatch.setattr(send, "DEFAULT_RETRY_POLICY", RetryPolicy(attempts=1))


@pytest.fixture
def shared_data() -> Path:
    """Return the folder of recorded data outside this repository; skip the test without it."""
    folder = Path(os.environ.get("JURYGRAPH_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no recorded data: set JURYGRAPH_DATA to its folder")
    return folder
