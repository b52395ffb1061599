"""The order of structlog's context variables in a line of a log.

structlog keeps each bound name as a `contextvars.ContextVar` and goes through the context to merge them. A context
orders its variables by their addresses, so that a line has its names in another order in every process. structlog
promises no order; while a run is recorded or replayed, merged names stand sorted.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import wraps
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.contracts.integration import Integration, PatchSet

_MODULE: Final = "structlog.contextvars"


def _sorted(original: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    @wraps(original)
    def get_contextvars() -> dict[str, Any]:
        bound = original()
        return dict(sorted(bound.items())) if tape.is_on() else bound

    return get_contextvars


def _merged_sorted(original: Callable[..., MutableMapping[str, Any]]) -> Callable[..., MutableMapping[str, Any]]:
    @wraps(original)
    def merge_contextvars(logger: Any, method_name: str, event_dict: Any) -> MutableMapping[str, Any]:
        before = [*event_dict] if tape.is_on() else None
        event = original(logger, method_name, event_dict)
        if before is not None:
            _sort_behind(event, len(before))
        return event

    return merge_contextvars


def _sort_behind(event: MutableMapping[str, Any], behind: int) -> None:
    """Sort the names of an event that stand behind its first ones."""
    try:
        for name in sorted([*event][behind:]):
            event[name] = event.pop(name)
    except Exception:
        forgive("structlog_context._sort_behind")


def _install(patches: PatchSet) -> None:
    patches.when_imported(_MODULE, lambda module: _cut(patches, module))


def _cut(patches: PatchSet, module: Any) -> None:
    for name, make in (("get_contextvars", _sorted), ("merge_contextvars", _merged_sorted)):
        if hasattr(module, name):
            patches.replace(module, name, make)


INTEGRATION = Integration(name="structlog_context", libraries=("structlog",), install=_install, hooks=(_MODULE,))
