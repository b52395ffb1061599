"""Server-sent events: the bytes of a whole stream to its events (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reenact.values.json import Json, parse

DONE = "[DONE]"
"""What OpenAI and those who speak like it send as the data of the last event; it is no JSON and says nothing more."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event. `name` is empty where the stream did not name it."""

    name: str = ""
    data: str = ""


def split(body: bytes) -> list[ServerSentEvent]:
    r"""Split a `text/event-stream` body into its events.

    Lines may end in `\n`, `\r\n` or `\r`; comments, `id:` and `retry:` are left out; several `data:` lines of one
    event are joined by a line feed. Events without data are left out, as the standard has it. Unlike the standard an
    event that the end of the body cut off is given too, since a recording may have lost its last blank line. Bytes
    that are not UTF-8 become U+FFFD.
    """
    text = body.decode("utf-8", "replace").removeprefix(_BOM)
    events: list[ServerSentEvent] = []
    name, data = "", list[str]()
    for line in (*_LINE_END.split(text), ""):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value
            continue
        if data:
            events.append(ServerSentEvent(name=name, data="\n".join(data)))
        name, data = "", []
    return events


def json_events(body: bytes) -> list[Json]:
    """Give the data of each event as JSON, without `[DONE]`.

    Data that is no JSON is given as a string; where it is the last event of the body it was cut off and is left out.
    """
    events = split(body)
    contents: list[Json] = []
    for place, event in enumerate(events, 1):
        if event.data.strip() == DONE:
            continue
        try:
            contents.append(parse(event.data))
        except ValueError:
            if place < len(events):
                contents.append(event.data)
    return contents
