"""Our failures never reach the agent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger("reenact")
_counted: dict[str, int] = {}


def shielded(fn: F) -> F:
    """Swallow, count and log any `Exception` of `fn`, giving None. What is not an Exception is not ours and passes."""

    @wraps(fn)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception:
            swallow(fn.__qualname__)
            return None

    return guarded  # type: ignore[return-value]


def swallow(name: str) -> None:
    """Count and log the `Exception` that is being handled, of the function `name`.

    For where every call of the agent's passes: there a `try` of its own is half the price of `shielded`.
    """
    _counted[name] = _counted.get(name, 0) + 1
    if _counted[name] == 1:
        _log.warning("reenact: recording is incomplete, %s failed; the program goes on", name, exc_info=True)


def failures() -> dict[str, int]:
    """Count our swallowed failures by function."""
    return dict(_counted)
