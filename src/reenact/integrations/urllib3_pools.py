"""urllib3, on which requests stands: cut at a pool's one attempt, inside its retries and redirects.

Each attempt is a call of its own, so that what urllib3 and requests make of the replies (retries, redirects, errors,
response objects) is their own doing in a replay too.
"""

from __future__ import annotations

import logging
import sys
from functools import wraps
from typing import Any

from reenact.boundary import door, lanes, plain_http, wire
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.call import Raised

_log = logging.getLogger("reenact")


def _enter(pool: Any, connection: Any, method: str, target: str, body: Any) -> Passage | None:
    doorman = plain_http.doorman(pool.host, pool.port)
    if doorman is None:
        return None
    try:
        data = plain_http.body_bytes(body)
        url = wire.full_url(pool.scheme, pool.host, pool.port, target)
        if data is None or type(connection).__name__ == "HTTP2Connection":
            door.pass_by(f"{method} {url}: a stream cannot be written down")
            return None
        call = plain_http.call(method, url, data)
    except Exception:  # our failure is never the agent's
        alarms.pass_on()
        _log.debug("reenact could not read a request", exc_info=True)
        return None
    return plain_http.opened(doorman, call)


def _attempt(original: Any) -> Any:
    @wraps(original)
    def _make_request(self: Any, conn: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        passage = _enter(self, conn, method, url, kwargs.get("body"))
        if passage is None:
            return original(self, conn, method, url, *args, **kwargs)
        answer = passage.answer
        if isinstance(answer, Raised):
            raise _recorded_failure(passage, answer, self, conn)
        if answer is not None:
            conn.sock = wire.RecordedSocket(passage, method)
            if hasattr(conn, "is_verified"):
                conn.is_verified = str(getattr(self, "cert_reqs", None)) not in {"CERT_NONE", "VerifyMode.CERT_NONE"}
        whole = bool(kwargs.get("preload_content")) or plain_http.reads_whole()
        decoded = kwargs.get("decode_content", True) is not False
        wire.Exchange(passage, whole=whole, decoded=decoded, tells_failure=False).attach(conn)
        try:
            with passage.crossing(), lanes.aside():
                return original(self, conn, method, url, *args, **kwargs)
        except BaseException as error:
            wire.taken_from(conn)
            passage.raised(error)
            raise

    return _make_request


def _recorded_failure(passage: Passage, answer: Raised, pool: Any, connection: Any) -> BaseException:
    """Make the recorded error, with the live objects that urllib3 hangs on it."""
    passage.wait(passage.end_order)
    error: Any = plain_http.failure(answer.exception, passage)
    kinds = sys.modules["urllib3.exceptions"]
    if isinstance(error, kinds.PoolError):
        error.pool = pool
    if isinstance(error, kinds.NewConnectionError):
        error.conn = connection
    passage.raised(error)
    return error


def _without_proxy(original: Any) -> Any:
    @wraps(original)
    def _prepare_proxy(self: Any, conn: Any) -> Any:
        if door.is_strict() and plain_http.doorman() is not None:
            return None  # a replay builds no tunnel: its answers come from the recording
        return original(self, conn)

    return _prepare_proxy


def _knowing(original: Any) -> Any:
    """Note whether requests will read the whole reply at once."""

    @wraps(original)
    def send(self: Any, request: Any, stream: bool = False, *args: Any, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - as requests has it
        with plain_http.reading_whole(whole=not stream):
            return original(self, request, stream, *args, **kwargs)

    return send


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        patches.replace(module.HTTPConnectionPool, "_make_request", _attempt)
        patches.replace(module.HTTPSConnectionPool, "_prepare_proxy", _without_proxy)

    def cut_requests(module: Any) -> None:
        patches.replace(module.HTTPAdapter, "send", _knowing)

    patches.when_imported("urllib3.connectionpool", cut)
    patches.when_imported("requests.adapters", cut_requests)


INTEGRATION = Integration(
    name="urllib3_pools",
    libraries=("urllib3", "requests"),
    install=_install,
    hooks=("urllib3.connectionpool", "requests.adapters"),
)
