"""grpc with blocking calls and futures: cut where a channel gives a method, so inside the interceptors around it.

What an agent is given of a call is an object of ours (`boundary.grpc_calls`). Streams to the server are said to go
out, and not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from reenact.boundary import grpc_calls, lanes, plain_http, rpc
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.call import Raised, Returned


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
            return value, grpc_calls.end_of(value, call)
        if passage.answer is not None:
            end = grpc_calls.recorded_reply(self._method, passage)
            return end.result(), end
        try:
            with passage.crossing(), lanes.aside():
                (data, value), call = self._inner.with_call(request, *args, **kwargs)
        except BaseException as error:
            passage.raised(grpc_calls.recordable(error))
            raise
        grpc_calls.tell_reply(self._method, passage, data, call)
        return value, grpc_calls.end_of(value, call)

    def future(self, request: Any, *args: Any, **kwargs: Any) -> grpc_calls.Future:
        """Call it, and give what waits for the reply."""
        passage = rpc.opened(self._method, request)
        if passage is not None and passage.answer is not None:
            return grpc_calls.Future(None, lambda _call, _timeout: grpc_calls.recorded_reply(self._method, passage))
        if passage is None:
            return grpc_calls.Future(self._inner.future(request, *args, **kwargs), _settle)
        with passage.crossing(), lanes.aside():
            call = self._inner.future(request, *args, **kwargs)

        def settle(call: Any, timeout: float | None) -> Any:
            try:
                with passage.crossing(), lanes.aside():
                    data, value = call.result(timeout)
            except grpc_calls.library().FutureTimeoutError:
                raise
            except BaseException as error:
                passage.raised(grpc_calls.recordable(error))
                raise
            grpc_calls.tell_reply(self._method, passage, data, call)
            return grpc_calls.end_of(value, call)

        return grpc_calls.Future(call, settle)


def _settle(call: Any, timeout: float | None) -> grpc_calls.Ended:
    _, value = call.result(timeout)
    return grpc_calls.end_of(value, call)


class StreamMethod:
    """A method that answers one message with a stream."""

    def __init__(self, inner: Any, method: rpc.Method) -> None:
        self._inner, self._method = inner, method

    def __call__(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Call it, and give the stream."""
        passage = rpc.opened(self._method, request)
        if passage is not None and passage.answer is not None:
            return grpc_calls.RecordedStream(self._method, passage)
        if passage is None:
            return grpc_calls.Stream(self._inner(request, *args, **kwargs), None, self._method)
        try:
            with passage.crossing(), lanes.aside():
                call = self._inner(request, *args, **kwargs)
        except BaseException as error:
            passage.raised(grpc_calls.recordable(error))
            raise
        return grpc_calls.Stream(call, passage, self._method)


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


def _recorded_readiness(passage: Passage) -> grpc_calls.Ended:
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
    return grpc_calls.Ended(None, (), ())


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
        library = grpc_calls.library()
        for own, kinds in (
            (UnaryMethod, ("UnaryUnaryMultiCallable",)),
            (StreamMethod, ("UnaryStreamMultiCallable",)),
            (_Reaching, ("StreamUnaryMultiCallable", "StreamStreamMultiCallable")),
            (grpc_calls.Ended, ("Call", "Future")),
            (grpc_calls.Future, ("Call", "Future")),
            (Readiness, ("Future",)),
            (grpc_calls.Stream, ("Call",)),
            (grpc_calls.RecordedStream, ("Call",)),
        ):
            for kind in kinds:
                getattr(library, kind).register(own)
        patches.replace(module.Channel, "unary_unary", _cut_method(UnaryMethod))
        patches.replace(module.Channel, "unary_stream", _cut_method(StreamMethod))
        patches.replace(module.Channel, "stream_unary", _cut_stream)
        patches.replace(module.Channel, "stream_stream", _cut_stream)
        patches.replace(module.Channel, "subscribe", _cut_subscription)
        patches.replace(library, "channel_ready_future", _cut_readiness)

    patches.when_imported(grpc_calls.MODULE, cut)


INTEGRATION = Integration(name="grpc_channels", libraries=("grpc",), install=_install, hooks=(grpc_calls.MODULE,))
