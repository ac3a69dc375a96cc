"""Proxy Postgres and stop a process while it sends a message, as if its machine froze."""

import asyncio
import os
import signal
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from sqlalchemy.engine import make_url

from .journal_locations import POSTGRES

SSL_REQUEST = 80877103


class StoppingProxy:
    """Forwards the messages of a process and Postgres until the process is to be stopped.

    Attributes:
        port: the port of the proxy.
        kinds: the first letter of each message that the process has sent, "start" for those before
            the first letter.
        process: the id of the process; known only after it has started.
        stopped: set once the process is stopped; nothing is forwarded after that.
    """

    def __init__(self, stop_at: int | None, forwarded: float) -> None:
        self.kinds: list[str] = []
        self.process: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.stopped = asyncio.Event()
        self.port = 0
        self._stop_at = stop_at
        self._forwarded = forwarded
        self._going_on = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()

    def go_on(self) -> None:
        """Let the process run again, and forward the rest."""
        os.kill(self.process.result(), signal.SIGCONT)
        self._going_on.set()

    @property
    def goes_on(self) -> bool:
        """Whether the process was let run again."""
        return self._going_on.is_set()

    def accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Serve a new connection."""
        self._connections.add(asyncio.create_task(self._serve(client, to_client)))

    async def close(self) -> None:
        """End all connections."""
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until one side closes it."""
        url = make_url(POSTGRES)
        with closing(to_client):
            server, to_server = await asyncio.open_connection(url.host, url.port or 5432)
            with closing(to_server):
                tasks = [
                    asyncio.create_task(self._forward_messages(client, to_server)),
                    asyncio.create_task(_forward_bytes(server, to_client)),
                ]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)

    async def _forward_messages(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter
    ) -> None:
        is_started = False
        while True:
            letter = await client.readexactly(1) if is_started else b""
            length = await client.readexactly(4)
            body = await client.readexactly(struct.unpack("!I", length)[0] - 4)
            is_started = is_started or struct.unpack("!I", body[:4])[0] != SSL_REQUEST
            message = letter + length + body
            if self.stopped.is_set():
                await self._going_on.wait()
            self.kinds.append(letter.decode() or "start")
            if len(self.kinds) == self._stop_at:
                process = await self.process
                sent = int(len(message) * self._forwarded)
                to_server.write(message[:sent])
                await to_server.drain()
                os.kill(process, signal.SIGSTOP)
                self.stopped.set()
                await self._going_on.wait()
                message = message[sent:]
            to_server.write(message)
            await to_server.drain()


async def _forward_bytes(server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    while data := await server.read(1 << 16):
        to_client.write(data)
        await to_client.drain()


@asynccontextmanager
async def stopping_proxy(
    stop_at: int | None = None, forwarded: float = 1.0
) -> AsyncIterator[StoppingProxy]:
    """Yield a proxy that stops a process at this message, after forwarding a share of it."""
    proxy = StoppingProxy(stop_at, forwarded)
    async with await asyncio.start_server(proxy.accept, "127.0.0.1") as listening:
        proxy.port = listening.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            await proxy.close()
