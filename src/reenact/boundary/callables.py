"""A piece of work that is handed to a thread or a pool: its function, its name, and whether it is the program's.

Work may bring a context of its own, as `submit(context.run, function, …)` does: then the function is a later word.
"""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import BuiltinMethodType, FunctionType
from typing import Any, Final, cast

from reenact.boundary.own_code import is_own_code

_PLAIN: Final = (str, bytes, int, float, tuple, type(None))


def label(work: Any) -> str:
    """Name a piece of work by its function, never by an address or a running number."""
    while isinstance(work, partial):
        job = cast("partial[Any]", work)
        wrapped = in_context(job)
        work = wrapped.args[innermost(wrapped.func, *wrapped.args) - 1] if wrapped is not None else job.func
    name: object = None
    with suppress(Exception):  # a proxy's own attribute access
        name = getattr(work, "__qualname__", None) or getattr(work, "__name__", None)
    return str(name or type(work).__qualname__).replace("/", "_").replace("#", "_")


def runs_in_context(function: object) -> bool:
    """Tell whether `function` is `run` of a context, which hides our variables from what it runs."""
    return type(function) is BuiltinMethodType and isinstance(function.__self__, contextvars.Context)


def innermost(*words: object) -> int:
    """Say which word is the function that the last of several contexts runs, `(a.run, b.run, function)`; 0 for none."""
    return max((at for at, each in enumerate(words[:-1], 1) if runs_in_context(each)), default=0)


def in_context(work: object) -> partial[Any] | None:
    """Give `work` where it is `partial(Context.run, function, …)`, as asyncio makes it."""
    if not isinstance(work, partial):
        return None
    bound_call = cast("partial[Any]", work)
    return bound_call if bound_call.args and runs_in_context(bound_call.func) else None


def is_work(fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Tell whether a job of a pool is work of the program's.

    One that a library does by itself is none: it looks a host up, or asks which system it is. Such a function is the
    library's own, and is handed plain values.
    """
    words = (fn.func, *fn.args, *fn.keywords.values(), *args) if isinstance(fn, partial) else (fn, *args)
    work, *values = words[innermost(*words) :]
    if isinstance(work, FunctionType) and all(isinstance(each, _PLAIN) for each in values):
        work = inspect.unwrap(work)
        return isinstance(work, FunctionType) and is_own_code(work.__code__, work.__globals__)
    return True
