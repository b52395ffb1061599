"""Whole HTTP exchanges that somebody else wrote down, as spans: cassettes, proxies' captures, a provider's own logs.

Such a carrier holds what a trace rarely does, the request and the reply themselves, and none of what a trace has beside
them: who asked whom in which order of threads, what the tools did. Its exchanges become one run, in the order of the
file. What speaks a provider's API is a model call; all else is an HTTP call to something unknown, and kept.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

from reenact.boundary.decoding import decoder_for
from reenact.boundary.question import PLAIN_HTTP, shape_named
from reenact.boundary.resource import is_a_model, shape_at
from reenact.contracts.shape import Shape
from reenact.foreign import records
from reenact.foreign.foreign_call import LOST, REBUILT, Loss
from reenact.values import alarms
from reenact.values.call import (
    Body,
    CallKind,
    Chunk,
    ExceptionRecord,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    Unfinished,
)
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import compact
from reenact.values.run import CARRIER, OURS
from reenact.values.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_UNSET,
    Attribute,
    Scope,
    SpanRecord,
)

_KIND: Final = "openinference.span.kind"
_SSE = re.compile(rb"\s*(?:data|event|id|retry)?:")
_STALE = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_DECODED: Final = 256 << 20
_WHOLE: Final = re.compile(r"gzip|deflate|zstd|br\b")


def lacking(field: str, lost: str, fix: str = "nothing to do") -> Loss:
    """Name one thing that a carrier did not keep of a call."""
    return Loss(field=field, lost=lost, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came of it, as a file has it."""

    method: str
    url: str
    request: bytes = b""
    status: int | None = None
    """None where the file has no reply."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of the reply, as spelled."""
    reply: bytes = b""
    start_ns: int = 0
    """Nanoseconds since the epoch; 0 where the file does not say."""
    end_ns: int = 0
    attempt: int = 0
    shape: str = ""
    """The API that the file says it is, where neither path nor body can tell."""
    rebuilt: tuple[str, ...] = ()
    """`request` and `reply`, where they say what the file said and are not the bytes that were sent."""
    error: str = ""
    """What went wrong, where the file says so: instead of a reply, or beside one."""
    lost: tuple[Loss, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])


def run_of(
    exchanges: Iterable[Exchange],
    *,
    carrier: str,
    seed: str,
    name: str = "",
    attributes: Mapping[str, Attribute] | None = None,
) -> Iterator[SpanRecord]:
    """Make one run of the exchanges of a file: a span for each, in their order, and a root above them at the end.

    `carrier` is the format's name, `seed` the text whose digest is the trace id: equal files are one run. `attributes`
    are facts of the whole, for the root.
    """
    trace_id = hex_of(seed, 16)
    root_id = hex_of(f"{seed}:root", 8)
    starts: list[int] = []
    ends: list[int] = []
    number = 0
    for number, exchange in enumerate(exchanges, 1):
        span = _span(exchange, number, trace_id, root_id, carrier)
        starts += [span.start_ns] if span.start_ns else []
        ends += [span.end_ns] if span.end_ns else []
        yield span
    if number:
        yield root_span(
            trace_id=trace_id,
            span_id=root_id,
            name=name or carrier,
            carrier=carrier,
            times=(min(starts, default=0), max([*starts, *ends], default=0)),
            attributes=attributes or {},
        )


def root_span(
    *,
    trace_id: str,
    span_id: str,
    name: str,
    carrier: str,
    times: tuple[int, int] = (0, 0),
    attributes: Mapping[str, Attribute] | None = None,
) -> SpanRecord:
    """Make the root of a run whose file has none: nobody recorded it, and `reenact.synthetic` says so."""
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None,
        name=name,
        start_ns=times[0],
        end_ns=times[1] if times[1] > times[0] else 0,  # one instant says not how long it took
        kind=KIND_INTERNAL,
        attributes={
            _KIND: "CHAIN",
            CARRIER: carrier,
            "reenact.synthetic": "carrier",
            "reenact.run.root": True,
            "reenact.order.start": 0,
            **(attributes or {}),
        },
        scope=Scope(name=carrier),
    )


def hex_of(seed: str, size: int) -> str:
    """Make an id of `size` bytes, in hex, that is the same whenever the file is read, and never all zeros."""
    return hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


# ------------------------------------------------------------------------------------------------------------- spans


def _span(exchange: Exchange, number: int, trace_id: str, root_id: str, carrier: str) -> SpanRecord:
    method, url, host = exchange.method.upper(), *_address(exchange.url)
    shape = _shape(exchange, method, url)
    lost = list(exchange.lost)
    outcome = _outcome(exchange, shape, lost)
    if exchange.error and isinstance(outcome, Unfinished):
        outcome = Raised(exception=exception_of_text(exchange.error))
    if shape is None and is_a_model(method, url, exchange.request):
        lost.append(lacking("shape", f"{host} speaks an API that this version does not read: {_PLAINLY}"))
    request = HttpRequest(
        shape=shape.name if shape else PLAIN_HTTP,
        method=method,
        url=url,
        body=Body(exchange.request),
        attempt=exchange.attempt,
    )
    attributes: dict[str, Attribute] = {
        **exchange.attributes,
        **request_to_attributes(request),
        **outcome_to_attributes(request, outcome),
        _KIND: (shape.kind if shape else CallKind.UNKNOWN).value,
        CARRIER: carrier,
        "reenact.order.start": number << 20,
    }
    if host:
        attributes["server.address"] = host
    if lost:
        attributes[LOST] = compact([each.json for each in lost])
    if exchange.rebuilt:
        attributes[REBUILT] = list(exchange.rebuilt)
        del attributes[OURS]  # it is not what a recorder of ours saw
    start, end = _times(exchange)
    return SpanRecord(
        trace_id=trace_id,
        span_id=hex_of(f"{trace_id}:{number}", 8),
        parent_id=root_id,
        name=shape.span_name if shape else f"{method} {host}".strip(),
        start_ns=start,
        end_ns=end,
        kind=KIND_CLIENT,
        status=STATUS_ERROR if exchange.error else STATUS_UNSET,
        status_message=exchange.error,
        attributes=attributes,
        scope=Scope(name=carrier),
    )


def exception_of_text(text: str) -> ExceptionRecord:
    """Read what a file says of an error, `TimeoutError: no answer`, as the exception that it tells of."""
    kind, colon, message = text.partition(": ")
    is_class = bool(colon) and kind.replace(".", "").isidentifier()
    module, _, name = kind.rpartition(".")
    if not is_class:
        return ExceptionRecord(module="builtins", qualname="Exception", message=text)
    return ExceptionRecord(module=module or "builtins", qualname=name, message=message)


_PLAINLY = "its bytes are answered to the same method, URL and body, and not shown as messages"


def _shape(exchange: Exchange, method: str, url: str) -> Shape | None:
    if exchange.shape:
        return shape_named(exchange.shape)
    return shape_at(method, url, exchange.request)


def _address(url: str) -> tuple[str, str]:
    """Give a URL without credentials and fragment, and the host's name."""
    try:
        split = urlsplit(url)
        return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2], fragment="")), split.hostname or ""
    except ValueError:
        return url, ""


def _outcome(exchange: Exchange, shape: Shape | None, lost: list[Loss]) -> Outcome:
    if exchange.status is None:
        lost.append(lacking("reply", "the file holds no reply to it", _RECORD_ANEW))
        return Unfinished()
    body, headers = _decoded(exchange, lost)
    if not body and shape is not None:
        lost.append(lacking("reply", "the file holds an empty body where the reply was", _RECORD_ANEW))
        return Unfinished()
    streams = _is_stream(body, headers)
    if shape is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", "text/event-stream" if streams else "application/json"))
        lost.append(lacking("headers", "the reply's headers; its content type is told by its body"))
    if not streams:
        return Returned(payload=HttpReply(status=exchange.status, headers=headers, body=Body(body)))
    if shape is not None:
        lost.append(lacking("stream", "the boundaries and times of the stream's pieces"))
    return Streamed(status=exchange.status, headers=headers, chunks=(Chunk(offset_us=0, order=0, data=body),))


_RECORD_ANEW = "record the exchange anew, with its bodies"


def _is_stream(body: bytes, headers: Sequence[tuple[str, str]]) -> bool:
    kind = next((value for name, value in headers if name.lower() == "content-type"), "").lower()
    if "event-stream" in kind or "eventstream" in kind:
        return True
    return not kind and _SSE.match(body) is not None


def _decoded(exchange: Exchange, lost: list[Loss]) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """Undo the content encoding where the recorder left it, and leave out the headers that no longer hold."""
    from reenact.boundary import plain_http

    headers = plain_http.headers(exchange.headers, exchange.status or 0, None, decoded=True)
    headers = tuple((name, value) for name, value in headers if name.lower() not in _STALE)
    coding = next((value for name, value in exchange.headers if name.lower() == "content-encoding"), "").lower()
    if not _WHOLE.search(coding) or not exchange.reply:
        return exchange.reply, headers
    plain = unpacked(exchange.reply, coding)
    if plain is None:
        if coding.strip() == "br":
            lost.append(lacking("reply", "the body is packed with brotli, which is not read here"))
        return exchange.reply, headers  # most recorders unpack a body and leave the header
    return plain, headers


def unpacked(data: bytes, coding: str) -> bytes | None:
    """Undo a content encoding, or give None where the bytes are not so encoded, or grow past 256 MiB."""
    last = coding.rpartition(",")[2].strip()
    try:
        plain = _unpacked(data, last)
    except Exception:
        alarms.pass_on()
        return None
    return plain if plain is not None and len(plain) <= _LARGEST_DECODED else None


def _unpacked(data: bytes, coding: str) -> bytes | None:
    if coding in {"gzip", "x-gzip"}:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _LARGEST_DECODED + 1)
    if coding == "deflate":
        wrapped = (data[0] & 15) == 8 and (data[0] << 8 | data[1]) % 31 == 0  # RFC 1950; some servers leave it away
        window = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
        return zlib.decompressobj(window).decompress(data, _LARGEST_DECODED + 1)
    if coding == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(data).read(_LARGEST_DECODED + 1)
    plain = decoder_for({"content-encoding": coding}).decode(data)
    return plain if plain != data else None


# ---------------------------------------------------------------------------------------------------- what files say


def _times(exchange: Exchange) -> tuple[int, int]:
    """Give start and end in nanoseconds since the epoch: what the file says, else the second of the header `Date`."""
    if exchange.start_ns:
        return exchange.start_ns, max(exchange.end_ns, exchange.start_ns) if exchange.end_ns else 0
    date = next((value for name, value in exchange.headers if name.lower() == "date"), "")
    return http_date(date), 0


def http_date(text: str) -> int:
    """Read the date of a header (RFC 9110, section 5.6.7) as nanoseconds since the epoch, or 0."""
    try:
        moment = parsedate_to_datetime(text) if text else None
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0
    if moment is None:
        return 0
    return max(0, nanoseconds(moment))


def instant_ns(value: object) -> int:
    """Read an instant, ISO 8601 with or without a zone (then UTC), a date of a header or a datetime, or give 0."""
    if isinstance(value, datetime):
        return max(0, nanoseconds(value))
    if not isinstance(value, str):
        return 0
    return records.nanoseconds(value) or http_date(value)


def nanoseconds(moment: datetime) -> int:
    """Give an instant as nanoseconds since the epoch, exactly; one without a zone is in UTC."""
    since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
    return since // timedelta(microseconds=1) * 1000


def header_pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    """Read headers however a file spells them: an object of texts or of lists, a list of pairs or of `name`/`value`."""
    if isinstance(headers, dict):
        mapping = cast("dict[Any, Any]", headers)
        return tuple((_word(name), _word(each)) for name, value in mapping.items() for each in _each(value))
    if not isinstance(headers, list):
        return ()
    listed = cast("list[Any]", headers)
    if all(isinstance(each, str) for each in listed):
        words = [_word(each) for each in listed]
        return tuple(zip(words[::2], words[1::2], strict=False))
    return tuple(pair for each in listed if (pair := _pair(each)) is not None)


def _pair(header: Any) -> tuple[str, str] | None:
    if isinstance(header, dict):
        fields = cast("dict[str, Any]", header)
        return (_word(fields["name"]), _word(fields.get("value"))) if "name" in fields else None
    pair = cast("list[Any]", header) if isinstance(header, list) else []
    return (_word(pair[0]), _word(pair[1])) if len(pair) == 2 else None


def _each(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _word(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


def body_bytes(body: object) -> bytes:
    """Read a body however a file spells it: text, bytes, JSON that was parsed, or an object that says which.

    The objects are those of vcr and its relatives: `{"string": …}`, `{"base64_string": …}`, `{"encoding": …}`.
    """
    match body:
        case None:
            return b""
        case bytes():
            return body
        case str():
            return body.encode("utf-8", "surrogatepass")
        case {"base64_string": str() | bytes() as text}:
            return unbase64(text)
        case {"string": (str() | bytes() | None) as inner}:
            return body_bytes(inner)
        case {"encoding": "base64", "text": str() as text}:
            return unbase64(text)
        case _:
            return spelled_json(body)


def spelled_json(value: object) -> bytes:
    """Spell parsed JSON as a body, as most clients do: compact, UTF-8."""
    try:
        return compact(value).encode("utf-8", "surrogatepass")  # type: ignore[arg-type]  # whatever JSON spells, `compact` spells
    except (TypeError, ValueError, RecursionError):
        return b""


def unbase64(text: str | bytes) -> bytes:
    """Read base64, or give nothing where it is none."""
    try:
        return base64.b64decode(text)
    except (ValueError, zlib.error):
        return b""


def attempt_in(headers: Iterable[tuple[str, str]]) -> int:
    """Read from a request's headers which of the SDK's retries it is."""
    retry_count = next((value for name, value in headers if name.lower() == "x-stainless-retry-count"), "")
    return int(retry_count) if retry_count.isascii() and retry_count.isdigit() and len(retry_count) < 4 else 0
