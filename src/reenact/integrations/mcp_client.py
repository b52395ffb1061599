"""The MCP SDK's client, versions 1 and 2, and what stands on it (fastmcp, the adapters of frameworks).

Cut are the transports, where they give a session its streams of messages (stdio, streamable HTTP, SSE, web socket),
and the session's own method that asks and waits. Transports in memory lead to a server in the same process, which is
the agent's own code: they are no boundary. In a replay no server is started and none is reached; `boundary.mcp_link`
says how its answers come.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from reenact.boundary import door, lanes, place, plain_http, servers
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.boundary.mcp_arguments import own_arguments
from reenact.boundary.mcp_link import Link
from reenact.boundary.mcp_messages import is_second_major
from reenact.boundary.mcp_streams import Incoming, Outgoing, Unheard
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import MCP_OWN_CODE, Raised, Streamed, StreamEnd
from reenact.values.json import Json
from reenact.values.mcp_message import CREATED, Server, connection

_STDIO, _HTTP, _SSE, _SOCKET = "stdio", "streamable_http", "sse", "websocket"
_TRANSPORTS: Final = {
    "mcp.client.stdio": {"stdio_client": _STDIO},
    "mcp.client.streamable_http": {"streamablehttp_client": _HTTP, "streamable_http_client": _HTTP},
    "mcp.client.sse": {"sse_client": _SSE},
    "mcp.client.websocket": {"websocket_client": _SOCKET},
}
_SESSIONS: Final = {
    "mcp.shared.session": ("BaseSession", "send_request"),
    "mcp.shared.jsonrpc_dispatcher": ("JSONRPCDispatcher", "send_raw_request"),
}
_FIRST_DRAWN: Final = 32768
"""Ports from here on are drawn by the system, for one run."""
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_connecting: ContextVar[Link | None] = ContextVar("reenact_mcp_connecting", default=None)


# where a server is


def _of_program(parameters: Any) -> tuple[Server, dict[str, Json]]:
    from reenact.boundary.side_effects import temporary_paths

    words = [str(parameters.command), *map(str, parameters.args)]
    words[0] = "python" if words[0] == sys.executable else Path(words[0]).name
    operands = [word for word in words[1:] if not word.startswith("-")]
    drawn = [str(path) for path in temporary_paths()]
    steady = [_steady(word, drawn) for word in words]
    about: dict[str, Json] = {"transport": _STDIO, "command": [*steady]}
    if parameters.cwd is not None:
        about["cwd"] = _steady(str(parameters.cwd), drawn)
    if own := _own_names(parameters.env or {}):
        about["env"] = [*own]
    return Server(name=Path(_steady(operands[0], drawn) if operands else steady[0]).name, transport="pipe"), about


def _own_names(variables: Mapping[str, str]) -> list[str]:
    """Name the variables that a server gets and the agent has not so; a value may be a secret."""
    own = [name for name, value in variables.items() if os.environ.get(name) != value]
    return sorted(name for name in own if not name.startswith("REENACT_") and name != "PYTHONPATH")


def _steady(word: str, drawn: list[str]) -> str:
    """Spell a word without the names that `tempfile` drew for this run."""
    for path in sorted(drawn, key=len, reverse=True):
        word = word.replace(path, "{temporary}")
    return word


def _of_address(transport: str, url: str) -> tuple[Server, dict[str, Json]]:
    split = urlsplit(url)
    host, port = split.hostname or "", split.port or _PORTS.get(split.scheme, 0)
    is_drawn = host in {"localhost", "127.0.0.1", "::1"} and port >= _FIRST_DRAWN
    address = host if is_drawn or split.port is None else f"{host}:{split.port}"
    asked = split._replace(netloc=address, fragment="").geturl()
    return Server(name=address, transport="tcp", address=f"{host}:{port}"), {"transport": transport, "url": asked}


def _opened(transport: str, target: Any) -> Link | None:
    """Let a connection in; None where it is no boundary. Raises a miss in a replay that does not know it."""
    try:
        if transport == _STDIO:
            here = place.current()
            doorman = None if here is not None and here.whole else door.doorman()
            server, about = _of_program(target)
        else:
            split = urlsplit(str(target))
            doorman = plain_http.doorman(split.hostname or "", split.port or _PORTS.get(split.scheme))
            server, about = _of_address(transport, str(target))
    except Exception:  # arguments that are none: the transport will say so
        forgive("mcp_client.opened")
        return None
    if doorman is None:
        return None
    with lanes.on(lanes.current().spawn("mcp")):
        passage = doorman.open(connection(server, about))
    return Link(passage, server, about)


def _by_name(
    original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give all arguments by name; as they came where they do not fit, so that the transport itself says so."""
    names = [*inspect.signature(original).parameters]
    if len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
        return args, kwargs
    return (), dict(zip(names, args, strict=False)) | kwargs


class _Connection:
    """Stands where the context manager of a transport would."""

    def __init__(self, transport: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._transport, self._original = transport, original
        self._args, self._kwargs = _by_name(original, args, kwargs)
        self._real: Any = None
        self._link: Link | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Any:
        target = self._args[0] if self._args else self._kwargs.get("server" if self._transport == _STDIO else "url")
        self._link = link = _opened(self._transport, target)
        if link is None:
            self._real = self._original(*self._args, **self._kwargs)
            with servers.starting():
                streams = await self._real.__aenter__()
            here = place.current()
            if here is not None and here.whole:
                return (streams[0], Unheard(streams[1], None), *streams[2:])
            return streams
        if link.passage.answer is not None:
            return await self._connect_to_recording(link)
        return await self._connect(link)

    async def __aexit__(self, *raised: object) -> Any:
        link = self._link
        if link is None:
            return await self._real.__aexit__(*raised)
        if link.is_answered:
            return await self._leave_and_tell(link, raised, self._stack.__aexit__)
        return await self._leave_and_tell(link, raised, partial(self._leave, link))

    async def _leave(self, link: Link, *raised: object) -> Any:
        with link.passage.crossing(), lanes.aside(), servers.starting():
            return await self._real.__aexit__(*raised)

    async def _leave_and_tell(self, link: Link, raised: tuple[object, ...], leave: Callable[..., Any]) -> Any:
        """Leave, and tell how the connection came to its end: with the agent's doing, or with a failure of its own."""
        try:
            result = await leave(*raised)
        except BaseException as error:
            if (failure := _own_failure(error, raised[1])) is None:
                link.passage.ended(StreamEnd.FINISHED)
            else:
                link.passage.ended(StreamEnd.RAISED, failure)
            raise
        link.passage.ended(StreamEnd.FINISHED)
        return result

    async def _connect(self, link: Link) -> Any:
        """Connect for real, and have all that goes over the connection heard."""
        if names := own_arguments(self._kwargs):
            link.passage.annotate({MCP_OWN_CODE: ", ".join(names)})
        sessions: list[str] = []
        kwargs = self._heard_session(sessions)
        before = _connecting.get()
        _connecting.set(link)
        try:
            with link.passage.crossing(), lanes.aside(), servers.starting():
                self._real = self._original(*self._args, **kwargs)
                streams = await self._real.__aenter__()
        except BaseException as error:
            link.passage.raised(error)
            raise
        finally:
            _connecting.set(before)
        link.passage.head(200, ())
        for session in sessions:
            link.created(session)
        return (Incoming(streams[0], link), Outgoing(streams[1], link), *streams[2:])

    def _heard_session(self, sessions: list[str]) -> dict[str, Any]:
        hear = self._kwargs.get("on_session_created")
        if hear is None:
            return self._kwargs

        here, lane = place.current(), lanes.current()

        def hear_session(session: str) -> Any:
            sessions.append(session)
            with lanes.on(lane):
                before = place.move(here)
                try:
                    return hear(session)
                finally:
                    place.move(before)

        return {**self._kwargs, "on_session_created": hear_session}

    async def _connect_to_recording(self, link: Link) -> Any:
        """Connect to nobody, and have the recording answer."""
        import anyio

        passage, answer = link.passage, link.passage.answer
        try:
            if isinstance(answer, Streamed):
                await passage.wait_async(passage.head_order)
            else:
                await passage.wait_async(passage.end_order)
        except BaseException as error:
            passage.raised(error)
            raise
        if isinstance(answer, Raised):
            await _fail(passage, answer)
        if not isinstance(answer, Streamed):
            raise passage.miss(f"the recording holds no session ({type(answer).__name__.lower()})")
        passage.head(answer.status, answer.headers)
        link.told_session = self._tell_session
        if created := passage.recorded(CREATED):
            self._kwargs["on_session_created"](str(created[0]))
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        incoming = Incoming(link.begin(tasks), link)
        streams: list[Any] = [incoming, Outgoing(_Nowhere(), link)]
        if self._transport == _HTTP and not is_second_major():
            streams.append(lambda: link.server.session or None)
        return tuple(streams)

    async def _tell_session(self, session: str) -> None:
        """Have fastmcp hear the id of a session, which it reads from the replies of the client that it hands over."""
        client = self._kwargs.get("http_client")
        for hook in cast("list[Any]", getattr(client, "event_hooks", {}).get("response", [])):
            if str(getattr(hook, "__module__", "")).startswith("fastmcp."):
                library: Any = sys.modules[type(client).__module__.partition(".")[0]]
                await hook(library.Response(200, headers={"mcp-session-id": session}))


class _Nowhere:
    """Stands where the stream to a server would."""

    def close(self) -> None: ...

    async def aclose(self) -> None: ...

    def clone(self) -> Any:
        return self


async def _fail(passage: Passage, answer: Raised) -> None:
    if was_cancelled(answer):
        await until_cancelled(passage)
    error = plain_http.failure(answer.exception)
    passage.raised(error)
    raise error


def _own_failure(error: BaseException, raised: object) -> BaseException | None:
    """Give what a transport itself raised; None where it only gave on what was raised in its block."""
    if error is raised:
        return None
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = [each for each in cast("BaseExceptionGroup[BaseException]", error).exceptions if each is not raised]
    return None if not inner else inner[0]


# the SDK


def _client(transport: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def connect(*args: Any, **kwargs: Any) -> Any:
            if not door.is_kept():
                return original(*args, **kwargs)
            return _Connection(transport, original, args, kwargs)

        return connect

    return make


def _learning(original: Any) -> Any:
    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is that method
        original(self, *args, **kwargs)
        if (link := _connecting.get()) is not None:
            link.transport = self

    return __init__


def _asked(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, Json], object]:
    """Read the method, the parameters and the number of a request."""
    if hasattr(self, "_request_id"):
        request: Any = args[0] if args else kwargs["request"]
        document = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        return str(document["method"]), document.get("params") or {}, self._request_id
    method: Any = args[0] if args else kwargs["method"]
    params: Any = args[1] if len(args) > 1 else kwargs.get("params")
    return str(method), dict(params or {}), None


def _skip(session: Any) -> None:
    """Have a session count a request that is not made."""
    if hasattr(session, "_request_id"):
        session._request_id += 1  # noqa: SLF001 - the next request has the number that it had
    else:
        session._allocate_id()  # noqa: SLF001 - as above


def _requesting(original: Any) -> Any:
    @wraps(original)
    async def send(self: Any, *args: Any, **kwargs: Any) -> Any:
        link: Link | None = getattr(getattr(self, "_write_stream", None), "reenact_link", None)
        run = partial(original, self, *args, **kwargs)
        if link is None:
            return await run()
        try:
            method, params, number = _asked(self, args, kwargs)
        except Exception:  # our failure is never the agent's
            forgive("mcp_client.requesting")
            return await run()
        asked = link.request(method, params, number)
        if asked is None:
            return await run()
        if asked.passage.answer is not None:
            return await link.answer(asked, run, partial(_skip, self))
        return await link.ask(asked, run)

    return send


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        for name, transport in _TRANSPORTS[module.__name__].items():
            if hasattr(module, name):
                patches.replace(module, name, _client(transport))
        if hasattr(module, "StreamableHTTPTransport"):
            patches.replace(module.StreamableHTTPTransport, "__init__", _learning)

    def cut_session(module: Any) -> None:
        owner, method = _SESSIONS[module.__name__]
        if hasattr(module, owner):
            patches.replace(getattr(module, owner), method, _requesting)

    for name in _TRANSPORTS:
        patches.when_imported(name, cut)
    for name in _SESSIONS:
        patches.when_imported(name, cut_session)


INTEGRATION = Integration(name="mcp_client", libraries=("mcp",), install=_install, hooks=(*_TRANSPORTS, *_SESSIONS))
