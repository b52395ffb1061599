"""The agent's own functions: tools, retrievers, model calls made by hand, and pieces of structure.

Cut at the call. Arguments and results are typed JSON, taken down at once, since the agent may change them later. A
tool or retriever is answered from the recording; an agent or chain only says where other calls hang, so its code runs
again.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, wraps
from typing import Any, TypeVar, cast, overload

from reenact.boundary import door, found, lanes, state
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.contracts.doorman import Passage
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import typed
from reenact.values.call import (
    STRUCTURE,
    Call,
    CallKind,
    FunctionCall,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Value,
)
from reenact.values.found import CHANGED, FOUND, HELD, STATE
from reenact.values.json import Json, compact

_log = logging.getLogger("reenact")
F = TypeVar("F", bound=Callable[..., Any])


class _Function:
    """What is known of a decorated function before it is called."""

    __slots__ = ("attributes", "fn", "kind", "name", "offered", "owner", "signature", "spelling")

    def __init__(
        self,
        kind: CallKind,
        fn: Callable[..., Any],
        name: str | None,
        attributes: Mapping[str, Json],
        offered: Callable[[str], bool] | None = None,
    ) -> None:
        self.fn, self.offered = fn, offered
        named = _named(fn)
        qualname = str(getattr(named, "__qualname__", type(named).__qualname__))
        self.kind = kind
        self.name = name or str(getattr(named, "__name__", type(named).__name__))
        self.spelling = f"{getattr(named, '__module__', None) or type(named).__module__}:{qualname}"
        self.attributes = dict(attributes)
        if kind is CallKind.TOOL and fn.__doc__ and "tool.description" not in self.attributes:
            self.attributes["tool.description"] = inspect.cleandoc(fn.__doc__)
        try:
            self.signature: inspect.Signature | None = inspect.signature(fn)
        except (TypeError, ValueError):
            self.signature = None
        first = next(iter(self.signature.parameters), "") if self.signature else ""
        self.owner = first if first in {"self", "cls"} and "." in qualname else None

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Take down one call."""
        arguments = self.bound(args, kwargs)
        asked = {name: typed.encode(value) for name, value in arguments.items() if name != self.owner}
        request = FunctionCall(function=self.spelling, arguments=asked)
        return Call(kind=self.kind, name=self.name, request=request, attributes=self.attributes)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Give each parameter its argument. Those that do not fit are given as they came.

        The function may complain of them, or take them all the same: a decorator under ours may hand in the rest.
        """
        try:
            if self.signature is not None:
                bound = self.signature.bind(*args, **kwargs)
                bound.apply_defaults()
                return bound.arguments
        except TypeError:
            pass
        return {"args": list(args), "kwargs": kwargs}

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Passage | None:
        """Ask the doorman in charge, or give None where the call goes straight through."""
        doorman = door.doorman()
        if doorman is None or (self.offered is not None and not self.offered(self.name)):
            return None
        return doorman.open(self.call(args, kwargs))

    def watched(
        self, passage: Passage, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AbstractContextManager[object]:
        """Surround the real call of a tool that was found, and tell what state it could reach and what changed."""
        if self.offered is None:
            return _UNWATCHED
        return _Watched(self, passage, args, kwargs)

    def lane(self) -> lanes.Lane:
        """Give the lane on which the body runs; what an answered body would have spawned must not shift the numbers."""
        return lanes.current() if self.kind in STRUCTURE else lanes.current().spawn(f"{self.name}()")


_UNWATCHED = nullcontext()


class _Watched:
    """Takes the fingerprints of what a found tool can reach, before it runs and after."""

    def __init__(self, known: _Function, passage: Passage, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._known, self._passage = known, passage
        self._arguments = known.bound(args, kwargs)
        self._before: state.Reached | None = None

    def __enter__(self) -> None:
        self._before = self._reached()

    def __exit__(self, *_: object) -> None:
        before, after = self._before, self._reached()
        if before is None or after is None:
            self._passage.annotate({HELD: compact(["state that could not be looked at"])})
            return
        said = {STATE: [*after.state], CHANGED: before.changed(after), HELD: [*after.held]}
        self._passage.annotate({name: compact([*listed]) for name, listed in said.items() if listed})

    def _reached(self) -> state.Reached | None:
        try:
            return state.reached(self._known.fn, self._arguments)
        except Exception:  # our failure is never the agent's: what is not known is taken for the worst
            _log.debug("reenact could not look at the state of %s", self._known.spelling, exc_info=True)
            return None


def _named(fn: Callable[..., Any]) -> Any:
    """Find what gives `fn` its name: a partial has none of its own, an instance that is called has its class's."""
    while isinstance(fn, partial):
        fn = cast("partial[Any]", fn).func
    return fn


def boundary(
    kind: CallKind,
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    offered: Callable[[str], bool] | None = None,
) -> Callable[..., Any]:
    """Make `fn` a boundary of `kind`: the same function, of the same colour, with a doorman before it.

    A tool that was found comes with `offered`, which tells whether the run has offered it to a model by now.
    """
    method = cast("Any", fn)
    for wraps_methods in (classmethod, staticmethod):
        if isinstance(fn, wraps_methods):
            return cast("Any", wraps_methods)(boundary(kind, method.__func__, name=name, attributes=attributes))
    known = _Function(kind, fn, name, attributes or {}, offered)
    coloured = _coloured(fn)
    if inspect.isasyncgenfunction(coloured):
        wrapper = _async_generator(fn, known)
    elif inspect.iscoroutinefunction(coloured):
        wrapper = _coroutine(fn, known)
    elif inspect.isgeneratorfunction(coloured):
        wrapper = _generator(fn, known)
    else:
        wrapper = _plain(fn, known)
    made = wraps(fn)(wrapper)
    if offered is None:
        found.declared.add(made)
    return made


def _coloured(fn: Any) -> Any:
    """Find what tells the colour of `fn`: itself, or what runs when an instance is called."""
    return cast("Any", fn if isinstance(fn, partial) or inspect.isroutine(fn) else type(fn).__call__)


def _plain(fn: Callable[..., Any], known: _Function) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        passage = known.open(args, kwargs)
        if passage is None:
            return fn(*args, **kwargs)
        lane = known.lane()
        if passage.answer is not None:
            passage.wait(passage.end_order)
            return _give(passage)
        try:
            passage.ready()
            with passage.crossing(), lanes.on(lane), known.watched(passage, args, kwargs):
                result = fn(*args, **kwargs)
        except BaseException as error:
            _fail(passage, error)
            raise
        passage.wait(passage.end_order)
        return _tell(passage, result)

    return wrapper


def _coroutine(fn: Callable[..., Any], known: _Function) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        passage = known.open(args, kwargs)
        if passage is None:
            return await fn(*args, **kwargs)
        lane = known.lane()
        if passage.answer is not None:
            await _until_released(passage, passage.answer)
            return _give(passage)
        try:
            await passage.ready_async()
            with passage.crossing(), lanes.on(lane), known.watched(passage, args, kwargs):
                result = await fn(*args, **kwargs)
            await passage.wait_async(passage.end_order)
        except BaseException as error:
            await _fail_async(passage, error)
            raise
        return _tell(passage, result)

    return wrapper


def _fail(passage: Passage, error: BaseException) -> None:
    """Tell that the body raised; a tool that ran again in a replay fails when it failed."""
    try:
        if isinstance(error, Exception):
            passage.wait(passage.end_order)
    finally:
        passage.raised(error)


async def _fail_async(passage: Passage, error: BaseException) -> None:
    try:
        if isinstance(error, Exception):
            await passage.wait_async(passage.end_order)
    finally:
        passage.raised(error)


async def _until_released(passage: Passage, answer: Outcome) -> None:
    """Wait until the outcome of a call may be handed over; what the agent gave up is given up again."""
    try:
        await passage.wait_async(passage.end_order)
        if was_cancelled(answer):
            await until_cancelled(passage)
    except asyncio.CancelledError as error:
        passage.raised(error)
        raise


def _tell(passage: Passage, result: Any) -> Any:
    passage.closed(Returned(payload=Value(json=typed.encode(result))))
    return result


def _give(passage: Passage) -> Any:
    """Make the recorded outcome into what the agent gets."""
    match passage.answer:
        case Returned(payload=Value(json=json)) as answer:
            value = _hydrate(passage, json)
            passage.closed(answer)
            return value
        case Raised(exception=exception):
            error = typed.decode_exception(exception)
            passage.raised(error)
            raise error
        case other:
            raise passage.miss(f"the recording holds no result for this call ({type(other).__name__.lower()})")


def _hydrate(passage: Passage, json: Json) -> Any:
    try:
        return typed.decode(json)
    except typed.Unhydratable as error:
        raise passage.miss(f"its recorded result cannot be rebuilt: {error.message}") from error


class _Stepping:
    """What is told of a generator that runs, step by step. Its context is ours only while it runs."""

    def __init__(
        self, passage: Passage | None, lane: lanes.Lane | None, watched: AbstractContextManager[object]
    ) -> None:
        self._passage, self._lane, self._watched = passage, lane, watched
        watched.__enter__()

    @contextmanager
    def inside(self) -> Generator[None]:
        """Stand inside the call for one step."""
        if self._passage is None or self._lane is None:
            yield
            return
        with self._passage.crossing(), lanes.on(self._lane):
            yield

    def piece(self, item: Any) -> None:
        """Tell what it yielded."""
        if self._passage is not None:
            self._passage.chunk(value=typed.encode(item))

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: object = None) -> None:
        """Tell how it ended, and what it returned."""
        self._watched.__exit__(None, None, None)
        if self._passage is not None:
            self._passage.ended(end, error, typed.encode(result))


def _generator(fn: Callable[..., Any], known: _Function) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        passage = known.open(args, kwargs)
        if passage is None:
            body: Generator[Any, Any, Any] = fn(*args, **kwargs)
            return (yield from body)
        lane = known.lane()
        if passage.answer is not None:
            return (yield from _replayed(passage, _stream_of(passage)))
        watched = known.watched(passage, args, kwargs)
        return (yield from _recorded(fn(*args, **kwargs), _Stepping(passage, lane, watched)))

    return wrapper


def _stream_of(passage: Passage) -> Streamed:
    """Give the recorded stream that answers a generator; anything else cannot."""
    if isinstance(passage.answer, Streamed):
        return passage.answer
    raise passage.miss(f"the recording holds no generator for this call ({type(passage.answer).__name__.lower()})")


def _recorded(body: Generator[Any, Any, Any], stepping: _Stepping) -> Generator[Any, Any, Any]:
    step: Callable[[], Any] = partial(next, body)
    try:
        while True:
            with stepping.inside():
                item = step()
            stepping.piece(item)
            try:
                step = partial(body.send, (yield item))
            except GeneratorExit:
                with stepping.inside():
                    body.close()
                raise
            except BaseException as error:
                step = partial(body.throw, error)
    except StopIteration as stop:
        stepping.ended(StreamEnd.FINISHED, result=stop.value)
        return stop.value
    except GeneratorExit:
        stepping.ended(StreamEnd.ABANDONED)
        raise
    except BaseException as error:
        stepping.ended(StreamEnd.RAISED, error)
        raise


def _replayed(passage: Passage, answer: Streamed) -> Generator[Any, Any, Any]:
    """Yield what was recorded, and return it. What the agent sends or throws in, the recorded body had already."""
    thrown: BaseException | None = None
    try:
        for chunk in answer.chunks:
            passage.wait(chunk.order)
            item = _hydrate(passage, chunk.value)
            passage.chunk(value=chunk.value)
            thrown = None
            try:
                yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                thrown = error
        if answer.end is not StreamEnd.ABANDONED:
            passage.wait(passage.end_order)
    except GeneratorExit:
        passage.ended(StreamEnd.ABANDONED)
        raise
    return _end_replayed(passage, answer, thrown)


def _end_replayed(passage: Passage, answer: Streamed, thrown: BaseException | None) -> Any:
    """Come to the recorded end: give what it returned, or raise what it raised.

    That is the agent's very own error where it threw one in that came through.
    """
    returned = _hydrate(passage, answer.result)
    error: BaseException | None = None
    if answer.end is StreamEnd.RAISED and answer.exception is not None:
        error = typed.decode_exception(answer.exception)
        if thrown is not None and type(thrown) is type(error) and str(thrown) == answer.exception.message:
            error = thrown
    elif answer.end is not StreamEnd.FINISHED:
        error = passage.miss(f"the agent reads on where the recorded run left this generator ({answer.end})")
    passage.ended(answer.end, error, answer.result)
    if error is not None:
        raise error
    return returned


def _async_generator(fn: Callable[..., Any], known: _Function) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        passage = known.open(args, kwargs)
        lane = known.lane() if passage is not None else None
        if passage is not None and passage.answer is not None:
            steps: AsyncGenerator[Any, Any] = _replayed_async(passage, _stream_of(passage))
            stepping = _Stepping(None, None, _UNWATCHED)
        else:
            watched = _UNWATCHED if passage is None else known.watched(passage, args, kwargs)
            steps, stepping = fn(*args, **kwargs), _Stepping(passage, lane, watched)
        step: Callable[[], Any] = partial(anext, steps)
        try:
            while True:
                with stepping.inside():
                    item = await step()
                stepping.piece(item)
                try:
                    step = partial(steps.asend, (yield item))
                except GeneratorExit:
                    with stepping.inside():
                        await steps.aclose()
                    raise
                except BaseException as error:
                    step = partial(steps.athrow, error)
        except StopAsyncIteration:
            stepping.ended(StreamEnd.FINISHED)
        except GeneratorExit:
            stepping.ended(StreamEnd.ABANDONED)
            raise
        except BaseException as error:
            stepping.ended(StreamEnd.RAISED, error)
            raise

    return wrapper


async def _replayed_async(passage: Passage, answer: Streamed) -> AsyncGenerator[Any, Any]:
    thrown: BaseException | None = None
    try:
        for chunk in answer.chunks:
            await passage.wait_async(chunk.order)
            item = _hydrate(passage, chunk.value)
            passage.chunk(value=chunk.value)
            thrown = None
            try:
                yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                thrown = error
        if was_cancelled(answer) and thrown is None:
            await until_cancelled(passage)
        if answer.end is not StreamEnd.ABANDONED:
            await passage.wait_async(passage.end_order)
    except GeneratorExit:
        passage.ended(StreamEnd.ABANDONED)
        raise
    except asyncio.CancelledError as error:
        passage.ended(StreamEnd.RAISED, error)
        raise
    _end_replayed(passage, answer, thrown)


class Decorator:
    """One of `@reenact.tool / retriever / llm / agent / chain`: bare, or with a name and further span attributes."""

    def __init__(self, kind: CallKind) -> None:
        self._kind = kind

    @overload
    def __call__(self, fn: F) -> F: ...
    @overload
    def __call__(self, *, name: str | None = None, **attributes: Json) -> Callable[[F], F]: ...
    def __call__(self, fn: Any = None, *, name: str | None = None, **attributes: Json) -> Any:
        """Declare `fn` a boundary. `attributes` are written on its span as `metadata`."""
        kind = self._kind
        extra: dict[str, Json] = {"metadata": attributes} if attributes else {}
        if fn is not None:
            return boundary(kind, fn, name=name, attributes=extra)

        def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
            return boundary(kind, fn, name=name, attributes=extra)

        return decorate


tool = Decorator(CallKind.TOOL)
retriever = Decorator(CallKind.RETRIEVER)
llm = Decorator(CallKind.LLM)
agent = Decorator(CallKind.AGENT)
chain = Decorator(CallKind.CHAIN)


def _found(target: Any, name: str, offered: Callable[[str], bool]) -> Callable[..., Any]:
    """Make a tool that was found a boundary, like a declared one but for what its span says of it."""
    return boundary(CallKind.TOOL, target, name=name, attributes={FOUND: True}, offered=offered)


def _install(patches: PatchSet) -> None:
    patches.when_undone(found.install(_found))


INTEGRATION = Integration(name="found_tools", libraries=(), install=_install)
