"""Limit the size of response bodies that httpx or httpx2 reads for LangChain's chat models.

httpx decompresses a body in pieces, but stores all of it: 600 KB from a server can become
gigabytes. Here the body is decompressed before httpx sees it, and a body larger than
``LARGEST_BODY`` is an error.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from typing import Any

LARGEST_BODY = 64 * 2**20
"""Bytes. Real chat completions are smaller; a larger body must not fill the memory."""

_PIECE = 1 << 16


def accept_bounded(request: Any) -> None:
    """Ask only for compression that can be decoded in pieces."""
    request.headers["accept-encoding"] = "gzip, deflate"


def bound_body(response: Any) -> None:
    """Limit the body of a response to ``LARGEST_BODY`` bytes.

    Raises:
        DecodingError: httpx's own, if the compression is not the requested one.
    """
    package = type(response).__module__.partition(".")[0]
    fault = sys.modules[package].DecodingError
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise fault(f"the body is compressed as {encoding}, which was not asked for")
    body = _Body(encoding if encoding != "identity" else "", fault)
    if body.encoding:
        del response.headers["content-encoding"]
    kind_of_async, kind_of_sync = _kinds(package)
    is_async = isinstance(response.stream, sys.modules[package].AsyncByteStream)
    # A body that is already in memory may be read either way.
    is_sync = isinstance(response.stream, sys.modules[package].SyncByteStream)
    kind = kind_of_sync if is_sync or not is_async else kind_of_async
    response.stream = kind(response.stream, body)


class _Body:
    """The pieces of a body, decompressed and counted."""

    def __init__(self, encoding: str, fault: type[Exception]) -> None:
        self.encoding = encoding
        self._fault = fault
        self._size = 0
        # 47: gzip or zlib, according to the header of the data.
        self._inflater = zlib.decompressobj(47) if encoding else None
        self._is_first = True

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield a piece of the transport decompressed, in pieces of limited size."""
        is_full = False
        while data or is_full:
            piece, data = (data, b"") if self._inflater is None else self._inflated(data)
            # A full piece may continue without further input.
            is_full = self._inflater is not None and len(piece) == _PIECE
            self._size += len(piece)
            if self._size > LARGEST_BODY:
                raise self._fault(f"the body is larger than {LARGEST_BODY} bytes")
            if piece:
                yield piece

    def _inflated(self, data: bytes) -> tuple[bytes, bytes]:
        assert self._inflater is not None
        try:
            piece = self._inflater.decompress(data, _PIECE)
        except zlib.error as error:
            if not (self._is_first and self.encoding == "deflate"):
                raise self._fault(str(error)) from error
            # Some servers send deflate without the header of zlib.
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            piece = self._inflater.decompress(data, _PIECE)
        self._is_first = False
        return piece, self._inflater.unconsumed_tail


class _Bounded:
    def __init__(self, stream: Any, body: _Body) -> None:
        self._stream = stream
        self._body = body


class _BoundedAsync(_Bounded):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            for piece in self._body.pieces(data):
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedSync(_Bounded):
    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            yield from self._body.pieces(data)

    def close(self) -> None:
        self._stream.close()


@lru_cache
def _kinds(package: str) -> tuple[type[_Bounded], type[_Bounded]]:
    """Return the stream classes of the package that reads them, since it checks their class."""
    httpx = sys.modules[package]
    return (
        type("BoundedAsync", (_BoundedAsync, httpx.AsyncByteStream), {}),
        type("BoundedSync", (_BoundedSync, httpx.SyncByteStream), {}),
    )
