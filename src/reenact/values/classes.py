"""How typed JSON names classes, and what stands where a value could not be written down.

A tagged value is an object that has exactly one of `TAGS` among its keys. Classes are named `module:qualname` and are
only ever looked up among what is loaded already: reading a recording imports nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias, cast

from reenact.errors import ReenactError
from reenact.values import alarms
from reenact.values.json import Json

Resolve: TypeAlias = Callable[[str], object]
"""How a class is found by its name, `module:qualname`."""
UNSTABLE = "$unstable"
RECORD = "__reenact_record__"
"""The attribute in which a stand-in for an exception keeps its record, so that it is written down again unchanged."""

TAGS = frozenset(
    {
        UNSTABLE,
        "$attrs",
        "$bytearray",
        "$bytes",
        "$class",
        "$complex",
        "$dataclass",
        "$date",
        "$datetime",
        "$decimal",
        "$defaultdict",
        "$deque",
        "$dict",
        "$enum",
        "$exception",
        "$float",
        "$frozenset",
        "$int",
        "$model",
        "$namedtuple",
        "$namespace",
        "$ordereddict",
        "$path",
        "$range",
        "$scalar",
        "$set",
        "$str",
        "$subclass",
        "$time",
        "$timedelta",
        "$tuple",
        "$uuid",
    },
)
SCALARS: Final[frozenset[str]] = frozenset(
    {
        "fractions:Fraction",
        *(f"ipaddress:IPv{version}{kind}" for version in (4, 6) for kind in ("Address", "Network", "Interface")),
        "zoneinfo:ZoneInfo",
    }
)
"""Classes of the standard library whose instances their text makes again."""
BUILTIN_BASES: tuple[type, ...] = (str, int, float, complex, bytes, bytearray, tuple, list, dict, set, frozenset)
"""Built-in types whose subclasses are written as the built-in value, the class and its instance attributes."""

LONGEST_REPR = 1000
_MODULE_DICT: Any = vars(ModuleType)["__dict__"]
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")


class Unhydratable(ReenactError):
    """A recorded value cannot be built in this process. `path` is where in the typed JSON, `what` is what was there."""

    def __init__(self, path: str, what: str) -> None:
        self.path, self.what = path, what
        super().__init__(
            f"{path}: {what} cannot be rebuilt",
            hint="Import the module that defines it before the replay, or let the function return plain data.",
        )


def reference(cls: type) -> str:
    """Name a class `module:qualname`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def class_of(value: object) -> str:
    """Name the class of `value`, `module:qualname`."""
    return reference(type(value))


def loaded(name: str) -> object:
    """Find what `module:qualname` names among the loaded modules, or None. Runs no code of the module's."""
    module_name, _, qualname = name.partition(":")
    target: object = sys.modules.get(module_name)
    if not isinstance(target, ModuleType):
        return None
    for part in qualname.split("."):
        namespace = _namespace(target)
        target = namespace.get(part)
    return target


def _namespace(owner: object) -> Mapping[str, object]:
    """Give what a module or class holds; `vars` of a lazy module would import it."""
    if isinstance(owner, ModuleType):
        return cast("dict[str, object]", _MODULE_DICT.__get__(owner))
    return vars(owner) if isinstance(owner, type) else {}


def findable(cls: type) -> bool:
    """Tell whether a replay can find the class by its name; one made inside a function cannot be."""
    return loaded(reference(cls)) is cls


def unstable(value: object) -> dict[str, Json]:
    """Stand in for a value that typed JSON cannot hold, with its `repr` less memory addresses. Never raises."""
    cls = type(value)
    try:
        text = _ADDRESS.sub("0x", repr(value)[:LONGEST_REPR])
    except Exception as failure:  # noqa: BLE001 -- the value's own code; a recording goes on without its repr
        alarms.pass_on()
        text = f"<repr raised {type(failure).__name__}>"
    return {UNSTABLE: f"{cls.__module__}.{cls.__qualname__}", "repr": text.encode("utf-8", "replace").decode()}


def without_reprs(json: Json) -> Json:
    """Leave out of typed JSON what says nothing about a value: the text of what could not be written down."""
    if isinstance(json, list):
        return [without_reprs(each) for each in json]
    if not isinstance(json, dict):
        return json
    if UNSTABLE in json:
        return {UNSTABLE: json[UNSTABLE]}
    return {name: without_reprs(each) for name, each in json.items()}


def unstable_places(json: Json) -> list[str]:
    """List the JSON paths (`$.a[0]`) at which typed JSON holds what could not be written down."""
    places: list[str] = []
    left: list[tuple[str, Json]] = [("$", json)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            if isinstance(value.get(UNSTABLE), str):
                places.append(path)
            left += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    return sorted(places)


def text_json(text: str) -> Json:
    """Spell a string. One with lone surrogates, which no JSON parser would give back, is tagged."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"$str": text.encode("unicode_escape").decode()}
    return text


def json_text(json: Json) -> str:
    """Read what `text_json` spelled; anything that is no string reads as the empty one."""
    if isinstance(json, dict):
        escaped = json.get("$str")
        return escaped.encode("ascii", "replace").decode("unicode_escape") if isinstance(escaped, str) else ""
    return json if isinstance(json, str) else ""
