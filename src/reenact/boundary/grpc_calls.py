"""What an agent is given of a call by grpc: the call that has ended, a future, a stream, an error.

Each asks the library's own object, and tells what came of the call, or has it from the recording. An agent asks all of
them for the same: metadata, status, details, the end. `rpc` says how that is spelled.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

from reenact.boundary import lanes, plain_http, rpc
from reenact.boundary.forgiving import forgive
from reenact.contracts.doorman import Passage
from reenact.values import locks, typed
from reenact.values.call import ExceptionRecord, HttpReply, Raised, Returned, Streamed, StreamEnd

MODULE: Final = "grpc._channel"
_STREAM: Final = "_MultiThreadedRendezvous"
"""The class of the library's errors of a stream."""


def library() -> Any:
    """Give the module `grpc`, which is imported."""
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


def recordable(error: BaseException) -> BaseException:
    """Give what is written down of an error."""
    if not isinstance(error, library().RpcError):
        return error
    try:
        return rpc.error_of(_status(error))
    except Exception:  # it is written down as any other
        forgive("grpc.status")
        return error


def metadata_of(pairs: rpc.Metadata) -> tuple[Any, ...]:
    """Give metadata as the library does."""
    kind: Any = getattr(sys.modules["grpc._cython.cygrpc"], "_Metadatum", None)
    return tuple(pairs if kind is None else (kind(*each) for each in pairs))


def error_of(record: ExceptionRecord) -> BaseException:
    """Make the library's error of a recorded one."""
    status = rpc.read_status(record)
    if status is None:
        return plain_http.failure(record)
    channel = sys.modules[MODULE]
    code = getattr(library().StatusCode, status.code, library().StatusCode.UNKNOWN)
    initial, trailing = metadata_of(status.initial), metadata_of(status.trailing)
    state = channel._RPCState((), initial, trailing, code, status.details)  # noqa: SLF001 - there is no public way
    state.debug_error_string = status.debug
    kind = channel._InactiveRpcError  # noqa: SLF001 - as above
    named = kind if status.error == kind.__name__ else type(status.error, (kind,), {"__module__": MODULE})
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
        return library().StatusCode.OK

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

    def _wait(self, timeout: float | None = None) -> Any:
        with self._lock:
            if self._end is None:
                try:
                    self._end = self._settle(self._call, timeout)
                except library().FutureTimeoutError:
                    raise
                except BaseException as error:
                    if not isinstance(error, Exception):
                        raise
                    self._end = error
            return self._end

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the reply. Raises the call's error, or `grpc.FutureTimeoutError`."""
        end = self._wait(timeout)
        if isinstance(end, BaseException):
            raise end
        return end.result()

    def exception(self, timeout: float | None = None) -> Any:
        """Wait for the end, and give the error; None where there is none."""
        end = self._wait(timeout)
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
        return getattr(self._wait(), name)


def end_of(value: Any, call: Any) -> Ended:
    """Give the end of a call of the library's that went well."""
    return Ended(value, call.initial_metadata(), call.trailing_metadata(), rpc.text(call.details()))


def tell_reply(method: rpc.Method, passage: Passage, data: bytes, call: Any) -> None:
    """Tell the reply of one."""
    try:
        pairs = rpc.headers(call.initial_metadata(), call.trailing_metadata())
        passage.replied(rpc.OK, pairs, rpc.spell_message(method, data))
    except Exception:
        forgive("grpc.reply")


def recorded_reply(method: rpc.Method, passage: Passage) -> Ended:
    """Give the recorded reply when its time has come. Raises the recorded error."""
    passage.wait(passage.end_order)
    match passage.answer:
        case Returned(payload=HttpReply(headers=headers, body=body)) as answer:
            value = rpc.message(method, body.data, passage)
            passage.closed(answer)
            initial, trailing = rpc.metadata(headers)
            return Ended(value, metadata_of(initial), metadata_of(trailing))
        case Raised(exception=exception):
            error = error_of(exception)
            passage.raised(recordable(error))
            raise error
        case other:
            raise passage.miss(f"the recording holds no reply for this call ({type(other).__name__.lower()})")


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
            passage.ended(end, None if error is None else recordable(error), rpc.spell_end(trailing))
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
            raise _error_with(rpc.Status(error=_STREAM, code="CANCELLED", details=details))
        return next(self._pieces)

    def next(self) -> Any:
        """Read the next message."""
        return self.__next__()

    def _messages(self) -> Iterator[Any]:
        passage, answer = self._passage, self._passage.answer
        if isinstance(answer, Raised):  # the call itself failed
            recorded_reply(self._method, passage)
        if not isinstance(answer, Streamed):
            raise passage.miss(f"the recording holds no stream for this call ({type(answer).__name__.lower()})")
        passage.wait(passage.head_order)
        passage.head(answer.status, answer.headers)
        self._initial = metadata_of(rpc.metadata(answer.headers)[0])
        for chunk in answer.chunks:
            passage.wait(chunk.order)
            passage.chunk(chunk.data or b"")
            yield rpc.message(self._method, chunk.data or b"", passage)
        self._finish(passage, answer)

    def _finish(self, passage: Passage, answer: Streamed) -> None:
        if answer.end is StreamEnd.FINISHED:
            passage.wait(passage.end_order)
            self._end = Ended(None, self._initial, metadata_of(rpc.read_end(answer.result)))
            passage.ended(StreamEnd.FINISHED, None, answer.result)
        elif answer.end is StreamEnd.RAISED and answer.exception is not None:
            passage.wait(passage.end_order)
            self._end = error = error_of(answer.exception)
            passage.ended(StreamEnd.RAISED, recordable(error))
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
        return metadata_of(rpc.metadata(answer.headers)[0]) if isinstance(answer, Streamed) else ()

    def is_active(self) -> bool:
        """Tell whether more is to come."""
        return self._end is None and not self._cancelled

    def __getattr__(self, name: str) -> Any:
        """Ask the call that has ended for the rest, as a program does behind the last message."""
        if name.startswith("__"):
            raise AttributeError(name)
        end = self._end if self._end is not None else Ended(None, self._initial, ())
        return getattr(end, name)


def _error_with(status: rpc.Status) -> BaseException:
    return error_of(typed.encode_exception(rpc.error_of(status)))
