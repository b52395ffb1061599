"""httpx and httpx2, requests that speak no provider's shape: cut at their own network transports, one hop a call.

Below redirects, authentication, hooks and cookies, which are the client's own doing in a replay too. Transports that
never leave the process (ASGI, WSGI, mocks) are no boundary. A request inside a provider's call passes here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from reenact.boundary import door, lanes, place, plain_http
from reenact.boundary.byte_streams import ByteStreams, byte_streams, with_request
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.decoding import Decoder, decoder_for
from reenact.boundary.forgiving import forgive
from reenact.boundary.plain_http import Telling
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import alarms
from reenact.values.call import Call, HttpReply, Raised, Returned, Streamed, StreamEnd

_log = logging.getLogger("reenact")
_PORTS: Final = {"http": 80, "https": 443}


def _enter(library: ByteStreams, request: Any) -> Passage | None:
    """Ask the doorman in charge, or give None where the request goes straight through."""
    try:
        doorman = plain_http.doorman(request.url.host, request.url.port or _PORTS.get(request.url.scheme))
        if doorman is None:
            return None
        call = _called(library, request)
        return None if call is None else plain_http.opened(doorman, call)
    except Exception:
        forgive("httpx_transports")
        return None


def _called(library: ByteStreams, request: Any) -> Call | None:
    try:
        body = _body(library, request)
        if body is None or "upgrade" in request.headers:
            door.pass_by(f"{request.method} {request.url}: a stream cannot be written down")
            return None
        return plain_http.call(request.method, str(request.url), body)
    except Exception:  # our failure is never the agent's
        alarms.pass_on()
        _log.debug("reenact could not read a request", exc_info=True)
        return None


def _body(library: ByteStreams, request: Any) -> bytes | None:
    """Read a request's body; a form with files is put together here as it would be later, a generator is left alone."""
    if type(request.stream).__name__ == "MultipartStream":
        return bytes(request.read())
    whole: list[bytes] | None = [*request.stream] if isinstance(request.stream, library.module.ByteStream) else None
    return None if whole is None else b"".join(whole)


def _telling(passage: Passage, response: Any) -> _Decoded:
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw]
    headers = plain_http.reply_headers(pairs, response.status_code, response.reason_phrase, decoded=True)
    telling = Telling(passage, response.status_code, headers, whole=plain_http.reads_whole())
    return _Decoded(telling, decoder_for(response.headers))


def _tell_stream(passage: Passage, response: Any, tee: Any) -> None:
    try:
        response.stream = tee(response.stream, _telling(passage, response))
    except Exception:
        forgive("httpx_transports.stream")


def _handle(library: ByteStreams) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def handle_request(self: Any, request: Any) -> Any:
            if (here := place.current()) is not None and here.whole:  # most are in a provider's call: the short way
                return original(self, request)
            passage = _enter(library, request)
            if passage is None:
                return original(self, request)
            if passage.answer is not None:
                passage.wait(_first(passage))
                return _rebuilt(library, passage, request, library.recorded)
            try:
                with passage.crossing(), lanes.aside():
                    response = original(self, request)
            except BaseException as error:
                passage.raised(error)
                raise
            _tell_stream(passage, response, library.tee)
            return response

        return handle_request

    return make


def _handle_async(library: ByteStreams) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        async def handle_async_request(self: Any, request: Any) -> Any:
            if (here := place.current()) is not None and here.whole:
                return await original(self, request)
            passage = _enter(library, request)
            if passage is None:
                return await original(self, request)
            if passage.answer is not None:
                await _until_first(passage)
                return _rebuilt(library, passage, request, library.recorded_async)
            try:
                with passage.crossing(), lanes.aside():
                    response = await original(self, request)
            except BaseException as error:
                passage.raised(error)
                raise
            _tell_stream(passage, response, library.tee_async)
            return response

        return handle_async_request

    return make


def _first(passage: Passage) -> int | None:
    return passage.head_order if isinstance(passage.answer, Streamed) else passage.end_order


async def _until_first(passage: Passage) -> None:
    try:
        await passage.wait_async(_first(passage))
        if isinstance(passage.answer, Raised) and was_cancelled(passage.answer):
            await until_cancelled(passage)
    except BaseException as error:
        passage.raised(error)
        raise


def _rebuilt(library: ByteStreams, passage: Passage, request: Any, stream_class: type[Any]) -> Any:
    """Make the library's own response object, or raise its own error, from what was recorded."""
    match passage.answer:
        case Returned(payload=HttpReply(status=status, headers=headers, body=body)) as answer:
            passage.closed(answer)
            stream = library.module.ByteStream(body.data)
        case Streamed(status=status, headers=headers) as answer:
            passage.head(status, headers)
            stream = stream_class(answer, passage, request, failure=plain_http.failure)
        case Raised(exception=exception):
            error = with_request(plain_http.failure(exception), request)
            passage.raised(error)
            raise error
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")
    pairs, reason = plain_http.split_reason(headers, status)
    raw = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in pairs]
    extensions = {"http_version": b"HTTP/1.1", "reason_phrase": reason.encode("latin-1", "replace")}
    return library.module.Response(status, headers=raw, stream=stream, extensions=extensions)


class _Decoded:
    """Tells what is read of one reply, decoded."""

    __slots__ = ("_decoder", "_telling")

    def __init__(self, telling: Telling, decoder: Decoder) -> None:
        self._telling, self._decoder = telling, decoder

    def piece(self, raw: bytes) -> None:
        try:
            self._telling.piece(self._decoder.decode(raw))
        except Exception:  # a broken coding is the agent's to meet, and cannot be kept decoded
            alarms.pass_on()
            self._telling.end(StreamEnd.UNFINISHED)

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        self._telling.end(end, error)


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        library = byte_streams(module)
        patches.replace(module.HTTPTransport, "handle_request", _handle(library))
        patches.replace(module.AsyncHTTPTransport, "handle_async_request", _handle_async(library))

    for name in INTEGRATION.libraries:
        patches.when_imported(name, cut)


INTEGRATION = Integration(
    name="httpx_transports", libraries=("httpx", "httpx2"), install=_install, hooks=("httpx", "httpx2")
)
