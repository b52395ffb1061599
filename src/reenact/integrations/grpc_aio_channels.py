"""grpc.aio: cut where a call is made, inside the interceptors around it.

A call begins when it is made, and an agent awaits it or reads it later; it gets an object of ours, which has all from
the library's own one, or from the recording. Streams to the server are said to go out, and not recorded.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Final, cast

from reenact.boundary import lanes, plain_http, rpc
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.boundary.function_outcome import until_released
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import ExceptionRecord, HttpReply, Raised, Returned, Streamed, StreamEnd

_CALLS: Final = "grpc.aio._call"
_PLACES: Final = ("grpc.aio._channel", "grpc.aio._interceptor")
"""Modules that make calls, by the names of their classes."""


def _aio() -> Any:
    return sys.modules["grpc.aio"]


def _recordable(error: Any) -> BaseException:
    """Give what is written down of an error."""
    if not isinstance(error, _aio().AioRpcError):
        return cast("BaseException", error)
    try:
        status = rpc.Status(
            error="AioRpcError",
            code=error.code().name,
            details=rpc.text(error.details()),
            debug=rpc.text(error.debug_error_string()),
            initial=list(error.initial_metadata() or ()),
            trailing=list(error.trailing_metadata() or ()),
        )
        return rpc.error_of(status)
    except Exception:  # it is written down as any other
        forgive("grpc_aio.status")
        return cast("BaseException", error)


def _error(record: ExceptionRecord) -> BaseException:
    """Make the library's error of a recorded one."""
    status = rpc.read_status(record)
    if status is None:
        return plain_http.failure(record)
    codes = sys.modules["grpc"].StatusCode
    code = getattr(codes, status.code, codes.UNKNOWN)
    initial, trailing = _metadata(status.initial), _metadata(status.trailing)
    return cast("BaseException", _aio().AioRpcError(code, initial, trailing, status.details, status.debug))


def _metadata(pairs: rpc.Metadata) -> Any:
    return _aio().Metadata(*pairs)


def _call_back(callback: Callable[[Any], Any], call: Any, _call: Any) -> None:
    callback(call)


def _both(method: rpc.Method, data: bytes) -> tuple[bytes, Any]:
    return data, method.value(data)


class _Watched:
    """A call of the library's; what is not ours to tell it says itself."""

    def __init__(self, call: Any, passage: Passage, method: rpc.Method) -> None:
        self._call, self._passage, self._method = call, passage, method
        self._open = True
        """Its end was not told yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._call, name)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call it when the call has ended."""
        self._call.add_done_callback(partial(_call_back, callback, self))

    def _raised(self, error: BaseException) -> None:
        if self._open:
            self._open = False
            self._passage.raised(_recordable(error))


class UnaryCall(_Watched):
    """A call with one reply."""

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Raises the call's error."""
        return self._reply().__await__()

    async def _reply(self) -> Any:
        try:
            with self._passage.crossing(), lanes.aside():
                data, value = await self._call
        except BaseException as error:
            self._raised(error)
            raise
        if self._open:
            self._open = False
            try:
                pairs = rpc.headers(await self._call.initial_metadata(), await self._call.trailing_metadata())
                self._passage.replied(rpc.OK, pairs, rpc.spell_message(self._method, data))
            except Exception:
                forgive("grpc_aio.reply")
        return value


class StreamCall(_Watched):
    """A call that answers with a stream."""

    def __init__(self, call: Any, passage: Passage, method: rpc.Method) -> None:
        super().__init__(call, passage, method)
        self._begun = False

    def __aiter__(self) -> AsyncIterator[Any]:
        """Read all messages, one after the other."""
        return self._messages()

    async def _messages(self) -> AsyncIterator[Any]:
        end = _aio().EOF
        while (value := await self.read()) is not end:
            yield value

    async def read(self) -> Any:
        """Read the next message; `grpc.aio.EOF` behind the last."""
        try:
            with self._passage.crossing(), lanes.aside():
                pair = await self._call.read()
        except BaseException as error:
            await self._begin()
            self._end(StreamEnd.RAISED, error)
            raise
        await self._begin()
        if pair is _aio().EOF:
            await self._finish()
            return pair
        data, value = pair
        if self._open:
            try:
                self._passage.chunk(rpc.spell_message(self._method, data))
            except Exception:
                forgive("grpc_aio.message")
        return value

    async def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        try:
            initial = await self._call.initial_metadata() if self._call.done() or self._open else None
            self._passage.head(rpc.OK, rpc.headers(initial))
        except Exception:
            forgive("grpc_aio.head")

    async def _finish(self) -> None:
        try:
            trailing = await self._call.trailing_metadata()
        except Exception:
            forgive("grpc_aio.trailing")
            trailing = None
        self._end(StreamEnd.FINISHED, trailing=trailing)

    def _end(self, end: StreamEnd, error: BaseException | None = None, trailing: Any = None) -> None:
        if not self._open:
            return
        self._open = False
        try:
            self._passage.ended(end, None if error is None else _recordable(error), rpc.spell_end(trailing))
        except Exception:
            forgive("grpc_aio.end")

    def cancel(self) -> Any:
        """Cancel the call: nobody reads on."""
        self._end(StreamEnd.ABANDONED)
        return self._call.cancel()

    def __del__(self) -> None:
        """Hear that nobody reads on."""
        with suppress(AttributeError):
            self._end(StreamEnd.ABANDONED)


class _Recorded:
    """A recorded call: what an agent asks of any."""

    def __init__(self, passage: Passage, method: rpc.Method) -> None:
        self._passage, self._method = passage, method
        self._is_cancelled = False
        self._error: BaseException | None = None
        self._has_ended = False

    def _status(self) -> rpc.Status | None:
        match self._passage.answer:
            case Raised(exception=exception) | Streamed(exception=ExceptionRecord() as exception):
                return rpc.read_status(exception)
            case _:
                return None

    def _all_metadata(self) -> tuple[rpc.Metadata, rpc.Metadata]:
        if (status := self._status()) is not None:
            return status.initial, status.trailing
        match self._passage.answer:
            case Returned(payload=HttpReply(headers=headers)):
                return rpc.metadata(headers)
            case Streamed(headers=headers, result=result):
                return rpc.metadata(headers)[0], rpc.read_end(result)
            case _:
                return [], []

    async def initial_metadata(self) -> Any:
        """Give the metadata that came first."""
        return _metadata(self._all_metadata()[0])

    async def trailing_metadata(self) -> Any:
        """Give the metadata that came last."""
        return _metadata(self._all_metadata()[1])

    async def code(self) -> Any:
        """Give the status."""
        codes = sys.modules["grpc"].StatusCode
        status = self._status()
        return codes.OK if status is None else getattr(codes, status.code, codes.UNKNOWN)

    async def details(self) -> str:
        """Give what the server said of the status."""
        status = self._status()
        return "" if status is None else status.details

    def debug_error_string(self) -> str:
        """Give what gRPC's core said."""
        status = self._status()
        return "" if status is None else status.debug

    async def wait_for_connection(self) -> None:
        """Wait for nothing: nothing connects."""

    def done(self) -> bool:
        """Tell whether the agent has had its end."""
        return self._has_ended or self._is_cancelled

    def cancelled(self) -> bool:
        """Tell whether the agent cancelled it."""
        return self._is_cancelled

    def time_remaining(self) -> None:
        """Give no limit."""

    def cancel(self) -> bool:
        """Cancel it."""
        if self._has_ended or self._is_cancelled:
            return False
        self._is_cancelled = True
        return True

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call it soon: the recorded call has ended."""
        asyncio.get_running_loop().call_soon(callback, self)

    async def _release(self, order: int | None) -> None:
        """Wait for the time of a release; what the agent gave up it gives up again."""
        answer = self._passage.answer
        try:
            await self._passage.wait_async(order)
            if isinstance(answer, Raised) and was_cancelled(answer):
                await until_cancelled(self._passage)
        except asyncio.CancelledError as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        """Tell that the agent cancelled it."""
        self._passage.raised(error)


class RecordedUnaryCall(_Recorded):
    """A recorded call with one reply."""

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the reply. Raises the recorded error."""
        return self._reply().__await__()

    async def _reply(self) -> Any:
        passage = self._passage
        if self._has_ended and self._error is not None:
            raise self._error
        if not self._has_ended:
            await self._release(passage.end_order)
        match passage.answer:
            case Returned(payload=HttpReply(body=body)) as answer:
                value = rpc.message(self._method, body.data, passage)
                if not self._has_ended:
                    passage.closed(answer)
                self._has_ended = True
                return value
            case Raised(exception=exception):
                self._error, self._has_ended = _error(exception), True
                passage.raised(_recordable(self._error))
                raise self._error
            case other:
                raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")


class RecordedStreamCall(_Recorded):
    """A recorded stream, each message in its turn."""

    def __init__(self, passage: Passage, method: rpc.Method) -> None:
        super().__init__(passage, method)
        self._pieces = self._messages()

    def __aiter__(self) -> AsyncIterator[Any]:
        """Read all messages, one after the other."""
        return self._pieces

    async def read(self) -> Any:
        """Read the next message; `grpc.aio.EOF` behind the last."""
        return await anext(self._pieces, _aio().EOF)

    async def _messages(self) -> AsyncIterator[Any]:
        passage, answer = self._passage, self._passage.answer
        if isinstance(answer, Raised):
            await self._release(passage.end_order)
            error, self._has_ended = _error(answer.exception), True
            passage.raised(_recordable(error))
            raise error
        if not isinstance(answer, Streamed):
            raise passage.miss(f"the recording holds no stream for this call ({type(answer).__name__.lower()})")
        await self._release(passage.head_order)
        passage.head(answer.status, answer.headers)
        for chunk in answer.chunks:
            await self._release(chunk.order)
            passage.chunk(chunk.data or b"")
            yield rpc.message(self._method, chunk.data or b"", passage)
            if self._is_cancelled:
                passage.ended(StreamEnd.ABANDONED)
                raise asyncio.CancelledError
        if answer.end is StreamEnd.RAISED and was_cancelled(answer):
            try:
                await until_cancelled(passage)
            except asyncio.CancelledError as error:
                self._give_up(error)
                raise
        if answer.end is StreamEnd.FINISHED:
            await self._release(passage.end_order)
            self._has_ended = True
            passage.ended(StreamEnd.FINISHED, None, answer.result)
        elif answer.end is StreamEnd.RAISED and answer.exception is not None:
            await self._release(passage.end_order)
            error, self._has_ended = _error(answer.exception), True
            passage.ended(StreamEnd.RAISED, _recordable(error))
            raise error
        else:
            passage.ended(StreamEnd.ABANDONED)
            pieces = f"({answer.end}), after {len(answer.chunks)} messages"
            raise passage.miss(f"the agent reads on where the recorded run left this stream {pieces}")

    def _give_up(self, error: BaseException) -> None:
        self._passage.ended(StreamEnd.RAISED, error)


def _cut_calls(live: type[UnaryCall | StreamCall], recorded: type[_Recorded]) -> Callable[[Any], Any]:
    """Have calls be ours, around the library's own."""

    def make(original: Any) -> Any:
        signature = inspect.signature(original)

        @wraps(original, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            serializers = given.get("request_serializer"), given.get("response_deserializer")
            method = rpc.method_of(given["channel"], given["method"], *serializers)
            passage = None if method is None else rpc.opened(method, given["request"])
            if method is None or passage is None:
                return original(*args, **kwargs)
            if passage.answer is not None:
                return recorded(passage, method)
            given["response_deserializer"] = partial(_both, method)
            with passage.crossing(), lanes.aside():
                inner = original(*bound.args, **bound.kwargs)
            return live(inner, passage, method)

        return call

    return make


def _cut_reaching(original: Any) -> Any:
    """Have a call by which the program streams say that it goes out."""
    signature = inspect.signature(original)

    @wraps(original, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        rpc.reach_over(signature.bind(*args, **kwargs).arguments["channel"])
        return original(*args, **kwargs)

    return call


def _cut_readiness(original: Any) -> Any:
    """Cut the wait for a channel to be ready."""

    @wraps(original)
    async def channel_ready(self: Any) -> None:
        passage = rpc.connecting(rpc.target_of(self._channel))
        if passage is None:
            await original(self)
            return
        answer = passage.answer
        if answer is None:
            try:
                with passage.crossing(), lanes.aside():
                    await original(self)
            except BaseException as error:
                passage.raised(error)
                raise
            passage.replied(rpc.OK, (), b"")
            return
        await until_released(passage, answer)
        if isinstance(answer, Raised):
            error = plain_http.failure(answer.exception)
            passage.raised(error)
            raise error
        if not isinstance(answer, Returned):
            raise passage.miss("the recording does not tell whether the server was there")
        passage.closed(answer)

    return channel_ready


def _cut_state(original: Any) -> Any:
    """Have whoever asks a channel for its state, and has it connect, say that it goes out."""

    @wraps(original)
    def get_state(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any((*args, *kwargs.values())):
            rpc.reach_over(self._channel)
        return original(self, *args, **kwargs)

    return get_state


def _register(module: Any) -> None:
    for own, name in (
        (UnaryCall, "UnaryUnaryCall"),
        (RecordedUnaryCall, "UnaryUnaryCall"),
        (StreamCall, "UnaryStreamCall"),
        (RecordedStreamCall, "UnaryStreamCall"),
    ):
        getattr(module._base_call, name).register(own)  # noqa: SLF001 - the module of the abstract classes


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        if module.__name__ == _PLACES[0]:
            _register(module)
            patches.replace(module.Channel, "channel_ready", _cut_readiness)
            patches.replace(module.Channel, "get_state", _cut_state)
        patches.replace(module, "UnaryUnaryCall", _cut_calls(UnaryCall, RecordedUnaryCall))
        patches.replace(module, "UnaryStreamCall", _cut_calls(StreamCall, RecordedStreamCall))
        patches.replace(module, "StreamUnaryCall", _cut_reaching)
        patches.replace(module, "StreamStreamCall", _cut_reaching)

    for name in _PLACES:
        patches.when_imported(name, cut)


INTEGRATION = Integration(name="grpc_aio_channels", libraries=("grpc.aio",), install=_install, hooks=_PLACES)
