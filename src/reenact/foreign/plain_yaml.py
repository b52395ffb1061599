"""YAML of strangers as plain data: no tag is looked up, nothing is built, and what grows without bounds is refused."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, cast

from reenact.errors import InputError

_DEEPEST: Final = 200
_INDENTED: Final = re.compile(rb"^[ \t?:-]*+", re.MULTILINE)


def loaded(data: bytes, place: str) -> object:
    """Read one YAML document. What stands below a tag of a language is read as plain data.

    Raises `InputError` where PyYAML is not installed (naming the extra), and for what is no YAML.
    """
    try:
        import yaml
    except ImportError:
        hint = "install it: pip install 'reenact[vcr]'"
        raise InputError(place, "a file in YAML needs PyYAML, which is not installed", hint=hint) from None
    try:
        _check_depth(data, place)
        return cast("object", yaml.load(data, Loader=_loader()))  # noqa: S506 - safe: it builds plain data only
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{place}:{line}", f"this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError, AttributeError) as error:
        raise InputError(place, f"this is not YAML: {' '.join(str(error).split())[:200]}") from None


def _check_depth(data: bytes, place: str) -> None:
    """Refuse what is nested so deep that building it would overflow the stack of the library, which is no error there.

    A first look is a bound: a level takes a bracket, or a column before the first word of a line. Only where that is
    too much are the levels counted, as the parser tells of them.
    """
    brackets = data.count(b"[") + data.count(b"{")
    if brackets + max((match.end() - match.start() for match in _INDENTED.finditer(data)), default=0) <= _DEEPEST:
        return
    import yaml

    library: Any = yaml
    depth = 0
    for event in library.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, library.CollectionStartEvent)
        depth -= isinstance(event, library.CollectionEndEvent)
        if depth > _DEEPEST:
            line = int(event.start_mark.line) + 1
            raise InputError(f"{place}:{line}", f"this YAML is nested deeper than {_DEEPEST} levels")


@cache
def _loader() -> Any:
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Plain(safe):
        def flatten_mapping(self, node: Any) -> None:
            """Leave `<<` a name like any other: merging could double a mapping again and again."""

    def of_any_tag(loader: Any, _suffix: str, node: Any) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Plain.add_multi_constructor("", of_any_tag)
    return Plain


def spelled_out(value: object, most: int = 1_000_000) -> bool:
    """Tell whether a value has at most so many parts when it is written without aliases, none of them inside itself."""
    return _left(value, most, set()) >= 0


def _left(value: object, left: int, above: set[int]) -> int:
    left -= 1
    if left < 0 or not isinstance(value, dict | list):
        return left
    place = id(cast("object", value))
    if place in above or len(above) > 500:
        return -1
    above.add(place)
    items = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    for item in items:
        left = _left(item, left, above)
        if left < 0:
            break
    above.discard(place)
    return left
