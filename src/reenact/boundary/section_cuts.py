"""A function of a framework as a section: what it calls while it runs hangs in it, in every colour of function."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from reenact.boundary import sections
from reenact.boundary.forgiving import swallow
from reenact.boundary.sections import Section

Begin = Callable[[tuple[Any, ...], dict[str, Any]], Section | None]
"""Begins the section of a call with these arguments; None where it is to be none."""


def as_section(begin: Begin) -> Callable[[Any], Any]:
    """Make what puts a section around a function: a plain one, a coroutine function, or a generator of either kind."""

    def make(original: Any) -> Any:
        if inspect.isasyncgenfunction(original):
            wrapper = _async_generator(original, begin)
        elif inspect.iscoroutinefunction(original):
            wrapper = _coroutine(original, begin)
        elif inspect.isgeneratorfunction(original):
            wrapper = _generator(original, begin)
        else:
            wrapper = _plain(original, begin)
        return wraps(original)(wrapper)

    return make


def as_section_of_block(begin: Begin) -> Callable[[Any], Any]:
    """Make the same for a function that gives an asynchronous context manager: the section is its block."""

    def make(original: Any) -> Any:
        @wraps(original)
        @asynccontextmanager
        async def block(*args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
            section = _begun(begin, args, kwargs)
            error: BaseException | None = None
            try:
                with sections.inside(section):
                    async with original(*args, **kwargs) as inner:
                        yield inner
            except BaseException as failure:
                error = failure
                raise
            finally:
                _end(section, error)

        return block

    return make


def _begun(begin: Begin, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Section | None:
    try:
        return begin(args, kwargs)
    except Exception:
        swallow("section_cuts.begin", structure=True)
        return None


def _end(section: Section | None, error: BaseException | None) -> None:
    if error is None or isinstance(error, GeneratorExit):
        sections.end(section)
    else:
        sections.end(section, error=error)


def _plain(original: Any, begin: Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        section = _begun(begin, args, kwargs)
        try:
            with sections.inside(section):
                result = original(*args, **kwargs)
        except BaseException as error:
            _end(section, error)
            raise
        sections.end(section, result)
        return result

    return wrapper


def _coroutine(original: Any, begin: Begin) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        section = _begun(begin, args, kwargs)
        try:
            with sections.inside(section):
                result = await original(*args, **kwargs)
        except BaseException as error:
            _end(section, error)
            raise
        sections.end(section, result)
        return result

    return wrapper


def _generator(original: Any, begin: Begin) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        section = _begun(begin, args, kwargs)
        body: Generator[Any, Any, Any] = original(*args, **kwargs)
        step: Callable[[], Any] = body.__next__
        error: BaseException | None = None
        try:
            while True:
                with sections.inside(section):
                    item = step()
                try:
                    sent = yield item
                except GeneratorExit:
                    body.close()
                    raise
                except BaseException as thrown:
                    step = _throwing(body, thrown)
                else:
                    step = _sending(body, sent)
        except StopIteration as stop:
            return stop.value
        except BaseException as failure:
            error = failure
            raise
        finally:
            _end(section, error)

    return wrapper


def _throwing(body: Generator[Any, Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: body.throw(error)


def _sending(body: Generator[Any, Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: body.send(value)


def _async_generator(original: Any, begin: Begin) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        section = _begun(begin, args, kwargs)
        body: AsyncGenerator[Any, Any] = original(*args, **kwargs)
        step: Callable[[], Any] = body.__anext__
        error: BaseException | None = None
        try:
            while True:
                with sections.inside(section):
                    item = await step()
                try:
                    sent = yield item
                except GeneratorExit:
                    await body.aclose()
                    raise
                except BaseException as thrown:
                    step = _athrowing(body, thrown)
                else:
                    step = _asending(body, sent)
        except StopAsyncIteration:
            pass
        except BaseException as failure:
            error = failure
            raise
        finally:
            _end(section, error)

    return wrapper


def _athrowing(body: AsyncGenerator[Any, Any], error: BaseException) -> Callable[[], Any]:
    return lambda: body.athrow(error)


def _asending(body: AsyncGenerator[Any, Any], value: Any) -> Callable[[], Any]:
    return lambda: body.asend(value)
