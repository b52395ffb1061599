"""Putting something in front of another library's function, and taking it away again without a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, cast

import wrapt

_FINDER: Final[type[Any]] = sys.modules["wrapt.importer"].ImportHookFinder
Make = Callable[[Any], Any]
"""Given the original, make what stands in its place."""


class Patches:
    """A set of replaced attributes that is undone as one.

    Undoing restores an attribute only where ours still stands there: a wrapper that somebody put over ours later
    stays, and ours beneath it lets everything through, because no doorman is in charge any more.
    """

    def __init__(self) -> None:
        self._replacements: list[tuple[Any, str, Any, Any, bool]] = []
        self._further: list[Callable[[], None]] = []
        self._active = True

    def replace(self, owner: Any, name: str, make: Make) -> None:
        """Replace attribute `name` of `owner` by `make(original)`.

        Where another instrumentation has put a wrapper there, ours goes beneath it, as if we had come first: taking
        theirs away takes off the outermost wrapper of its kind, and would not find it under ours.
        """
        attributes = cast("dict[str, Any]", vars(owner))
        if (outer := _innermost(attributes.get(name))) is not None:
            self._beneath(outer, owner, name, make)
            return
        own = name in attributes
        replacement = make(getattr(owner, name))
        original = attributes.get(name)  # as it stands there: a class method is not what getattr makes of it
        setattr(owner, name, replacement)
        self._replacements.append((owner, name, original, replacement, own))

    def _beneath(self, outer: Any, owner: Any, name: str, make: Make) -> None:
        original = outer.__wrapped__
        outer.__wrapped__ = replacement = make(original)

        def undo() -> None:
            if outer.__wrapped__ is replacement:
                outer.__wrapped__ = original
            if vars(owner).get(name) is replacement:  # theirs was taken away meanwhile
                setattr(owner, name, original)

        self._further.append(undo)

    def when_imported(self, module: str, patch: Callable[[Any], None]) -> None:
        """Call `patch(module)` now if it is imported, else right after its import."""
        if module in sys.modules:
            patch(sys.modules[module])
            return

        def later(imported: Any) -> None:
            if self._active:
                patch(imported)

        wrapt.register_post_import_hook(later, module)
        if not any(isinstance(each, _FINDER) for each in sys.meta_path):  # pytest's `pytester` took it away
            sys.meta_path.insert(0, _FINDER())

    def when_undone(self, undo: Callable[[], None]) -> None:
        """Call `undo` when this set is undone: for what is no attribute."""
        self._further.append(undo)

    def undo(self) -> None:
        """Put every original back."""
        self._active = False
        while self._further:
            self._further.pop()()
        while self._replacements:
            owner, name, original, replacement, own = self._replacements.pop()
            if vars(owner).get(name) is not replacement:
                continue
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)


def _innermost(wrapper: Any) -> Any:
    """Give the wrapper of wrapt's that stands directly around a plain function, or None."""
    while isinstance(wrapper, _WRAPPERS):
        wrapped: Any = wrapper.__wrapped__
        if type(wrapped) is FunctionType:  # a wrapper of wrapt's says that it is one, too
            return wrapper
        wrapper = wrapped
    return None


_WRAPPERS: tuple[type, ...] = (wrapt.FunctionWrapper, wrapt.BoundFunctionWrapper)
