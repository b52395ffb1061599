"""The two streams of messages that a transport gives an MCP session: heard while recording, answered in a replay.

They behave as those of the SDK do, which are anyio's or, where a message carries its sender's context, wrappers of it.
"""

from __future__ import annotations

import contextvars
import sys
from typing import Any

from reenact.boundary import door, lanes, mcp_messages, place
from reenact.boundary.forgiving import forgive
from reenact.boundary.mcp_link import Link, asking
from reenact.boundary.touches import NATIVE
from reenact.values.call import Returned, Value

_NOTHING = Returned(payload=Value(json=None))


class _Stream:
    """Is like the stream that it stands before."""

    def __init__(self, inner: Any, link: Link | None) -> None:
        self._inner = inner
        self.reenact_link: Any = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def close(self) -> None:
        """Close it."""
        self._inner.close()

    async def aclose(self) -> None:
        """Close it likewise."""
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def clone(self) -> Any:
        """Give another end of it."""
        return type(self)(self._inner.clone(), self.reenact_link)


class Incoming(_Stream):
    """What the session reads."""

    def __init__(self, inner: Any, link: Link) -> None:
        super().__init__(inner, link)
        self.last_context: contextvars.Context | None = None
        """What the sender of the last message stood in, where the transport tells it."""

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        """Give the next message."""
        if self.reenact_link.is_answered:
            context, item = await self._inner.receive()
        else:
            item = await self._receive_real()
            context = getattr(self._inner, "last_context", None)
        if context is not None:  # what the session does with it is none of the transport's doing
            context.run(lanes.on(lanes.current()).__enter__)
            context.run(place.move, place.current())
        self.last_context = context
        return item

    async def _receive_real(self) -> Any:
        import anyio

        try:
            item = await self._inner.receive()
        except anyio.EndOfStream:
            self._tell(None)
            raise
        self._tell(item)
        return item

    def _tell(self, item: Any) -> None:
        try:
            if item is None:
                self.reenact_link.closed_by_server()
            else:
                self.reenact_link.hear(item, getattr(self._inner, "last_context", None))
        except Exception:  # our failure is never the agent's
            forgive("mcp_streams.hear")


class Outgoing(_Stream):
    """What the session writes to."""

    async def send(self, item: Any) -> None:
        """Send a message: to the server, or in a replay to nobody."""
        link, asked = self.reenact_link, asking.get()
        message = mcp_messages.spelled(item)
        if "method" in message and "id" in message:
            await self._ask(item, asked, message)
            return
        passage = link.one_way(message)
        if passage is not None and passage.answer is not None:
            await passage.wait_async(passage.end_order)
        if passage is not None:
            passage.closed(_NOTHING)
        if not link.is_answered:
            with link.passage.crossing(), lanes.aside():
                await self._inner.send(item)

    async def _ask(self, item: Any, asked: Any, message: Any) -> None:
        link = self.reenact_link
        if not link.is_answered:
            if asked is not None:
                link.sending(asked, message["id"])
            await self._inner.send(item)
        elif asked is not None:
            link.feed(asked, message["id"])


class Unheard(_Stream):
    """What a session writes to that was opened inside a call whose result stands for all that is done there."""

    async def send(self, item: Any) -> None:
        """Send a message; outside every such call, note that nobody records it."""
        here = place.current()
        if door.is_kept() and not (here is not None and here.whole):
            sys.audit(NATIVE, "mcp (a session that another call opened)", "", False)
        await self._inner.send(item)
