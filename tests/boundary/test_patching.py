from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import wrapt
from opentelemetry.instrumentation.utils import unwrap

from reenact.boundary.patching import Patches


def library() -> Any:
    class Library:
        def call(self) -> list[str]:
            return ["library"]

        @classmethod
        def make(cls) -> list[str]:
            return ["library"]

    return Library


def ours(original: Callable[[Any], list[str]]) -> Callable[[Any], list[str]]:
    def call(self: Any) -> list[str]:
        return ["ours", *original(self)]

    return call


def theirs(owner: Any, name: str = "theirs") -> Callable[[], None]:
    """Instrument as OpenTelemetry's instrumentations do, and give what takes it away again."""

    def wrapper(wrapped: Any, instance: object, args: Any, kwargs: Any) -> list[str]:
        del instance
        return [name, *wrapped(*args, **kwargs)]

    wrapt.wrap_function_wrapper(owner, "call", wrapper)

    return lambda: unwrap(owner, "call")


def test_what_is_replaced_is_put_back() -> None:
    owner = library()
    original = vars(owner)["call"]
    patches = Patches()
    patches.replace(owner, "call", ours)
    assert owner().call() == ["ours", "library"]
    patches.undo()
    assert vars(owner)["call"] is original


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("ours_ends_first", [True, False])
def test_others_come_and_go_in_any_order(*, ours_first: bool, ours_ends_first: bool) -> None:
    owner = library()
    patches = Patches()
    if ours_first:
        patches.replace(owner, "call", ours)
    take_away = theirs(owner)
    if not ours_first:
        patches.replace(owner, "call", ours)
    assert owner().call() == ["theirs", "ours", "library"]
    if ours_ends_first:
        patches.undo()
        # a wrapper that was put over ours keeps it beneath: it lets everything through once no doorman is in charge
        assert owner().call() == (["theirs", "ours", "library"] if ours_first else ["theirs", "library"])
        take_away()
        assert owner().call() == (["ours", "library"] if ours_first else ["library"])
        return
    take_away()
    assert owner().call() == ["ours", "library"]
    patches.undo()
    assert owner().call() == ["library"]


def test_two_others_with_ours_among_them() -> None:
    owner = library()
    patches = Patches()
    first, second = theirs(owner, "first"), theirs(owner, "second")
    patches.replace(owner, "call", ours)
    assert owner().call() == ["second", "first", "ours", "library"]
    second()
    assert owner().call() == ["first", "ours", "library"]
    first()
    patches.undo()
    assert owner().call() == ["library"]


def test_a_class_method_is_put_back_as_one() -> None:
    owner = library()
    patches = Patches()
    patches.replace(owner, "make", lambda original: staticmethod(lambda: ["ours", *original()]))
    assert owner.make() == ["ours", "library"]
    patches.undo()
    assert owner().make() == ["library"]
    assert isinstance(vars(owner)["make"], classmethod)
