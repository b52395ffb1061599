"""Asking a provider through its own SDK, in every way that the SDK has, and noting all that an agent can see.

Written once for the sync and the async client: what may be awaited is. With a sync client nothing ever suspends, so
`drive` runs the coroutine to its end without an event loop.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from matrix.exchange import PATH_OF_API, Exchange

Seen = dict[str, Any]
"""What an agent saw, by the way in which it asked."""
_HEADERS = (
    *("content-type", "x-request-id", "openai-version", "openai-processing-ms", "retry-after", "retry-after-ms"),
    *("request-id", "anthropic-organization-id"),
)
_REQUIRED = {
    "chat": {"messages", "model"},
    "responses": set[str](),
    "embeddings": {"input", "model"},
    "messages": {"max_tokens", "messages", "model"},
    "count_tokens": {"messages", "model"},
    "batches": {"requests"},
}
"""Without these fields the SDK refuses to ask; what other clients may leave out is posted by hand."""
_FINAL = {"chat": "get_final_completion", "responses": "get_final_response", "messages": "get_final_message"}


def drive(asked: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never suspends."""
    try:
        asked.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a sync client suspended")


async def settled(value: Any) -> Any:
    """Await what can be awaited."""
    return await value if inspect.isawaitable(value) else value


async def each(stream: Any) -> AsyncIterator[Any]:
    """Iterate over a sync or async stream."""
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            yield item
    else:
        for item in stream:
            yield item


async def take(stream: Any, into: list[Any]) -> None:
    """Read a stream; what came before it broke is in the list as well."""
    async for item in each(stream):
        into.append(item)  # noqa: PERF401 -- a comprehension gives nothing when the stream breaks


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """Enter a sync or async context manager."""
    if hasattr(manager, "__aenter__"):
        async with manager as inside:
            yield inside
    else:
        with manager as inside:
            yield inside


async def ask(client: Any, exchange: Exchange) -> Seen:
    """Ask in every way that fits, and note what was seen."""
    if not _REQUIRED[exchange.api] <= exchange.request.keys():
        return {"posted": await outcome(lambda: _posted(client, exchange))}
    resource, method = resource_of(client, exchange)
    create, raw = getattr(resource, method), getattr(resource.with_raw_response, method)
    asked = arguments_of(create, exchange.request)
    streaming = getattr(resource.with_streaming_response, method)
    seen: Seen = {
        "created": await outcome(lambda: _created(create, asked)),
        "raw": await outcome(lambda: _raw(raw, asked)),
        "streaming": await outcome(lambda: _streaming(streaming, asked)),
    }
    if exchange.request.get("stream") and exchange.api in _FINAL:
        request = {key: value for key, value in exchange.request.items() if key != "stream"}
        helped = arguments_of(resource.stream, request)
        seen["helper"] = await outcome(lambda: _helped(resource.stream, helped, _FINAL[exchange.api]))
    return seen


def resource_of(client: Any, exchange: Exchange) -> tuple[Any, str]:
    """Find the part of the SDK that speaks an exchange's API, and its method."""
    if exchange.sdk == "anthropic":
        messages = client.beta.messages if exchange.beta else client.messages
        methods = {"messages": (messages, "create"), "count_tokens": (messages, "count_tokens")}
        return methods.get(exchange.api) or (messages.batches, "create")
    apis = {"chat": client.chat.completions, "responses": client.responses, "embeddings": client.embeddings}
    return apis[exchange.api], "create"


def arguments_of(method: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Spell a request body as a call of the SDK; fields that it has no name for travel as `extra_body`."""
    named = inspect.signature(method).parameters
    known = {key: value for key, value in body.items() if key in named}
    unknown = {key: value for key, value in body.items() if key not in named}
    return {**known, "extra_body": unknown} if unknown else known


async def outcome(ask: Callable[[], Awaitable[Any]]) -> Any:
    """Give what came of asking; an exception is told in full."""
    try:
        return await ask()
    except Exception as error:  # noqa: BLE001 -- whatever an agent would meet
        return told(error)


async def _posted(client: Any, exchange: Exchange) -> Seen:
    """Ask with the SDK's `post`, which takes any body."""
    from openai import AsyncStream, Stream
    from openai.types import CreateEmbeddingResponse
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

    whole: type = ChatCompletion if exchange.api == "chat" else CreateEmbeddingResponse
    streams: Any = AsyncStream if inspect.iscoroutinefunction(client.post) else Stream
    asked: dict[str, Any] = {"body": exchange.request, "cast_to": whole}
    if exchange.request.get("stream"):
        asked |= {"cast_to": ChatCompletionChunk, "stream": True, "stream_cls": streams[ChatCompletionChunk]}
    given = await settled(client.post(PATH_OF_API[exchange.api], **asked))
    return await _events(given) if exchange.request.get("stream") else {"object": given, "fields": fields(given)}


async def _created(create: Any, asked: dict[str, Any]) -> Seen:
    given = await settled(create(**asked))
    if hasattr(given, "__anext__") or hasattr(given, "__next__"):
        return await _events(given)
    return {"object": given, "fields": fields(given), "request_id": getattr(given, "_request_id", None)}


async def _events(stream: Any) -> Seen:
    """Read a stream to its end or to where it breaks."""
    events: list[Any] = []
    seen: Seen = {"type": type(stream), "status": stream.response.status_code, "events": events}
    seen["broke"] = await outcome(lambda: take(stream, events))
    return {**seen, "fields": [fields(event) for event in events], "headers": _headers(stream.response)}


async def _raw(create: Any, asked: dict[str, Any]) -> Seen:
    answer = await settled(create(**asked))
    parsed = await settled(answer.parse())
    seen: Seen = {"type": type(answer), "status": answer.status_code, "headers": _headers(answer)}
    seen |= {"request_id": answer.request_id, "retries": answer.retries_taken}
    if hasattr(parsed, "__anext__") or hasattr(parsed, "__next__"):
        return {**seen, "parsed": await _events(parsed)}
    response = answer.http_response
    seen |= {"body": response.content, "text": response.text, "json": response.json(), "closed": response.is_closed}
    return {**seen, "parsed": parsed, "fields": fields(parsed), "reason": response.reason_phrase}


async def _streaming(create: Any, asked: dict[str, Any]) -> Seen:
    async with entered(create(**asked)) as answer:
        seen: Seen = {"type": type(answer), "status": answer.status_code, "headers": _headers(answer)}
        seen["body"] = b"".join([piece async for piece in each(answer.iter_bytes())])
        return seen


async def _helped(stream: Any, asked: dict[str, Any], final: str) -> Seen:
    async with entered(stream(**asked)) as helper:
        seen: Seen = {"type": type(helper), "events": [event async for event in each(helper)]}
        seen["fields"] = [fields(event) for event in seen["events"]]
        seen["final"] = await settled(getattr(helper, final)())
        return {**seen, "final fields": fields(seen["final"])}


def _headers(answer: Any) -> list[str | None]:
    return [answer.headers.get(name) for name in _HEADERS]


def fields(value: Any) -> Any:
    """Spell the classes of a tree of models, and which of their fields were set."""
    if hasattr(type(value), "model_fields"):
        held = {**value.__dict__, **(value.model_extra or {})}
        return type(value), sorted(value.model_fields_set), {name: fields(item) for name, item in held.items()}
    if isinstance(value, dict):
        return {name: fields(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [fields(item) for item in value]
    return type(value)


def told(error: BaseException) -> Seen:
    """Spell everything that an agent can see of an error, causes included."""
    seen: Seen = {"class": type(error), "says": str(error)}
    for name in ("status_code", "body", "message", "code", "param", "type", "request_id"):
        if hasattr(error, name):
            seen[name] = getattr(error, name)
    response = getattr(error, "response", None)
    if response is not None:
        seen["text"] = "not read"
        with contextlib.suppress(RuntimeError):  # as httpx says that a stream was not read whole
            seen["text"] = response.text
        seen["headers"] = _headers(response)
    with contextlib.suppress(AttributeError, RuntimeError):  # as httpx says that it was never set
        seen["asked"] = str(error.request.url)  # type: ignore[attr-defined]
    if error.__cause__ is not None:
        seen["cause"] = told(error.__cause__)
    return seen
