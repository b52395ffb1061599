"""Places in JSON: `a.b[0]["c d"]` to steps and back, the value that lies there, and a copy with another one.

Steps go on where JSON lies inside a string (a tool call's arguments, a tool's own `json.dumps`), and through the tags
of typed JSON: `order.total` finds the field of a recorded dataclass, `[0]` the first member of a tuple.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact, parsed_or_none

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

_STEP = re.compile(r'\.?([^.\[\]"]+)|\[(-?\d+)\]|\.?\["((?:[^"\\]|\\.)*)"\]|\.?"((?:[^"\\]|\\.)*)"')
_PLAIN = re.compile(r'[^.\[\]"\s]+')
_FIELDS = {"$dataclass": "fields", "$attrs": "fields", "$model": "fields", "$namedtuple": "values"}
"""Tags of typed JSON beside which the content stands, and the key under which it does."""
_LISTS = frozenset({"$tuple", "$set", "$frozenset", "$deque"})
_PAIRS = frozenset({"$dict", "$ordereddict", "$defaultdict"})


class NoSuchPlace(ValueError):
    """There is nothing at a place. `at` is as far as the way went, `there` what can be found there instead."""

    def __init__(self, at: Path, missing: Step | None, there: str) -> None:
        self.at, self.missing, self.there = at, missing, there
        where = spell(at) or "it"
        super().__init__(
            f"{where} is {there}" if missing is None else f"{where} has no {spell((missing,))}; it is {there}"
        )


def parse_path(text: str) -> Path:
    """Read a path. Raises `ValueError` that names the place where it stops making sense."""
    steps: list[Step] = []
    place = 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None or (place == 0 and text.startswith(".")):
            raise ValueError(f"no path: {text!r} makes no sense at {text[place:]!r}")
        name, index, bracketed, quoted = match.groups()
        if index is not None:
            steps.append(int(index))
        elif name is not None:
            steps.append(name)
        else:
            steps.append(str(json.loads(f'"{bracketed if bracketed is not None else quoted}"')))
        place = match.end()
    return tuple(steps)


def spell(path: Path) -> str:
    """Spell a path so that `parse_path` reads it back."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step)}]"
    return text


def value_at(value: Json, path: Path) -> Json | Absent:
    """Give what lies at `path`, or ABSENT where nothing does."""
    for step in path:
        inner = _inside(value)
        if inner is None:
            return ABSENT
        container = inner[0]
        if isinstance(container, dict) and isinstance(step, str):
            if step not in container:
                return ABSENT
            value = container[step]
        elif isinstance(container, list) and isinstance(step, int) and -len(container) <= step < len(container):
            value = container[step]
        else:
            return ABSENT
    return value


def with_value(value: Json, path: Path, new: Json, _trail: Path = ()) -> Json:
    """Give a copy of `value` with `new` at `path`; what lies beside it is shared with the original.

    A key that an object does not have is added, and so is one entry at the end of a list. Raises `NoSuchPlace`
    where the way to it ends early.
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    inner = _inside(value)
    if inner is None:
        raise NoSuchPlace(_trail, None, _description(value))
    container, back = inner
    trail = (*_trail, step)
    if isinstance(container, dict) and isinstance(step, str):
        if step not in container and rest:
            raise NoSuchPlace(_trail, step, _description(container))
        return back({**container, step: with_value(container.get(step), rest, new, trail)})
    if isinstance(container, list) and isinstance(step, int) and -len(container) <= step <= len(container):
        if step == len(container):
            if rest:
                raise NoSuchPlace(_trail, step, _description(container))
            return back([*container, new])
        place = step % len(container)
        return back([*container[:place], with_value(container[place], rest, new, trail), *container[place + 1 :]])
    raise NoSuchPlace(_trail, step, _description(container))


def entries(value: Json) -> list[tuple[Step, Json]]:
    """List what lies inside a value, one step down, in its order; nothing for a leaf."""
    inner = _inside(value)
    match inner[0] if inner is not None else None:
        case dict() as container:
            return [*container.items()]
        case list() as container:
            return [*enumerate(container)]
        case _:
            return []


def _inside(value: Json) -> tuple[Json, Callable[[Json], Json]] | None:
    """Give the object or list that a value stands for, and what makes the value of a changed one; None for a leaf."""
    if isinstance(value, list):
        return value, _itself
    if isinstance(value, str):
        return _inside_text(value)
    return None if not isinstance(value, dict) else _inside_object(value)


def _itself(value: Json) -> Json:
    return value


def _inside_text(text: str) -> tuple[Json, Callable[[Json], Json]] | None:
    decoded = parsed_or_none(text) if text.lstrip()[:1] in ("{", "[") else None
    if not isinstance(decoded, dict | list):
        return None
    return decoded, lambda changed: _spelled_like(text, decoded, changed)


def _inside_object(value: dict[str, Json]) -> tuple[Json, Callable[[Json], Json]]:
    for tag, key in _FIELDS.items():
        if tag in value and isinstance(container := value.get(key), dict | list):
            return container, _beside(value, key)
    for tag in _LISTS & value.keys():
        if isinstance(container := value[tag], list):
            return container, _beside(value, tag)
    for tag in _PAIRS & value.keys():
        pairs = value[tag]
        if isinstance(pairs, list) and (pair_values := _pairs_as_object(pairs)) is not None:
            return pair_values, _beside(value, tag, _paired)
    return value, _itself


def _beside(value: dict[str, Json], key: str, spelled: Callable[[Json], Json] = _itself) -> Callable[[Json], Json]:
    return lambda changed: {**value, key: spelled(changed)}


def _pairs_as_object(pairs: list[Json]) -> dict[str, Json] | None:
    values_by_name: dict[str, Json] = {}
    for pair in pairs:
        match pair:
            case [str(name), item]:
                values_by_name[name] = item
            case _:
                return None
    return values_by_name


def _paired(value: Json) -> Json:
    return [[name, item] for name, item in value.items()] if isinstance(value, dict) else value


def _spelled_like(text: str, original: Json, changed: Json) -> str:
    """Spell JSON as the text that it came from was spelled: programs and models look at text."""
    for indent in (None, 2, 4):
        for ascii_only in (True, False):
            if json.dumps(original, indent=indent, ensure_ascii=ascii_only) == text:
                return json.dumps(changed, indent=indent, ensure_ascii=ascii_only)
    return compact(changed)


def _description(value: Json) -> str:
    if isinstance(value, dict):
        names = ", ".join(spell((name,)) for name in [*value][:12])
        return f"an object with {names}{' …' if len(value) > 12 else ''}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "nothing" if value is None else f"{compact(value)[:80]}, and nothing inside"
