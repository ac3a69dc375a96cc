"""Test that a compressed body that expands too far is cut off for model objects."""

import gzip
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models import httpx_bodies
from jurygraph.nodes.models.httpx_bodies import bound_body

from .loopback_debate import SCORE_TASK
from .loopback_dialects import DIALECTS

BOMB = gzip.compress(b'{"choices": "' + b"4" * (20 << 20))


class _Bomb(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        for name, value in {
            "type": "application/json",
            "encoding": "gzip",
            "length": str(len(BOMB)),
        }.items():
            self.send_header(f"content-{name}", value)
        self.end_headers()
        self.wfile.write(BOMB)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def bombs() -> Iterator[str]:
    """The address of a server that answers all requests with 20 MB in 20 KB."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bomb) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _one_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx_bodies, "LARGEST_BODY", 1 << 20)


def causes(error: BaseException | None) -> str:
    words = []
    while error is not None:
        words.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(words)


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "alone": lambda chat: chat,
    "bound": lambda chat: chat.bind(stop=["x"]),
    "retried": lambda chat: chat.with_retry(stop_after_attempt=1),
    "with a fallback": lambda chat: chat.with_fallbacks([chat]),
}


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("kind", ["openai", "anthropic", "groq", "mistral", "ollama"])
def test_a_body_that_expands_too_far_is_cut_off(bombs: str, kind: str) -> None:
    graph = single.build(models={"*": DIALECTS[kind].chat(bombs)}, structured="off").compile()
    with pytest.raises(Exception) as failed:
        graph.invoke({"task": SCORE_TASK})
    assert "larger than 1048576 bytes" in causes(failed.value)


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("wrapped", WRAPPED)
async def test_so_it_is_behind_wrappers_and_in_async_code(bombs: str, wrapped: str) -> None:
    chat = WRAPPED[wrapped](DIALECTS["openai"].chat(bombs))
    graph = single.build(models={"*": chat}, structured="off").compile()
    with pytest.raises(Exception) as failed:
        await graph.ainvoke({"task": SCORE_TASK})
    assert "larger than 1048576 bytes" in causes(failed.value)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", lambda content: content),
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda content: zlib.compress(content, wbits=-15)),
    ],
)
def test_a_body_within_the_limit_comes_whole(
    encoding: str, packed: Callable[[bytes], bytes]
) -> None:
    content = bytes(range(256)) * 3000 + b"x" * 200_000
    headers = {"content-encoding": encoding} if encoding else {}

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(packed(content)))

    transport = httpx.MockTransport(answer)
    with httpx.Client(transport=transport, event_hooks={"response": [bound_body]}) as client:
        assert client.get("http://host").content == content
