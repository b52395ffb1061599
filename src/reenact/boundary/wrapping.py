"""Making the agent's own functions boundaries: tools, retrievers, model calls made by hand, and pieces of structure.

Cut at the call. Arguments and results are typed JSON, taken down at once, since the agent may change them later. A
tool or retriever is answered from the recording; an agent or chain only says where other calls hang, so its code runs
again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, cast

from reenact.boundary import lanes, tool_discovery
from reenact.boundary.forgiving import forgive
from reenact.boundary.function import Function
from reenact.boundary.function_outcome import fail, fail_async, give, tell, turn, until_released
from reenact.boundary.generators import async_generator, generator
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.run import AT_ONCE


def boundary(
    kind: CallKind,
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    offered: Callable[[str], bool] | None = None,
) -> Callable[..., Any]:
    """Make `fn` a boundary of `kind`: the same function, of the same colour, with a doorman before it.

    A tool that was found comes with `offered`, which tells whether the run has offered it to a model by now. Where we
    fail while recording, the function stays as it is.
    """
    try:
        return _bounded(fn, partial(Function, kind, name=name, attributes=attributes or {}, offered=offered))
    except Exception:
        forgive("wrapping.boundary")
        return fn


def _bounded(fn: Callable[..., Any], function_of: Callable[..., Function]) -> Callable[..., Any]:
    for wraps_methods in (classmethod, staticmethod):
        if isinstance(fn, wraps_methods):
            return cast("Any", wraps_methods)(_bounded(cast("Any", fn).__func__, function_of))
    return _wrapped(fn, function_of(fn))


def _wrapped(fn: Callable[..., Any], function: Function) -> Callable[..., Any]:
    coloured = _coloured(fn)
    if inspect.isasyncgenfunction(coloured):
        wrapper = async_generator(fn, function)
    elif inspect.iscoroutinefunction(coloured):
        wrapper = _coroutine(fn, function)
    elif inspect.isgeneratorfunction(coloured):
        wrapper = generator(fn, function)
    else:
        wrapper = _plain(fn, function)
    replacement = wraps(fn)(wrapper)
    if function.offered is None:
        tool_discovery.declared.add(replacement)
    return replacement


def _coloured(fn: Any) -> Any:
    """Find what tells the colour of `fn`: itself, or what runs when an instance is called."""
    return cast("Any", fn if isinstance(fn, partial) or inspect.isroutine(fn) else type(fn).__call__)


def _plain(fn: Callable[..., Any], function: Function) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        passage = function.open(args, kwargs)
        if passage is None:
            return fn(*args, **kwargs)
        lane = function.lane()
        if passage.answer is not None:
            passage.wait(passage.end_order)
            aftermath = function.aftermath(passage, args, kwargs)
            return give(passage, fn, None if aftermath is None else aftermath.end())
        watch = function.watch(passage, args, kwargs)
        try:
            passage.ready()
            with passage.crossing(), lanes.on(lane):
                watch.begin()
                result = fn(*args, **kwargs)
        except BaseException as error:
            fail(passage, error, watch)
            raise
        passage.wait(passage.end_order)
        return tell(passage, result, watch)

    return wrapper


def _coroutine(fn: Callable[..., Any], function: Function) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        passage = function.open(args, kwargs)
        if passage is None:
            return await fn(*args, **kwargs)
        lane = function.lane()
        if passage.answer is not None:
            await until_released(passage, passage.answer)
            aftermath = function.aftermath(passage, args, kwargs)
            return give(passage, fn, None if aftermath is None else aftermath.end())
        watch = function.watch(passage, args, kwargs)
        try:
            await passage.ready_async()
            with passage.crossing(), lanes.on(lane):
                watch.begin()
                began = turn()
                result = await fn(*args, **kwargs)
                if began is not None and began is turn():
                    passage.annotate({AT_ONCE: True})
            await passage.wait_async(passage.end_order)
        except BaseException as error:
            await fail_async(passage, error, watch)
            raise
        return tell(passage, result, watch)

    return wrapper
