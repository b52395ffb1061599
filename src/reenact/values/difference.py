"""Where two JSON values, two calls or two runs differ, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reenact.values.json import Json, compact


class Absent:
    """Stands for a value that is not there; None is a value."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """One field that two values do not share."""

    path: str
    """Dotted, list places in brackets: `messages[1].content`."""
    a: Json | Absent
    b: Json | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One difference between two runs."""

    kind: str
    """`changed`, `missing` (only in a), `extra` (only in b) or `reordered`."""
    call: str
    """Label of the call, in a where it is there."""
    field: str
    a: Json | Absent
    b: Json | Absent
    structural: bool
    """A change of the path: which calls, on what, in which order. Otherwise a change of wording."""
    node_a: str | None = None
    node_b: str | None = None


def differences(a: Json, b: Json, path: str = "") -> Iterator[FieldDifference]:
    """Yield the leaves in which `a` and `b` differ, in document order. Lists are compared place by place."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            inner = f"{path}.{name}" if path else name
            if name not in a or name not in b:
                yield FieldDifference(path=inner, a=a.get(name, ABSENT), b=b.get(name, ABSENT))
            else:
                yield from differences(a[name], b[name], inner)
    elif isinstance(a, list) and isinstance(b, list):
        for place in range(max(len(a), len(b))):
            inner = f"{path}[{place}]"
            if place >= len(a) or place >= len(b):
                left = a[place] if place < len(a) else ABSENT
                yield FieldDifference(path=inner, a=left, b=b[place] if place < len(b) else ABSENT)
            else:
                yield from differences(a[place], b[place], inner)
    elif type(a) is not type(b) or a != b:
        yield FieldDifference(path=path, a=a, b=b)


def short_json(value: Json | Absent, width: int = 160) -> str:
    """Spell a value for a message: JSON, one line, shortened in the middle."""
    text = "absent" if isinstance(value, Absent) else compact(value)
    return text if len(text) <= width else f"{text[: width // 2]} … {text[-width // 2 :]}"


def divergence_to_json(divergence: Divergence) -> dict[str, Json]:
    """Spell a divergence as every `--json` document shows it. A side without a value is null and named in `absent`."""
    sides = (("a", divergence.a), ("b", divergence.b))
    absent: list[Json] = [side for side, value in sides if isinstance(value, Absent)]
    document: dict[str, Json] = {
        "call": divergence.call,
        "field": divergence.field,
        **{side: None if isinstance(value, Absent) else value for side, value in sides},
        "kind": divergence.kind,
        "structural": divergence.structural,
        "node_a": divergence.node_a,
        "node_b": divergence.node_b,
    }
    if absent:
        document["absent"] = absent
    return document


def one_line(divergence: Divergence | Mapping[str, Json], *, a: str = "recorded", b: str = "replay") -> str:
    """Say a divergence, or its JSON, in one line: the call, the field, both values, each after the name of its side."""
    document = divergence_to_json(divergence) if isinstance(divergence, Divergence) else divergence
    earlier = f"the earlier unit {str(unit)[:12]}: " if (unit := document.get("unit")) else ""
    if reason := document.get("reason"):
        return f"{earlier}{document['call']}: {reason}"
    absent = document.get("absent")
    missing = absent if isinstance(absent, list) else []
    sides = [_spelled(ABSENT if side in missing else document.get(side)) for side in ("a", "b")]
    left, right = _windowed(sides[0], sides[1])
    part = f"another {part}: " if (part := document.get("part")) else ""
    return f"{earlier}{document['call']}: {part}{document['field']}: {a} {left}, {b} {right}"


def _spelled(value: Json | Absent) -> str:
    return "absent" if isinstance(value, Absent) else compact(value)


def _windowed(a: str, b: str, width: int = 160) -> tuple[str, str]:
    """Shorten two texts so that where they part is seen."""
    if len(a) <= width and len(b) <= width:
        return a, b
    parted = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, parted - width // 4)
    return _window(a, start, width), _window(b, start, width)


def _window(text: str, start: int, width: int) -> str:
    start = min(start, max(0, len(text) - width))
    cut = text[start : start + width]
    return f"{'… ' if start else ''}{cut}{' …' if start + width < len(text) else ''}"
