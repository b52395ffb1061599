"""Generators of either colour at a boundary: told step by step while they run, or yielded from the recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from reenact.boundary import lanes
from reenact.boundary.cancelled import until_cancelled, was_cancelled
from reenact.boundary.forgiving import forgive
from reenact.boundary.function import UNWATCHED, Function, Watch
from reenact.boundary.function_outcome import hydrate
from reenact.contracts.doorman import Passage
from reenact.values import typed
from reenact.values.call import Streamed, StreamEnd

if TYPE_CHECKING:
    from reenact.boundary.answering import Aftermath


class _Stepping:
    """What is told of a generator that runs, step by step. Its context is ours only while it runs."""

    def __init__(self, passage: Passage | None, lane: lanes.Lane | None, watch: Watch) -> None:
        self._passage, self._lane, self._watch = passage, lane, watch
        watch.begin()

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
        try:
            if self._passage is not None:
                self._passage.chunk(value=typed.encode(item))
        except Exception:
            forgive("generators.piece")

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: object = None) -> None:
        """Tell how it ended, and what it returned."""
        try:
            with self._watch.end():
                if self._passage is not None:
                    self._passage.ended(end, error, typed.encode(result))
        except Exception:
            forgive("generators.ended")


def generator(fn: Callable[..., Any], function: Function) -> Callable[..., Any]:
    """Put the doorman before a generator function."""

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        passage = function.open(args, kwargs)
        if passage is None:
            body: Generator[Any, Any, Any] = fn(*args, **kwargs)
            return (yield from body)
        lane = function.lane()
        if passage.answer is not None:
            return (yield from _replayed(passage, _stream_of(passage), function.aftermath(passage, args, kwargs)))
        watch = function.watch(passage, args, kwargs)
        return (yield from _recorded(fn(*args, **kwargs), _Stepping(passage, lane, watch)))

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


def _replayed(passage: Passage, answer: Streamed, aftermath: Aftermath | None) -> Generator[Any, Any, Any]:
    """Yield what was recorded, and return it. What the agent sends or throws in, the recorded body had already."""
    thrown: BaseException | None = None
    try:
        for number, chunk in enumerate(answer.chunks):
            passage.wait(chunk.order)
            if aftermath is not None:
                aftermath.piece(number)
            item = hydrate(passage, chunk.value)
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
        _settle(aftermath)
        passage.ended(StreamEnd.ABANDONED)
        raise
    _settle(aftermath)
    return _end_replayed(passage, answer, thrown)


def _settle(aftermath: Aftermath | None) -> None:
    if aftermath is not None:
        aftermath.end()


def _end_replayed(passage: Passage, answer: Streamed, thrown: BaseException | None) -> Any:
    """Come to the recorded end: give what it returned, or raise what it raised.

    That is the agent's very own error where it threw one in that came through.
    """
    returned = hydrate(passage, answer.result)
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


def async_generator(fn: Callable[..., Any], function: Function) -> Callable[..., Any]:
    """Put the doorman before a generator function that is asynchronous."""

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        passage = function.open(args, kwargs)
        lane = function.lane() if passage is not None else None
        if passage is not None and passage.answer is not None:
            aftermath = function.aftermath(passage, args, kwargs)
            steps: AsyncGenerator[Any, Any] = _replayed_async(passage, _stream_of(passage), aftermath)
            stepping = _Stepping(None, None, UNWATCHED)
        else:
            watch = UNWATCHED if passage is None else function.watch(passage, args, kwargs)
            steps, stepping = fn(*args, **kwargs), _Stepping(passage, lane, watch)
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


async def _replayed_async(passage: Passage, answer: Streamed, aftermath: Aftermath | None) -> AsyncGenerator[Any, Any]:
    thrown: BaseException | None = None
    try:
        for number, chunk in enumerate(answer.chunks):
            await passage.wait_async(chunk.order)
            if aftermath is not None:
                aftermath.piece(number)
            item = hydrate(passage, chunk.value)
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
        _settle(aftermath)
        passage.ended(StreamEnd.ABANDONED)
        raise
    except asyncio.CancelledError as error:
        passage.ended(StreamEnd.RAISED, error)
        raise
    _settle(aftermath)
    _end_replayed(passage, answer, thrown)
