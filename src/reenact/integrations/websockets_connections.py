"""The library `websockets`, asyncio and blocking: cut where a client connects, and where messages pass.

In a replay it connects to a server of ours within the process (`boundary.websocket_talk`), and is otherwise as it is.
Messages are told whole, also those that are sent or read in fragments. Its older client (`websockets.legacy`) and
`reconnect` of the blocking one are said to go out, and refused in a replay.
"""

from __future__ import annotations

import asyncio
import sys
import time
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Final, cast

from reenact.boundary import door, lanes, websocket_talk
from reenact.boundary.forgiving import forgive
from reenact.boundary.websocket_talk import Close, Talk
from reenact.contracts.integration import Integration, PatchSet

_TALK: Final = "_reenact_talk"
_CLOSED_WITHIN_S, _LOOK_S = 10.0, 0.001


def _talk(connection: Any) -> Talk | None:
    return cast("Talk | None", vars(connection).get(_TALK)) if door.is_kept() else None


def _open(url: object) -> Talk | None:
    passage = websocket_talk.opened(str(url))
    return None if passage is None else Talk(passage)


def _begin(talk: Talk, connection: Any) -> None:
    """Tell that a connection is open, and hear from now on what passes over it."""
    vars(connection)[_TALK] = talk
    weakref.finalize(connection, talk.tell_loss)
    try:
        headers = [*connection.response.headers.raw_items()]
    except Exception:  # of a version that keeps none
        forgive("websockets.headers")
        headers = []
    talk.tell_handshake(headers)


def _tell_failure(talk: Talk, error: BaseException) -> None:
    """Tell that there is no connection; a server that said so with another status answers that again."""
    response: Any = getattr(error, "response", None)
    try:
        refusal = None
        if response is not None:
            refusal = int(response.status_code), [*response.headers.raw_items()], bytes(response.body or b"")
    except Exception:
        forgive("websockets.response")
        refusal = None
    if refusal is None:
        talk.tell_failure(error)
    else:
        talk.tell_refusal(*refusal)


def _close(connection: Any) -> Close:
    """Say how a connection was closed."""
    try:
        protocol = connection.protocol
        if protocol.close_rcvd is None:  # the other side has said nothing
            return Close("server" if protocol.close_sent is None else "client")
        code, reason = protocol.close_rcvd.code, protocol.close_rcvd.reason
        return Close("server" if protocol.close_rcvd_then_sent else "client", int(code), str(reason))
    except Exception:
        forgive("websockets.close")
        return Close("server")


def _is_closed(error: BaseException) -> bool:
    return type(error).__name__.startswith("ConnectionClosed")


# asyncio


def _connect_async(original: Any) -> Any:
    """Wrap what makes a connection, and repeats it where the server leads elsewhere."""

    @wraps(original)
    async def connect(self: Any) -> Any:
        talk = _open(self.uri)
        if talk is None:
            return await original(self)
        try:
            with talk.passage.crossing(), lanes.aside():
                self.__dict__[_TALK] = talk
                connection = await original(self)
        except BaseException as error:
            _tell_failure(talk, error)
            raise
        finally:
            self.__dict__.pop(_TALK, None)
        _begin(talk, connection)
        return connection

    return connect


def _stream_async(original: Any) -> Any:
    """Wrap what connects a socket: in a replay it is one end of a pair."""

    @wraps(original)
    async def connect(self: Any) -> Any:
        talk: Talk | None = self.__dict__.get(_TALK)
        if talk is None or not talk.is_recorded:
            return await original(self)
        await talk.passage.wait_async(talk.handshake_order)
        server = talk.begin()
        make, address = getattr(self, "factory", None), getattr(self, "ws_uri", None)
        if make is None or address is None:  # before version 17
            make, address = self.protocol_factory, sys.modules["websockets.uri"].parse_uri(self.uri)
        _, connection = await asyncio.get_running_loop().create_connection(partial(make, address), sock=server.client)
        return connection

    return connect


def _recv_async(original: Any) -> Any:
    @wraps(original)
    async def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        talk = _talk(self)
        if talk is None:
            return await original(self, *args, **kwargs)
        if talk.is_recorded:
            await _next_async(talk)
        message = await _ask(talk, self, original(self, *args, **kwargs))
        talk.tell_message("received", message)
        return message

    return recv


async def _next_async(talk: Talk) -> None:
    """Have the next recorded message, or the recorded end, come to the library."""
    if (item := talk.next_received()) is not None:
        await talk.passage.wait_async(item.order)
        talk.hand_over(item)
    elif (order := talk.close_order) is not None:
        await talk.passage.wait_async(order)
        talk.close_as_recorded()


async def _ask(talk: Talk, connection: Any, coming: Any) -> Any:
    try:
        with talk.passage.crossing(), lanes.aside():
            return await coming
    except Exception as error:
        if _is_closed(error):
            talk.tell_close(_close(connection))
        raise


def _recv_pieces_async(original: Any) -> Any:
    @wraps(original)
    async def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        talk = _talk(self)
        if talk is not None and talk.is_recorded:
            await _next_async(talk)
        pieces = list[Any]()
        stream = original(self, *args, **kwargs)
        while True:
            try:
                piece = await (anext(stream) if talk is None else _ask(talk, self, anext(stream)))
            except StopAsyncIteration:
                break
            pieces.append(piece)
            yield piece
        if talk is not None:
            talk.tell_message("received", websocket_talk.read_message(pieces)[1] or "")

    return recv_streaming


def _send_async(original: Any) -> Any:
    @wraps(original)
    async def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> None:
        talk = _talk(self)
        if talk is None:
            return await original(self, message, *args, **kwargs)
        if isinstance(message, AsyncIterable):
            message = [piece async for piece in cast("AsyncIterable[Any]", message)]
        message, data = websocket_talk.read_message(message)
        if data is not None and talk.is_recorded:
            order = talk.order_to_send(data)
            await talk.passage.wait_async(talk.passage.end_order if order is None else order)
            if order is None:
                talk.close_as_recorded()
                await _until_closed_async(self)
        await _ask(talk, self, original(self, message, *args, **kwargs))
        if data is not None:
            talk.tell_message("sent", data)
        return None

    return send


async def _until_closed_async(connection: Any) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(connection.wait_closed(), _CLOSED_WITHIN_S)


def _close_async(original: Any) -> Any:
    @wraps(original)
    async def close(self: Any, *args: Any, **kwargs: Any) -> None:
        talk = _talk(self)
        if talk is None:
            await original(self, *args, **kwargs)
            return
        with talk.passage.crossing(), lanes.aside():
            await original(self, *args, **kwargs)
        talk.tell_close(_close(self))

    return close


# blocking


def _connect(original: Any) -> Any:
    @wraps(original)
    def connect(uri: Any, *args: Any, **kwargs: Any) -> Any:
        talk = _open(uri)
        if talk is None:
            return original(uri, *args, **kwargs)
        try:
            if talk.is_recorded:
                talk.passage.wait(talk.handshake_order)
                kwargs = {name: value for name, value in kwargs.items() if name not in _OF_TLS}
                kwargs["sock"] = talk.begin().client
                uri = websocket_talk.plain_address(uri)
            with talk.passage.crossing(), lanes.aside():
                connection = original(uri, *args, **kwargs)
        except BaseException as error:
            _tell_failure(talk, error)
            raise
        _begin(talk, connection)
        return connection

    return connect


_OF_TLS: Final = frozenset({"ssl", "ssl_context", "server_hostname", "proxy", "proxy_ssl", "proxy_server_hostname"})


def _recv(original: Any) -> Any:
    @wraps(original)
    def recv(self: Any, *args: Any, **kwargs: Any) -> Any:
        talk = _talk(self)
        if talk is None:
            return original(self, *args, **kwargs)
        if talk.is_recorded:
            _next(talk)
        message = _ask_now(talk, self, lambda: original(self, *args, **kwargs))
        talk.tell_message("received", message)
        return message

    return recv


def _next(talk: Talk) -> None:
    if (item := talk.next_received()) is not None:
        talk.passage.wait(item.order)
        talk.hand_over(item)
    elif (order := talk.close_order) is not None:
        talk.passage.wait(order)
        talk.close_as_recorded()


def _ask_now(talk: Talk, connection: Any, hear: Callable[[], Any]) -> Any:
    try:
        with talk.passage.crossing(), lanes.aside():
            return hear()
    except TimeoutError as error:
        talk.tell_message("late", str(error))
        raise
    except Exception as error:
        if _is_closed(error):
            talk.tell_close(_close(connection))
        raise


def _recv_pieces(original: Any) -> Any:
    @wraps(original)
    def recv_streaming(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        talk = _talk(self)
        if talk is None:
            yield from original(self, *args, **kwargs)
            return
        if talk.is_recorded:
            _next(talk)
        pieces = list[Any]()
        stream = original(self, *args, **kwargs)
        while True:
            try:
                piece = _ask_now(talk, self, lambda: next(stream))
            except StopIteration:
                break
            pieces.append(piece)
            yield piece
        talk.tell_message("received", websocket_talk.read_message(pieces)[1] or "")

    return recv_streaming


def _send(original: Any) -> Any:
    @wraps(original)
    def send(self: Any, message: Any, *args: Any, **kwargs: Any) -> None:
        talk = _talk(self)
        if talk is None:
            return original(self, message, *args, **kwargs)
        message, data = websocket_talk.read_message(message)
        if data is not None and talk.is_recorded:
            order = talk.order_to_send(data)
            talk.passage.wait(talk.passage.end_order if order is None else order)
            if order is None:
                talk.close_as_recorded()
                _until_closed(self)
        _ask_now(talk, self, lambda: original(self, message, *args, **kwargs))
        if data is not None:
            talk.tell_message("sent", data)
        return None

    return send


def _until_closed(connection: Any) -> None:
    until = time.monotonic() + _CLOSED_WITHIN_S
    while getattr(connection.protocol.state, "name", "") == "OPEN" and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _close_now(original: Any) -> Any:
    @wraps(original)
    def close(self: Any, *args: Any, **kwargs: Any) -> None:
        talk = _talk(self)
        if talk is None:
            original(self, *args, **kwargs)
            return
        with talk.passage.crossing(), lanes.aside():
            original(self, *args, **kwargs)
        talk.tell_close(_close(self))

    return close


def _install(patches: PatchSet) -> None:
    def asynchronous(module: Any) -> None:
        outer = "connect" if hasattr(module.connect, "open_tcp_connection") else "__await_impl__"
        inner = "open_tcp_connection" if hasattr(module.connect, "open_tcp_connection") else "create_connection"
        patches.replace(module.connect, outer, _connect_async)
        patches.replace(module.connect, inner, _stream_async)
        for name, make in (
            ("recv", _recv_async),
            ("recv_streaming", _recv_pieces_async),
            ("send", _send_async),
            ("close", _close_async),
        ):
            patches.replace(module.ClientConnection, name, make)

    def blocking(module: Any) -> None:
        patches.replace(module, "connect", _connect)
        for name, make in (
            ("recv", _recv),
            ("recv_streaming", _recv_pieces),
            ("send", _send),
            ("close", _close_now),
        ):
            patches.replace(module.ClientConnection, name, make)

    patches.when_imported("websockets.asyncio.client", asynchronous)
    patches.when_imported("websockets.sync.client", blocking)


INTEGRATION = Integration(
    name="websockets_connections",
    libraries=("websockets",),
    install=_install,
    hooks=("websockets.asyncio.client", "websockets.sync.client"),
)
