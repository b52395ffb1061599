"""Calling an ASGI application as a server would: lifespan, one request, lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any

from reenact.deliver.answers import Answer, calls_before
from reenact.deliver.unit_turns import Turns
from reenact.errors import CannotJudge, ReplayStopped
from reenact.integrations import asgi
from reenact.values import alarms, unit
from reenact.values.run import Run
from reenact.values.unit import WebRequest

_TICK_S = 0.005
_LATER_S = 5.0
"""How long tasks that outlive the request are waited for beyond their recorded time."""


def deliver(app: Any, request: WebRequest, answer: Answer, turns: Turns, *, lifespan: bool = True) -> None:
    """Deliver `request`, and fill in `answer` as it comes. Raises what the application raises.

    Without `lifespan` the application is neither started up nor shut down.
    """
    if not callable(app):
        raise CannotJudge(f"a {type(app).__name__} is no ASGI application")
    around = _lifespan(app) if lifespan else nullcontext(dict[str, Any]())
    asyncio.run(_deliver(app, around, request, answer, turns))


async def _deliver(
    app: Any, around: AbstractAsyncContextManager[dict[str, Any]], request: WebRequest, answer: Answer, turns: Turns
) -> None:
    run = turns.asked_for
    async with around as state:
        beside = [asyncio.ensure_future(_earlier(app, each, state, turns)) for each in turns.earlier]
        for each in beside if not turns.overlap else ():
            await each
        await turns.begin_async(run)
        if turns.stopped:
            return
        others = asyncio.all_tasks()
        try:
            with turns.does(run):
                await _request(app, request, answer, run, state, turns)
        finally:
            await _settle(asyncio.all_tasks() - others, run)
            answer.delivered()
            for each in beside:
                each.cancel()


async def _earlier(app: Any, run: Run, state: dict[str, Any], turns: Turns) -> None:
    """Deliver a unit on which the one that is asked for stands."""
    request = unit.request_of(run)
    await turns.begin_async(run)
    if request is None or turns.stopped:
        return
    try:
        with turns.does(run):
            await _request(app, request, Answer(), run, state, turns)
    except asyncio.CancelledError:  # the one that is asked for was over before it
        raise
    except BaseException:  # noqa: BLE001 - a server goes on; what left the recording is in the ledger
        alarms.pass_on()
    await turns.end_async(run)


async def _settle(tasks: set[asyncio.Task[Any]], run: Run) -> None:
    """Wait for what the request set going and did not wait for."""
    if tasks:
        after = (run.ended_ns - run.root.span.end_ns) / 1e9 if run.root is not None else 0.0
        await asyncio.wait(tasks, timeout=max(0.0, after) + _LATER_S)


async def _request(
    app: Any, request: WebRequest, answer: Answer, run: Run, state: dict[str, Any], turns: Turns
) -> None:
    over, asked = asyncio.Event(), False
    calls_over = calls_before(run, request)

    async def receive() -> MutableMapping[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            await turns.receive_async(run)
            return {"type": "http.request", "body": request.body or b"", "more_body": False}
        await over.wait()
        while request.left_after is not None and not calls_over():  # noqa: ASYNC110 - calls are answered on any thread
            await asyncio.sleep(_TICK_S)
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers") or ()
            answer.begun(
                message["status"], [(bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in headers]
            )
        elif message["type"] == "http.response.body":
            answer.pieces.append(bytes(message.get("body") or b""))
            if request.left_after is None and not message.get("more_body", False):
                over.set()
        if request.left_after is not None and answer.size >= request.left_after:
            over.set()

    if request.left_after == 0:
        over.set()
    await asgi.serve(app, _scope(request, state), receive, _in_turn(send, run, turns))


def _in_turn(send: asgi.Send, run: Run, turns: Turns) -> asgi.Send:
    """Have the last piece of an answer wait until that was handed over."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            await turns.reply_async(run)
        await send(message)

    return sending


def _scope(request: WebRequest, state: dict[str, Any]) -> dict[str, Any]:
    headers = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in request.headers
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": request.spec},
        "http_version": request.version,
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": (request.raw_path or request.path).encode("latin-1", "replace"),
        "query_string": request.query.encode("latin-1", "replace"),
        "root_path": request.root_path,
        "headers": headers,
        "client": request.client,
        "server": request.server,
        "extensions": {},
        "state": dict(state),
    }


@asynccontextmanager
async def _lifespan(app: Any) -> AsyncGenerator[dict[str, Any]]:
    """Start the application up and shut it down, where it supports that; gives its state."""
    state: dict[str, Any] = {}
    replies: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    asked: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
    task = asyncio.ensure_future(_run_app(app, scope, asked, replies))
    asked.put_nowait({"type": "lifespan.startup"})
    reply = await replies.get()
    if reply["type"] == "lifespan.startup.failed":
        await task
        raise CannotJudge(f"the application did not start: {reply.get('message') or 'it did not say why'}")
    supported = reply["type"] == "lifespan.startup.complete"
    try:
        yield state
    finally:
        if supported:
            asked.put_nowait({"type": "lifespan.shutdown"})
            with suppress(TimeoutError):
                await asyncio.wait_for(replies.get(), _LATER_S)
        task.cancel()
        with suppress(asyncio.CancelledError, ReplayStopped):
            await task


async def _run_app(app: Any, scope: dict[str, Any], asked: asyncio.Queue[Any], replies: asyncio.Queue[Any]) -> None:
    """Run the application's lifespan; one that raises at once, before it said anything, supports none."""
    try:
        await app(scope, asked.get, replies.put)
    except Exception as error:  # noqa: BLE001 - as the specification has it: "continue without lifespan support"
        replies.put_nowait({"type": "unsupported", "message": str(error)})
    finally:
        replies.put_nowait({"type": "over"})
