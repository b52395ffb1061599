"""Calls over gRPC: how one is told as a request over HTTP, and how what came of it is spelled.

Theory of operation. A client's method is cut where a message has become bytes, inside the interceptors that the program
or its SDK put around it: those run in a replay as they ran before. The question is the address, the method and the
message; the metadata is none, since credentials go there. The answer is the message, with the metadata that holds no
secret: of the beginning under its own names, of the end under names with `trailer:` before them. A status that is not
OK is an error, written down with all that an agent can read of it. Nothing connects in a replay: a channel does so at
its first call.

Where a shape reads a method (`shapes.google_generate_content`), its call is one of a model.

A call by which the program streams to the server cannot be answered before its end, and is not cut: it is said to go
past the recorder, and refused in a replay, as is one that nobody could read.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import unquote

from reenact.boundary import offers, place, plain_http, protobuf_json
from reenact.boundary.forgiving import forgive
from reenact.boundary.question import PLAIN_HTTP
from reenact.boundary.touches import NATIVE
from reenact.contracts.doorman import Passage
from reenact.values import alarms, typed
from reenact.values.call import GRPC, Body, Call, CallKind, ExceptionRecord, HttpRequest
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text

OK: Final = 200
"""The status of every reply: HTTP/2 has no other for one that gRPC understands."""
_TRAILER: Final = "trailer:"
_BINARY: Final = "-bin"
"""How the name of metadata ends that is bytes (gRPC over HTTP2, "Custom-Metadata")."""
_PORT: Final = 443
_STATUS_FIELDS: Final = 6
_DATABASES: Final = {"qdrant": "qdrant", "milvus": "milvus"}
"""The packages of methods that are a database's, with OpenTelemetry's `db.system.name`."""

Metadata = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method of a server, as a channel has it."""

    path: str
    """`/package.Service/Name`."""
    target: str
    """The channel's, by gRPC's naming: `dns:///host:port`."""
    serialize: Callable[[Any], bytes] | None = None
    deserialize: Callable[[bytes], Any] | None = None

    def value(self, data: bytes) -> Any:
        """Make what the agent gets of a message."""
        return data if self.deserialize is None else self.deserialize(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a call ended that failed, with what an agent can read of it."""

    error: str
    """The name of the library's class."""
    code: str
    """Such as `NOT_FOUND`."""
    details: str = ""
    debug: str = ""
    """What gRPC's core says."""
    initial: Metadata = field(default_factory=Metadata)
    trailing: Metadata = field(default_factory=Metadata)


class RpcError(Exception):
    """Stands for the library's error in a recording, which is an open call as well."""

    def __str__(self) -> str:
        """Say the status and its details."""
        return ": ".join(str(each) for each in self.args[1:3] if each)


RpcError.__module__ = "grpc"


def target_of(channel: Any) -> str:
    """Give the target of a channel of the library's core: a method of some, an attribute of others."""
    target: Any = getattr(channel, "target", None)
    return text(target() if callable(target) else target)


def method_of(channel: Any, path: Any, serialize: Any, deserialize: Any) -> Method | None:
    """Give a method of a channel; None where it cannot be told."""
    try:
        return Method(path=text(path), target=target_of(channel), serialize=serialize, deserialize=deserialize)
    except Exception:
        forgive("rpc.method")
        return None


def text(value: Any) -> str:
    """Give text that may be bytes, or None."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def _address(target: str) -> tuple[str, int]:
    """Give the host and port of a target (gRPC, "Name Resolution"); a unix socket is a host."""
    rest = unquote(target)
    for scheme in ("dns:", "ipv4:", "ipv6:", "passthrough:"):
        if rest.startswith(scheme):
            rest = rest.removeprefix(scheme)
            rest = rest[2:].partition("/")[2] if rest.startswith("//") else rest
            break
    host, sign, port = rest.rpartition(":")
    if not sign or not port.isdigit() or rest.startswith("unix"):
        return rest, _PORT
    return host.strip("[]"), int(port)


def reach(target: str) -> None:
    """Say, as a client in native code does, that something goes out which nobody records."""
    try:
        stays_within = plain_http.goes_to_itself(*_address(target))
    except Exception:  # it is said then
        forgive("rpc.reach")
        stays_within = False
    if not stays_within:
        sys.audit(NATIVE, "grpc", target, False)


def reach_over(channel: Any) -> None:
    """Say it of a channel of the library's core, unless a call that is recorded does so."""
    try:
        here = place.current()
        target = None if here is not None and here.whole else target_of(channel)
    except Exception:
        forgive("rpc.reach_over")
        target = ""
    if target is not None:
        reach(target)


def opened(method: Method, request: Any) -> Passage | None:
    """Let a call in; None where it goes straight through, which is said."""
    return _let_in(method.target, lambda host, port: _call(method, request, host, port))


def _let_in(target: str, make: Callable[[str, int], Call]) -> Passage | None:
    try:
        host, port = _address(target)
        doorman = plain_http.doorman(host, port)
        call = None if doorman is None else make(host, port)
    except Exception:  # our failure is never the agent's, nor is a request that its client will refuse
        forgive("rpc.call")
        doorman = call = None
    if doorman is None or call is None:
        reach(target)
        return None
    return plain_http.opened(doorman, call)


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{GRPC}{shown}:{port}"


def connecting(target: str) -> Passage | None:
    """Let a wait for a connection in; None where it goes straight through, which is said."""
    return _let_in(target, _connects)


def _connects(host: str, port: int) -> Call:
    asked = HttpRequest(shape=PLAIN_HTTP, method="CONNECT", url=_url(host, port), body=Body(b""))
    attributes: dict[str, Json] = {"rpc.system.name": "grpc"}
    return Call(kind=CallKind.UNKNOWN, name=f"CONNECT {host}", request=asked, attributes=attributes)


def _call(method: Method, request: Any, host: str, port: int) -> Call:
    data = request if method.serialize is None else method.serialize(request)
    body = Body(protobuf_json.encode(data, protobuf_json.message_class(request)))
    url = _url(host, port) + method.path
    name = method.path.removeprefix("/")
    attributes: dict[str, Json] = {"rpc.system.name": "grpc", "rpc.method": name, **_of_a_database(name, body)}
    from reenact.boundary.resource import shape_at  # as `plain_http.call`

    offers.hear(body.data)
    shape = shape_at("POST", url, body.data)
    if shape is not None:
        asked = HttpRequest(shape=shape.name, method="POST", url=url, body=body)
        return Call(kind=shape.kind, name=shape.span_name, request=asked, attributes=attributes)
    asked = HttpRequest(shape=PLAIN_HTTP, method="POST", url=url, body=body)
    return Call(kind=CallKind.UNKNOWN, name=name, request=asked, attributes=attributes)


def _of_a_database(name: str, body: Body) -> dict[str, Json]:
    """Say what OpenTelemetry says of a call of a database, where the method is one's."""
    system = _DATABASES.get(name.partition(".")[0])
    if system is None:
        return {}
    attributes: dict[str, Json] = {"db.system.name": system, "db.operation.name": name.rpartition("/")[2]}
    collection = as_object(parsed_or_none(body.data)).get("collection_name")
    return {**attributes, "db.collection.name": collection} if isinstance(collection, str) else attributes


def spell_message(method: Method, data: bytes) -> bytes:
    """Spell a message of the server's."""
    return protobuf_json.encode(data, protobuf_json.message_class(method.deserialize))


def message(method: Method, data: bytes, passage: Passage) -> Any:
    """Make what the agent gets of a recorded message. Raises a miss where redaction has spoilt it."""
    try:
        content = protobuf_json.decode(data, protobuf_json.message_class(method.deserialize))
        return method.value(content)
    except Exception as error:
        alarms.pass_on()
        raise passage.miss(f"the recorded message cannot be read any more: {error}") from error


def headers(initial: Iterable[Any] | None, trailing: Iterable[Any] | None = None) -> tuple[tuple[str, str], ...]:
    """Spell metadata as headers, less what may hold a secret."""
    begins = [(name, _plain(value)) for name, value in _safe(initial)]
    return (*begins, *((_TRAILER + name, _plain(value)) for name, value in _safe(trailing)))


def metadata(recorded_headers: Iterable[tuple[str, str]]) -> tuple[Metadata, Metadata]:
    """Give the metadata of the beginning and of the end that `headers` spelled."""
    initial, trailing = Metadata(), Metadata()
    for name, value in recorded_headers:
        where = trailing if name.startswith(_TRAILER) else initial
        where.append((name.removeprefix(_TRAILER), _bytes_or_text(name, value)))
    return initial, trailing


def _safe(pairs: Iterable[Any] | None) -> Metadata:
    every = [(text(pair[0]), pair[1]) for pair in pairs or ()]
    return [pair for pair in every if plain_http.holds_no_secret(pair[0])]


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _bytes_or_text(name: str, value: str) -> Any:
    return base64.b64decode(value) if name.endswith(_BINARY) else value


def error_of(status: Status) -> RpcError:
    """Make the error that a recording holds for a status."""
    metadata_pairs = status.initial, status.trailing
    pairs = [[[name, _plain(value)] for name, value in _safe(each)] for each in metadata_pairs]
    return RpcError(status.error, status.code, status.details, status.debug, *pairs)


def read_status(record: ExceptionRecord) -> Status | None:
    """Read the status that a recorded error is; None where it is another error."""
    if (record.module, record.qualname) != (RpcError.__module__, RpcError.__qualname__):
        return None
    values = as_list(cast("Json", typed.decode(record.args))) if record.args is not None else []
    if len(values) != _STATUS_FIELDS:
        return None
    error, code, details, debug = map(as_text, values[:4])
    initial, trailing = ([_pair(each) for each in as_list(pairs)] for pairs in values[4:])
    return Status(error=error, code=code, details=details, debug=debug, initial=initial, trailing=trailing)


def _pair(spelled: Json) -> tuple[str, Any]:
    name, value = map(as_text, (*as_list(spelled), "", "")[:2])
    return name, _bytes_or_text(name, value)


def spell_end(trailing: Iterable[Any] | None) -> Json:
    """Spell what a stream ended with, beside its status."""
    pairs: list[Json] = [[name, _plain(value)] for name, value in _safe(trailing)]
    return {"trailers": pairs} if pairs else None


def read_end(result: Json) -> Metadata:
    """Give the metadata of the end of a recorded stream."""
    return [_pair(each) for each in as_list(as_object(result).get("trailers"))]
