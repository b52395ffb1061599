"""What objects of libraries hold that may last: what C code keeps for them, or a library under names of its own.

A seeded generator, a table, a graph, a buffer. Each kind is named here by its class; another one is added by a line.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

from reenact.values import alarms

_MOST: Final = 1_000
"""Elements of a tree that are looked at."""


def _of_element(element: Any) -> Any:
    parts = itertools.islice(element.iter(), _MOST)
    return [(each.tag, each.text, each.tail, [*each.attrib.items()]) for each in parts]


def _itself(value: Any) -> Any:
    return value


def _checkpoints(saver: Any) -> Any:
    """Count the checkpoints of each thread and what is written for them (LangGraph)."""
    storage: dict[str, dict[str, dict[str, Any]]] = saver.storage
    threads = [(name, space, len(kept)) for name, spaces in storage.items() for space, kept in spaces.items()]
    return threads, len(saver.writes)


def _entries(name: str) -> Callable[[Any], Any]:
    """Make what tells the entries of a store, which stand in its attribute of a name, apart."""

    def read(value: Any) -> Any:
        table = cast("dict[Any, Any]", vars(value)[name])
        return [(str(key), repr(kept)) for key, kept in itertools.islice(table.items(), _MOST)], len(table)

    return read


def _circuit(storage: Any) -> Any:
    """Tell whether a circuit is open, and after how many failures it is to be."""
    return storage._state, storage._fail_counter, storage._success_counter  # noqa: SLF001 - no code of the agent's runs so


def _breakers(repository: Any) -> Any:
    circuits = itertools.islice(repository.breakers.items(), _MOST)
    return [(name, context.state, context.failure_count) for name, context in circuits]


def _metrics(registry: Any) -> list[Any]:
    """Read what the program counted, so far as it is in a registry of prometheus_client's.

    Collectors of another kind tell of the process, and read the system.
    """
    counted = [each for each in [*registry._collector_to_names] if "_documentation" in vars(each)]  # noqa: SLF001 - as above
    samples = (sample for each in counted for metric in each.collect() for sample in metric.samples)
    return [(each.name, [*each.labels.values()], each.value) for each in itertools.islice(samples, _MOST)]


_STORES: Final[dict[str, Callable[[Any], Any]]] = {
    "langgraph.checkpoint.memory.InMemorySaver": _checkpoints,
    "langgraph.store.memory.InMemoryStore": _entries("_data"),
    "langchain_core.chat_history.InMemoryChatMessageHistory": lambda value: len(value.messages),
    "langchain_core.caches.InMemoryCache": _entries("_cache"),
    "langchain_core.stores.InMemoryBaseStore": lambda value: len(value.store),
    "cachelib.simple.SimpleCache": _entries("_cache"),
    "limits.storage.memory.MemoryStorage": _entries("storage"),
    "limits.aio.storage.memory.MemoryStorage": _entries("storage"),
    "litestar.stores.memory.MemoryStore": _entries("_store"),
    "aiocache.backends.memory.SimpleMemoryBackend": _entries("_cache"),
    "pybreaker.CircuitMemoryStorage": _circuit,
    "purgatory.service._async.repository.AsyncInMemoryRepository": _breakers,
    "purgatory.service._sync.repository.SyncInMemoryRepository": _breakers,
    "pyrate_limiter.buckets.in_memory_bucket.InMemoryBucket": lambda value: len(value.items),
}
"""Likewise of stores and caches in memory, which keep for a program what it gave a library, by any name or none."""
_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "prometheus_client.registry.CollectorRegistry": _metrics,
    "random.Random": random.Random.getstate,
    "numpy.random._generator.Generator": lambda value: repr(value.bit_generator.state),
    "numpy.random.mtrand.RandomState": lambda value: repr(value.get_state()),
    "_io.StringIO": _itself,
    "_io.BytesIO": _itself,
    "xml.etree.ElementTree.Element": _of_element,
    "networkx.classes.graph.Graph": lambda value: (dict(value._adj), dict(value._node)),  # noqa: SLF001 - no code of the agent's runs so
    "threading.Event": threading.Event.is_set,
    "asyncio.locks.Event": lambda value: value.is_set(),
    "asyncio.queues.Queue": lambda value: [*value._queue],  # noqa: SLF001 - as above
    "numpy.ndarray": _itself,
    "pandas.core.frame.DataFrame": _itself,
    "pandas.core.series.Series": _itself,
    "pandas.DataFrame": _itself,
    "pandas.Series": _itself,
}
"""By the qualified name of a class: what tells a change of its objects. One that is given back is looked at as ever."""
_HIDDEN: Final = frozenset(
    {
        "numpy.random._generator.Generator",
        "numpy.random.mtrand.RandomState",
        "threading.Event",
        "asyncio.locks.Event",
        "asyncio.queues.Queue",
    }
)
"""Classes of the table of whose objects no attribute tells what changes."""
_WITHOUT: Final = frozenset({"random.SystemRandom"})
"""Classes below those of the table that hold nothing."""


@lru_cache(maxsize=4096)
def reader_of(kind: type) -> Callable[[Any], Any] | None:
    """Give what reads the inner state of objects of a class; None where its objects are looked at as ever."""
    names = _names(kind)
    if not _WITHOUT.isdisjoint(names):
        return None
    readers = _KINDS | _STORES
    return next((readers[name] for name in names if name in readers), None)


@lru_cache(maxsize=4096)
def is_store(kind: type) -> bool:
    """Tell a class of stores and caches in memory."""
    return not _STORES.keys().isdisjoint(_names(kind))


def _names(kind: type) -> list[str]:
    return [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]


def hidden(value: Any) -> str:
    """Spell the state of an object of which no attribute tells it; nothing for one whose attributes do."""
    kind = cast("type[Any]", type(value))
    reader = reader_of(kind) if not _HIDDEN.isdisjoint(_names(kind)) else None
    return repr(inner(reader, value)) if reader is not None else ""


def inner(reader: Callable[[Any], Any], value: Any) -> Any:
    """Read the inner state of an object; the object itself where that fails, as of a buffer that is closed."""
    try:
        return reader(value)
    except Exception:
        alarms.pass_on()
        return value
