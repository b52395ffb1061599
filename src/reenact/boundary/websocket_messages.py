r"""Messages of a websocket, as the pieces of a stream that a recording keeps: one event of `text/event-stream` each.

`event` says which way a message went, and how its data are spelled; `data` are its lines (HTML, 9.2 "Server-sent
events"). What reads streams of models reads these, too: texts that are handed over in pieces are searched as one.

    >>> encode(Message(way="received", data="hello"))
    b'event: received\ndata: hello\n\n'
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Way: TypeAlias = Literal["sent", "received", "late"]
"""From the program, from the server, or none: the program waited for one, and its time was up."""
_WAYS: Final[dict[str, Way]] = {"sent": "sent", "received": "received", "late": "late"}
_BYTES, _BASE64, _JSON = "bytes", "base64", "json"
"""How data are spelled: bytes that are a text as that text, for redaction reads it; other bytes; texts with `\\r`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message, whole: a text, or bytes."""

    way: Way
    data: str | bytes = ""


def encode(message: Message) -> bytes:
    """Spell a message as an event."""
    words: list[str] = [message.way]
    if isinstance(message.data, str):
        text = message.data
    else:
        words.append(_BYTES)
        try:
            text = message.data.decode()
        except UnicodeDecodeError:
            words.append(_BASE64)
            text = base64.b64encode(message.data).decode()
    if "\r" in text:  # it ends a line, too
        words.append(_JSON)
        text = json.dumps(text)
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {' '.join(words)}\n{lines}\n".encode("utf-8", "surrogatepass")


def decode(event: bytes) -> Message | None:
    """Read an event; None where it is none of `encode`'s."""
    name, _, rest = event.decode("utf-8", "surrogatepass").partition("\n")
    prefix, _, spelled = name.partition(": ")
    word, *spelling = spelled.split(" ")
    lines = rest.removesuffix("\n\n").split("\n")
    if prefix != "event" or word not in _WAYS or not all(line.startswith("data: ") for line in lines):
        return None
    text = "\n".join(line.removeprefix("data: ") for line in lines)
    try:
        if _JSON in spelling:
            text = str(json.loads(text))
        data = text if _BYTES not in spelling else text.encode()
        return Message(way=_WAYS[word], data=base64.b64decode(text, validate=True) if _BASE64 in spelling else data)
    except ValueError:  # redaction has spoilt it
        return None
