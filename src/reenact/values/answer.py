"""What a call answered, as one JSON value: the places in it, and the same answer with another value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reenact.values.call import Body, Chunk, HttpReply, Outcome, Returned, Streamed, Value
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.json_path import Path, Step, entries, spell, with_value

_DEEPEST = 8
_MOST = 400
_LENGTHS = frozenset({"content-length", "content-md5", "digest", "etag"})
"""Headers that speak of the bytes of a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a JSON value."""

    path: Path
    value: Json
    leaves: int
    """How many single values lie in it."""

    @property
    def name(self) -> Step:
        """The last step of the way to it; empty for the whole."""
        return self.path[-1] if self.path else ""

    @property
    def field(self) -> str:
        """The innermost key on the way to it."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")


def value_of(outcome: Outcome) -> Json | Absent:
    """Give the JSON value that an outcome holds, ABSENT where it holds none."""
    match outcome:
        case Returned(payload=Value(json=json)):
            return json
        case Returned(payload=HttpReply(body=body)):
            return _parsed(body.data)
        case Streamed(chunks=chunks) if chunks and all(chunk.data is not None for chunk in chunks):
            return _parsed(body_of(outcome))
        case _:
            return ABSENT


def body_of(outcome: Outcome) -> bytes:
    """Give the bytes of a reply over HTTP; empty where there is none."""
    match outcome:
        case Returned(payload=HttpReply(body=body)):
            return body.data
        case Streamed(chunks=chunks):
            return b"".join(chunk.data or b"" for chunk in chunks)
        case _:
            return b""


def _parsed(data: bytes) -> Json | Absent:
    value = parsed_or_none(data)
    return ABSENT if value is None and data.strip() != b"null" else value


def with_answer(outcome: Outcome, value: Json) -> Outcome:
    """Give the same outcome with another value. One without a value stays as it is."""
    match outcome:
        case Returned(payload=Value()):
            return Returned(payload=Value(json=value))
        case _:
            return with_body(outcome, compact(value).encode())


def with_body(outcome: Outcome, data: bytes) -> Outcome:
    """Give the same reply over HTTP with other bytes; a stream brings them in its last piece."""
    match outcome:
        case Returned(payload=HttpReply() as reply):
            return Returned(payload=replace(reply, body=Body(data), headers=_fitting(reply.headers, len(data))))
        case Streamed(chunks=chunks, headers=headers) if chunks:
            last = chunks[-1]
            whole = Chunk(offset_us=last.offset_us, order=last.order, data=data)
            return replace(outcome, chunks=(whole,), headers=_fitting(headers, len(data)))
        case _:
            return outcome


def _fitting(headers: tuple[tuple[str, str], ...], length: int) -> tuple[tuple[str, str], ...]:
    fields = [(name, value) for name, value in headers if name.lower() not in _LENGTHS]
    has_length = any(name.lower() == "content-length" for name, _ in headers)
    return (*fields, ("content-length", str(length))) if has_length else tuple(fields)


def places(value: Json) -> tuple[Place, ...]:
    """List the places of a value, the value itself first, then inwards; of a very large one the first few hundred."""
    place_list: list[Place] = []
    for place in _walk(value, ()):
        place_list.append(place)
        if len(place_list) >= _MOST:
            break
    return tuple(place_list)


def _walk(value: Json, path: Path) -> Iterator[Place]:
    inside = entries(value) if len(path) < _DEEPEST else []
    yield Place(path=path, value=value, leaves=_leaves(value))
    for step, child in inside:
        if not (isinstance(step, str) and step.startswith("$")):  # a tag of typed JSON
            yield from _walk(child, (*path, step))


def _leaves(value: Json, depth: int = 0) -> int:
    inside = entries(value) if depth < _DEEPEST else []
    return sum(_leaves(child, depth + 1) for _, child in inside) if inside else 1


def spell_place(root: str, path: Path) -> str:
    """Spell a place below the word for the whole: `result.orders[0].id`."""
    below = spell(path)
    return f"{root}{'' if not below or below.startswith('[') else '.'}{below}"


def with_value_at(value: Json, path: Path, new: Json) -> Json:
    """Give a copy of a value with another one at a place that it has."""
    return with_value(value, path, new)


def without_place(value: Json, path: Path) -> Json | Absent:
    """Give a copy of a value without what lies at a place; ABSENT where nothing can be left out there."""
    *above, last = path
    container = _at(value, tuple(above))
    if isinstance(container, dict) and any(key.startswith("$") for key in container):
        return ABSENT  # an object of a class has its fields
    remainder: Json = [item for step, item in entries(container) if step != last]
    if isinstance(last, str):
        remainder = {str(step): item for step, item in entries(container) if step != last}
    return with_value(value, tuple(above), compact(remainder) if isinstance(container, str) else remainder)


def _at(value: Json, path: Path) -> Json:
    for step in path:
        value = next(child for name, child in entries(value) if name == step)
    return value
