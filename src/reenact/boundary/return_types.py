"""What a tool gave, made of the text that a model was told of it, by what the tool says that it gives.

Another emitter's trace mostly keeps a tool's result as text. That text may be the result itself, or the JSON that the
program made of it. The tool's own annotation tells which: `-> str` gives the text as it stands, `-> dict` what it says.
Where nothing is annotated the text stays text.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final, cast

from reenact.values import alarms
from reenact.values.json import parsed_or_none

_LARGEST_LITERAL: Final = 100_000
_NO: Final = object()
_WORDS: Final = {
    "str": str,
    "dict": dict,
    "list": list,
    "int": int,
    "float": float,
    "bool": bool,
    "Dict": dict,
    "List": list,
    "Mapping": dict,
    "Sequence": list,
    "tuple": tuple,
}
"""Names in an annotation that is a text, and cannot be looked up where the function stands."""


def by_annotation(fn: Callable[..., Any], value: Any, text: str) -> Any:
    """Give what `fn` returned: `value` is what the trace says of it, `text` what a model was told. Never raises."""
    hint = _hint(fn)
    members = _members(hint)
    if str in members or not members or Any in members or object in members:
        return text if members == [str] else value
    if not isinstance(value, str):
        typed_value = _checked(hint, value)
        return value if typed_value is _NO else typed_value
    read = _read(value)
    if read is _NO:
        return value
    typed_value = _checked(hint, read)
    return value if typed_value is _NO else typed_value


def _hint(fn: Callable[..., Any]) -> Any:
    """Give what a function says that it returns: by its name where that is not there, `Any` for nothing."""
    inner = inspect.unwrap(fn)
    try:
        hint = typing.get_type_hints(inner, include_extras=False).get("return", Any)
    except Exception:
        alarms.pass_on()
        hint = getattr(inner, "__annotations__", {}).get("return", Any)
    if isinstance(hint, str):
        return _WORDS.get(hint.strip().partition("[")[0].rpartition(".")[2], Any)
    return hint


def _members(hint: Any) -> list[Any]:
    """List what may come, `None` apart: the members of a union, or the one type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [member for each in typing.get_args(hint) for member in _members(each)]
    return [] if hint is type(None) else [hint]


def _read(text: str) -> Any:
    """Read JSON, or Python's spelling of a value."""
    if text.strip() == "null":
        return None
    read = parsed_or_none(text)
    if read is not None or len(text) > _LARGEST_LITERAL or text.lstrip()[:1] not in ("{", "[", "(", "N", "T", "F"):
        return _NO if read is None else read
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return _NO


def _checked(hint: Any, read: Any) -> Any:
    """Make a value of the annotated type; `_NO` where it is none."""
    if read is None:
        return None
    if (pydantic := sys.modules.get("pydantic")) is not None:
        try:
            return pydantic.TypeAdapter(hint).validate_python(read)
        except Exception:
            alarms.pass_on()
            return _NO
    values = (_plainly(member, read) for member in _members(hint))
    return next((value for value in values if value is not _NO), _NO)


def _plainly(member: Any, read: Any) -> Any:
    """Make a value of one type where no pydantic is there to do it."""
    kind: Any = typing.get_origin(member) or member
    typed_value: Any = _NO
    if not isinstance(kind, type) or (isinstance(read, bool) and kind is not bool):
        return typed_value
    if isinstance(read, dict) and dataclasses.is_dataclass(kind):
        with contextlib.suppress(Exception):  # any program's own types
            typed_value = kind(**read)
    elif isinstance(read, list) and kind in (tuple, set, frozenset):
        typed_value = cast("Any", kind)(cast("list[Any]", read))
    elif (isinstance(read, dict) and typing.is_typeddict(member)) or isinstance(read, kind):
        typed_value = cast("Any", read)
    elif kind is float and isinstance(read, int):
        typed_value = float(read)
    return typed_value
