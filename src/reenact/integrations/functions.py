"""Functions that their authors declare: the decorators `@reenact.tool`, `retriever`, `llm`, `agent` and `chain`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from reenact.boundary.forgiving import forgive
from reenact.boundary.wrapping import boundary
from reenact.values.call import CallKind
from reenact.values.json import Json

F = TypeVar("F", bound=Callable[..., Any])


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
        try:
            extra: dict[str, Json] = {"metadata": attributes} if attributes else {}
            decorate = partial(boundary, self._kind, name=name, attributes=extra)
            return decorate if fn is None else decorate(fn)
        except Exception:
            forgive("Decorator")
            return _as_it_is if fn is None else fn


def _as_it_is(fn: F) -> F:
    return fn


tool = Decorator(CallKind.TOOL)
retriever = Decorator(CallKind.RETRIEVER)
llm = Decorator(CallKind.LLM)
agent = Decorator(CallKind.AGENT)
chain = Decorator(CallKind.CHAIN)
