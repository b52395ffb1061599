"""What the agent hands a transport of the MCP SDK that is code of its own.

A replay connects to nobody, and runs none of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType
from typing import Any, Final, cast

from reenact.boundary.own_code import is_own_class, is_own_function
from reenact.values import alarms

_WITH_CODE: Final = ("auth", "http_client", "httpx_client_factory")
"""Arguments that may bring code: OAuth's callbacks and storage, a client's hooks, a factory of clients."""
_DEEPEST: Final = 3
_MOST: Final = 300
"""Objects of one argument that are looked at."""


def own_arguments(arguments: Mapping[str, Any]) -> list[str]:
    """List the arguments of a transport in which a function or an object of the agent's own stands."""
    return [name for name in _WITH_CODE if arguments.get(name) is not None and _has_own_code(arguments[name])]


def _has_own_code(argument: Any) -> bool:
    left: deque[tuple[Any, int]] = deque([(argument, 0)])
    objects: dict[int, Any] = {}
    while left and len(objects) < _MOST:
        value, depth = left.popleft()
        if id(value) in objects:
            continue
        objects[id(value)] = value
        kind = cast("type[Any]", type(value))
        function: Any = value.__func__ if kind is MethodType else value
        if (isinstance(function, FunctionType) and is_own_function(function)) or is_own_class(kind):
            return True
        if depth < _DEEPEST:
            left.extend((each, depth + 1) for each in _inside(value))
    return False


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return tuple(cast("dict[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        return tuple(cast("Iterable[Any]", value))
    try:
        return tuple(cast("dict[str, Any]", vars(value)).values())
    except Exception:  # it has none, or is a proxy that asks somebody
        alarms.pass_on()
        return ()
