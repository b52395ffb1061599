"""`@reenact.unit`: a function that is handed one unit of work after the other, each call of which is a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, TypeVar, overload
from weakref import WeakValueDictionary

from reenact.boundary import door, inbound, jobs
from reenact.boundary.inbound import Inbound
from reenact.boundary.origins import Origin

INTERFACE = "function"
DECLARED = "_reenact_unit"
"""The attribute of a function that is declared a unit."""
_declared: Final[WeakValueDictionary[str, Any]] = WeakValueDictionary()
F = TypeVar("F", bound=Callable[..., Any])


class _Unit:
    """What is known of a decorated function before it is called."""

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.function = function
        self.name = name or function.__name__

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inbound | None:
        """Begin one call; None where it is part of what calls it, or where nobody is in charge."""
        if door.doorman() is None or inbound.under_way():
            return None
        facts = {"interface": INTERFACE, "name": self.name, "module": self.function.__module__}
        begun = jobs.unit(self.name, jobs.arguments(args, kwargs), facts, lambda: self._origin().to_json(INTERFACE))
        begun.entry = self.function
        return begun

    def _origin(self) -> Origin:
        module, qualname = self.function.__module__, self.function.__qualname__
        if module not in {"__main__", "__mp_main__"}:
            return Origin(name=f"{module}:{qualname}")
        return Origin(name=f"__main__:{qualname}", file=str(Path(self.function.__code__.co_filename).absolute()))


@overload
def unit(fn: F) -> F: ...
@overload
def unit(*, name: str | None = None) -> Callable[[F], F]: ...
def unit(fn: Any = None, *, name: str | None = None) -> Any:
    """Make each call of a function a run of its own, with the call's arguments as its input.

    For a loop that is handed messages: a replay imports the function's module and calls the function again with the
    recorded arguments, without the loop. Called inside a run it is part of that run.
    """
    return partial(_decorated, name=name) if fn is None else _decorated(fn, name)


def _decorated(fn: Callable[..., Any], name: str | None) -> Any:
    work_unit = _Unit(fn, name)
    wrapper = wraps(fn)(_coroutine(fn, work_unit) if inspect.iscoroutinefunction(fn) else _plain(fn, work_unit))
    setattr(wrapper, DECLARED, True)
    _declared[f"{fn.__module__}:{fn.__qualname__}"] = wrapper
    return wrapper


def declared(name: str) -> Any:
    """Give the unit of a name, `module:qualname`, whatever a library made of it since: the task of a queue; or None."""
    return _declared.get(name)


def _plain(fn: Callable[..., Any], work_unit: _Unit) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun = work_unit.begin(args, kwargs)
        if begun is None:
            return fn(*args, **kwargs)
        try:
            with inbound.inside(begun):
                result = fn(*args, **kwargs)
        except BaseException as error:
            begun.end(jobs.nothing, error)
            raise
        begun.end(jobs.answered(result))
        return result

    return wrapper


def _coroutine(fn: Callable[..., Any], work_unit: _Unit) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        begun = work_unit.begin(args, kwargs)
        if begun is None:
            return await fn(*args, **kwargs)
        try:
            with inbound.inside(begun):
                result = await fn(*args, **kwargs)
        except BaseException as error:
            begun.end(jobs.nothing, error)
            raise
        begun.end(jobs.answered(result))
        return result

    return wrapper
