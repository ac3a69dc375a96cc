"""Serve GitHub and the Hugging Face Hub on loopback, for tests with real clients and sockets.

It serves small files of ours under the paths of the published ones: raw files and the tree of a
commit like GitHub, and a dataset's files with the Hub's headers. Any path can be set to fail.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest

from .loopback_http import Handler, serving_http

Fault = Literal["half", "not found", "busy", "too many", "once busy"]


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Hub:
    """The served files, the faults, and the requests.

    Attributes:
        files: content by path, such as ``OWNER/NAME/COMMIT/FILE``.
        stated: the blob id or SHA-256 that a path reports, if it is not the true one.
        faults: the fault of a path at every request.
        asked: method and path of every request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def tree(self, repository: str, commit: str) -> bytes:
        start = f"{repository}/{commit}/"
        entries = [
            {
                "path": path.removeprefix(start),
                "type": "blob",
                "sha": self.stated.get(path, blob(content)),
            }
            for path, content in self.files.items()
            if path.startswith(start)
        ]
        return json.dumps({"sha": commit, "tree": entries, "truncated": False}).encode()


CLOSE = {"Connection": "close"}


class _Handler(Handler):
    """A handler with one connection per request; a persistent one would outlive the server."""

    hub: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).lstrip("/")
        self.hub.asked.append(f"{self.command} {path}")
        self.close_connection = True
        parts = path.split("/")
        if parts[:1] == ["repos"]:
            self._send(self.hub.tree("/".join(parts[1:3]), parts[5]), {}, path)
        elif parts[:1] == ["datasets"]:
            owner, name, _, revision, *rest = parts[1:]
            held = "/".join((owner, name, revision, *rest))
            content = self.hub.files.get(held)
            digest = hashlib.sha256(content or b"").hexdigest()
            headers = {
                "X-Repo-Commit": revision,
                "ETag": f'"{digest}"',
                "X-Linked-Etag": f'"{digest}"',
            }
            self._send(content, {**headers, "X-Linked-Size": str(len(content or b""))}, held)
        else:
            self._send(self.hub.files.get(path), {}, path)

    def _send(self, content: bytes | None, headers: dict[str, str], path: str) -> None:
        fault = self.hub.faults.get(path)
        if fault == "once busy":
            del self.hub.faults[path]
        if content is None or fault == "not found":
            self.answer(b"", 404, {"X-Error-Code": "EntryNotFound", **CLOSE, **headers})
        elif fault in ("busy", "once busy"):
            self.answer(b"", 503, CLOSE)
        elif fault == "too many":
            self.answer(b"", 429, {"Retry-After": "0", **CLOSE})
        else:
            length = {"Content-Length": str(len(content))}
            sent = (
                b""
                if self.command == "HEAD"
                else content[: len(content) // (2 if fault == "half" else 1)]
            )
            self.answer(sent, headers={**CLOSE, **length, **headers})


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    with serving_http(_Handler, hub=hub) as hub.url:
        yield hub


def point_to(hub_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the clients ask this address instead of the world's."""
    for name in ("HF_ENDPOINT", "JURYGRAPH_GITHUB_RAW", "JURYGRAPH_GITHUB_API"):
        monkeypatch.setenv(name, hub_url)
