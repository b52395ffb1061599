"""Edits JSON as vendors and damage do: keys dropped and renamed, values of other kinds, text cut, JSON in text."""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 0.0, -0.5, 1e308, 1.5e18, "", " ", "0", "-1",
    "null", "true", "[]", "{}", "[", '{"a":', '"', "é\u2028", "\ud800", "x" * 3000, "1e999", "NaN", "__proto__",
    "2026-11-20T09:04:31.123456789Z", "9999-99-99T99:99:99Z", "0x", "0" * 32, "f" * 32, [], {}, [[]], [None], [{}],
    {"": ""}, {"a": None}, [1, "a", None, {}], {"values": [{"stringValue": "x"}]}, {"stringValue": 7},
    "data:image/png;base64,", "<not serializable>", "[ChatMessage(_role=<ChatRole.USER: 'user'>)]",
)  # fmt: skip
_DEEP = 200


def mutated(value: Any, rng: random.Random) -> Any:
    """Give `value` with one to six edits, most of them small. Never changes what it is given."""
    copy = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        places = list(_places(copy))
        if not places:
            return _other(copy, rng)
        holder, key = rng.choice(places)
        _edit(holder, key, rng, places)
    return copy


def _places(value: Any) -> Any:
    """Every (holder, key) in a tree, holders being dicts and lists."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = holder.keys() if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in list(keys):
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def _edit(holder: Any, key: Any, rng: random.Random, places: list[tuple[Any, Any]]) -> None:
    if (isinstance(holder, dict) and key not in holder) or (isinstance(holder, list) and key >= len(holder)):
        return  # an edit before this one took it away
    match rng.randrange(9):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[_renamed(str(key), rng)] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), json.loads(json.dumps(holder[key])))
        case 3:
            other, at = rng.choice(places)
            if (at in other) if isinstance(other, dict) else at < len(other):
                holder[key] = json.loads(json.dumps(other[at]))
        case 4:
            holder[key] = json.dumps(holder[key])
        case 5:
            try:
                holder[key] = json.loads(holder[key])
            except (TypeError, ValueError, RecursionError):
                holder[key] = _other(holder[key], rng)
        case _:
            holder[key] = _other(holder[key], rng)


def _renamed(key: str, rng: random.Random) -> str:
    words = key.split(".")
    at = rng.randrange(len(words))
    words[at] = rng.choice(
        ("0", "1", "99999999999", "-1", "", "__proto__", words[at].upper(), words[at] + "s", "content")
    )
    return ".".join(words)


def _other(value: Any, rng: random.Random) -> Any:
    match rng.randrange(6):
        case 0 if isinstance(value, str) and value:
            return value[: rng.randrange(len(value))]
        case 1 if isinstance(value, str):
            at = rng.randrange(len(value) + 1)
            return value[:at] + str(rng.choice(ODD)) + value[at:]
        case 2:
            return [value]
        case 3:
            return {rng.choice(("content", "role", "parts", "type", "values", "text", "kwargs", "0")): value}
        case 4:
            deep: Any = value
            for _ in range(rng.choice((3, 40, _DEEP))):
                deep = rng.choice(([deep], {"a": deep}))
            return deep
        case _:
            return json.loads(json.dumps(rng.choice(ODD)))  # its own: an edit of it must not be an edit of them all
