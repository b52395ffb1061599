"""Parameters of a tool that a framework fills in, and no model: contexts, runtimes, configurations, dependencies.

What a tool is asked is what its schema offers. A parameter beside it says nothing that the model said; it may hold a
client, a whole conversation, or what is drawn anew with each run. It is neither compared nor written down. So is left
out what

- a framework names as its own, by the type of the value or by the annotation (`_TYPES`), or by a marker in the
  annotation (`Annotated[str, InjectedState]`);
- the schema that a request of this run offered does not have, where all that it has are parameters of the function,
  and the value is no plain one: JSON, or what Python spells as a value (dates, paths, bytes, decimals, enums, …).

A schema may spell what one parameter holds (the fields of its model) instead of the parameter. Then nothing is left
out by the second rule: it cannot tell what was offered.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final, cast

from reenact.values import alarms

_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "agents": frozenset({"RunContextWrapper", "ToolContext", "AgentHookContext"}),
    "autogen_core": frozenset({"CancellationToken", "MessageContext"}),
    "fastmcp": frozenset({"Context"}),
    "google": frozenset({"ToolContext", "CallbackContext", "ReadonlyContext", "InvocationContext", "Context"}),
    "langchain": frozenset({"ToolRuntime", "Runtime"}),
    "langchain_core": frozenset(
        {
            *("RunnableConfig", "BaseCallbackManager", "CallbackManager", "AsyncCallbackManager"),
            *("CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun"),
        }
    ),
    "langgraph": frozenset({"ToolRuntime", "Runtime", "BaseStore", "StreamWriter"}),
    "llama_index": frozenset({"Context"}),
    "mcp": frozenset({"Context"}),
    "pydantic_ai": frozenset({"RunContext"}),
    "workflows": frozenset({"Context"}),
}
"""By the package: the classes of which frameworks fill in a parameter."""
_MARKER: Final = re.compile(r"Injected[A-Za-z]*|[A-Za-z]*Injected|Depends|CurrentContext")
_PLAIN: Final = frozenset(
    ("datetime", "decimal", "uuid", "pathlib", "fractions", "ipaddress", "collections", "zoneinfo")
)
"""Modules whose classes spell values."""
_NAME: Final = re.compile(r"(?:[\w.]*\.)?(\w+)(?:\[.*\])?(?: *\| *None)?", re.DOTALL)
_DEEPEST: Final = 12
_MOST: Final = 2_000
"""Members of a value that are looked at."""


def left_out(
    signature: inspect.Signature | None,
    marked: Collection[str],
    arguments: Mapping[str, Any],
    offered: Collection[str] | None,
) -> frozenset[str]:
    """Name the arguments of a call that are none of the question.

    `marked` are the parameters whose annotation says so (`marked`), `offered` the properties of the schema that this
    run offered; None where no request of it did.
    """
    parameters: Mapping[str, inspect.Parameter] = signature.parameters if signature is not None else {}
    rest = {name for name, each in parameters.items() if each.kind is each.VAR_KEYWORD}
    schema_fits = offered is not None and (bool(rest) or set(offered) <= parameters.keys())
    flat_arguments: dict[str, Any] = {}
    for name, value in arguments.items():
        flat_arguments |= cast("dict[str, Any]", value) if name in rest and isinstance(value, dict) else {name: value}
    return frozenset(
        name
        for name, value in flat_arguments.items()
        if not (offered and name in offered)
        and (name in marked or _is_of_framework(value) or (schema_fits and not is_plain(value)))
    )


def marked(signature: inspect.Signature | None, fn: Any) -> frozenset[str]:
    """Name the parameters of a function whose annotations say that a framework fills them in."""
    parameters = signature.parameters.values() if signature is not None else ()
    return frozenset(each.name for each in parameters if _is_marked(each.annotation, fn))


def _is_of_framework(value: object) -> bool:
    return any(_is_listed(cls) for cls in type(value).__mro__[:-1])


def _is_listed(cls: Any) -> bool:
    module, name = getattr(cls, "__module__", None), getattr(cls, "__name__", None)
    return isinstance(module, str) and name in _TYPES.get(module.partition(".")[0], ())


def _is_marked(annotation: Any, fn: Any) -> bool:
    """Tell whether an annotation is a framework's own type, or holds a marker of one."""
    if annotation is inspect.Parameter.empty:
        return False
    if isinstance(annotation, str):
        annotation = _evaluated(annotation, fn)
    for each in _parts(annotation, 0):
        cls = each if isinstance(each, type) else type(each)
        if _is_listed(cls) or (_MARKER.fullmatch(cls.__name__) and _is_installed(cls)):
            return True
    return False


def _evaluated(spelled: str, fn: Any) -> Any:
    """Give what an annotation stands for that is spelled as text; of one that cannot be told the class by its name."""
    space = getattr(inspect.unwrap(fn), "__globals__", {})
    try:
        return eval(spelled, dict(space))  # noqa: S307 - the agent's own annotation, as its framework evaluates it
    except Exception:
        alarms.pass_on()
        match = _NAME.fullmatch(spelled)
        return space.get(match[1]) if match is not None else None


def _parts(annotation: Any, depth: int) -> Iterable[Any]:
    """Give an annotation, what it is made of (`X | None`, `Annotated[X, marker]`), and what a generic is made from."""
    yield annotation
    if depth > _DEEPEST:
        return
    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    yield from metadata
    inner = getattr(annotation, "__origin__", None)
    if inner is not None and (metadata or isinstance(inner, type)):
        yield from _parts(inner, depth + 1)
    if not isinstance(inner, type):  # a union: what a list or a generic is of is none of the framework's
        for each in getattr(annotation, "__args__", ()) if not metadata else ():
            yield from _parts(each, depth + 1)


def _is_installed(cls: type) -> bool:
    """Tell a class of an installed library from one of the agent's own."""
    from reenact.boundary.own_code import is_own_class

    return not is_own_class(cls)


def is_plain(value: object) -> bool:
    """Tell whether a value is JSON, or what Python spells as a value, all through."""
    left, count = [(value, 0)], 0
    while left:
        each, depth = left.pop()
        count += 1
        cls = type(each)
        if depth > _DEEPEST or count > _MOST:
            return True  # as large as this it is data
        if isinstance(each, dict) and is_value(cls):
            mapping = cast("dict[object, object]", each)
            left += [(inner, depth + 1) for pair in mapping.items() for inner in pair]
        elif isinstance(each, list | tuple | set | frozenset) and is_value(cls):
            left += [(inner, depth + 1) for inner in cast("Iterable[object]", each)]
        elif not (isinstance(each, Enum) or is_value(cls)):
            return False
    return True


def is_value(cls: type) -> bool:
    """Tell whether a class is one by which Python spells values."""
    return cls in _OF_PYTHON or cls.__module__ in _PLAIN


_OF_PYTHON: Final = frozenset(
    {str, bytes, bytearray, int, float, bool, complex, type(None), range, slice, dict, list, tuple, set, frozenset}
)
