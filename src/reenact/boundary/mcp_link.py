"""The link of an agent to one MCP server: what is asked and said over it is told, and in a replay answered.

Theory of operation. A transport of the SDK gives a session two streams of messages. While recording, both are heard: a
request is a call, whose end is numbered when its reply reaches the session; what the server says unasked (progress,
log messages, changed lists, its own requests) are pieces of the call of the connection; what the agent sends that
nobody answers is a call that ends at once. In a replay the streams lead to nowhere. Replies and pieces are put into
them in the recorded order, so that all that the agent sees is the session's own doing: its callbacks run again, and
what they answer is compared.

A piece says how many messages the agent had sent when it came, and is not put in before as many were sent again.
"""

from __future__ import annotations

import contextvars
import math
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reenact.boundary import door, lanes, mcp_messages, place
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.boundary.touches import NATIVE
from reenact.contracts.doorman import Passage
from reenact.values import mcp_message, typed
from reenact.values.call import MCP_ERROR, MCP_LISTS, MCP_UNHEARD, Call, Raised, Returned, Streamed, StreamEnd, Value
from reenact.values.json import Json, digest, parsed_or_none
from reenact.values.lenient import as_object, as_text
from reenact.values.mcp_message import Server

_NOT_TOLD: Final = frozenset({"notifications/initialized", "notifications/cancelled"})
"""What a client sends by itself."""
_MOST_LISTS: Final = 20
_TURNS: Final = 5
"""So many turns of the loop the session has to hear a piece, before another lane is answered."""
_named: Final[dict[str, list[str]]] = {}
"""How servers of one name were reached: another way to one is another server."""


class PendingRequest:
    """One request on its way."""

    __slots__ = ("context", "method", "number", "over", "params", "passage", "reel", "reply")

    def __init__(self, method: str, params: dict[str, Json], passage: Passage) -> None:
        self.method, self.params, self.passage = method, params, passage
        self.reel = lanes.current().reel
        self.number: Json = None
        self.reply: dict[str, Json] | None = None
        self.context: contextvars.Context | None = None
        self.over = False
        """Its asker has gone on."""


asking: contextvars.ContextVar[PendingRequest | None] = contextvars.ContextVar("reenact_mcp_asking", default=None)
"""The request that is being sent."""


class Link:
    """What is known of one connection."""

    def __init__(self, passage: Passage, server: Server, reached: Json) -> None:
        self.passage, self.server = passage, server
        self._reached, self._reel = digest(reached), lanes.current().reel
        self._message_count = 0
        self._requests: dict[Json, PendingRequest] = {}
        self._of_server: dict[Json, str] = {}
        """The methods of the server's own requests, by id."""
        self._lists: list[tuple[dict[str, Json], Json, lanes.Reel]] = []
        """While recording, the lists of tools that came, and who asked for them."""
        self._reminded: lanes.Reel | None = None
        self.transport: Any = None
        """The SDK's object that learns the id of the session."""
        self.is_answered = isinstance(passage.answer, Streamed)
        """The server is not reached: a replay answers for it."""
        self.inbox: Any = None
        """In a replay, where messages for the session are put in."""
        self._tasks: Any = None
        self._message_event: Any = None
        """In a replay, is set when something was sent."""
        self.told_session: Callable[[str], Any] | None = None
        """In a replay, hears the id of the session."""

    # both ways

    def opened(self, make: Callable[[], Call]) -> Passage | None:
        """Let a message in; None where it goes straight through. Raises a miss where a replay has no answer."""
        here = place.current()
        if here is not None and here.whole:
            if door.is_kept():
                sys.audit(NATIVE, "mcp", self.server.name, False)
            if self.is_answered:
                raise self.passage.miss("a call whose result stands for it asks its server, which is not reached")
            return None
        doorman = door.doorman()
        if doorman is None:
            if self.is_answered:
                raise RuntimeError(f"the replay that answered for this MCP server ({self.server.name}) is over")
            return None
        try:
            call = make()
        except Exception:  # our failure is never the agent's
            forgive("mcp_link.call")
            return None
        passage = doorman.open(call)
        if self.is_answered and passage.answer is None:
            raise passage.miss("its server is not reached in this replay; `--tools live` reaches it")
        return passage

    def one_way(self, message: dict[str, Json]) -> Passage | None:
        """Let in what nobody answers: a notification, or the answer to a request of the server's."""
        method = as_text(message.get("method"))
        if method in _NOT_TOLD:
            return None
        content = {"params": message["params"]} if "params" in message else {}
        if not method:
            answered = self._of_server.pop(mcp_messages.key(message.get("id")), "request")
            method = f"{answered} answer"
            content = {name: message[name] for name in ("result", "error") if name in message}
        passage = self.opened(lambda: mcp_message.one_way(self.server, method, content))
        self._count()
        return passage

    def request(self, method: str, params: dict[str, Json], number: object) -> PendingRequest | None:
        """Let in a request."""
        passage = self.opened(lambda: mcp_message.request(self.server, method, params, number))
        return None if passage is None else PendingRequest(method, params, passage)

    def _count(self) -> None:
        self._message_count += 1
        if self._message_event is not None:
            moved, self._message_event = self._message_event, None
            moved.set()

    def sending(self, asked: PendingRequest, number: Json) -> None:
        """Hear that a request goes out, and under which number."""
        asked.number = mcp_messages.key(number)
        self._requests[asked.number] = asked
        self._count()

    def over(self, asked: PendingRequest) -> None:
        """Hear that whoever asked goes on."""
        asked.over = True
        if self._requests.get(asked.number) is asked:
            del self._requests[asked.number]

    def _learn(self, method: str, reply: dict[str, Json]) -> None:
        """Take from the reply to a handshake how the server calls itself."""
        if method not in {"initialize", "server/discover"} or "result" not in reply:
            return
        result = as_object(reply["result"])
        name = as_text(as_object(result.get("serverInfo")).get("name"))
        if not name:
            name = as_text(as_object(mcp_messages.meta(result).get("io.modelcontextprotocol/serverInfo")).get("name"))
        ways = _named.setdefault(name, [])
        if self._reached not in ways:
            ways.append(self._reached)
        number = ways.index(self._reached)
        called = (f"{name}#{number + 1}" if number else name) or self.server.name
        self.server = replace(self.server, name=called, version=as_text(result.get("protocolVersion")))

    # while recording

    def hear(self, item: Any, context: contextvars.Context | None) -> None:
        """Tell a message of the server's before the session gets it."""
        message = mcp_messages.spelled(item)
        number = mcp_messages.key(message.get("id"))
        asked = self._requests.get(number) if mcp_messages.is_reply(message) else None
        if asked is not None:
            self._learn(asked.method, message)
            self._tell_session()
            asked.reply = message
            asked.passage.annotate(mcp_message.facts(asked.method, message))
            asked.passage.number_end()
            return
        if "method" in message and "id" in message:
            self._of_server[number] = as_text(message["method"])
        within = None if context is None else context.get(asking)
        for each in self._requests.values():
            if each.reel is not self._reel:  # another run has the session, and its pieces
                each.passage.annotate({MCP_UNHEARD: True})
        about: dict[str, Json] = {"message": message}
        self._piece(about | ({"within": within.number} if within is not None else {}))

    def _tell_session(self) -> None:
        session_id = getattr(self.transport, "session_id", None)
        if isinstance(session_id, str) and session_id != self.server.session:
            self.server = replace(self.server, session=session_id)
            self.passage.annotate({mcp_message.SESSION_ID: session_id})
            self._piece({"session": session_id})

    def created(self, session: str) -> None:
        """Tell the id of a session that the transport learned when it connected."""
        self.server = replace(self.server, session=session)
        self.passage.annotate({mcp_message.SESSION_ID: session, mcp_message.CREATED: [session]})

    def closed_by_server(self) -> None:
        """Tell that the server says no more."""
        self._piece({"closed": True})

    def _piece(self, about: dict[str, Json]) -> None:
        self.passage.chunk(value=typed.encode({**about, "after": self._message_count}))

    async def ask(self, asked: PendingRequest, run: Callable[[], Awaitable[Any]]) -> Any:
        """Ask for real, and tell what came of it."""
        token = asking.set(asked)
        try:
            with asked.passage.crossing(), lanes.aside():
                result = await run()
        except BaseException as error:
            asked.passage.raised(error)
            raise
        finally:
            self.over(asked)
            asking.reset(token)
        try:
            came: Any = (asked.reply or {}).get("result")
            asked.passage.closed(Returned(payload=Value(json=typed.encode(came))))
            self._remind(asked)
        except Exception:
            forgive("mcp_link.ask")
        return result

    def _remind(self, asked: PendingRequest) -> None:
        """Tell a unit that called a tool of the lists that an earlier one asked for: alone, its session asks again."""
        if asked.method == MCP_LISTS:
            came = (asked.reply or {}).get("result")
            self._lists.append((asked.params, typed.encode(came), asked.reel))
            del self._lists[:-_MOST_LISTS]
        if asked.method != "tools/call" or self._reminded is asked.reel or door.is_strict():
            return
        self._reminded = asked.reel
        if any(reel in (asked.reel, self._reel) for _, _, reel in self._lists):
            return
        for params, came, _ in self._lists:
            passage = self.opened(partial(mcp_message.request, self.server, MCP_LISTS, params, None))
            if passage is not None:
                passage.closed(Returned(payload=Value(json=came)))

    # in a replay

    async def answer(self, asked: PendingRequest, run: Callable[[], Awaitable[Any]], skip: Callable[[], object]) -> Any:
        """Let the session ask nobody, and give what was recorded. Raises what was raised.

        `skip` has the session count a request that is not made.
        """
        passage, answer = asked.passage, asked.passage.answer
        if isinstance(answer, Raised) and not passage.recorded(MCP_ERROR):
            self._count()
            skip()
            await self._raise(passage, answer)
        if not isinstance(answer, Raised) and _reply_of(passage) is None:
            raise passage.miss(f"the recording holds no reply to this request ({type(answer).__name__.lower()})")
        token = asking.set(asked)
        try:
            return await run()
        except BaseException as error:
            passage.raised(error)
            raise
        finally:
            self.over(asked)
            asking.reset(token)

    async def _raise(self, passage: Passage, answer: Raised) -> None:
        try:
            await passage.wait_async(passage.end_order)
            if was_cancelled(answer):
                await until_cancelled(passage)
            error = typed.decode_exception(answer.exception)
        except typed.Unhydratable as why:
            raise passage.miss(f"its recorded error cannot be rebuilt: {why.message}") from why
        except BaseException as error:
            passage.raised(error)
            raise
        passage.raised(error)
        raise error

    def begin(self, tasks: Any) -> Any:
        """Begin to answer, in a group of tasks; gives the stream that the session reads."""
        import anyio

        self._tasks = tasks
        self.inbox, outlet = anyio.create_memory_object_stream[Any](math.inf)
        with lanes.aside():
            tasks.start_soon(self._unasked)
        return outlet

    def feed(self, asked: PendingRequest, number: Json) -> None:
        """Hear that the session sent a request, and have its reply put in when its time comes."""
        asked.context = contextvars.copy_context()
        self.sending(asked, number)
        with lanes.aside():
            self._tasks.start_soon(self._reply, asked, number)

    async def _reply(self, asked: PendingRequest, number: Json) -> None:
        passage, reply = asked.passage, _reply_of(asked.passage)
        await passage.wait_async(passage.end_order)
        if asked.over or reply is None:
            return
        passage.annotate(mcp_message.facts(asked.method, reply))
        if isinstance(passage.answer, Returned):
            passage.closed(passage.answer)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, **reply}
        self._learn(asked.method, message)
        self._deliver(message, None)

    async def _unasked(self) -> None:
        """Put in what the server said unasked, and fail as the connection did."""
        import anyio

        answer = self.passage.answer
        if not isinstance(answer, Streamed):
            return
        for chunk in answer.chunks:
            about: Any = typed.decode(chunk.value)
            while self._message_count < about.get("after", 0):
                self._message_event = self._message_event or anyio.Event()
                await self._message_event.wait()
            await self.passage.wait_async(chunk.order)
            self.passage.chunk(value=chunk.value)
            await self._apply(about)
            for _ in range(_TURNS):
                await anyio.lowlevel.checkpoint()
        if answer.end is StreamEnd.RAISED and answer.exception is not None and not was_cancelled(answer):
            await self.passage.wait_async(self.passage.end_order)
            error = typed.decode_exception(answer.exception)
            _trace(error.__cause__)
            self.passage.ended(StreamEnd.RAISED, error)
            raise error

    async def _apply(self, about: dict[str, Any]) -> None:
        if session := about.get("session"):
            self.server = replace(self.server, session=session)
            self.passage.annotate({mcp_message.SESSION_ID: session})
            if self.told_session is not None and (hearing := self.told_session(session)) is not None:
                await hearing
        if about.get("closed"):
            self.inbox.close()
        if message := about.get("message"):
            if "method" in message and "id" in message:
                self._of_server[mcp_messages.key(message["id"])] = as_text(message["method"])
            within = self._requests.get(mcp_messages.key(about.get("within")))
            self._deliver(message, within.context if within is not None else None)

    def _deliver(self, message: dict[str, Json], context: contextvars.Context | None) -> None:
        import anyio

        try:
            self.inbox.send_nowait((None if context is None else context.copy(), mcp_messages.unspelled(message)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is closed


def _reply_of(passage: Passage) -> dict[str, Any] | None:
    """Give the recorded reply to a request, less its number."""
    answer = passage.answer
    if isinstance(answer, Returned) and isinstance(answer.payload, Value):
        return {"result": typed.decode(answer.payload.json)}
    if errors := passage.recorded(MCP_ERROR):
        return {"error": typed.decode(parsed_or_none(str(errors[0])))}
    return None


def _trace(cause: BaseException | None) -> None:
    """Give the causes of an error a traceback each, so that they print as the recorded ones did."""
    while cause is not None:
        with suppress(BaseException):
            raise cause
        cause = cause.__cause__
