"""The probes of `conformance.py`: each tries one thing that OTLP asks of a server, and says what the server did."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.probing import (
    EXPORT,
    JSON,
    MIB,
    PROTOBUF,
    Called,
    Reply,
    Target,
    accepted,
    ask,
    ask_on,
    call,
    connected,
    detailed,
    json_request,
    json_span,
    one_span,
    sized,
    status_of,
)

RETRYABLE_CODES = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
BROKEN = b"\x0a\xff\xff\xff\x7fthis is no message"
UNKNOWN_FIELD = b"\xfa\x3e\x03new"  # field 1007, three bytes


@dataclass(frozen=True, slots=True)
class Said:
    """Whether a rule is met (None: it could not be tried), and what the server did."""

    met: bool | None
    did: str = ""

    def __str__(self) -> str:
        return f"{'–' if self.met is None else 'yes' if self.met else 'NO'}{f' ({self.did})' if self.did else ''}"


# ---- taking what is well formed


def took(reply: Reply, kind: str = PROTOBUF) -> Said:
    """A 200 with an answer of the type of the request."""
    if reply.status != 200:
        return Said(met=False, did=str(reply))
    if reply.type != kind:
        return Said(met=False, did=f"200, Content-Type {reply.type or 'none'}")
    return Said(met=True) if accepted(reply) is not None else Said(met=False, did=f"200, {reply.body[:40]!r}")


def took_call(called: Called) -> Said:
    return Said(met=True) if called.code == "OK" else Said(met=False, did=called.code)


def plain_protobuf(target: Target) -> Said:
    return took(ask(target, one_span().SerializeToString()))


def gzip_protobuf(target: Target) -> Said:
    return took(ask(target, gzip.compress(one_span().SerializeToString()), encoding="gzip"))


def gzip_in_members(target: Target) -> Said:
    whole = one_span(text="x" * 1000).SerializeToString()
    return took(ask(target, gzip.compress(whole[:500]) + gzip.compress(whole[500:]), encoding="gzip"))


def plain_json(target: Target) -> Said:
    return took(ask(target, json_request(json_span(*new_ids())), JSON), JSON)


def if_json(probe: Callable[[Target], Said]) -> Callable[[Target], Said]:
    """Say that a rule for JSON cannot be tried where JSON is not taken at all: that is one SHOULD, failed once."""

    def wrapped(target: Target) -> Said:
        if (reply := ask(target, b"{}", JSON)).status == 415:
            return Said(None, f"no JSON: {reply}")
        return probe(target)

    return wrapped


@if_json
def gzip_json(target: Target) -> Said:
    return took(ask(target, gzip.compress(json_request(json_span(*new_ids()))), JSON, encoding="gzip"), JSON)


@if_json
def json_with_charset(target: Target) -> Said:
    reply = ask(target, json_request(json_span(*new_ids())), f"{JSON}; charset=utf-8")
    return took(reply, JSON)


def unset_over_http(target: Target) -> Said:
    """`partial_success` is a message: set and empty is not unset."""
    answers = {
        "protobuf": ask(target, one_span().SerializeToString()),
        "JSON": ask(target, json_request(json_span(*new_ids())), JSON),
    }
    said: list[str] = []
    for name, reply in answers.items():
        if reply.status == 415:
            continue
        read = accepted(reply)
        if read is None:
            said.append(f"{name}: {reply}")
        elif read.HasField("partial_success"):
            said.append(f"{name}: {reply.body!r}")
    return Said(not said, "; ".join(said))


def unset_over_grpc(target: Target) -> Said:
    called = call(target, one_span().SerializeToString())
    if called.code != "OK":
        return took_call(called)
    set_ = ExportTraceServiceResponse.FromString(called.body).HasField("partial_success")
    return Said(not set_, f"{called.body!r}" if set_ else "")


def empty_over_http(target: Target) -> Said:
    replies = {"protobuf": ask(target, b""), "JSON": ask(target, b"{}", JSON)}
    wrong = [f"{name}: {reply}" for name, reply in replies.items() if reply.status not in (200, 415)]
    return Said(not wrong, "; ".join(wrong))


def empty_envelopes(target: Target) -> Said:
    replies = [ask(target, b'{"resourceSpans":[{"scopeSpans":[{}]},{}]}', JSON), ask(target, b"\x0a\x02\x12\x00")]
    return Said(all(reply.status in (200, 415) for reply in replies), "/".join(map(str, replies)))


def several_at_once_http(target: Target) -> Said:
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: ask(target, one_span().SerializeToString()), range(64)))
    taken = sum(reply.status == 200 for reply in replies)
    return Said(taken == len(replies), "" if taken == len(replies) else f"{taken} of {len(replies)}")


def several_at_once_grpc(target: Target) -> Said:
    import grpc

    assert target.grpc
    metadata = [("authorization", f"Bearer {target.token}")] if target.token else []
    with grpc.insecure_channel(target.grpc) as channel:
        asked = channel.unary_unary(EXPORT, request_serializer=None, response_deserializer=None)
        waiting = [asked.future(one_span().SerializeToString(), timeout=30, metadata=metadata) for _ in range(64)]
        taken = sum(each.exception() is None for each in waiting)
    return Said(taken == len(waiting), "" if taken == len(waiting) else f"{taken} of {len(waiting)}")


def kept_alive(target: Target) -> Said:
    return on_one_connection(target, [one_span().SerializeToString()] * 3, [200] * 3)


def kept_alive_after_error(target: Target) -> Said:
    return on_one_connection(target, [BROKEN, one_span().SerializeToString()], [None, 200])


def on_one_connection(target: Target, bodies: list[bytes], expected: list[int | None]) -> Said:
    connection = connected(target)
    try:
        local: set[object] = set()
        replies: list[Reply] = []
        for body in bodies:
            replies.append(ask_on(connection, target, body))
            if connection.sock is None:
                return Said(met=False, did=f"closed after {replies[-1]}")
            local.add(connection.sock.getsockname())
    finally:
        connection.close()
    fits = all(wanted in (None, reply.status) for wanted, reply in zip(expected, replies, strict=True))
    return Said(fits and len(local) == 1, "" if fits else "/".join(map(str, replies)))


def chunked_body(target: Target) -> Said:
    return took(ask(target, one_span().SerializeToString(), chunked=True))


def logs_too(target: Target) -> Said:
    return Said((reply := ask(target, b"", path="/v1/logs")).status == 200, str(reply))


def grpc_plain(target: Target) -> Said:
    return took_call(call(target, one_span().SerializeToString()))


def grpc_gzip(target: Target) -> Said:
    return took_call(call(target, one_span(text="x" * 1000).SerializeToString(), compressed=True))


def grpc_empty(target: Target) -> Said:
    return took_call(call(target, b""))


# ---- limits


def large_over_http(target: Target) -> Said:
    return just_status(ask(target, sized(target.limit - MIB)), 200)


def large_over_grpc(target: Target) -> Said:
    return took_call(call(target, sized(target.limit - MIB)))


def over_limit(target: Target) -> tuple[Reply, Reply, Reply]:
    whole = sized(target.limit + MIB)
    return ask(target, whole), ask(target, gzip.compress(whole, 1), encoding="gzip"), ask(target, whole, chunked=True)


def limited_over_http(target: Target) -> Said:
    replies = over_limit(target)
    return Said(all(400 <= reply.status < 500 for reply in replies), said_of_each(replies))


def too_large_is_413(target: Target) -> Said:
    replies = over_limit(target)
    return Said(all(reply.status == 413 for reply in replies), said_of_each(replies))


@if_json
def too_large_as_json(target: Target) -> Said:
    body = json_request(
        json_span(*new_ids(), attributes=[{"key": "k", "value": {"stringValue": "x" * (target.limit)}}])
    )
    reply = ask(target, body, JSON)
    return Said(reply.status == 413 and described(reply, JSON), f"{reply}, {reply.type or 'no type'}")


def said_of_each(replies: tuple[Reply, Reply, Reply]) -> str:
    if len({str(reply) for reply in replies}) == 1:
        return str(replies[0])
    return ", ".join(f"{name}: {reply}" for name, reply in zip(("plain", "gzip", "chunked"), replies, strict=True))


def limited_over_grpc(target: Target) -> Said:
    body = sized(target.limit + MIB)
    calls = {"plain": call(target, body), "gzip": call(target, body, compressed=True)}
    codes = {name: called.code + (" with RetryInfo" if called.retry_info else "") for name, called in calls.items()}
    wrong = {name: code for name, code in codes.items() if code != "RESOURCE_EXHAUSTED"}
    return Said(not wrong, ", ".join(f"{name}: {code}" for name, code in wrong.items()))


def bomb(target: Target) -> Said:
    """1 GiB in 1 MiB: refused, and the server is there afterwards."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(4 * MIB)) for _ in range(256)) + packer.flush()
    reply = ask(target, packed, encoding="gzip", wait=30)
    after = plain_protobuf(target)
    return Said(
        400 <= reply.status < 500 and after.met is True, str(reply) + ("" if after.met else f"; then {after.did}")
    )


def answer_is_small(target: Target) -> Said:
    """Errors must not grow with the request."""
    reply = ask(target, b"\xff" * 8 * MIB)
    return Said(0 < len(reply.body) <= 4 * MIB or reply.status == 200, f"{len(reply.body)} bytes")


# ---- refusing what is not


def described(reply: Reply, kind: str | None = PROTOBUF) -> bool:
    """Whether an error's body is a `Status`, in the encoding of the request where that is known."""
    return status_of(reply) is not None and (kind is None or reply.type == kind) and bool(reply.body)


def just_status(reply: Reply, *wanted: int) -> Said:
    return Said(reply.status in wanted, "" if reply.status in wanted else str(reply))


def with_status(reply: Reply, kind: str | None = PROTOBUF) -> Said:
    if not 400 <= reply.status < 600:
        return Said(met=False, did=str(reply))
    if described(reply, kind):
        return Said(met=True, did=str(reply))
    return Said(met=False, did=f"{reply}, {reply.type or 'no Content-Type'}: {reply.body[:32]!r}")


def bad_protobuf(target: Target) -> Said:
    return just_status(ask(target, BROKEN), 400)


def cut_protobuf(target: Target) -> Said:
    return just_status(ask(target, one_span(text="x" * 100).SerializeToString()[:-40]), 400)


def bad_utf8(target: Target) -> Said:
    """proto3 strings are UTF-8: refused, or taken; never a failure of the server's own."""
    body = one_span(text="x" * 10).SerializeToString().replace(b"x" * 10, b"\xff" * 10)
    return just_status(ask(target, body), 200, 400)


@if_json
def bad_json(target: Target) -> Said:
    bodies = [b'{"resourceSpans":[', b"[]", b'{"resourceSpans":{"a":1}}', b"\xff\xfe"]
    replies = {body: ask(target, body, JSON) for body in bodies}
    wrong = [f"{body.decode('latin-1')}: {reply}" for body, reply in replies.items() if reply.status != 400]
    return Said(not wrong, ", ".join(wrong))


@if_json
def bad_id_in_json(target: Target) -> Said:
    return just_status(ask(target, json_request(json_span("not hex", "at all")), JSON), 400)


def bad_gzip(target: Target) -> Said:
    packed = gzip.compress(one_span(text="x" * 1000).SerializeToString())
    replies = [ask(target, body, encoding="gzip") for body in (b"no gzip at all", packed[:-30])]
    return Said(all(reply.status == 400 for reply in replies), "/".join(dict.fromkeys(map(str, replies))))


def error_is_status(target: Target) -> Said:
    return with_status(ask(target, BROKEN))


@if_json
def error_is_json_status(target: Target) -> Said:
    return with_status(ask(target, b'{"resourceSpans":[', JSON), JSON)


def error_has_message(target: Target) -> Said:
    found = status_of(ask(target, BROKEN))
    return Said(found is not None and found.message != "", found.message[:60] if found else "no Status")


def error_has_details(target: Target) -> Said:
    replies = [ask(target, BROKEN), ask(target, b"[", JSON)]
    return Said(all(detailed(reply) for reply in replies if reply.status != 415))


def unknown_path(target: Target) -> Said:
    return just_status(ask(target, b"", path="/v1/nothing"), 404)


def unknown_path_is_status(target: Target) -> Said:
    return with_status(ask(target, b"", path="/v1/nothing"))


def other_method(target: Target) -> Said:
    reply = ask(target, b"", "", method="GET")
    return Said(
        reply.status == 405 and "POST" in reply.headers.get("allow", ""), f"{reply}, Allow {reply.headers.get('allow')}"
    )


def other_method_is_status(target: Target) -> Said:
    return with_status(ask(target, b"", method="PUT"))


def other_type(target: Target) -> Said:
    replies = [ask(target, b"<x/>", "text/xml"), ask(target, one_span().SerializeToString(), "")]
    return Said(all(reply.status == 415 for reply in replies), "/".join(dict.fromkeys(map(str, replies))))


def other_type_is_status(target: Target) -> Said:
    return with_status(ask(target, b"<x/>", "text/xml"), None)


def other_encoding(target: Target) -> Said:
    return just_status(ask(target, b"x", encoding="rot13"), 400, 415)


def other_encoding_is_status(target: Target) -> Said:
    return with_status(ask(target, b"x", encoding="rot13"))


def too_large_is_status(target: Target) -> Said:
    for reply in over_limit(target):
        if not (said := with_status(reply)).met:
            return said
    return Said(met=True)


def grpc_bad_message(target: Target) -> Said:
    called = call(target, BROKEN)
    return Said(called.code not in {"OK", *RETRYABLE_CODES} and not called.retry_info, called.code)


def grpc_invalid_argument(target: Target) -> Said:
    return Said((called := call(target, BROKEN)).code == "INVALID_ARGUMENT", called.code)


def grpc_unknown_method(target: Target) -> Said:
    called = call(target, b"", "/opentelemetry.proto.collector.trace.v1.TraceService/Nothing")
    return Said(called.code == "UNIMPLEMENTED", called.code)


# ---- JSON, and what is kept


def new_ids() -> tuple[str, str]:
    span = one_span().resource_spans[0].scope_spans[0].spans[0]
    return span.trace_id.hex(), span.span_id.hex()


def kept(target: Target, *spans: dict[str, object], **more: object) -> Iterator[dict[str, object]]:
    """Send spans as JSON, and give what is kept of their trace, as dictionaries."""
    reply = ask(target, json_request(*spans, **more), JSON)
    if reply.status != 200:
        message = f"answered {reply}"
        raise ValueError(message)
    assert target.stored
    for each in target.stored(str(spans[0]["traceId"]).lower()):
        yield {"span": each.span_id, "kind": each.kind, "start": each.start_ns, "name": each.name, **each.attributes}


def looked_at(probe: Callable[[Target], Said]) -> Callable[[Target], Said]:
    """Say that a rule cannot be tried where nobody can see what a server keeps."""

    def wrapped(target: Target) -> Said:
        if target.stored:
            return probe(target)
        return Said(None, "what it keeps is not looked at")

    return wrapped


@if_json
@looked_at
def ids_in_any_case(target: Target) -> Said:
    trace_id, span_id = new_ids()
    found = [each["span"] for each in kept(target, json_span(trace_id.upper(), span_id.upper()))]
    return Said(found == [span_id], "" if found == [span_id] else f"kept {found}")


@if_json
@looked_at
def numbers_either_way(target: Target) -> Said:
    trace_id, span_id = new_ids()
    times = {"startTimeUnixNano": 1_700_000_000_000_000_003, "endTimeUnixNano": "1700000000000000004"}
    values = [{"key": "a", "value": {"intValue": "9007199254740993"}}, {"key": "b", "value": {"intValue": 7}}]
    found = [
        (each["start"], each.get("a"), each.get("b"))
        for each in kept(target, json_span(trace_id, span_id, attributes=values, **times))
    ]
    wanted = [(1_700_000_000_000_000_003, 9007199254740993, 7)]
    return Said(found == wanted, "" if found == wanted else f"kept {found}")


@if_json
@looked_at
def bytes_in_base64(target: Target) -> Said:
    values = [{"key": "a", "value": {"bytesValue": "AP8Q"}}]
    found = [each.get("a") for each in kept(target, json_span(*new_ids(), attributes=values))]
    return Said(found == [b"\x00\xff\x10"], "" if found == [b"\x00\xff\x10"] else f"kept {found}")


@if_json
@looked_at
def unknown_names_ignored(target: Target) -> Said:
    unknown = {"brandNew": {"a": [1, {"b": None}]}, "alsoNew": "x"}
    found = [each["name"] for each in kept(target, json_span(*new_ids(), **unknown), **unknown)]
    return Said(found == ["probe"], "" if found == ["probe"] else f"kept {found}")


@if_json
@looked_at
def snake_case_is_no_name(target: Target) -> Said:
    """A key in snake_case is an unknown name, and ignored like one."""
    span = {**json_span(*new_ids()), "start_time_unix_nano": "5"}
    found = [each["start"] for each in kept(target, span)]
    right = found == [1_700_000_000_000_000_000]
    return Said(right, "" if right else f"start_time_unix_nano: 5 was taken: {found}")


@looked_at
def unknown_protobuf_ignored(target: Target) -> Said:
    request = one_span()
    body = request.SerializeToString() + UNKNOWN_FIELD
    reply = ask(target, body)
    assert target.stored
    count = len(target.stored(request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()))
    return Said(reply.status == 200 and count == 1, "" if count == 1 else f"{reply}, {count} kept")


@looked_at
def rejected_are_counted(target: Target) -> Said:
    """One span with ids of zeros beside a good one: what is not kept is counted, and the good one is kept."""
    request = one_span()
    spans = request.resource_spans[0].scope_spans[0].spans
    spans.add(trace_id=spans[0].trace_id, span_id=bytes(8), name="no id")
    read = accepted(reply := ask(target, request.SerializeToString()))
    if read is None:
        return Said(met=False, did=f"{reply}: the good one is refused too")
    assert target.stored
    count = len(target.stored(spans[0].trace_id.hex()))
    rejected = read.partial_success.rejected_spans
    return Said(count + rejected == 2 and count >= 1, f"{count} kept, {rejected} counted as rejected")


@looked_at
def rejected_are_explained(target: Target) -> Said:
    request = one_span()
    spans = request.resource_spans[0].scope_spans[0].spans
    spans.add(trace_id=bytes(16), span_id=bytes(8), name="no id")
    read = accepted(ask(target, request.SerializeToString()))
    if read is None or not read.partial_success.rejected_spans:
        return Said(None, "rejects none")
    return Said(bool(read.partial_success.error_message), read.partial_success.error_message[:60])


@looked_at
def doubles_folded(target: Target) -> Said:
    request = one_span()
    replies = [ask(target, request.SerializeToString()) for _ in range(2)]
    assert target.stored
    count = len(target.stored(request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()))
    return Said(all(reply.status == 200 for reply in replies) and count == 1, "" if count == 1 else f"{count} kept")


# ---- who may send, and too much of it


def stranger_refused(target: Target) -> Said:
    if not target.token:
        return Said(None, "no token set")
    stranger = Target(name=target.name, http=target.http, grpc=target.grpc)
    reply = ask(stranger, one_span().SerializeToString())
    return Said(reply.status == 401 and described(reply), f"{reply}, {reply.type or 'no Content-Type'}")


def stranger_refused_grpc(target: Target) -> Said:
    if not target.token:
        return Said(None, "no token set")
    called = call(Target(name=target.name, http=target.http, grpc=target.grpc), one_span().SerializeToString())
    return Said(called.code == "UNAUTHENTICATED", called.code)


def full_is_retryable(target: Target) -> Said:
    if not target.choked:
        return Said(None, "could not be brought about")
    return just_status(ask(target.choked, one_span().SerializeToString()), 429, 503)


def full_is_status(target: Target) -> Said:
    if not target.choked:
        return Said(None, "could not be brought about")
    return with_status(ask(target.choked, one_span().SerializeToString()))


def full_says_when(target: Target) -> Said:
    if not target.choked:
        return Said(None, "could not be brought about")
    reply = ask(target.choked, one_span().SerializeToString())
    return Said("retry-after" in reply.headers, f"Retry-After {reply.headers.get('retry-after')}")


def full_is_unavailable(target: Target) -> Said:
    if not (target.choked and target.choked.grpc):
        return Said(None, "could not be brought about")
    called = call(target.choked, one_span().SerializeToString())
    right = called.code == "UNAVAILABLE" or (called.code == "RESOURCE_EXHAUSTED" and called.retry_info)
    return Said(right, called.code + (" with RetryInfo" if called.retry_info else ""))
