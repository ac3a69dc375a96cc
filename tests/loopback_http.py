"""Share parts of the servers on loopback: an address, a thread, and quiet handlers."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON: Mapping[str, str] = {"Content-Type": "application/json"}
NO_HEADERS: Mapping[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    """A handler with persistent connections and without output."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def fields(self) -> Any:
        return json.loads(self.body() or b"{}")

    def named_headers(self) -> dict[str, str]:
        """The headers that were sent, by their names in lower case."""
        return {name.lower(): value for name, value in self.headers.items()}

    def answer(
        self, content: Any, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Send bytes, or another value as JSON; in one write, so that no part waits for an ACK."""
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
            headers = {**JSON, **headers}
        length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(content))}
        head = "".join(f"{name}: {value}\r\n" for name, value in {**length, **headers}.items())
        phrase = self.responses.get(status, ("Of Its Own", ""))[0]
        self.wfile.write(f"HTTP/1.1 {status} {phrase}\r\n{head}\r\n".encode() + content)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """A running server that counts its connections and ends them; handlers get its attributes."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: type[Handler], **attributes: Any) -> None:
        super().__init__(("127.0.0.1", 0), type("Named", (handler,), attributes))
        self.opened = 0
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), name="loopback")
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.opened += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 10
        while self._open and time.monotonic() < deadline:
            time.sleep(0.001)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up."""


@contextlib.contextmanager
def serving_http(handler: type[Handler], **attributes: Any) -> Iterator[str]:
    """Serve as long as the block lasts; handlers have the attributes. Yields the address."""
    server = Server(handler, **attributes)
    try:
        yield server.url
    finally:
        server.stop()
