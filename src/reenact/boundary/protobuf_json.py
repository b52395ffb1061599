"""Messages of protocol buffers as JSON, and back: a span holds text that people read and redaction can search.

In: the bytes of a message and its class, as a stub of gRPC or of proto-plus hands it over. Out: the JSON mapping of
protocol buffers (proto3, "ProtoJSON") with the names of the fields as the schema spells them. A message of which the
JSON would not give the same bytes again, since it has fields that its class does not know, is left as it is; so is one
of a class that nobody knows.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.values import alarms
from reenact.values.json import compact, parsed_or_none

_MARK: Final = b"\0"


def message_class(owner: Any) -> Any:
    """Give the class of a message (or of proto-plus around one), of a message or of a method of one; else None."""
    owner = getattr(owner, "__self__", owner)
    kind = owner if isinstance(owner, type) else type(owner)
    plus: Any = getattr(kind, "pb", None)
    if plus is not None and not hasattr(kind, "DESCRIPTOR"):
        kind = plus()
    return kind if hasattr(kind, "DESCRIPTOR") and hasattr(kind, "FromString") else None


def encode(data: bytes, kind: Any) -> bytes:
    """Spell a message as JSON, in UTF-8; give its own bytes where that cannot be, or `kind` is None."""
    if kind is None:
        return data
    try:
        from google.protobuf import json_format

        message = kind.FromString(data)
        fields = json_format.MessageToDict(message, preserving_proto_field_name=True)
        text = compact(fields).encode()
        same = decode(text, kind) == _bytes(message)
    except Exception:  # a message that JSON cannot hold, such as one with text that is none
        alarms.pass_on()
        return _as_it_is(data)
    return text if same else _as_it_is(data)


def _as_it_is(data: bytes) -> bytes:
    """Mark what begins as JSON or as a mark does, by a byte with which no message begins."""
    return _MARK + data if data[:1] in {b"{", _MARK} else data


def decode(text: bytes, kind: Any) -> bytes:
    """Make the bytes of a message of what `encode` gave. Raises `ValueError` where it is no such message any more."""
    fields = parsed_or_none(text) if text[:1] == b"{" else None
    if kind is None or not isinstance(fields, dict):
        return text.removeprefix(_MARK) if kind is not None else text
    from google.protobuf import json_format

    message: Any = kind()
    return _bytes(json_format.ParseDict(fields, message))


def _bytes(message: Any) -> bytes:
    return message.SerializeToString(deterministic=True)
