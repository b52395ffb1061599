"""Typed JSON as a person would spell it: a tuple is a list, a dataclass its fields, a date its ISO text."""

from __future__ import annotations

from reenact.values.classes import TAGS, UNSTABLE
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text

_LISTS = ("$tuple", "$set", "$frozenset", "$deque", "$complex", "$range", "$timedelta")
_PAIRS = ("$dict", "$ordereddict", "$defaultdict")
_FIELDS = ("$dataclass", "$attrs", "$model")
_VALUES = ("$enum", "$path", "$subclass", "$namedtuple")
_TEXTS = ("$bytes", "$bytearray", "$date", "$datetime", "$time", "$decimal", "$uuid", "$class", "$float", "$str")


def plain(value: Json) -> Json:
    """Give typed JSON (docs/schema.md) without its tags; what could not be written down keeps `$unstable`."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next((name for name in value if name in TAGS), None)
    if tag is None:
        return {name: plain(item) for name, item in value.items()}
    return _tagged(tag, value)


def _tagged(tag: str, value: dict[str, Json]) -> Json:
    content = value[tag]
    if tag in _LISTS:
        return [plain(item) for item in as_list(content)]
    if tag in _PAIRS:
        pairs = [pair for each in as_list(content) if len(pair := as_list(each)) == 2]
        return {_key(name): plain(item) for name, item in pairs}
    if tag in _FIELDS:
        return {name: plain(item) for part in ("fields", "extra") for name, item in as_object(value.get(part)).items()}
    if tag in _VALUES:
        return plain(value.get("values" if tag == "$namedtuple" else "value"))
    if tag == "$exception":
        fields = as_object(content)
        return {"class": fields.get("qualname"), "message": fields.get("message")}
    if tag == "$int":
        return _integer(content)
    return content if tag in _TEXTS else value


def _integer(text: Json) -> Json:
    try:
        return int(as_text(text), 16)
    except ValueError:
        return text


def _key(value: Json) -> str:
    plain_key = plain(value)
    return plain_key if isinstance(plain_key, str) else str(plain_key)


def unstable(value: Json) -> bool:
    """Tell whether something in `value` could not be written down when it was recorded."""
    if isinstance(value, list):
        return any(map(unstable, value))
    return isinstance(value, dict) and (UNSTABLE in value or any(map(unstable, value.values())))
