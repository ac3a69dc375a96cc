"""What the servers on the loopback interface share: an address of their own, a thread, and quiet handlers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NO_HEADERS: Mapping[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    """Keeps connections alive and prints nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self) -> bytes:
        """What was sent."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def fields(self) -> Any:
        """The same, read as JSON."""
        return json.loads(self.body() or b"{}")

    def answer(self, content: bytes, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send a whole answer."""
        self.head(len(content), status, headers)
        self.wfile.write(content)

    def head(self, length: int, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Send status and headers."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def serving_http(handler: type[Handler], **attributes: Any) -> Iterator[str]:
    """Serve as long as the block lasts; handlers have the attributes. Yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Named", (handler,), attributes))
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
