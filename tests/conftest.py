"""For all tests: no network but the loopback interface, no keys or addresses from outside, a provider to talk to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket
from jurygraph.nodes.models import retry

from .loopback import Provider

LOOPBACK = ["127.0.0.1", "::1", "localhost"]
FOREIGN = ("OPENAI_", "GOOGLE_", "GEMINI_", "LANGSMITH_", "LANGCHAIN_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup() -> None:
    """Any connection that leaves the machine is an error."""
    pytest_socket.socket_allow_hosts(LOOPBACK, allow_unix_socket=True)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer has set for real providers is not there for a test."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.upper() in PROXIES:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide as where it is piped, however wide the terminal of whoever runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def provider(_no_keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A provider on the loopback interface, with the environment pointing to it."""
    server = Provider()
    server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    monkeypatch.setenv("GOOGLE_API_KEY", "test-key")
    yield server
    server.stop()


@pytest.fixture
def fast_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed calls are attempted again as ever, but without the waiting in between."""
    monkeypatch.setattr(
        retry, "DEFAULT_RETRY_POLICY", retry.RetryPolicy(first_wait=0.001, longest_wait=0.001)
    )


@pytest.fixture
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails has failed for good."""
    monkeypatch.setattr(retry, "DEFAULT_RETRY_POLICY", retry.RetryPolicy(attempts=1))


@pytest.fixture
def shared_data() -> Path:
    """The folder with recorded data that is not part of this repository; tests that need it skip without it."""
    folder = Path(os.environ.get("JURYGRAPH_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no recorded data: set JURYGRAPH_DATA to its folder")
    return folder
