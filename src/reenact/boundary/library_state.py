"""What objects of libraries hold that may last: what C code keeps for them, or a library under names of its own.

A seeded generator, a table, a graph, a buffer. Each kind is named here by its class; another one is added by a line.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from reenact.values import alarms

_MOST: Final = 1_000
"""Elements of a tree that are looked at."""


def _of_element(element: Any) -> Any:
    parts = itertools.islice(element.iter(), _MOST)
    return [(each.tag, each.text, each.tail, [*each.attrib.items()]) for each in parts]


def _itself(value: Any) -> Any:
    return value


_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "random.Random": random.Random.getstate,
    "numpy.random._generator.Generator": lambda value: repr(value.bit_generator.state),
    "numpy.random.mtrand.RandomState": lambda value: repr(value.get_state()),
    "_io.StringIO": _itself,
    "_io.BytesIO": _itself,
    "xml.etree.ElementTree.Element": _of_element,
    "networkx.classes.graph.Graph": lambda value: (dict(value._adj), dict(value._node)),  # noqa: SLF001 - no code of the agent's runs so
    "asyncio.queues.Queue": lambda value: [*value._queue],  # noqa: SLF001 - as above
    "numpy.ndarray": _itself,
    "pandas.core.frame.DataFrame": _itself,
    "pandas.core.series.Series": _itself,
    "pandas.DataFrame": _itself,
    "pandas.Series": _itself,
}
"""By the qualified name of a class: what tells a change of its objects. One that is given back is looked at as ever."""
_WITHOUT: Final = frozenset({"random.SystemRandom"})
"""Classes below those of the table that hold nothing."""


@lru_cache(maxsize=4096)
def reader_of(kind: type) -> Callable[[Any], Any] | None:
    """Give what reads the inner state of objects of a class; None where its objects are looked at as ever."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
    if not _WITHOUT.isdisjoint(names):
        return None
    return next((_KINDS[name] for name in names if name in _KINDS), None)


def inner(reader: Callable[[Any], Any], value: Any) -> Any:
    """Read the inner state of an object; the object itself where that fails, as of a buffer that is closed."""
    try:
        return reader(value)
    except Exception:
        alarms.pass_on()
        return value
