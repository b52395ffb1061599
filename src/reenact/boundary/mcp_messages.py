"""Messages of the MCP SDK, of either major version, as plain JSON and back."""

from __future__ import annotations

import sys
from typing import Any, Final

from reenact.values import typed
from reenact.values.json import Json
from reenact.values.lenient import as_object

_FAILED: Final = "failed"
"""The key of what a transport hands over in place of a message that it could not read."""


def spelled(item: Any) -> dict[str, Json]:
    """Spell what a transport handed over or is to send."""
    if isinstance(item, Exception):
        return {_FAILED: typed.encode(item)}
    message: Any = getattr(item.message, "root", item.message)
    return message.model_dump(by_alias=True, mode="json", exclude_unset=True)


def unspelled(message: dict[str, Json]) -> Any:
    """Make it again."""
    if _FAILED in message:
        return typed.decode(message[_FAILED])
    make: Any = sys.modules["mcp.shared.message"].SessionMessage
    if is_second_major():
        return make(sys.modules["mcp_types"].jsonrpc_message_adapter.validate_python(message, by_name=False))
    return make(sys.modules["mcp.types"].JSONRPCMessage.model_validate(message))


def is_second_major() -> bool:
    """Tell whether the SDK is of version 2, whose types are a package of their own."""
    return "mcp_types" in sys.modules


def key(number: Json) -> Json:
    """Give the id of a request as the SDK looks it up: a server may send a number back as text."""
    return int(number) if isinstance(number, str) and number.isdigit() else number


def is_reply(message: dict[str, Json]) -> bool:
    """Tell whether a message answers a request."""
    return "method" not in message and "id" in message


def meta(params: Json) -> dict[str, Json]:
    """Give what stands in the `_meta` of parameters."""
    return as_object(as_object(params).get("_meta"))
