"""What HTTP and gRPC have in common: who may send, how much at once, and the way of a body to the disk."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from reenact.collect.callers import Callers
from reenact.collect.inflate import inflate
from reenact.collect.intake import Intake, Signal, answer, take
from reenact.collect.meters import Meters
from reenact.collect.refusals import INTERNAL, UNAUTHENTICATED, Refusal, busy
from reenact.collect.settings import Settings
from reenact.collect.writer import Writer

_INLINE = 16 << 10
"""Bodies up to this many bytes are read at once: handing them to another thread would take longer."""
_LARGE = 4 << 20
"""Bodies from this many bytes on are read one at a time, so that what they unfold to in memory is bounded."""
_WORKERS = 2


class Desk:
    """Takes requests of one collector."""

    def __init__(self, settings: Settings, writer: Writer, meters: Meters, say: Callable[[str], None]) -> None:
        self.settings, self.meters, self._writer, self._say = settings, meters, writer, say
        self._workers = ThreadPoolExecutor(_WORKERS, "reenact-decode")
        self._large = asyncio.Semaphore(1)
        self.callers = Callers(settings.host, settings.hosts, settings.origins)
        self.ending = False

    def admit(self, size: int) -> None:
        """Let so many more bytes in, which `release` takes off again. Raises `Refusal`."""
        if self.meters.in_flight_bytes + size > self.settings.in_flight_bytes:
            raise busy("too much is on its way already")
        self.meters.in_flight_bytes += size

    def release(self, size: int) -> None:
        """Take bytes off that were admitted."""
        self.meters.in_flight_bytes -= size

    def authorise(self, header: str) -> None:
        """Check the `authorization` of a request, in the same time whatever it holds. Raises `Refusal`."""
        if not self.settings.token:
            return
        scheme, _, credential = header.partition(" ")
        same = hmac.compare_digest(credential.strip().encode("utf-8", "replace"), self.settings.token.encode())
        if scheme.lower() != "bearer" or not same:
            message = "no bearer token, or one that is not ours"
            raise Refusal(UNAUTHENTICATED, 401, message, headers=(("www-authenticate", "Bearer"),))

    async def take(self, body: bytes, signal: Signal, encoding: str, *, is_json: bool) -> bytes:
        """Unpack, read and write a request; give the body of its response once it is on disk. Raises `Refusal`."""
        size = len(body)
        self.meters.received_bytes += size
        packed = encoding not in ("", "identity")
        if size <= _INLINE and not packed:
            intake = self._intake(body, signal, encoding, is_json=is_json)
        elif size < _LARGE and not packed:
            intake = await self._elsewhere(body, signal, encoding, is_json=is_json)
        else:
            intake = await self._at_length(body, signal, encoding, is_json=is_json)
        await self._writer.put(intake.frames)
        if signal == "traces":
            self.meters.accepted_spans += intake.accepted
        else:
            self.meters.accepted_log_records += intake.accepted
        self.meters.rejected_records += intake.rejected
        return answer(intake, signal, is_json=is_json)

    async def _at_length(self, body: bytes, signal: Signal, encoding: str, *, is_json: bool) -> Intake:
        limit = self.settings.most_bytes
        loop = asyncio.get_running_loop()
        if len(body) < _LARGE // 16:  # most often it unpacks to little; what does not waits for its turn
            small = await loop.run_in_executor(self._workers, _inflated_or_none, body, encoding, _LARGE)
            if small is not None:
                return await self._elsewhere(small, signal, "", is_json=is_json)
        async with self._large:
            data = await loop.run_in_executor(self._workers, inflate, body, encoding, limit)
            with self._admitted(len(data)):
                return await self._elsewhere(data, signal, "", is_json=is_json)

    async def _elsewhere(self, body: bytes, signal: Signal, encoding: str, *, is_json: bool) -> Intake:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._workers, lambda: self._intake(body, signal, encoding, is_json=is_json))

    def _intake(self, body: bytes, signal: Signal, encoding: str, *, is_json: bool) -> Intake:
        try:
            data = inflate(body, encoding, self.settings.most_bytes)
            return take(data, signal, is_json=is_json, decoding=self.settings.decoding)
        except Refusal:
            raise
        except MemoryError:
            raise busy("there is not enough memory for this request now", 5) from None
        except Exception as error:
            self._say(f"a request could not be read: {type(error).__name__}: {error}")
            raise Refusal(INTERNAL, 500, "the collector failed on this request") from error

    @contextmanager
    def _admitted(self, size: int) -> Generator[None]:
        self.admit(size)
        try:
            yield
        finally:
            self.release(size)

    def close(self) -> None:
        """Let go of the threads."""
        self._workers.shutdown(wait=False, cancel_futures=True)


def _inflated_or_none(body: bytes, encoding: str, limit: int) -> bytes | None:
    try:
        return inflate(body, encoding, limit)
    except Refusal as refusal:
        if refusal.http == 413:
            return None
        raise
