"""The state of the application's that a tool may find, or leave, in what its framework hands it.

A framework's context is its own bookkeeping, which goes on by itself in a replay; what the application put into it is
not: dependencies, a dictionary of the session, a store. Where a framework keeps that inside objects of its own, a
*keeper* knows how to read it as plain data, and how to write it back, by the framework's own ways.

What else a tool names of a context is looked at as it is. A change there cannot be put back, and lowers the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from types import FunctionType
from typing import Any, Final, NamedTuple, cast

from reenact.boundary.injected_parameters import is_plain, is_value
from reenact.boundary.own_code import is_own_class
from reenact.values import alarms, typed
from reenact.values.json import compact, parsed_or_none

_HOLD: Final = ("deps", "context", "state", "session_state", "variables")
"""Attributes by which the frameworks' contexts hold what the application gave them."""
_ITS_OWN: Final = frozenset({"config", "callbacks", "stream_writer", "usage"})
"""Attributes of contexts that are the framework's bookkeeping, whatever the tool asks them."""
_GIVES: Final = frozenset({"get_stream_writer", "dispatch_custom_event", "adispatch_custom_event"})
"""By what a tool gives its framework something to stream while it runs."""
_CONTEXT_GIVES: Final = frozenset({"stream_writer", "write_event_to_stream", "send_event", "save_artifact"})
"""By what of its context it does, or has something done or kept."""
_LONGEST: Final = 200_000


class Keeper(NamedTuple):
    """What reads and writes the state of the application's that a framework's object keeps."""

    read: Callable[[Any], Any]
    """Give it as plain data; anything else where it is none."""
    write: Callable[[Any, Any], None]


class StatePiece:
    """State of the application's in a framework's object, as one piece."""

    def __init__(self, keeper: Keeper, holder: Any) -> None:
        self._keeper, self._holder = keeper, holder

    def spelled(self) -> Any:
        """Give it as text; the object that holds it where it is no plain data."""
        try:
            state = self._keeper.read(self._holder)
            if is_plain(state) and len(text := compact(typed.encode(state))) <= _LONGEST:
                return text
        except Exception:  # another version of the framework
            alarms.pass_on()
        return self._holder

    def put(self, text: Any) -> None:
        """Make it what a text says."""
        if not isinstance(text, str):
            raise TypeError(f"{type(self._holder).__name__} cannot be set")
        self._keeper.write(self._holder, typed.decode(parsed_or_none(text)))


def state_of(
    arguments: Mapping[str, Any], names: Collection[str], attribute_names: Collection[str] = ()
) -> dict[str, Any]:
    """Give the arguments in which a call may find or leave state of the application's.

    In place of a framework's own object among those that are injected, by `names`, stands what the application put
    into it, and what else the tool names (`attribute_names`) of it.
    """
    state: dict[str, Any] = {}
    for name, value in arguments.items():
        cls = cast("type[Any]", type(value))
        if name not in names or isinstance(value, dict) or is_own_class(cls) or is_value(cls):
            state[name] = value
            continue
        state |= {f"{name}.{path}": part for path, part in _context_state(value, attribute_names).items()}
    return state


def _context_state(context: Any, attribute_names: Collection[str]) -> dict[str, Any]:
    own: Any = getattr(context, "__dict__", None)
    state: dict[str, Any] = {}
    for attribute in _HOLD:
        part: Any = getattr(context, attribute, None) if own is None else own.get(attribute)
        if part is not None:
            state[attribute] = part
    if type(context).__name__ == "InMemoryStore":
        state["items"] = StatePiece(_MEMORIES, context)
    for path, keeper in _KEEPERS.get(type(context).__module__.partition(".")[0], {}).items():
        if (holder := _at(context, path)) is not None:
            state[path] = StatePiece(keeper, holder)
    covered = {path.partition(".")[0] for path in state} | _ITS_OWN
    if own is not None:
        state |= {f"config.{key}": part for key, part in _configured(own.get("config"))}
        state |= {
            each: own[each] for each in sorted(own.keys() & set(attribute_names) - covered) if not is_plain(own[each])
        }
    return state


def _configured(config: Any) -> list[tuple[str, Any]]:
    """Give what the application put into a configuration beside the framework's own entries."""
    entries = cast("dict[Any, Any]", config).get("configurable") if isinstance(config, dict) else None
    settings = cast("dict[Any, Any]", entries) if isinstance(entries, dict) else {}
    return [(key, value) for key, value in settings.items() if isinstance(key, str) and not key.startswith("__")]


def framework_gifts(functions: Iterable[FunctionType], *, context: bool) -> list[str]:
    """Name by what these functions give their framework something while they run: an answer does not do it again."""
    code_names = {name for each in functions for name in each.__code__.co_names}
    gives = _GIVES | _CONTEXT_GIVES if context else _GIVES
    return [f"what it gives its framework by {name}" for name in sorted(code_names & gives)]


def _at(value: Any, path: str) -> Any:
    """Give what a framework's object holds by a path of attributes; None where it holds nothing there now."""
    try:
        for name in path.split("."):
            value = getattr(value, name, None)
    except Exception:  # it is made where a workflow runs, and this one does not
        alarms.pass_on()
        return None
    return value


# What frameworks keep lies behind names of their own: their public ways are coroutines, or give copies of a part.
_RECORD: Final = attrgetter("_memory_storage._record")
_STORAGE: Final = attrgetter("_memory_storage")
_DATA: Final = attrgetter("_data")
_STATE: Final = attrgetter("_value", "_delta")
_OF_ACTIONS: Final = ("transfer_to_agent", "escalate", "skip_summarization", "end_of_agent")


def _entries(store: Any) -> dict[str, object]:
    record = _RECORD(store)
    if record is None:
        return {}
    return dict(record.data.items() if hasattr(record.data, "items") else record.data)


def _workflow(store: Any) -> Any:
    """Give what the application keeps; objects of libraries are the workflow's own, its memory and the like."""
    return {name: item for name, item in _entries(store).items() if is_plain(item) or is_own_class(type(item))}


def _set_workflow(store: Any, items: Any) -> None:
    """Have a store hold what another one of its kind, which is made of this, holds."""
    rest = {name: each for name, each in _entries(store).items() if name not in _workflow(store)}
    new_store = type(store)(store.state_type(**rest, **items))
    _STORAGE(store).__dict__["_record"] = _RECORD(new_store)


def _set_agent_state(state: Any, items: Any) -> None:
    for key in [*_DATA(state)]:
        if key not in items:
            state.delete(key)
    for key, value in items.items():
        state.set(key, value)


def _session(state: Any) -> Any:
    return [dict(each) for each in _STATE(state)]  # which of it is new decides what is kept


def _set_session(state: Any, parts: Any) -> None:
    for mine, then in zip(_STATE(state), parts, strict=True):
        mine.clear()
        mine.update(then)


def _actions(actions: Any) -> Any:
    return {name: getattr(actions, name, None) for name in _OF_ACTIONS}


def _set_actions(actions: Any, items: Any) -> None:
    for name, value in items.items():
        if getattr(actions, name, None) != value:
            setattr(actions, name, value)


def _memories(store: Any) -> Any:
    spaces: dict[tuple[str, ...], dict[str, Any]] = _DATA(store)
    return [[list(space), key, item.value] for space, items in [*spaces.items()] for key, item in [*items.items()]]


def _set_memories(store: Any, memories: Any) -> None:
    then = {(tuple(space), key): value for space, key, value in memories}
    now = {(tuple(space), key): value for space, key, value in _memories(store)}
    for space, key in now.keys() - then.keys():
        store.delete(space, key)
    for (space, key), value in then.items():
        if (space, key) not in now or now[space, key] != value:
            store.put(space, key, value)


_WORKFLOW, _MEMORIES = Keeper(_workflow, _set_workflow), Keeper(_memories, _set_memories)
_KEEPERS: Final[Mapping[str, Mapping[str, Keeper]]] = {
    "google": {"_state": Keeper(_session, _set_session), "_event_actions": Keeper(_actions, _set_actions)},
    "langchain": {"store": _MEMORIES},
    "langgraph": {"store": _MEMORIES},
    "llama_index": {"store": _WORKFLOW},
    "strands": {"agent.state": Keeper(_DATA, _set_agent_state)},
    "workflows": {"store": _WORKFLOW},
}
"""By the package of a context: where it keeps state, and who reads and writes that."""
