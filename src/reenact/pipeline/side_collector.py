"""A collector inside `reenact run`: what other parts of the program trace comes into the store of the recording.

Theory of operation. The collector's server runs in a thread of the process that started the program, on any port that
is free on this machine; either of OTLP's protocols is heard there. The program is told the port by OpenTelemetry's own
variables, unless it has such variables of its own. What it sends is redacted as the recording is, with the same key, so
that one value is one token in both. The recorder itself writes journals and sends nothing; one that a part of the
program starts for itself knows by REENACT_BESIDE that its spans are in this store already (`export.backends`).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from reenact.disk.frame_index import placed
from reenact.errors import InputError
from reenact.export.backends import BESIDE
from reenact.keep.trace_assembly import IDLE_S, compacted, keep
from reenact.redact.in_force import Guard
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore

if TYPE_CHECKING:
    from reenact.collect.server import Server

_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
_ENDPOINTS: Final = (_ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS: Final = (_PROTOCOL, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL")
_STEERING: Final = (
    *_PROTOCOLS,
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_LOGS_EXPORTER",
    "OTEL_SDK_DISABLED",
)
"""What else of the program's own decides where it sends, and is worth a word."""
_CONNECTIONS: Final = 200
"""So few that the limit of open files, which the program inherits, need not be raised."""
_DRAIN_S: Final = 5.0
_STARTING_S: Final = 30.0


class Beside:
    """Takes in what a program sends until it is closed."""

    def __init__(self, store: DirectoryStore, guard: Guard, say: Callable[[str], None]) -> None:
        """Listen. Raises `InputError` where another collector writes to the store, `OSError` where no port is free."""
        self._store, self._say = DirectoryStore(store.folder), say
        self._frames = FrameStore(store.folder)
        self._server: Server | None = None
        self._failed: BaseException | None = None
        self._listening, self._over = threading.Event(), threading.Event()
        self._appender = self._frames.appender()
        self._threads = [
            threading.Thread(target=self._run, args=(guard,), name="reenact-collect", daemon=True),
            threading.Thread(target=self._keep, name="reenact-keep", daemon=True),
        ]
        self._threads[0].start()
        if not self._listening.wait(_STARTING_S) or self._failed is not None:
            self._appender.close()
            self._frames.close()
            self._threads = []
            raise self._failed or TimeoutError("it does not listen in time")
        self._threads[1].start()

    @property
    def endpoint(self) -> str:
        """Where it listens, as OpenTelemetry's variables want it."""
        return f"http://127.0.0.1:{self._server.http_port if self._server is not None else 0}"

    @property
    def taken_in(self) -> tuple[int, int]:
        """How many spans and how many log events came in."""
        meters = self._server.meters if self._server is not None else None
        return (meters.accepted_spans, meters.accepted_log_records) if meters is not None else (0, 0)

    def close(self) -> None:
        """Finish what is under way and have it on disk. Safe to call twice; never raises."""
        threads, self._threads = self._threads, []
        if not threads:
            return
        try:
            self._over.set()
            for thread in threads:
                thread.join()
            self._frames.close()
            compacted(self._store, 0.0)
        except Exception as error:  # noqa: BLE001 - the program's end is not to be spoilt by ours
            self._say(f"what was taken in is in the store, and not put together yet: {error}")

    def _keep(self) -> None:
        try:
            keep(self._store, IDLE_S, self._over.wait, self._say)
        except Exception as error:  # noqa: BLE001 - whoever reads the store next does the rest
            self._say(f"what is taken in is not put together for now: {error}")

    def _run(self, guard: Guard) -> None:
        try:
            asyncio.run(self._serve(guard))
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits, or as a line
            if self._listening.is_set():
                self._say(f"the collector ended: {error}")
            self._failed = error
            self._listening.set()
        finally:
            self._appender.close()

    async def _serve(self, guard: Guard) -> None:
        from reenact.collect.server import Server
        from reenact.collect.settings import Settings
        from reenact.keep.collecting import decoding
        from reenact.keep.collector_redaction import taking_out_by

        def note(new_frames: Sequence[tuple[int, int, bytes]]) -> None:
            self._frames.note(placed(new_frames))

        settings = Settings(
            decoding=decoding(taking_out_by(guard.engine(os.environ))),
            http_port=0,
            grpc_port=None,
            connections=_CONNECTIONS,
            drain_s=_DRAIN_S,
        )
        server = Server(settings, self._appender, note, self._say)
        try:
            await server.start()
            self._server = server
            self._listening.set()
            await asyncio.to_thread(self._over.wait)
        finally:
            await server.close()


def begin(store: DirectoryStore, guard: Guard, environ: Mapping[str, str], say: Callable[[str], None]) -> Beside | None:
    """Begin to collect for a program with these variables; None, and a line that says why, where nothing would come.

    Raises `InputError` where the extra is not installed: what else is wrong does not keep the program from running.
    """
    from reenact.keep.collecting import require_extra

    require_extra("reenact run --collect")
    if own := [name for name in _ENDPOINTS if environ.get(name, "").strip()]:
        say(f"the program's own {' and '.join(own)} is kept: what it traces goes there, and is not collected here")
        return None
    if guard.plan.failed:
        say("what others trace is not collected: without the redaction policy nobody knows what may be written")
        return None
    try:
        return Beside(store, guard, say)
    except (InputError, OSError) as error:
        say(f"what others trace is not collected: {error}")
        return None


def child_variables(beside: Beside, environ: Mapping[str, str], say: Callable[[str], None]) -> dict[str, str]:
    """Give the variables that the program is to have besides its own, and say which these are."""
    variables = {_ENDPOINT: beside.endpoint}
    if not any(environ.get(name, "").strip() for name in _PROTOCOLS):
        variables[_PROTOCOL] = "http/protobuf"
    say(f"collecting what others trace; set for the program: {' '.join(f'{k}={v}' for k, v in variables.items())}")
    if own_settings := [f"{name}={environ[name]}" for name in _STEERING if environ.get(name, "").strip()]:
        say(f"the program's own are kept: {' '.join(own_settings)}")
    return {**variables, BESIDE: beside.endpoint}
