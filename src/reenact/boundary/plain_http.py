"""HTTP that belongs to no declared boundary: what of it is recorded, and how it is told, whichever library makes it.

A request that stands inside a tool, a retriever or a model's call is none of ours: what came of that call stands for
it. Neither is what a sender of telemetry sends.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

from reenact.boundary import door, offers, place, telemetry
from reenact.boundary.cancelled import until_interrupted
from reenact.boundary.question import PLAIN_HTTP
from reenact.contracts.doorman import Doorman, Passage
from reenact.values import alarms, typed
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    ExceptionRecord,
    HttpReply,
    HttpRequest,
    Returned,
    Rewritten,
    StreamEnd,
)
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import ENDED_LATER

REASON: Final = ":reason"
"""The pseudo header that holds a reason phrase which is not the usual one."""
_ENCODING: Final = frozenset({"content-encoding", "content-length"})
"""Headers that no longer hold where a body was decoded."""
_SECRET: Final = re.compile(
    r"cookie|token(?!s|-count)|secret|authori[sz]ation|authenticat|api-?key|session|signature|password"
)
"""Names of headers whose values are never written down."""
_NOTHING: Final[dict[str, Json]] = {}
_reads_whole: ContextVar[bool] = ContextVar("reenact_reads_whole", default=False)


def doorman(host: str | None = None, port: int | None = None) -> Doorman | None:
    """Give the doorman in charge of a request to a host, or None where it goes straight through."""
    here = place.current()
    if (here is not None and here.whole) or not door.is_kept() or telemetry.is_sending():
        return None
    return None if host is not None and goes_to_itself(host, port) else door.doorman()


def goes_to_itself(host: str, port: int | None) -> bool:
    """Tell whether a program that is replayed as a whole talks to a server of its own, which answers there as well.

    Of a unit that came in nothing but itself is replayed.
    """
    from reenact.boundary import inbound, own_processes  # whoever reads a recording needs none of them

    if port is None or not own_processes.is_whole() or inbound.current() is not None:
        return False
    from reenact.boundary import listeners  # most programs have none

    return listeners.is_this_machine(host) and listeners.is_own_server(host, port)


@contextmanager
def reading_whole(*, whole: bool) -> Generator[None]:
    """Say for a while whether the agent will get each reply in one piece."""
    before = _reads_whole.get()
    _reads_whole.set(whole)
    try:
        yield
    finally:
        _reads_whole.set(before)


def reads_whole() -> bool:
    """Tell whether the agent gets the reply in one piece."""
    return _reads_whole.get()


@lru_cache(maxsize=512)
def _address(url: str) -> tuple[str, str]:
    """Give a URL without credentials and fragment, and the host's name."""
    split = urlsplit(url)
    return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2], fragment="")), split.hostname or ""


def call(method: str, url: str, body: bytes) -> Call:
    """Make the call of a request: of a model where it speaks a provider's API. `url` is absolute."""
    offers.hear(body)  # a model may be asked by hand
    from reenact.boundary.resource import shape_at  # most programs start without it

    address, host = _address(url)
    shape = shape_at(method, address, body)
    if shape is not None:
        asked = HttpRequest(shape=shape.name, method=method, url=address, body=Body(body))
        return Call(kind=shape.kind, name=shape.span_name, request=asked, attributes=_NOTHING)
    request = HttpRequest(shape=PLAIN_HTTP, method=method, url=address, body=Body(body))
    return Call(kind=CallKind.UNKNOWN, name=f"{method} {host}".strip(), request=request, attributes=_NOTHING)


def opened(doorman: Doorman, call: Call) -> Passage:
    """Let a call in. These libraries have framed, and some have signed, the body: no fork can put another in its place.

    Raises a miss where one is to.
    """
    passage = doorman.open(call)
    if isinstance(passage.answer, Rewritten):
        error = passage.miss(
            "this HTTP library has framed its request already, and another cannot be sent in its place"
        )
        passage.raised(error)
        raise error
    return passage


def body_bytes(body: Any) -> bytes | None:
    """Read a request body without using it up; None where that cannot be had, as with a generator."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(cast("bytes", body))
    if hasattr(body, "read"):
        return _file_bytes(body)
    if isinstance(body, list | tuple) and all(isinstance(piece, bytes) for piece in cast("list[Any]", body)):
        return b"".join(cast("list[bytes]", body))
    return None


def _file_bytes(file: Any) -> bytes | None:
    try:
        if not file.seekable():
            return None
        at = file.tell()
        data = file.read()
        file.seek(at)
    except Exception:  # a file of the agent's own making
        alarms.pass_on()
        return None
    return data.encode() if isinstance(data, str) else bytes(data)


def headers(
    pairs: Iterable[tuple[str, str]], status: int, reason: str | None, *, decoded: bool
) -> tuple[tuple[str, str], ...]:
    """Pick the headers to keep, spelled as they came: all but those that may hold a secret.

    `decoded` says that the body loses its content encoding, and with it the headers that speak of it.
    """
    return _kept([pair for pair in pairs if holds_no_secret(pair[0].lower())], status, reason, decoded=decoded)


def reply_headers(
    pairs: Iterable[tuple[str, str]], status: int, reason: str | None, *, decoded: bool, recorded: bool = False
) -> tuple[tuple[str, str], ...]:
    """Pick the headers to keep of a reply that the program gets: all, with stand-ins for secrets.

    Those of a `recorded` reply hold stand-ins already.
    """
    safe_headers = [pair if holds_no_secret(pair[0].lower()) else _hidden(*pair, recorded=recorded) for pair in pairs]
    return _kept(safe_headers, status, reason, decoded=decoded)


def _hidden(name: str, value: str, *, recorded: bool) -> tuple[str, str]:
    from reenact.boundary.reply_secrets import hide, kept_name  # most replies hold no secret

    return (kept_name(name), value) if recorded else hide(name, value)


def _kept(
    pairs: list[tuple[str, str]], status: int, reason: str | None, *, decoded: bool
) -> tuple[tuple[str, str], ...]:
    if decoded and any(name.lower() == "content-encoding" for name, _ in pairs):
        pairs = [pair for pair in pairs if pair[0].lower() not in _ENCODING]
    return (*pairs, (REASON, reason)) if reason is not None and reason != phrase(status) else tuple(pairs)


def holds_no_secret(name: str) -> bool:
    """Tell by its name, in lower case, whether a header may be written down."""
    return _SECRET.search(name) is None


def phrase(status: int) -> str:
    """Give the usual reason phrase of a status; empty for one that has none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def split_reason(recorded_headers: Iterable[tuple[str, str]], status: int) -> tuple[list[tuple[str, str]], str]:
    """Part recorded headers, as the program gets them, from the reason phrase."""
    from reenact.boundary.reply_secrets import spell_back

    header_pairs = spell_back(recorded_headers)
    reason = next((value for name, value in header_pairs if name == REASON), phrase(status))
    return [(name, value) for name, value in header_pairs if name != REASON], reason


class _Told:
    """Stands for an object of an error's arguments that could not be written down: a connection, a pool."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def failure(record: ExceptionRecord, passage: Passage | None = None) -> BaseException:
    """Make the recorded error, so that it also shows as it did: libraries put one into the message of the next.

    Where the agent's own greenlet may be interrupted, on the way of `passage`, that is waited for and raised.
    """
    error = typed.decode_exception(record)
    arguments = as_list(record.args)
    if any(_is_unstable(item) for item in arguments):
        error.args = tuple(_argument(item, record.message) for item in arguments)
    if passage is not None:
        until_interrupted(passage, error)
    return error


def _is_unstable(item: Json) -> bool:
    return isinstance(item, dict) and "$unstable" in item


def _argument(item: Json, message: str) -> object:
    if not _is_unstable(item):
        return typed.decode(item)
    spelling = as_text(as_object(item).get("repr"))
    match = re.search(re.escape(spelling).replace("0x", "0x[0-9a-f]*"), message)  # the message still has the address
    return _Told(match[0] if match else spelling)


class Telling:
    """What is told of one reply while its body is read: as a whole where the agent gets it so, or piece by piece."""

    def __init__(self, passage: Passage, status: int, pairs: tuple[tuple[str, str], ...], *, whole: bool) -> None:
        self._passage, self._status, self._headers, self._whole = passage, status, pairs, whole
        self._pieces: list[bytes] = []
        self._open = True
        if not whole:
            passage.head(status, pairs)

    def piece(self, data: bytes) -> None:
        """Tell a piece of the body, decoded, before the agent gets it."""
        if not self._open or not data:
            return
        if self._whole:
            self._pieces.append(data)
        else:
            self._passage.chunk(data)

    def end_later(self) -> None:
        """Tell that the end came by itself, behind the last piece."""
        if self._open and not self._whole:
            self._passage.annotate({ENDED_LATER: "[true]"})
            self.end(StreamEnd.FINISHED)

    def end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        """Tell how the body came to its end, once."""
        if not self._open:
            return
        self._open = False
        if self._whole and end is StreamEnd.FINISHED:
            reply = HttpReply(status=self._status, headers=self._headers, body=Body(b"".join(self._pieces)))
            self._passage.closed(Returned(payload=reply))
            return
        if self._whole:
            self._passage.head(self._status, self._headers)
            for piece in self._pieces:  # the library's error may tell how it came
                self._passage.chunk(piece)
        self._passage.ended(end, error)
