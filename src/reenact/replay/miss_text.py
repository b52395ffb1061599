"""How a miss is spelled: in the ledger, and in one line for whoever reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reenact.values.difference import ABSENT, Absent, FieldDifference, short_json
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object


def about(asked: Json) -> Json:
    """Say in short what a question is about: a function's arguments, the last message to a model."""
    body = as_object(asked).get("body")
    if body is None:
        return as_object(asked).get("arguments")
    messages = as_list(as_object(body).get("messages"))
    return as_object(messages[-1]).get("content") if messages else as_object(body).get("input")


def plain(value: Json | Absent) -> Json:
    """Give a value, or null where there is none."""
    return None if isinstance(value, Absent) else value


def sentence(entry: Mapping[str, Any]) -> str:
    """Say a miss in one line: the call, the field, both values."""
    if "recorded" not in entry or entry.get("reason"):
        return f"{entry['call']}: {entry['reason']}"
    absent = entry.get("absent", ())
    recorded = "absent" if "recorded" in absent else short_json(entry["recorded"])
    replay = "absent" if "replay" in absent else short_json(entry["replay"])
    return f"{entry['call']}: {entry['field']}: recorded {recorded}, replay {replay}"


def differing(fields: Sequence[FieldDifference]) -> dict[str, Any]:
    """Spell the fields in which a question differs from the recorded one that it resembles most, the first apart."""
    first = fields[0]
    return {
        "field": first.path,
        "recorded": plain(first.a),
        "replay": plain(first.b),
        "differences": [
            {"field": each.path, "recorded": plain(each.a), "replay": plain(each.b)} for each in fields[:20]
        ],
        "absent": [side for side, value in (("recorded", first.a), ("replay", first.b)) if value is ABSENT],
    }
