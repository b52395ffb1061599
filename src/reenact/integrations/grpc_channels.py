"""grpc with blocking calls and futures: cut where a channel gives a method, so inside the interceptors around it.

Whatever an agent asks of a call (its metadata, its status, its end) it asks of an object of ours, which has it from the
library's own one, or from the recording. Streams to the server are said to go out, and not recorded.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Final, cast

from reenact.boundary import lanes, plain_http, rpc
from reenact.boundary.forgiving import forgive
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import locks
from reenact.values.call import ExceptionRecord, HttpReply, Raised, Returned, Streamed, StreamEnd

_MODULE: Final = "grpc._channel"
_UNARY, _STREAM = "_InactiveRpcError", "_MultiThreadedRendezvous"
"""The classes of the library's errors, of a reply and of a stream."""


def _grpc() -> Any:
    return sys.modules["grpc"]


def _status(error: Any) -> rpc.Status:
    """Read the library's error, which is a call that has ended."""

    def ask(name: str) -> Any:
        method = getattr(error, name, None)
        return None if method is None else method()

    return rpc.Status(
        error=type(error).__name__,
        code=getattr(ask("code"), "name", "UNKNOWN"),
        details=rpc.text(ask("details")),
        debug=rpc.text(ask("debug_error_string")),
        initial=[(each[0], each[1]) for each in ask("initial_metadata") or ()],
        trailing=[(each[0], each[1]) for each in ask("trailing_metadata") or ()],
    )


def _written(error: BaseException) -> BaseException:
    """Give what is written down of an error."""
    if not isinstance(error, _grpc().RpcError):
        return error
    try:
        return rpc.written(_status(error))
    except Exception:  # it is written down as any other
        forgive("grpc.status")
        return error


def _metadata(pairs: rpc.Metadata) -> tuple[Any, ...]:
    kind: Any = getattr(sys.modules["grpc._cython.cygrpc"], "_Metadatum", None)
    return tuple(pairs if kind is None else (kind(*each) for each in pairs))


def _error(record: ExceptionRecord) -> BaseException:
    """Make the library's error of a recorded one."""
    status = rpc.read(record)
    if status is None:
        return plain_http.failure(record)
    channel = sys.modules[_MODULE]
    code = getattr(_grpc().StatusCode, status.code, _grpc().StatusCode.UNKNOWN)
    initial, trailing = _metadata(status.initial), _metadata(status.trailing)
    state = channel._RPCState((), initial, trailing, code, status.details)  # noqa: SLF001 - there is no public way
    state.debug_error_string = status.debug
    kind = channel._InactiveRpcError  # noqa: SLF001 - as above
    named = kind if status.error == kind.__name__ else type(status.error, (kind,), {"__module__": _MODULE})
    return cast("BaseException", named(state))


class Ended:
    """A call that has ended well, as an agent is given it beside the reply."""

    def __init__(self, value: Any, initial: Any, trailing: Any, details: str = "") -> None:
        self._value, self._initial, self._trailing, self._details = value, initial, trailing, details

    def result(self, timeout: float | None = None) -> Any:
        """Give the reply."""
        del timeout
        return self._value

    def exception(self, timeout: float | None = None) -> None:
        """Give no error."""

    def traceback(self, timeout: float | None = None) -> None:
        """Give none of an error."""

    def initial_metadata(self) -> Any:
        """Give the metadata that came first."""
        return self._initial

    def trailing_metadata(self) -> Any:
        """Give the metadata that came last."""
        return self._trailing

    def code(self) -> Any:
        """Give the status."""
        return _grpc().StatusCode.OK

    def details(self) -> str:
        """Give what the server said of the status."""
        return self._details

    def debug_error_string(self) -> str:
        """Give nothing: there is no error."""
        return ""

    def is_active(self) -> bool:
        """Tell that nothing more comes."""
        return False

    def done(self) -> bool:
        """Tell that it has ended."""
        return True

    def running(self) -> bool:
        """Tell that it has ended."""
        return False

    def cancelled(self) -> bool:
        """Tell that nobody cancelled it."""
        return False

    def cancel(self) -> bool:
        """Cancel nothing."""
        return False

    def time_remaining(self) -> None:
        """Give no limit."""

    def add_callback(self, callback: Callable[[], Any]) -> bool:
        """Take no callback: the call has ended."""
        del callback
        return False

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call it now."""
        callback(self)


def _call_back(callback: Callable[[Any], Any], call: Any, _call: Any) -> None:
    callback(call)


def _call_back_alone(callback: Callable[[], Any], _call: Any) -> None:
    callback()


class Future:
    """A call that an agent waits for later: the library's own, told when its end is asked for, or the recorded one."""

    def __init__(self, call: Any, settle: Callable[[Any, float | None], Any]) -> None:
        self._call, self._settle = call, settle
        self._end: Any = None
        """`Ended`, or the error."""
        self._lock = locks.rlock()

    def _ended(self, timeout: float | None = None) -> Any:
        with self._lock:
            if self._end is None:
                try:
                    self._end = self._settle(self._call, timeout)
                except _grpc().FutureTimeoutError:
                    raise
                except BaseException as error:
                    if not isinstance(error, Exception):
                        raise
                    self._end = error
            return self._end

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the reply. Raises the call's error, or `grpc.FutureTimeoutError`."""
        end = self._ended(timeout)
        if isinstance(end, BaseException):
            raise end
        return end.result()

    def exception(self, timeout: float | None = None) -> Any:
        """Wait for the end, and give the error; None where there is none."""
        end = self._ended(timeout)
        return end if isinstance(end, BaseException) else None

    def traceback(self, timeout: float | None = None) -> Any:
        """Wait for the end, and give the error's traceback."""
        error = self.exception(timeout)
        return None if error is None else error.__traceback__

    def cancel(self) -> bool:
        """Cancel the call."""
        return bool(self._call.cancel()) if self._call is not None else True

    def cancelled(self) -> bool:
        """Tell whether the agent cancelled it."""
        return bool(self._call.cancelled()) if self._call is not None else False

    def running(self) -> bool:
        """Tell whether it has not ended."""
        return not self.done()

    def is_active(self) -> bool:
        """Tell whether it has not ended."""
        return not self.done()

    def done(self) -> bool:
        """Tell whether it has ended; a recorded call has."""
        return bool(self._call.done()) if self._call is not None else True

    def time_remaining(self) -> Any:
        """Give the seconds until its limit."""
        return self._call.time_remaining() if self._call is not None else None

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call it when the call has ended."""
        if self._call is not None:
            self._call.add_done_callback(partial(_call_back, callback, self))
            return

        def wait() -> None:
            self.exception()
            callback(self)

        threading.Thread(target=wait, daemon=True).start()

    def add_callback(self, callback: Callable[[], Any]) -> bool:
        """Call it when the call has ended."""
        self.add_done_callback(partial(_call_back_alone, callback))
        return True

    def __getattr__(self, name: str) -> Any:
        """Ask the rest of the call that has ended."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._ended(), name)


class UnaryMethod:
    """A method with one message each way."""

    def __init__(self, inner: Any, method: rpc.Method) -> None:
        self._inner, self._method = inner, method

    def __call__(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Call it, and wait for the reply."""
        return self.with_call(request, *args, **kwargs)[0]

    def with_call(self, request: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Call it, and give the reply and the call."""
        passage = rpc.opened(self._method, request)
        if passage is None:
            (_, value), call = self._inner.with_call(request, *args, **kwargs)
            return value, _ended(value, call)
        if passage.answer is not None:
            end = _recorded(self._method, passage)
            return end.result(), end
        try:
            with passage.crossing(), lanes.aside():
                (data, value), call = self._inner.with_call(request, *args, **kwargs)
        except BaseException as error:
            passage.raised(_written(error))
            raise
        _tell(self._method, passage, data, call)
        return value, _ended(value, call)

    def future(self, request: Any, *args: Any, **kwargs: Any) -> Future:
        """Call it, and give what waits for the reply."""
        passage = rpc.opened(self._method, request)
        if passage is not None and passage.answer is not None:
            return Future(None, lambda _call, _timeout: _recorded(self._method, passage))
        if passage is None:
            return Future(self._inner.future(request, *args, **kwargs), _settle)
        with passage.crossing(), lanes.aside():
            call = self._inner.future(request, *args, **kwargs)

        def settle(call: Any, timeout: float | None) -> Any:
            try:
                with passage.crossing(), lanes.aside():
                    data, value = call.result(timeout)
            except _grpc().FutureTimeoutError:
                raise
            except BaseException as error:
                passage.raised(_written(error))
                raise
            _tell(self._method, passage, data, call)
            return _ended(value, call)

        return Future(call, settle)


def _settle(call: Any, timeout: float | None) -> Ended:
    _, value = call.result(timeout)
    return _ended(value, call)


def _ended(value: Any, call: Any) -> Ended:
    return Ended(value, call.initial_metadata(), call.trailing_metadata(), rpc.text(call.details()))


def _tell(method: rpc.Method, passage: Passage, data: bytes, call: Any) -> None:
    try:
        pairs = rpc.headers(call.initial_metadata(), call.trailing_metadata())
        passage.replied(rpc.OK, pairs, rpc.spell_message(method, data))
    except Exception:
        forgive("grpc.reply")


def _recorded(method: rpc.Method, passage: Passage) -> Ended:
    """Give the recorded reply when its time has come. Raises the recorded error."""
    passage.wait(passage.end_order)
    match passage.answer:
        case Returned(payload=HttpReply(headers=headers, body=body)) as answer:
            value = rpc.message(method, body.data, passage)
            passage.closed(answer)
            initial, trailing = rpc.metadata(headers)
            return Ended(value, _metadata(initial), _metadata(trailing))
        case Raised(exception=exception):
            error = _error(exception)
            passage.raised(_written(error))
            raise error
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")


class StreamMethod:
    """A method that answers one message with a stream."""

    def __init__(self, inner: Any, method: rpc.Method) -> None:
        self._inner, self._method = inner, method

    def __call__(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Call it, and give the stream."""
        passage = rpc.opened(self._method, request)
        if passage is not None and passage.answer is not None:
            return RecordedStream(self._method, passage)
        if passage is None:
            return Stream(self._inner(request, *args, **kwargs), None, self._method)
        try:
            with passage.crossing(), lanes.aside():
                call = self._inner(request, *args, **kwargs)
        except BaseException as error:
            passage.raised(_written(error))
            raise
        return Stream(call, passage, self._method)


class Stream:
    """A stream of the library's, told as it is read."""

    def __init__(self, call: Any, passage: Passage | None, method: rpc.Method) -> None:
        self._call, self._passage, self._method = call, passage, method
        self._begun = False

    def __iter__(self) -> Iterator[Any]:
        """Give itself."""
        return self

    def __next__(self) -> Any:
        """Read the next message."""
        passage = self._passage
        if passage is None:
            return next(self._call)[1]
        try:
            with passage.crossing(), lanes.aside():
                data, value = next(self._call)
        except StopIteration:
            self._end(StreamEnd.FINISHED)
            raise
        except BaseException as error:
            self._end(StreamEnd.RAISED, error)
            raise
        try:
            self._begin(passage)
            passage.chunk(rpc.spell_message(self._method, data))
        except Exception:
            forgive("grpc.message")
        return value

    def next(self) -> Any:
        """Read the next message."""
        return self.__next__()

    def _begin(self, passage: Passage) -> None:
        if not self._begun:
            self._begun = True
            passage.head(rpc.OK, rpc.headers(self._call.initial_metadata()))

    def _end(self, end: StreamEnd, error: BaseException | None = None) -> None:
        passage, self._passage = self._passage, None
        if passage is None:
            return
        try:
            self._begin(passage)
            trailing = self._call.trailing_metadata() if end is StreamEnd.FINISHED else None
            passage.ended(end, None if error is None else _written(error), rpc.spell_end(trailing))
        except Exception:
            forgive("grpc.end")

    def cancel(self) -> Any:
        """Cancel the call: nobody reads on."""
        self._end(StreamEnd.ABANDONED)
        return self._call.cancel()

    def __del__(self) -> None:
        """Hear that nobody reads on."""
        if getattr(self, "_passage", None) is not None:
            self._end(StreamEnd.ABANDONED)

    def __getattr__(self, name: str) -> Any:
        """Ask the library's call for the rest."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._call, name)


class RecordedStream:
    """A recorded stream, each message in its turn."""

    def __init__(self, method: rpc.Method, passage: Passage) -> None:
        self._method, self._passage = method, passage
        self._end: Any = None
        self._initial: Any = ()
        self._cancelled = False
        self._pieces = self._messages()

    def __iter__(self) -> Iterator[Any]:
        """Give itself."""
        return self

    def __next__(self) -> Any:
        """Read the next message."""
        if self._cancelled:
            details = "Locally cancelled by application!"
            raise _error_of(rpc.Status(error=_STREAM, code="CANCELLED", details=details))
        return next(self._pieces)

    def next(self) -> Any:
        """Read the next message."""
        return self.__next__()

    def _messages(self) -> Iterator[Any]:
        passage, answer = self._passage, self._passage.answer
        if isinstance(answer, Raised):  # the call itself failed
            _recorded(self._method, passage)
        if not isinstance(answer, Streamed):
            raise passage.miss(f"the recording holds no stream for this call ({type(answer).__name__.lower()})")
        passage.wait(passage.head_order)
        passage.head(answer.status, answer.headers)
        self._initial = _metadata(rpc.metadata(answer.headers)[0])
        for chunk in answer.chunks:
            passage.wait(chunk.order)
            passage.chunk(chunk.data or b"")
            yield rpc.message(self._method, chunk.data or b"", passage)
        self._finish(passage, answer)

    def _finish(self, passage: Passage, answer: Streamed) -> None:
        if answer.end is StreamEnd.FINISHED:
            passage.wait(passage.end_order)
            self._end = Ended(None, self._initial, _metadata(rpc.read_end(answer.result)))
            passage.ended(StreamEnd.FINISHED, None, answer.result)
        elif answer.end is StreamEnd.RAISED and answer.exception is not None:
            passage.wait(passage.end_order)
            self._end = error = _error(answer.exception)
            passage.ended(StreamEnd.RAISED, _written(error))
            raise error
        else:
            self._cancelled = True
            passage.ended(StreamEnd.ABANDONED)
            pieces = f"({answer.end}), after {len(answer.chunks)} messages"
            raise passage.miss(f"the agent reads on where the recorded run left this stream {pieces}")

    def cancel(self) -> bool:
        """Cancel the call: nobody reads on."""
        if self._end is None and not self._cancelled:
            self._cancelled = True
            self._passage.ended(StreamEnd.ABANDONED)
        return True

    def __del__(self) -> None:
        """Hear that nobody reads on."""
        with suppress(AttributeError):
            self.cancel()

    def initial_metadata(self) -> Any:
        """Give the metadata that came first."""
        answer = self._passage.answer
        return _metadata(rpc.metadata(answer.headers)[0]) if isinstance(answer, Streamed) else ()

    def is_active(self) -> bool:
        """Tell whether more is to come."""
        return self._end is None and not self._cancelled

    def __getattr__(self, name: str) -> Any:
        """Ask the call that has ended for the rest, as a program does behind the last message."""
        if name.startswith("__"):
            raise AttributeError(name)
        end = self._end if self._end is not None else Ended(None, self._initial, ())
        return getattr(end, name)


def _error_of(status: rpc.Status) -> BaseException:
    from reenact.values import typed

    return _error(typed.encode_exception(rpc.written(status)))


def _cut_method(kind: type[UnaryMethod | StreamMethod]) -> Callable[[Any], Any]:
    """Have a channel give methods of ours, around its own."""

    def make(original: Any) -> Any:
        @wraps(original)
        def method(
            self: Any,
            method: str,
            request_serializer: Any = None,
            response_deserializer: Any = None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            about = rpc.method_of(self._channel, method, request_serializer, response_deserializer)
            if about is None:
                return original(self, method, request_serializer, response_deserializer, *args, **kwargs)

            def both(data: bytes) -> Any:
                value = about.value(data)
                return None if value is None else (data, value)  # the library takes None for a failure

            return kind(original(self, method, request_serializer, both, *args, **kwargs), about)

        return method

    return make


def _recorded_readiness(passage: Passage) -> Ended:
    """Tell when its time has come that the channel was ready. Raises the recorded error."""
    passage.wait(passage.end_order)
    answer = passage.answer
    if isinstance(answer, Raised):
        error = plain_http.failure(answer.exception)
        passage.raised(error)
        raise error
    if not isinstance(answer, Returned):
        raise passage.miss("the recording does not tell whether the server was there")
    passage.closed(answer)
    return Ended(None, (), ())


class Readiness:
    """A wait for a channel to be ready, as `grpc.channel_ready_future` gives it."""

    def __init__(self, original: Any, channel: Any) -> None:
        self._original, self._channel = original, channel
        self._future: Any = None
        self._is_cancelled = False

    def result(self, timeout: float | None = None) -> None:
        """Wait until it is. Raises `grpc.FutureTimeoutError`."""
        passage = rpc.connecting(_target(self._channel))
        if passage is not None and passage.answer is not None:
            _recorded_readiness(passage)
            return
        if passage is None:
            self._begun().result(timeout)
            return
        try:
            with passage.crossing(), lanes.aside():
                self._begun().result(timeout)
        except BaseException as error:
            passage.raised(error)
            raise
        passage.replied(rpc.OK, (), b"")

    def exception(self, timeout: float | None = None) -> None:
        """Wait until it is; there is no error."""
        self.result(timeout)

    def traceback(self, timeout: float | None = None) -> None:
        """Do the same."""
        self.result(timeout)

    def cancel(self) -> bool:
        """Wait no longer."""
        self._is_cancelled = True
        return bool(self._future.cancel()) if self._future is not None else True

    def cancelled(self) -> bool:
        """Tell whether somebody gave the wait up."""
        return self._is_cancelled

    def __getattr__(self, name: str) -> Any:
        """Ask the library's own future for the rest, which connects by itself."""
        if name.startswith("__"):
            raise AttributeError(name)
        if self._future is None:
            rpc.reach(_target(self._channel))
        return getattr(self._begun(), name)

    def _begun(self) -> Any:
        if self._future is None:
            self._future = self._original(self._channel)
        return self._future


def _target(channel: Any) -> str:
    """Give the target of a channel, below the interceptors around it."""
    inner = getattr(channel, "_channel", None)
    return _target(inner) if hasattr(inner, "_channel") else rpc.target_of(inner)


def _cut_readiness(original: Any) -> Any:
    @wraps(original)
    def channel_ready_future(channel: Any) -> Any:
        return Readiness(original, channel)

    return channel_ready_future


def _cut_subscription(original: Any) -> Any:
    """Have whoever watches a channel, and has it connect, say that it goes out."""

    @wraps(original)
    def subscribe(self: Any, callback: Any, *args: Any, **kwargs: Any) -> Any:
        if any((*args, *kwargs.values())):
            rpc.reach_over(self._channel)
        return original(self, callback, *args, **kwargs)

    return subscribe


class _Reaching:
    """A method to which the program streams: it says that it goes out."""

    def __init__(self, inner: Any, channel: Any) -> None:
        self._inner, self._channel = inner, channel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rpc.reach_over(self._channel)
        return self._inner(*args, **kwargs)

    def with_call(self, *args: Any, **kwargs: Any) -> Any:
        rpc.reach_over(self._channel)
        return self._inner.with_call(*args, **kwargs)

    def future(self, *args: Any, **kwargs: Any) -> Any:
        rpc.reach_over(self._channel)
        return self._inner.future(*args, **kwargs)


def _cut_stream(original: Any) -> Any:
    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _Reaching(original(self, *args, **kwargs), self._channel)

    return method


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        library = _grpc()
        for own, kinds in (
            (UnaryMethod, ("UnaryUnaryMultiCallable",)),
            (StreamMethod, ("UnaryStreamMultiCallable",)),
            (_Reaching, ("StreamUnaryMultiCallable", "StreamStreamMultiCallable")),
            (Ended, ("Call", "Future")),
            (Future, ("Call", "Future")),
            (Readiness, ("Future",)),
            (Stream, ("Call",)),
            (RecordedStream, ("Call",)),
        ):
            for kind in kinds:
                getattr(library, kind).register(own)
        patches.replace(module.Channel, "unary_unary", _cut_method(UnaryMethod))
        patches.replace(module.Channel, "unary_stream", _cut_method(StreamMethod))
        patches.replace(module.Channel, "stream_unary", _cut_stream)
        patches.replace(module.Channel, "stream_stream", _cut_stream)
        patches.replace(module.Channel, "subscribe", _cut_subscription)
        patches.replace(library, "channel_ready_future", _cut_readiness)

    patches.when_imported(_MODULE, cut)


INTEGRATION = Integration(name="grpc_channels", libraries=("grpc",), install=_install, hooks=(_MODULE,))
