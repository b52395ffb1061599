"""Our failures never reach the agent: the decorator for what is no part of every call (`boundary.forgiving`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from reenact.boundary.forgiving import swallow

F = TypeVar("F", bound=Callable[..., Any])


def shielded(fn: F) -> F:
    """Swallow, count and log any `Exception` of `fn`, giving None.

    What is not an Exception is not ours and passes; so does what a signal handler of the agent's raised meanwhile.
    """

    @wraps(fn)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception:
            swallow(fn.__qualname__)
            return None

    return guarded  # type: ignore[return-value]  # it has the signature of what it guards
