"""What is written down of another program that was started: the one JSON object of its outcome (`docs/schema.md`)."""

from __future__ import annotations

import re
from typing import Final

from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text

UNHEARD: Final = "unheard"
"""What of a child was said past everybody: a list of words such as `stdout`. No replay can give it back."""
CUT: Final = "cut"
"""It said more than is kept, so many bytes; no replay can give it back."""
CHANGED: Final = "changed"
"""Which files changed while it ran: objects of `path` and `how` (`made`, `changed`, `removed`)."""
LOOKS: Final = "looks"
"""How often the agent looked and found it running: a matter of time, which no two runs share."""
LOOKED: Final = "looked"
"""`in part` where its folder was too large to be looked at as a whole."""
SERVED: Final = "served"
"""The ports at which the agent connected to it, 0 for a unix socket: nothing but the program itself can stand there in
a replay. A port that the kernel chose is another one each time."""
LEFT: Final = "reenact.child.left"
"""The attribute of a child whose end the agent did not wait for."""
INHERITED: Final = "reenact.child.inherited"
"""The attribute that lists the streams that went where the agent's own go, and are not witnessed."""
TEMPORARY: Final = "reenact.child.temporary"
"""The attribute that lists the names of temporary files among the words, in the order of their numbers."""


def steady(outcome: Json) -> Json:
    """Give an outcome less what no two runs share."""
    fields = as_object(outcome)
    timely = {
        *(LOOKS, "unread", "ended", CHANGED, LOOKED, SERVED),
        *(("stdin", "stdin_bytes") if fields.get("stdin_broken") else ()),
    }
    rest: Json = {name: value for name, value in fields.items() if name not in timely}
    for number, port in enumerate(as_list(fields.get(SERVED)), 1):
        rest = _without_port(rest, re.compile(rf"(?<!\d){port}(?!\d)"), f"{{port {number}}}") if port else rest
    return rest


def _without_port(value: Json, port: re.Pattern[str], name: str) -> Json:
    if isinstance(value, dict):
        return {key: _without_port(each, port, name) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_port(each, port, name) for each in value]
    return port.sub(name, value) if isinstance(value, str) else value


def lost(outcome: Json) -> str:
    """Say why a recording cannot give a child back; empty where it can."""
    fields = as_object(outcome)
    if fields.get(CUT):
        return "it said more than is kept of a child"
    unheard = [as_text(each) for each in as_list(fields.get(UNHEARD))]
    return f"{' and '.join(unheard)} went past the recorder" if unheard else ""


def conversation(outcome: Json) -> str:
    """Give what a child said while it was talked to; empty for one that heard all before it said anything."""
    pieces = map(as_object, as_list(as_object(outcome).get("talk")))
    return "".join(as_text(piece.get(stream)) for piece in pieces for stream in ("stdout", "stderr"))


def served(outcome: Json) -> bool:
    """Tell whether the agent connected to a child."""
    return bool(as_object(outcome).get(SERVED))


def changed(outcome: Json) -> list[tuple[str, str]]:
    """List the files that changed while a child ran, with how: `made`, `changed`, `removed`."""
    listed = [as_object(each) for each in as_list(as_object(outcome).get(CHANGED))]
    return [(as_text(each.get("path")), as_text(each.get("how"))) for each in listed]
