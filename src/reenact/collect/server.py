"""The server: listens, tells HTTP/1.1 from HTTP/2 by the first bytes, and ends without losing what it took."""

from __future__ import annotations

import asyncio
import resource
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import suppress

from reenact.collect.admission import Desk
from reenact.collect.grpc import PREFACE, GrpcConnection
from reenact.collect.http1 import HttpConnection
from reenact.collect.meters import Meters
from reenact.collect.settings import Settings
from reenact.collect.writer import Note, Segments, Writer

_BUFFER = 256 << 10
_BACKLOG = 1024
_LOOK = 3
"""So many bytes tell the two apart."""


class Server:
    """Listens on one port or two. Either takes either protocol: the ports are those that senders expect."""

    def __init__(self, settings: Settings, segments: Segments, note: Note, say: Callable[[str], None]) -> None:
        self._settings, self._say = settings, say
        self.meters = Meters()
        self._writer = Writer(segments, note, self.meters, say)
        self._desk = Desk(settings, self._writer, self.meters, say)
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.Task[None], HttpConnection | GrpcConnection | None] = {}
        self.http_port = self.grpc_port = 0

    async def start(self) -> None:
        """Listen. Raises `OSError` where a port is taken."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = min(hard, self._settings.connections + 500)
        if soft < wanted:
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        if self._settings.http_port is not None:
            self.http_port = await self._listen(self._settings.http_port)
        if self._settings.grpc_port is not None:
            self.grpc_port = await self._listen(self._settings.grpc_port)

    async def _listen(self, port: int) -> int:
        tls = self._settings.tls
        timeout = self._settings.head_s if tls is not None else None
        server = await asyncio.start_server(
            self._accept, self._settings.host, port, limit=_BUFFER, backlog=_BACKLOG, ssl=tls,
            ssl_handshake_timeout=timeout,
        )  # fmt: skip
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= self._settings.connections or self._desk.ending:
            self.meters.refused_connections += 1
            writer.transport.abort()
            return
        self._open[task] = None
        self.meters.connections = len(self._open)
        try:
            await self._serve(task, reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            del self._open[task]
            self.meters.connections = len(self._open)
            with suppress(Exception):
                writer.close()

    async def _serve(self, task: asyncio.Task[None], reader: StreamReader, writer: StreamWriter) -> None:
        first = b""
        async with asyncio.timeout(self._settings.idle_s) as waiting:
            while len(first) < _LOOK:
                data = await reader.read(_BUFFER)
                if not data:
                    return
                waiting.reschedule(asyncio.get_running_loop().time() + self._settings.head_s)
                first += data
        kind = GrpcConnection if PREFACE.startswith(first[: len(PREFACE)]) else HttpConnection
        connection = self._open[task] = kind(reader, writer, self._desk, first)
        await connection.serve()

    async def close(self) -> None:
        """Take no more, finish what is under way, for `drain_s` at most, and write it all."""
        self._desk.ending = True
        for server in self._servers:
            server.close()
        for task, connection in list(self._open.items()):
            if isinstance(connection, GrpcConnection):
                connection.end()
            if connection is None or connection.idle:
                task.cancel()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.drain_s
        while self._open and loop.time() < end:
            for task, connection in list(self._open.items()):
                if connection is not None and connection.idle:
                    task.cancel()
            await asyncio.wait(self._open, timeout=0.05)
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=1)
        await self._writer.close()
        self._desk.close()
