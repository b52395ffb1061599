"""Chance and order of Polars: `sample`, `shuffle`, and the order of groups and of unique rows.

Polars hashes by a number that each process draws, so that groups come in another order in every run. Its own
documentation promises none. Where the program asks for no order, the one of the rows is asked for
(`maintain_order=True`), which is one of those that might have come anyway. Seeds of `sample` and `shuffle` are taped,
unless the program set one for all (`set_random_seed`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from random import SystemRandom
from typing import Any, Final

from reenact.boundary import tape
from reenact.boundary.tape import Site, Source
from reenact.contracts.integration import Integration, PatchSet

_SEED: Final = Site(key="polars:seed", source=Source(name="polars seed"))
_ORDERED: Final = ("group_by", "unique", "join", "pivot", "mode")
_DRAWN: Final = ("sample", "shuffle")
_CLASSES: Final = (
    ("polars.dataframe.frame", "DataFrame"),
    ("polars.lazyframe.frame", "LazyFrame"),
    ("polars.series.series", "Series"),
    ("polars.expr.expr", "Expr"),
)
_seeded: list[bool] = []
"""The program set a seed for all."""


def _in_order(original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(original).parameters
    default = parameters["maintain_order"].default
    order = "left_right" if default is None else True

    @wraps(original)
    def ordered(*args: Any, **kwargs: Any) -> Any:
        if tape.is_on():
            kwargs.setdefault("maintain_order", order)
            if "keep" in parameters and kwargs.get("keep", "any") == "any":
                kwargs["keep"] = "first"
        return original(*args, **kwargs)

    return ordered


def _seeded_each(original: Callable[..., Any]) -> Callable[..., Any]:
    names = [*inspect.signature(original).parameters]

    @wraps(original)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        is_given = "seed" in names[: len(args)] or kwargs.get("seed") is not None
        if not is_given and not _seeded and tape.is_on():
            kwargs["seed"] = tape.draw(_SEED, lambda: SystemRandom().getrandbits(24))
        return original(*args, **kwargs)

    return drawn


def _set_seed(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def set_random_seed(*args: Any, **kwargs: Any) -> Any:
        _seeded[:] = [True]
        return original(*args, **kwargs)

    return set_random_seed


def _install(patches: PatchSet) -> None:
    def cut(module: Any, name: str) -> None:
        cls = getattr(module, name)
        for method in _ORDERED:
            if "maintain_order" in _parameters(cls, method):
                patches.replace(cls, method, _in_order)
        for method in _DRAWN:
            if "seed" in _parameters(cls, method):
                patches.replace(cls, method, _seeded_each)

    for module, name in _CLASSES:
        patches.when_imported(module, lambda imported, name=name: cut(imported, name))
    patches.when_imported("polars", lambda module: patches.replace(module, "set_random_seed", _set_seed))


def _parameters(cls: type[Any], method: str) -> frozenset[str]:
    function = vars(cls).get(method)
    return frozenset(inspect.signature(function).parameters) if function is not None else frozenset()


INTEGRATION = Integration(
    name="polars_frames",
    libraries=("polars",),
    install=_install,
    hooks=("polars", *(module for module, _ in _CLASSES)),
)
