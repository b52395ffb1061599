"""httpx and httpx2, sync and async: cut at `Client.send`, where a provider's SDK hands over its request.

Not at the socket: HTTP/2, pools and TLS mangle streams and order there. Not at the SDK's method: retries, raw bytes
and errors are gone there. What passes is teed: request body, reply body or stream pieces, status, allow-listed
headers. In a replay the SDK gets a real response object of its own client library, so everything the agent sees is
the SDK's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache, lru_cache, wraps
from typing import Any, cast

from reenact.boundary import door, lanes, offers, plain_http, tape
from reenact.boundary.byte_streams import ByteStreams, Tail, byte_streams, with_request
from reenact.boundary.cancelled import until_cancelled, until_interrupted, was_cancelled
from reenact.boundary.decoding import Decoder, decoder_for
from reenact.boundary.forgiving import forgive
from reenact.boundary.own_code import is_own_class
from reenact.boundary.resource import ending_alike, speaks
from reenact.boundary.tape import Site, Source
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.contracts.shape import Shape
from reenact.values import alarms, typed
from reenact.values.call import (
    Body,
    Call,
    ExceptionRecord,
    HttpReply,
    HttpRequest,
    Raised,
    Returned,
    Rewritten,
    Streamed,
    StreamEnd,
)
from reenact.values.json import Json, parsed_or_none

_log = logging.getLogger("reenact")
_CODING = "content-encoding"
_OF_THE_WIRE = frozenset([_CODING, "transfer-encoding"])
_MICROSECOND = timedelta(microseconds=1)
_ELAPSED = Site(key="httpx:Client.send elapsed", source=Source(name="elapsed", measures=True), of_library=True)
"""The library measures inside the call, of which a replay makes nothing."""
_RETRY = b"x-stainless-retry-count"
_NO_MORE: dict[str, Json] = {}
"""One for all calls: nobody adds to it."""
_OF_THE_BODY = frozenset([b"content-length", b"transfer-encoding"])


@lru_cache(maxsize=256)
def _place_of(spelled: object) -> tuple[str, tuple[Shape, ...]]:
    """Spell a URL, or the parts that the library keeps of it, and find who may answer there: an agent asks few."""
    url = str(spelled)
    return url, ending_alike(url)


def _read_call(request: Any) -> Call | None:
    """Make a call of a request, or None where it speaks no known shape or its body is a stream."""
    if request.method != "POST":
        return None
    url, shapes = _place_of(getattr(request.url, "_uri_reference", None) or request.url)
    if not shapes:
        return None
    try:
        content = request.content
    except Exception:
        alarms.pass_on()
        return None
    shape = next((each for each in shapes if speaks(url, each, content)), None)
    if shape is None:
        return None
    offers.hear(content)
    asked = HttpRequest(shape=shape.name, method="POST", url=url, body=Body(content), attempt=_attempt(request.headers))
    return Call(kind=shape.kind, name=shape.span_name, request=asked, attributes=_NO_MORE)


def _attempt(headers: Any) -> int:
    """Read which retry this is; a look-up by name would decode every header first, and it is among the last."""
    for _, name, value in reversed(_fields(headers)):
        if name == _RETRY:
            return int(value) if value.isdigit() else 0
    return 0


def _fields(headers: Any) -> Sequence[tuple[bytes, bytes, bytes]]:
    """List the fields of a header: name, name in lower case, value. The library's own list, where it is as it was."""
    if _is_listed(cast("type[Any]", type(headers))):
        return headers._list  # noqa: SLF001 - `raw` makes a new list of it each time
    return [(name, name.lower(), value) for name, value in headers.raw]


@cache
def _is_listed(kind: type[Any]) -> bool:
    return getattr(kind({"A": "b"}), "_list", None) == [(b"A", b"a", b"b")]


def _shape_of(request: Any) -> Shape | None:
    """Find the shape that a request speaks, by its address and its body."""
    url, shapes = _place_of(str(request.url))
    if not shapes:
        return None
    try:
        return next((each for each in shapes if speaks(url, each, request.content)), None)
    except Exception:  # a body that is a stream: no SDK sends one
        alarms.pass_on()
        return None


def _ends(request: Any) -> tuple[bytes, ...]:
    """Give what the streams of a request's API end with; nothing more is to come then."""
    shape = _shape_of(request)
    return () if shape is None else shape.stream_ends


def _safe_headers(headers: Any) -> tuple[tuple[str, str], ...]:
    fields = _fields(headers)
    try:
        return tuple([(name, value.decode()) for _, key, value in fields if (name := _kept_name(key)) is not None])
    except UnicodeDecodeError:  # opaque bytes, as RFC 9110 (section 5.5) calls them
        pairs = [(name, value) for _, key, value in fields if (name := _kept_name(key)) is not None]
        return tuple([(name, value.decode("latin-1")) for name, value in pairs])


@lru_cache(maxsize=1024)
def _kept_name(lowered: bytes) -> str | None:
    name = lowered.decode("latin-1")
    return name if plain_http.holds_no_secret(name) else None


def _enter(client: Any, request: Any) -> Passage | None:
    """Ask the doorman in charge, or give None where the request goes straight through."""
    try:
        doorman = door.doorman()
        if doorman is None or client.is_closed or _is_sent_by_own_code(client, request):
            return None
        call = _called(request)
        return None if call is None else doorman.open(call)
    except Exception:
        forgive("http_clients")
        return None


def _is_sent_by_own_code(client: Any, request: Any) -> bool:
    """Tell whether a transport of the agent's own sends the request: its code runs in a replay too.

    What it sends on is met by `httpx_transports`, or by the library that it sends with.
    """
    transport_for = getattr(client, "_transport_for_url", None)
    if transport_for is None:
        return False
    transport: object = transport_for(request.url)
    return is_own_class(type(transport))


def _called(request: Any) -> Call | None:
    try:
        return _read_call(request)
    except Exception:  # our failure is never the agent's
        alarms.pass_on()
        _log.debug("reenact could not read a request", exc_info=True)
        return None


def _tell_reply(passage: Passage, response: Any) -> None:
    try:
        passage.replied(response.status_code, _safe_headers(response.headers), response.content)
        tape.draw(_ELAPSED, lambda: response.elapsed // _MICROSECOND)
    except Exception:
        forgive("http_clients.reply")


def _tell_stream(passage: Passage, response: Any, tee: Any, library: ByteStreams, request: Any) -> None:
    try:
        passage.head(response.status_code, _safe_headers(response.headers))
        response.stream = tee(response.stream, _stream_listener(library, passage, request, response))
    except Exception:
        forgive("http_clients.stream")


def _rewritten(library: ByteStreams, request: Any, instead: Rewritten) -> Any:
    """Make the same request with another body, as a fork of a run sends it."""
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in _OF_THE_BODY]
    return library.module.Request(
        request.method, request.url, headers=headers, content=instead.body.data, extensions=request.extensions
    )


def _send(library: ByteStreams) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
            passage = _enter(self, request)
            if passage is None:
                with plain_http.reading_whole(whole=not stream):
                    return original(self, request, stream=stream, **kwargs)
            if passage.answer is not None:
                if not isinstance(passage.answer, Rewritten):
                    return _replay(library, self, request, passage, stream=stream)
                request = _rewritten(library, request, passage.answer)
            try:
                with passage.crossing(), lanes.aside():
                    response = original(self, request, stream=stream, **kwargs)
            except BaseException as error:
                passage.raised(error)
                raise
            if not stream:
                _tell_reply(passage, response)
                return response
            _tell_stream(passage, response, library.tee, library, request)
            return response

        return send

    return make


def _send_async(library: ByteStreams) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        async def send(self: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
            passage = _enter(self, request)
            if passage is None:
                with plain_http.reading_whole(whole=not stream):
                    return await original(self, request, stream=stream, **kwargs)
            if passage.answer is not None:
                if not isinstance(passage.answer, Rewritten):
                    return await _replay_async(library, self, request, passage, stream=stream)
                request = _rewritten(library, request, passage.answer)
            try:
                with passage.crossing(), lanes.aside():
                    response = await original(self, request, stream=stream, **kwargs)
            except BaseException as error:
                passage.raised(error)
                raise
            if not stream:
                _tell_reply(passage, response)
                return response
            _tell_stream(passage, response, library.tee_async, library, request)
            return response

        return send

    return make


def _replay(library: ByteStreams, client: Any, request: Any, passage: Passage, *, stream: bool) -> Any:
    for hook in client.event_hooks["request"]:
        hook(request)
    answer = passage.answer
    try:
        passage.wait(passage.head_order if isinstance(answer, Streamed) else passage.end_order)
    except BaseException as error:
        passage.raised(error)
        raise
    response = _rebuild(library, client, request, passage, library.recorded, stream=stream)
    _log_as_the_library(library, request, response)
    for hook in client.event_hooks["response"]:
        hook(response)
    if isinstance(answer, Streamed) and not stream:
        response.read()
    return response


async def _replay_async(library: ByteStreams, client: Any, request: Any, passage: Passage, *, stream: bool) -> Any:
    for hook in client.event_hooks["request"]:
        await hook(request)
    answer = passage.answer
    try:
        await passage.wait_async(passage.head_order if isinstance(answer, Streamed) else passage.end_order)
        if isinstance(answer, Raised) and was_cancelled(answer):
            await until_cancelled(passage)
    except BaseException as error:
        passage.raised(error)
        raise
    response = _rebuild(library, client, request, passage, library.recorded_async, stream=stream)
    _log_as_the_library(library, request, response)
    for hook in client.event_hooks["response"]:
        await hook(response)
    if isinstance(answer, Streamed) and not stream:
        await response.aread()
    return response


def _log_as_the_library(library: ByteStreams, request: Any, response: Any) -> None:
    """Log what the library logs of each reply below the place where it is cut: programs keep it in their logs."""
    try:
        values = request.method, request.url, response.http_version, response.status_code, response.reason_phrase
        logging.getLogger(library.module.__name__).info('HTTP Request: %s %s "%s %d %s"', *values)
    except Exception:  # a handler or filter of the agent's
        forgive("http_clients.log")


def _rebuild(
    library: ByteStreams, client: Any, request: Any, passage: Passage, stream_class: type[Any], *, stream: bool
) -> Any:
    """Make the library's own response object, or raise the library's own error, from what was recorded."""
    build = library.module.Response
    extensions = {"http_version": b"HTTP/1.1"}
    match passage.answer:
        case Returned(payload=HttpReply(status=status, headers=headers, body=body)):
            if stream and status < 300 and _asks_for_stream(request):  # we record a stream; others fold it
                headers, body = _unfolded(request, passage, headers, body)
            read = _decoded(headers)
            response = build(status, headers=read, content=body.data, request=request, extensions=extensions)
            passage.closed(passage.answer)
        case Streamed(status=status, headers=headers) as answer:
            stream = stream_class(answer, passage, request, _ends(request))
            response = build(status, headers=_decoded(headers), stream=stream, request=request, extensions=extensions)
            passage.head(status, headers)
        case Raised(exception=exception):
            error = with_request(typed.decode_exception(_own(library, exception)), request)
            until_interrupted(passage, error)
            passage.raised(error)
            raise error
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")
    if any(name in _OF_THE_WIRE for name, _ in headers):  # the library was not to act on them, and adds others
        response._get_content_decoder()  # noqa: SLF001 - it is kept: what comes is decoded already
        response.headers = library.module.Headers(list(headers))
    response.elapsed = timedelta(0) if stream else tape.draw(_ELAPSED, int) * _MICROSECOND
    response.default_encoding = getattr(client, "_default_encoding", response.default_encoding)
    return response


def _decoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Give the headers of a reply whose coding was undone when it was recorded."""
    return [(name, value) for name, value in headers if name != _CODING]


def _own(library: ByteStreams, exception: ExceptionRecord) -> ExceptionRecord:
    """Give an error of one library as the other's of the same name: an SDK may have gone from one to the other."""
    name = library.module.__name__
    if exception.module not in INTEGRATION.libraries or exception.module == name:
        return exception
    own_class = getattr(library.module, exception.qualname, None)
    return replace(exception, module=name) if isinstance(own_class, type) else exception


def _asks_for_stream(request: Any) -> bool:
    shape = _shape_of(request)
    return shape is not None and shape.is_stream(shape.decode_request(request.content))


def _unfolded(
    request: Any, passage: Passage, headers: tuple[tuple[str, str], ...], body: Body
) -> tuple[tuple[tuple[str, str], ...], Body]:
    """Give the stream that says what a whole reply says, or raise a miss where none can be made."""
    shape = _shape_of(request)
    if shape is not None and ("content-type", shape.framing.media_type) in headers:
        return headers, body
    reply = parsed_or_none(body.data)
    if shape is None or shape.unfold is None or not isinstance(reply, dict):
        raise passage.miss("the recording holds a whole reply, and not the stream that was asked for")
    return (("content-type", shape.framing.media_type),), Body(shape.unfold(reply))


def _stream_listener(library: ByteStreams, passage: Passage, request: Any, response: Any) -> _Heard:
    return _Heard(library, passage, decoder_for(response.headers), _ends(request))


class _Heard:
    """Tells a passage of the stream of a model call, each piece and the end once."""

    __slots__ = ("_decoder", "_library", "_open", "_passage", "_tail")

    def __init__(self, library: ByteStreams, passage: Passage, decoder: Decoder, ends: tuple[bytes, ...]) -> None:
        self._library, self._passage, self._decoder, self._tail = library, passage, decoder, Tail(ends)
        self._open = True

    def piece(self, raw: bytes) -> None:
        if not self._open:
            return
        try:
            data = self._decoder.decode(raw)
        except Exception as error:  # a broken coding is the agent's to meet: its client raises this in its own decoder
            broken = self._library.module.DecodingError(str(error))
            broken.__cause__ = error
            self.end(StreamEnd.RAISED, broken)
            return
        if data:
            self._tail.add(data)
            self._passage.chunk(data)

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        if not self._open:
            return
        self._open = False
        if end is StreamEnd.ABANDONED and self._tail.has_ended():
            end = StreamEnd.FINISHED  # the SDK or the agent stops reading here; nothing was left to come
        self._passage.ended(end, error)


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        library = byte_streams(module)
        patches.replace(module.Client, "send", _send(library))
        patches.replace(module.AsyncClient, "send", _send_async(library))

    for name in INTEGRATION.libraries:
        patches.when_imported(name, cut)


INTEGRATION = Integration(
    name="http_clients", libraries=("httpx", "httpx2"), install=_install, hooks=("httpx", "httpx2")
)
